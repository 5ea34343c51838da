// Shared access signatures for the account and for a table, with key ranges and stored policies.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AzureNamedKeyCredential, AzureSASCredential, generateAccountSas, generateTableSas } from "@azure/data-tables";
import { all, newName, refused } from "../service.js";

const HOUR_MS = 3_600_000;
const later = () => new Date(Date.now() + HOUR_MS);
const earlier = () => new Date(Date.now() - HOUR_MS);

const NOT_AUTHENTICATED = "AuthenticationFailed";
const NOT_PERMITTED = "AuthorizationPermissionMismatch";
const NOT_AUTHORIZED = "AuthorizationFailure";

export default function sas(service) {
  describe("shared access signatures", () => {
    ofAccount(service);
    ofTable(service);
    keyRanges(service);
    storedPolicies(service);
  });
}

function ofAccount(service) {
  const accountSas = (options) => generateAccountSas(service.keyCredential, { expiresOn: later(), ...options });
  const everything = { query: true, write: true, delete: true, list: true, add: true, update: true };

  test("an account SAS with every permission does everything", async () => {
    const credential = new AzureSASCredential(accountSas({ permissions: everything, resourceTypes: "sco" }));
    const client = service.client(credential);
    const name = newName();
    await client.createTable(name);
    const table = service.table(name, credential);
    await table.createEntity({ partitionKey: "p", rowKey: "a b", v: 1 });
    await table.updateEntity({ partitionKey: "p", rowKey: "a b", v: 2 }, "Merge");
    await table.upsertEntity({ partitionKey: "p", rowKey: "a b", v: 3 }, "Replace");
    await table.submitTransaction([
      ["create", { partitionKey: "p", rowKey: "b" }],
      ["delete", { partitionKey: "p", rowKey: "a b" }],
    ]);
    assert.deepEqual(
      (await all(table.listEntities())).map((entity) => entity.rowKey),
      ["b"],
    );
    await client.getProperties();
    await client.deleteTable(name);
  });

  test("an account SAS to read does not write", async (t) => {
    const table = await service.newTable(t);
    await table.createEntity({ partitionKey: "p", rowKey: "r", v: 1 });
    const reader = service.tableWithSas(
      table.tableName,
      accountSas({ permissions: { query: true }, resourceTypes: "o" }),
    );
    assert.equal((await reader.getEntity("p", "r")).v, 1);
    const entity = { partitionKey: "p", rowKey: "r", v: 2 };
    const writes = [
      () => reader.createEntity(entity),
      () => reader.updateEntity(entity),
      () => reader.upsertEntity(entity),
      () => reader.deleteEntity("p", "r"),
    ];
    for (const call of writes) await refused(call, 403, NOT_PERMITTED);
    await refused(reader.submitTransaction([["upsert", entity]]), 403, NOT_PERMITTED);
    assert.equal((await table.getEntity("p", "r")).v, 1);
  });

  test("an account SAS for entities does not reach tables or the service", async () => {
    const credential = new AzureSASCredential(accountSas({ permissions: everything, resourceTypes: "o" }));
    const client = service.client(credential);
    await refused(client.createTable(newName()), 403, "AuthorizationResourceTypeMismatch");
    await refused(client.getProperties(), 403, "AuthorizationResourceTypeMismatch");
  });

  test("an account SAS for blobs does not reach tables", async () => {
    const options = { permissions: everything, resourceTypes: "sco", services: { blob: true, table: false } };
    const client = service.client(new AzureSASCredential(accountSas(options)));
    await refused(client.listTables().next(), 403, "AuthorizationServiceMismatch");
  });

  for (const [what, options] of [
    ["expired", { expiresOn: earlier() }],
    ["not yet valid", { startsOn: later(), expiresOn: new Date(Date.now() + 2 * HOUR_MS) }],
  ]) {
    test(`a SAS that is ${what} is refused`, async () => {
      const token = accountSas({ permissions: everything, resourceTypes: "sco", ...options });
      await refused(service.client(new AzureSASCredential(token)).listTables().next(), 403, NOT_AUTHENTICATED);
    });
  }

  test("a SAS that is altered, or signed by another key, is refused", async () => {
    const options = { permissions: { query: true, list: true }, resourceTypes: "sco", expiresOn: later() };
    const altered = generateAccountSas(service.keyCredential, options).replace("sp=rl", "sp=rwl");
    assert.match(altered, /sp=rwl/);
    const stranger = new AzureNamedKeyCredential(service.account, Buffer.alloc(64, 1).toString("base64"));
    for (const token of [altered, generateAccountSas(stranger, options)]) {
      await refused(service.client(new AzureSASCredential(token)).listTables().next(), 403, NOT_AUTHENTICATED);
    }
  });

  test("a SAS for another address is refused", async () => {
    const options = { permissions: everything, resourceTypes: "sco" };
    const elsewhere = accountSas({ ...options, ipRange: { start: "10.0.0.1", end: "10.0.0.9" } });
    await refused(
      service.client(new AzureSASCredential(elsewhere)).listTables().next(),
      403,
      "AuthorizationSourceIPMismatch",
    );
    const here = accountSas({ ...options, ipRange: { start: "127.0.0.0", end: "127.255.255.255" } });
    await service.client(new AzureSASCredential(here)).listTables().next();
  });

  test("a SAS for https only is refused over http", async () => {
    const token = accountSas({ permissions: everything, resourceTypes: "sco", protocol: "https" });
    const listing = () => service.client(new AzureSASCredential(token)).listTables().next();
    if (service.endpoint.startsWith("https:")) await listing();
    else await refused(listing(), 403, "AuthorizationProtocolMismatch");
  });
}

