// Bearer tokens in the form of Azure's login service, signed by a key that is made here.

import { generateKeyPairSync, sign } from "node:crypto";

export const TENANT = "ab1f708d-50f6-404c-a006-d71b2ac7a606";
export const ISSUER = `https://sts.windows.net/${TENANT}/`;
export const AUDIENCE = "https://storage.azure.com";
const LIFETIME_SECONDS = 3600;

export class TokenIssuer {
  constructor(keyId = "test-key") {
    this.keyId = keyId;
    const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    this.privateKey = privateKey;
    this.publicKey = publicKey;
  }

  // The public half as a member of a JSON Web Key Set.
  get jwk() {
    return { ...this.publicKey.export({ format: "jwk" }), kid: this.keyId, use: "sig", alg: "RS256" };
  }

  // A token. The arguments replace the usual claims and header fields.
  token(claims = {}, header = {}) {
    const now = Math.floor(Date.now() / 1000);
    const usual = {
      aud: AUDIENCE,
      iss: ISSUER,
      iat: now - 60,
      nbf: now - 60,
      exp: now + LIFETIME_SECONDS,
      tid: TENANT,
      oid: "23657296-5cd5-45b0-a809-d972a7f4dfe1",
      ver: "1.0",
    };
    const content = [
      { typ: "JWT", alg: "RS256", kid: this.keyId, ...header },
      { ...usual, ...claims },
    ]
      .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
      .join(".");
    return `${content}.${sign("RSA-SHA256", Buffer.from(content), this.privateKey).toString("base64url")}`;
  }
}

// A credential of the SDK that always answers with one token.
export class TokenCredential {
  constructor(token) {
    this.token = token;
  }

  async getToken() {
    return { token: this.token, expiresOnTimestamp: Date.now() + LIFETIME_SECONDS * 1000 };
  }
}
