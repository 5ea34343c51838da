// The service under test, as the operations use it: an endpoint, a credential, and what else a client needs to
// reach it (for host style: a look-up of host names that stays on this machine).

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { AzureNamedKeyCredential, AzureSASCredential, TableClient, TableServiceClient } from "@azure/data-tables";

export const WELL_KNOWN_ACCOUNT = "devstoreaccount1";
export const WELL_KNOWN_KEY =
  "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

export class Service {
  // endpoint: URL of the account. credential: used by all clients; without it, the account's key.
  // agent: an https.Agent, if the server needs one. version: of the service, if it is not the SDK's.
  constructor({ endpoint, account = WELL_KNOWN_ACCOUNT, key = WELL_KNOWN_KEY, credential, agent, version }) {
    this.endpoint = endpoint.replace(/\/$/, "");
    this.account = account;
    this.agent = agent;
    this.version = version;
    this.keyCredential = new AzureNamedKeyCredential(account, key);
    this.credential = credential ?? this.keyCredential;
    this.hostStyle = new URL(endpoint).pathname === "/";
  }

  // A client of the whole account.
  client(credential = this.credential, policies = []) {
    return new TableServiceClient(this.endpoint, credential, this.options(policies));
  }

  // A client of one table.
  table(name, credential = this.credential, policies = []) {
    return new TableClient(this.endpoint, name, credential, this.options(policies));
  }

  // A client of one table that has only a SAS.
  tableWithSas(name, sas) {
    return this.table(name, new AzureSASCredential(sas));
  }

  // A new, empty table with a unique name. It is deleted when the test ends.
  async newTable(test, prefix = "js") {
    const table = this.table(newName(prefix));
    await table.createTable();
    test.after(() => table.deleteTable());
    return table;
  }

  options(policies) {
    const route = {
      name: "route",
      sendRequest: (request, next) => next(Object.assign(request, { agent: this.agent })),
    };
    return {
      version: this.version,
      allowInsecureConnection: this.endpoint.startsWith("http:"),
      // No retries, because a test checks the first answer.
      retryOptions: { maxRetries: 0 },
      additionalPolicies: [route, ...policies].map((policy) => ({ policy, position: "perCall" })),
    };
  }
}

// A table name that no other test uses.
export function newName(prefix = "js") {
  return prefix + randomBytes(8).toString("hex");
}

// Asserts that a call is refused with this status, error code and, where given, text.
export async function refused(call, status, code, text) {
  await assert.rejects(call, (error) => {
    const odata = error.details?.odataError;
    const seen = { status: error.statusCode, code: odata?.code ?? error.details?.errorCode ?? error.code };
    assert.deepEqual(seen, { status, code }, `refused with ${error.message}`);
    if (text) assert.match(odata?.message?.value ?? error.message, text);
    return true;
  });
}

// Runs tasks, at most `width` at a time, and returns their results in order.
export async function inParallel(width, tasks) {
  const results = new Array(tasks.length);
  let next = 0;
  const worker = async () => {
    while (next < tasks.length) {
      const index = next++;
      results[index] = await tasks[index]();
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  return results;
}

// Everything that an async iterator yields.
export async function all(iterator) {
  const items = [];
  for await (const item of iterator) items.push(item);
  return items;
}

// The raw response of an SDK call, beside the SDK's own result: `await raw((o) => client.x(o))`.
export async function raw(call) {
  let response;
  await call({ onResponse: (seen) => (response = seen) });
  return response;
}
