// Transactions: every kind of operation; all or nothing is applied, and the error names the operation that failed.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TableTransaction } from "@azure/data-tables";
import { all, newName, refused } from "../service.js";

export default function transactions(service) {
  describe("transactions", () => {
    successes(service);
    failures(service);
    limits(service);
  });
}

const at = (rowKey, more) => ({ partitionKey: "p", rowKey, ...more });

function successes(service) {
  test("every kind of operation in one transaction", async (t) => {
    const table = await service.newTable(t);
    const rows = ["delete", "merge", "replace", "upsertMerge", "upsertReplace"];
    await table.submitTransaction(rows.map((row) => ["create", at(row, { old: 1 })]));
    const transaction = new TableTransaction();
    transaction.createEntity(at("create", { v: 1 }));
    transaction.deleteEntity("p", "delete");
    transaction.updateEntity(at("merge", { v: 1 }), "Merge");
    transaction.updateEntity(at("replace", { v: 1 }), "Replace");
    transaction.upsertEntity(at("upsertMerge", { v: 1 }), "Merge");
    transaction.upsertEntity(at("upsertNew", { v: 1 }), "Merge");
    transaction.upsertEntity(at("upsertReplace", { v: 1 }), "Replace");
    const { status, subResponses } = await table.submitTransaction(transaction.actions);
    assert.equal(status, 202);
    assert.deepEqual(
      subResponses.map((part) => part.status),
      Array(7).fill(204),
    );

    const stored = await all(table.listEntities());
    assert.deepEqual(Object.fromEntries(stored.map(({ rowKey, old, v }) => [rowKey, [old, v]])), {
      create: [undefined, 1],
      merge: [1, 1],
      replace: [undefined, 1],
      upsertMerge: [1, 1],
      upsertNew: [undefined, 1],
      upsertReplace: [undefined, 1],
    });
    const etags = subResponses.map((part) => part.etag);
    assert.equal(etags[1], undefined, "a delete has no ETag");
    for (const [index, row] of [
      [0, "create"],
      [2, "merge"],
      [3, "replace"],
      [4, "upsertMerge"],
      [6, "upsertReplace"],
    ]) {
      assert.equal(etags[index], stored.find((entity) => entity.rowKey === row).etag, row);
    }
  });

  test("an insert's part names its row", async (t) => {
    const table = await service.newTable(t);
    const response = await table.submitTransaction([
      ["create", at("r1")],
      ["create", at("r2")],
    ]);
    assert.equal(response.getResponseForEntity("r2").etag, (await table.getEntity("p", "r2")).etag);
  });

  test("100 operations are one transaction", async (t) => {
    const table = await service.newTable(t);
    const rows = Array.from({ length: 100 }, (_, i) => String(i).padStart(3, "0"));
    const { subResponses } = await table.submitTransaction(rows.map((row) => ["create", at(row)]));
    assert.equal(subResponses.length, 100);
    assert.deepEqual(
      (await all(table.listEntities())).map((entity) => entity.rowKey),
      rows,
    );
    await table.submitTransaction(rows.map((row) => ["delete", at(row)]));
    assert.deepEqual(await all(table.listEntities()), []);
  });

  test("ETags are checked", async (t) => {
    const table = await service.newTable(t);
    const { etag } = await table.createEntity(at("r", { v: 1 }));
    await table.submitTransaction([["update", at("r", { v: 2 }), "Replace", { etag }]]);
    const again = table.submitTransaction([
      ["create", at("new")],
      ["update", at("r", { v: 3 }), "Replace", { etag }],
    ]);
    await refused(again, 412, "UpdateConditionNotSatisfied", /^1:The update condition/);
    assert.equal((await table.getEntity("p", "r")).v, 2);
    await refused(table.getEntity("p", "new"), 404, "ResourceNotFound");
  });

  test("every type comes through a transaction as it was", async (t) => {
    const table = await service.newTable(t);
    const properties = {
      text: "ä'\"\r\n--changeset",
      flag: true,
      int: -1,
      long: 1n,
      double: 1.5,
      date: new Date(0),
      guid: { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" },
    };
    await table.submitTransaction([["create", at("r", properties)]]);
    const {
      etag,
      partitionKey,
      rowKey,
      timestamp,
      "odata.metadata": metadata,
      ...stored
    } = await table.getEntity("p", "r");
    assert.deepEqual(stored, properties);
  });
}

function failures(service) {
  const CASES = [
    [
      "an insert of what exists",
      ["create", at("old")],
      409,
      "EntityAlreadyExists",
      "The specified entity already exists.",
    ],
    [
      "a merge of what does not exist",
      ["update", at("none"), "Merge"],
      404,
      "ResourceNotFound",
      "The specified resource does not exist.",
    ],
    [
      "a replace of what does not exist",
      ["update", at("none"), "Replace"],
      404,
      "ResourceNotFound",
      "The specified resource does not exist.",
    ],
    [
      "a delete of what does not exist",
      ["delete", at("none")],
      404,
      "ResourceNotFound",
      "The specified resource does not exist.",
    ],
    [
      "a row that came before",
      ["upsert", at("r1"), "Merge"],
      400,
      "InvalidDuplicateRow",
      "The batch request contains multiple changes with same row key.",
    ],
    [
      "a property name that is none",
      ["create", at("bad", { "a-b": 1 })],
      400,
      "PropertyNameInvalid",
      "The property name is invalid.",
    ],
  ];
  for (const [what, action, status, code, text] of CASES) {
    test(`${what} fails the whole transaction and is named by its index`, async (t) => {
      const table = await service.newTable(t);
      await table.createEntity(at("old", { v: 1 }));
      const actions = [
        ["create", at("r0")],
        ["create", at("r1")],
        ["update", at("old", { v: 2 }), "Replace"],
        ["create", at("r3")],
        action,
      ];
      const position = code === "EntityAlreadyExists" ? withoutOld(actions) : actions;
      await refused(table.submitTransaction(position), status, code, new RegExp(`^${position.length - 1}:${text}`));
      const stored = await all(table.listEntities());
      assert.deepEqual(
        stored.map(({ rowKey, v }) => [rowKey, v]),
        [["old", 1]],
        "nothing was applied",
      );
    });
  }

  test("a table that does not exist fails the first operation", async () => {
    const table = service.table(newName());
    await refused(
      table.submitTransaction([["create", at("r")]]),
      404,
      "TableNotFound",
      /^0:The table specified does not exist\./,
    );
  });

  test("of transactions at the same time that share a row, none is torn", async (t) => {
    const table = await service.newTable(t);
    const attempts = Array.from({ length: 12 }, (_, v) =>
      table.submitTransaction(["a", "b", "c", "d"].map((row) => ["upsert", at(row, { v }), "Replace"])),
    );
    await Promise.allSettled(attempts);
    const values = (await all(table.listEntities())).map((entity) => entity.v);
    assert.equal(values.length, 4);
    assert.equal(new Set(values).size, 1, `rows of different transactions: ${values}`);
  });
}

// An insert of "old" must not meet the earlier update of "old".
function withoutOld(actions) {
  return actions.filter(([kind]) => kind !== "update");
}

function limits(service) {
  test("101 operations are refused", async (t) => {
    const table = await service.newTable(t);
    const actions = Array.from({ length: 101 }, (_, i) => ["create", at(String(i))]);
    await refused(
      table.submitTransaction(actions),
      400,
      "InvalidInput",
      /^99:The batch request operation exceeds the maximum 100 changes per change set\./,
    );
    assert.deepEqual(await all(table.listEntities()), []);
  });

  test("a body above 4 MiB is refused", async (t) => {
    const table = await service.newTable(t);
    const actions = Array.from({ length: 70 }, (_, i) => [
      "create",
      at(String(i), { a: "x".repeat(32_000), b: "y".repeat(32_000) }),
    ]);
    await assert.rejects(table.submitTransaction(actions), { statusCode: 413, code: "RequestBodyTooLarge" });
    assert.deepEqual(await all(table.listEntities()), []);
  });

  test("a body just below 4 MiB is accepted", async (t) => {
    const table = await service.newTable(t);
    const actions = Array.from({ length: 64 }, (_, i) => [
      "create",
      at(String(i), { a: "x".repeat(31_000), b: "y".repeat(31_000) }),
    ]);
    const { subResponses } = await table.submitTransaction(actions);
    assert.equal(subResponses.length, 64);
  });
}