function ofTable(service) {
  const ACTIONS = [
    ["query", (table) => table.getEntity("p", "old")],
    ["query", (table) => table.listEntities().next()],
    ["add", (table) => table.createEntity({ partitionKey: "p", rowKey: "new" })],
    ["update", (table) => table.updateEntity({ partitionKey: "p", rowKey: "old", v: 2 }, "Merge")],
    ["update", (table) => table.updateEntity({ partitionKey: "p", rowKey: "old", v: 3 }, "Replace")],
    ["delete", (table) => table.deleteEntity("p", "old")],
  ];

  for (const permission of ["query", "add", "update", "delete"]) {
    test(`a table SAS to ${permission} does that alone`, async (t) => {
      const owner = await service.newTable(t);
      await owner.createEntity({ partitionKey: "p", rowKey: "old", v: 1 });
      const token = generateTableSas(owner.tableName, service.keyCredential, {
        permissions: { [permission]: true },
        expiresOn: later(),
      });
      const table = service.tableWithSas(owner.tableName, token);
      for (const [needed, action] of ACTIONS) {
        if (needed === permission) await action(table);
        else await refused(action(table), 403, NOT_PERMITTED);
      }
    });
  }

  test("an upsert needs add and update", async (t) => {
    const owner = await service.newTable(t);
    const entity = { partitionKey: "p", rowKey: "r" };
    for (const [permissions, allowed] of [
      [{ add: true }, false],
      [{ update: true }, false],
      [{ add: true, update: true }, true],
    ]) {
      const token = generateTableSas(owner.tableName, service.keyCredential, { permissions, expiresOn: later() });
      const table = service.tableWithSas(owner.tableName, token);
      for (const mode of ["Merge", "Replace"]) {
        if (allowed) await table.upsertEntity(entity, mode);
        else await refused(table.upsertEntity(entity, mode), 403, NOT_PERMITTED);
      }
    }
  });

  test("a table SAS reaches no other table", async (t) => {
    const [one, other] = [await service.newTable(t), await service.newTable(t)];
    const token = generateTableSas(one.tableName, service.keyCredential, {
      permissions: { query: true, add: true },
      expiresOn: later(),
    });
    await service.tableWithSas(one.tableName, token).listEntities().next();
    await assert.rejects(service.tableWithSas(other.tableName, token).listEntities().next(), { statusCode: 403 });
    await assert.rejects(service.client(new AzureSASCredential(token)).listTables().next(), { statusCode: 403 });
  });

  test("a table SAS holds in a transaction", async (t) => {
    const owner = await service.newTable(t);
    const token = generateTableSas(owner.tableName, service.keyCredential, {
      permissions: { add: true },
      expiresOn: later(),
    });
    const table = service.tableWithSas(owner.tableName, token);
    await table.submitTransaction([
      ["create", { partitionKey: "p", rowKey: "1" }],
      ["create", { partitionKey: "p", rowKey: "2" }],
    ]);
    const mixed = table.submitTransaction([
      ["create", { partitionKey: "p", rowKey: "3" }],
      ["delete", { partitionKey: "p", rowKey: "1" }],
    ]);
    await assert.rejects(mixed, { statusCode: 403 });
    assert.deepEqual(
      (await all(owner.listEntities())).map((entity) => entity.rowKey),
      ["1", "2"],
    );
  });
}

