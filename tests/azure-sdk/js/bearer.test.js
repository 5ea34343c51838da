// Which bearer tokens are accepted, by a server that verifies signatures and by one that checks only claims; and how
// the others are refused. Needs RANGEHOLD_BIN (see server.js).

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { all, newName, refused } from "./service.js";
import { PROGRAM, startServer } from "./server.js";
import { AUDIENCE, ISSUER, TENANT, TokenCredential, TokenIssuer } from "./tokens.js";

const skip = !PROGRAM && "RANGEHOLD_BIN names no program";
const issuer = new TokenIssuer();
const stranger = new TokenIssuer(issuer.keyId);
const now = Math.floor(Date.now() / 1000);

// [name, token, whether a server that checks only claims accepts it; undefined: not tested there]
const BAD_TOKENS = [
  ["of a wrong audience", issuer.token({ aud: "https://vault.azure.net" }), false],
  ["without an audience", issuer.token({ aud: undefined }), false],
  ["of an unknown issuer", issuer.token({ iss: "https://login.example/tenant/" }), false],
  ["expired an hour ago", issuer.token({ exp: now - 3600, nbf: now - 7200 }), false],
  ["without an expiry", issuer.token({ exp: undefined }), false],
  ["valid from an hour on", issuer.token({ nbf: now + 3600, exp: now + 7200 }), false],
  ["signed by another key", stranger.token(), true],
  ["with a signature cut off", issuer.token().replace(/\.[^.]*$/, "."), true],
  ["of an unknown key id", issuer.token({}, { kid: "other" }), true],
  ["that says it needs no signature", issuer.token({}, { alg: "none" }).replace(/\.[^.]*$/, "."), undefined],
  ["that names a secret's algorithm", issuer.token({}, { alg: "HS256" }), undefined],
  ["that is not a token", "nonsense", false],
  ["of three empty parts", "..", false],
];

const MODES = [
  ["signatures verified", { issuers: [ISSUER], audiences: [AUDIENCE], keys: [issuer.jwk] }, false],
  ["claims checked alone", "claims-only", true],
];

for (const [mode, tokens, claimsOnly] of MODES) {
  describe(`bearer tokens, ${mode}`, { skip }, () => {
    let server;
    before(async () => {
      server = await startServer({ tokens });
    });
    after(() => server?.stop());

    for (const [what, claims] of [
      ["as issued", {}],
      ["with a slash after the audience", { aud: `${AUDIENCE}/` }],
      ["of the newer issuer form", { iss: `https://login.microsoftonline.com/${TENANT}/v2.0` }],
    ]) {
      // With a file of issuers, only those issuers are accepted.
      if (!claimsOnly && claims.iss) continue;
      test(`a token ${what} is good`, async () => {
        await works(server.hostStyle(new TokenCredential(issuer.token(claims))));
      });
    }

    test("a token is good in path style too", async () => {
      await works(server.pathStyle(new TokenCredential(issuer.token())));
    });

    for (const [what, token, goodByClaims] of BAD_TOKENS) {
      if (claimsOnly && goodByClaims === undefined) continue;
      const good = claimsOnly && goodByClaims;
      test(`a token ${what} is ${good ? "good" : "refused, with a challenge"}`, async () => {
        if (good) await works(server.hostStyle(new TokenCredential(token)));
        else await challenged(server, token);
      });
    }

    test("access policies are not for bearer tokens", async (t) => {
      const service = server.hostStyle(new TokenCredential(issuer.token()));
      const table = await service.newTable(t);
      await refused(table.getAccessPolicy(), 404, "ResourceNotFound");
      await refused(table.setAccessPolicy([]), 404, "ResourceNotFound");
    });

    test("the account's key works beside them", async () => {
      await works(server.hostStyle());
    });
  });
}

async function works(service) {
  const table = service.table(newName());
  await table.createTable();
  await table.submitTransaction([["create", { partitionKey: "p", rowKey: "r", v: 1 }]]);
  assert.deepEqual(
    (await all(table.listEntities())).map((entity) => entity.v),
    [1],
  );
  await table.deleteTable();
}

// The answer is 401 with a challenge that names the issuer of tokens, or 403 in versions before challenges.
async function challenged(server, token) {
  const listing = (version) => server.hostStyle(new TokenCredential(token), version).client().listTables().next();
  await assert.rejects(listing("2020-12-06"), (error) => {
    assert.equal(error.statusCode, 401);
    assert.equal(error.response.headers.get("x-ms-error-code"), "InvalidAuthenticationInfo");
    const challenge = error.response.headers.get("www-authenticate");
    assert.match(
      challenge,
      /^Bearer authorization_uri=https:\/\/login\.microsoftonline\.com\/[^/]+\/oauth2\/authorize /,
    );
    assert.match(challenge, / resource_id=https:\/\/storage\.azure\.com$/);
    return true;
  });
  await refused(listing("2019-02-02"), 403, "AuthenticationFailed");
}
