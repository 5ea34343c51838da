// Single entities: insert, get, update, upsert, delete; ETags and conflicts.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newName, raw, refused } from "../service.js";

const STALE = `W/"datetime'2020-01-01T00%3A00%3A00.0000000Z'"`;

export default function entities(service) {
  describe("entities", () => {
    inserts(service);
    updates(service);
    conditions(service);
    races(service);
  });
}

function inserts(service) {
  test("an inserted entity is read back, with the ETag of its insert", async (t) => {
    const table = await service.newTable(t);
    const { etag } = await table.createEntity({ partitionKey: "p", rowKey: "r", text: "x", number: 7, flag: true });
    assert.match(etag, /^W\/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z'"$/);
    const { timestamp, ...entity } = await table.getEntity("p", "r");
    assert.deepEqual(withoutMetadata(entity), {
      etag,
      partitionKey: "p",
      rowKey: "r",
      text: "x",
      number: 7,
      flag: true,
    });
    assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 60_000, `timestamp ${timestamp} is near now`);
  });

  test("insert answers 204 with the entity's address when no content is wanted", async (t) => {
    const table = await service.newTable(t);
    const response = await raw((options) => table.createEntity({ partitionKey: "p", rowKey: "it's" }, options));
    assert.equal(response.status, 204);
    assert.equal(response.headers.get("preference-applied"), "return-no-content");
    const address = `${service.endpoint}/${table.tableName}(PartitionKey='p',RowKey='it''s')`;
    assert.equal(decodeURIComponent(response.headers.get("location")), address);
    assert.equal(decodeURIComponent(response.headers.get("dataserviceid")), address);
    assert.ok(response.headers.get("etag"));
  });

  test("a second insert under the same key is refused and changes nothing", async (t) => {
    const table = await service.newTable(t);
    await table.createEntity({ partitionKey: "p", rowKey: "r", v: 1 });
    await refused(
      table.createEntity({ partitionKey: "p", rowKey: "r", v: 2 }),
      409,
      "EntityAlreadyExists",
      /The specified entity already exists\./,
    );
    assert.equal((await table.getEntity("p", "r")).v, 1);
  });

  test("what does not exist is not found", async (t) => {
    const table = await service.newTable(t);
    await refused(table.getEntity("p", "r"), 404, "ResourceNotFound", /The specified resource does not exist\./);
    await refused(table.deleteEntity("p", "r"), 404, "ResourceNotFound");
    await refused(table.updateEntity({ partitionKey: "p", rowKey: "r" }, "Merge"), 404, "ResourceNotFound");
    await refused(table.updateEntity({ partitionKey: "p", rowKey: "r" }, "Replace"), 404, "ResourceNotFound");
    const missing = service.table(newName());
    const entity = { partitionKey: "p", rowKey: "r" };
    const calls = [
      () => missing.createEntity(entity),
      () => missing.getEntity("p", "r"),
      () => missing.listEntities().next(),
      () => missing.upsertEntity(entity),
    ];
    for (const call of calls) {
      await refused(call, 404, "TableNotFound", /The table specified does not exist\./);
    }
  });

  test("null properties are not stored", async (t) => {
    const table = await service.newTable(t);
    await table.createEntity({ partitionKey: "p", rowKey: "r", none: null, kept: "x" });
    const entity = await table.getEntity("p", "r");
    assert.ok(!("none" in entity));
    assert.equal(entity.kept, "x");
  });

  test("limits: 252 properties, names of 255 characters, values of 64 KiB, entities of 1 MiB", async (t) => {
    const table = await service.newTable(t);
    const properties = (count) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, i]));
    const insert = (rowKey, more) => table.createEntity({ partitionKey: "p", rowKey, ...more });
    await insert("252", properties(252));
    await refused(insert("253", properties(253)), 400, "TooManyProperties");
    await insert("name255", { ["n".repeat(255)]: 1 });
    await refused(insert("name256", { ["n".repeat(256)]: 1 }), 400, "PropertyNameTooLong");
    await insert("text", { v: "x".repeat(32 * 1024) });
    await refused(insert("text+", { v: "x".repeat(32 * 1024 + 1) }), 400, "PropertyValueTooLarge");
    await insert("binary", { v: new Uint8Array(64 * 1024) });
    await refused(insert("binary+", { v: new Uint8Array(64 * 1024 + 1) }), 400, "PropertyValueTooLarge");
    const big = (count) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, "x".repeat(32 * 1024)]));
    await insert("large", big(15));
    await refused(insert("large+", big(17)), 400, "EntityTooLarge");
    await refused(insert("name", { "no-dash": 1 }), 400, "PropertyNameInvalid");
  });
}