function keyRanges(service) {
  const range = { startPartitionKey: "b", startRowKey: "2", endPartitionKey: "c", endRowKey: "2" };
  const inside = [
    ["b", "2"],
    ["b", "3"],
    ["c", "1"],
    ["c", "2"],
  ];
  const outside = [
    ["a", "1"],
    ["a", "3"],
    ["b", "1"],
    ["c", "3"],
    ["d", "1"],
  ];

  test("a table SAS with a key range sees and writes that range alone", async (t) => {
    const owner = await service.newTable(t);
    for (const [partitionKey, rowKey] of [...inside, ...outside]) await owner.createEntity({ partitionKey, rowKey });
    const permissions = { query: true, add: true, update: true, delete: true };
    const token = generateTableSas(owner.tableName, service.keyCredential, {
      permissions,
      expiresOn: later(),
      ...range,
    });
    const table = service.tableWithSas(owner.tableName, token);
    const seen = await all(table.listEntities());
    assert.deepEqual(
      seen.map(({ partitionKey, rowKey }) => [partitionKey, rowKey]),
      inside,
    );
    const paged = await all(table.listEntities().byPage({ maxPageSize: 1 }));
    assert.deepEqual(
      paged.flat().map(({ partitionKey, rowKey }) => [partitionKey, rowKey]),
      inside,
    );
    for (const [partitionKey, rowKey] of inside) {
      await table.upsertEntity({ partitionKey, rowKey, v: 1 }, "Replace");
      assert.equal((await table.getEntity(partitionKey, rowKey)).v, 1);
    }
    for (const [partitionKey, rowKey] of outside) {
      const entity = { partitionKey, rowKey, v: 1 };
      // A read is limited to the key range, so it does not find the entity; a write is refused.
      await refused(table.getEntity(partitionKey, rowKey), 404, "ResourceNotFound");
      const writes = [
        () => table.createEntity(entity),
        () => table.upsertEntity(entity),
        () => table.updateEntity(entity),
        () => table.deleteEntity(partitionKey, rowKey),
      ];
      for (const call of writes) await refused(call, 403, NOT_AUTHORIZED);
      await refused(table.submitTransaction([["upsert", entity]]), 403, NOT_AUTHORIZED);
    }
  });
}

function storedPolicies(service) {
  test("a stored policy gives a SAS its terms, and takes them back", async (t) => {
    const name = (await service.newTable(t)).tableName;
    const owner = service.table(name, service.keyCredential);
    const policy = { start: earlier(), expiry: later(), permission: "r" };
    await owner.setAccessPolicy([{ id: "readers", accessPolicy: policy }]);
    const token = generateTableSas(name, service.keyCredential, { identifier: "readers" });
    assert.ok(!token.includes("sp="), "the token leaves its permissions to the policy");
    const table = service.tableWithSas(name, token);
    assert.deepEqual(await all(table.listEntities()), []);
    await refused(table.createEntity({ partitionKey: "p", rowKey: "r" }), 403, NOT_PERMITTED);

    await owner.setAccessPolicy([{ id: "readers", accessPolicy: { ...policy, permission: "ra" } }]);
    await table.createEntity({ partitionKey: "p", rowKey: "r" });
    await owner.setAccessPolicy([{ id: "readers", accessPolicy: { ...policy, expiry: new Date(Date.now() - 1000) } }]);
    await refused(table.listEntities().next(), 403, NOT_AUTHENTICATED);
    await owner.setAccessPolicy([]);
    await refused(table.listEntities().next(), 403, NOT_AUTHENTICATED);
  });
}
