// All operations as clients of the cloud send them: over https, with the account in the host's name, and with a
// bearer token whose signature the server verifies. Needs RANGEHOLD_BIN (see server.js).

import { after, describe } from "node:test";
import { suites } from "./operations/index.js";
import { PROGRAM, startServer } from "./server.js";
import { AUDIENCE, ISSUER, TokenCredential, TokenIssuer } from "./tokens.js";

describe("host style with bearer tokens", { skip: !PROGRAM && "RANGEHOLD_BIN names no program" }, async () => {
  const issuer = new TokenIssuer();
  const server = await startServer({ tokens: { issuers: [ISSUER], audiences: [AUDIENCE], keys: [issuer.jwk] } });
  after(() => server.stop());
  const service = server.hostStyle(new TokenCredential(issuer.token()));
  for (const suite of suites) suite(service);
});