function updates(service) {
  test("merge keeps what it does not name, replace drops it", async (t) => {
    const table = await service.newTable(t);
    await table.createEntity({ partitionKey: "p", rowKey: "r", a: 1, b: "old" });
    await table.updateEntity({ partitionKey: "p", rowKey: "r", b: "new", c: true, a: null }, "Merge");
    assert.deepEqual(await properties(table), { a: 1, b: "new", c: true });
    await table.updateEntity({ partitionKey: "p", rowKey: "r", c: false }, "Replace");
    assert.deepEqual(await properties(table), { c: false });
  });

  test("a property changes its type with its value", async (t) => {
    const table = await service.newTable(t);
    await table.createEntity({ partitionKey: "p", rowKey: "r", v: 1 });
    for (const value of ["text", 12345678901n, true, 2.5]) {
      await table.updateEntity({ partitionKey: "p", rowKey: "r", v: value }, "Merge");
      assert.deepEqual(await properties(table), { v: value });
    }
  });

  test("upsert inserts what is absent, then merges or replaces", async (t) => {
    const table = await service.newTable(t);
    await table.upsertEntity({ partitionKey: "p", rowKey: "r", a: 1 }, "Merge");
    assert.deepEqual(await properties(table), { a: 1 });
    await table.upsertEntity({ partitionKey: "p", rowKey: "r", b: 2 }, "Merge");
    assert.deepEqual(await properties(table), { a: 1, b: 2 });
    await table.upsertEntity({ partitionKey: "p", rowKey: "r", c: 3 }, "Replace");
    assert.deepEqual(await properties(table), { c: 3 });
    await table.upsertEntity({ partitionKey: "p", rowKey: "r2", d: 4 }, "Replace");
    assert.deepEqual(await properties(table, "r2"), { d: 4 });
  });

  test("update, merge and delete answer 204, writes with the new ETag", async (t) => {
    const table = await service.newTable(t);
    await table.createEntity({ partitionKey: "p", rowKey: "r" });
    const entity = { partitionKey: "p", rowKey: "r", v: 1 };
    for (const write of [
      (options) => table.updateEntity(entity, "Merge", options),
      (options) => table.updateEntity(entity, "Replace", options),
      (options) => table.upsertEntity(entity, "Merge", options),
      (options) => table.upsertEntity(entity, "Replace", options),
    ]) {
      const response = await raw(write);
      assert.equal(response.status, 204);
      assert.equal(response.headers.get("etag"), (await table.getEntity("p", "r")).etag);
    }
    const deleted = await raw((options) => table.deleteEntity("p", "r", options));
    assert.equal(deleted.status, 204);
    assert.equal(deleted.headers.get("etag"), undefined);
  });

  test("a deleted entity is gone and its key is free", async (t) => {
    const table = await service.newTable(t);
    await table.createEntity({ partitionKey: "p", rowKey: "r", v: 1 });
    await table.deleteEntity("p", "r");
    await refused(table.getEntity("p", "r"), 404, "ResourceNotFound");
    await table.createEntity({ partitionKey: "p", rowKey: "r", v: 2 });
    assert.deepEqual(await properties(table), { v: 2 });
  });
}

function conditions(service) {
  test("a write with the current ETag passes and makes a new one", async (t) => {
    const table = await service.newTable(t);
    const tags = [(await table.createEntity({ partitionKey: "p", rowKey: "r" })).etag];
    for (const mode of ["Merge", "Replace", "Merge", "Replace"]) {
      const { etag } = await table.updateEntity({ partitionKey: "p", rowKey: "r" }, mode, { etag: tags.at(-1) });
      tags.push(etag);
    }
    assert.equal(new Set(tags).size, tags.length);
    assert.deepEqual([...tags].sort(), tags, "ETags grow");
    await table.deleteEntity("p", "r", { etag: tags.at(-1) });
  });

  test("a write with a stale ETag answers 412 and changes nothing", async (t) => {
    const table = await service.newTable(t);
    const { etag: first } = await table.createEntity({ partitionKey: "p", rowKey: "r", v: 1 });
    await table.updateEntity({ partitionKey: "p", rowKey: "r", v: 2 }, "Replace", { etag: first });
    for (const etag of [first, STALE]) {
      const entity = { partitionKey: "p", rowKey: "r", v: 3 };
      const text = /The update condition specified in the request was not satisfied\./;
      await refused(table.updateEntity(entity, "Merge", { etag }), 412, "UpdateConditionNotSatisfied", text);
      await refused(table.updateEntity(entity, "Replace", { etag }), 412, "UpdateConditionNotSatisfied", text);
      await refused(table.deleteEntity("p", "r", { etag }), 412, "UpdateConditionNotSatisfied", text);
    }
    assert.deepEqual(await properties(table), { v: 2 });
  });

  test("an ETag that is none is refused", async (t) => {
    const table = await service.newTable(t);
    await table.createEntity({ partitionKey: "p", rowKey: "r" });
    await refused(table.deleteEntity("p", "r", { etag: "no-etag" }), 400, "InvalidInput", /etag/i);
  });

  test("an ETag of an entity since deleted and inserted again is stale", async (t) => {
    const table = await service.newTable(t);
    const { etag } = await table.createEntity({ partitionKey: "p", rowKey: "r" });
    await table.deleteEntity("p", "r");
    await table.createEntity({ partitionKey: "p", rowKey: "r" });
    await refused(table.deleteEntity("p", "r", { etag }), 412, "UpdateConditionNotSatisfied");
  });
}

function races(service) {
  test("of many conditional writes against one ETag exactly one passes", async (t) => {
    const table = await service.newTable(t);
    let { etag } = await table.createEntity({ partitionKey: "p", rowKey: "r", v: -1 });
    for (let round = 0; round < 5; round++) {
      const writes = Array.from({ length: 16 }, (_, v) =>
        table.updateEntity({ partitionKey: "p", rowKey: "r", v }, "Replace", { etag }),
      );
      const outcomes = await Promise.allSettled(writes);
      const winners = outcomes.flatMap((outcome, v) => (outcome.status === "fulfilled" ? [v] : []));
      assert.equal(winners.length, 1);
      const losers = outcomes.filter((outcome) => outcome.status === "rejected");
      assert.deepEqual(new Set(losers.map((loser) => loser.reason.statusCode)), new Set([412]));
      const entity = await table.getEntity("p", "r");
      assert.equal(entity.v, winners[0]);
      etag = entity.etag;
    }
  });

  test("of many inserts under one key exactly one passes", async (t) => {
    const table = await service.newTable(t);
    const inserts = Array.from({ length: 16 }, (_, v) => table.createEntity({ partitionKey: "p", rowKey: "r", v }));
    const outcomes = await Promise.allSettled(inserts);
    const winners = outcomes.flatMap((outcome, v) => (outcome.status === "fulfilled" ? [v] : []));
    assert.equal(winners.length, 1);
    assert.deepEqual(await properties(table), { v: winners[0] });
  });

  test("merges of different properties at the same time all stay", async (t) => {
    const table = await service.newTable(t);
    await table.createEntity({ partitionKey: "p", rowKey: "r" });
    const merges = Array.from({ length: 20 }, (_, i) =>
      table.upsertEntity({ partitionKey: "p", rowKey: "r", [`p${i}`]: i }, "Merge"),
    );
    await Promise.all(merges);
    assert.equal(Object.keys(await properties(table)).length, 20);
  });
}

// The properties of entity ("p", rowKey) that a user wrote.
async function properties(table, rowKey = "r") {
  const { etag, partitionKey, rowKey: key, timestamp, ...own } = withoutMetadata(await table.getEntity("p", rowKey));
  return own;
}

// The SDK returns the metadata address under its name on the wire.
function withoutMetadata({ "odata.metadata": metadata, ...entity }) {
  return entity;
}
