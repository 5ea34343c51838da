// Keys: every legal character in every operation, the refusal of illegal characters, and the order of rows.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { odata } from "@azure/data-tables";
import { all, refused } from "../service.js";

const KEYS = [
  "",
  " ",
  "a b",
  " lead and trail ",
  "it's",
  "''",
  "'",
  "100%",
  "%41",
  "%2F",
  "%252F",
  "a+b",
  "a&b=c",
  "a;b",
  "a:b",
  "a,b",
  "(x)",
  "[x]",
  "{x}",
  "<x>",
  "x|y",
  "x~y",
  "x^y",
  "`x`",
  "!@$*_-",
  '"quoted"',
  "..",
  ".",
  "$batch",
  "$metadata",
  "PartitionKey='x'",
  "é",
  "你好",
  "😀",
  "\u200b",
  "\ufeffx",
  "\u00a0",
  "a".repeat(512),
  "é".repeat(512),
];

export default function keys(service) {
  describe("keys", () => {
    test("any legal key works in every operation", async (t) => {
      const table = await service.newTable(t);
      for (const key of KEYS) await everyOperation(table, key);
    });

    test("any legal key works in a transaction", async (t) => {
      const table = await service.newTable(t);
      for (const key of KEYS) {
        const at = { partitionKey: key, rowKey: key };
        await table.submitTransaction([["create", { ...at, v: 1 }]]);
        await table.submitTransaction([["update", { ...at, v: 2 }, "Replace"]]);
        assert.equal((await table.getEntity(key, key)).v, 2);
        await table.submitTransaction([["delete", at]]);
        await refused(table.getEntity(key, key), 404, "ResourceNotFound");
      }
    });

    test("keys of 1,024 characters are accepted, longer ones are not", async (t) => {
      const table = await service.newTable(t);
      const partitionKey = "p".repeat(1024),
        rowKey = "r".repeat(1024);
      await table.createEntity({ partitionKey, rowKey });
      assert.equal((await table.getEntity(partitionKey, rowKey)).rowKey, rowKey);
      for (const entity of [
        { partitionKey: partitionKey + "x", rowKey },
        { partitionKey, rowKey: rowKey + "x" },
      ]) {
        await refused(table.createEntity(entity), 400, "PropertyValueTooLarge");
      }
    });

    for (const character of ["/", "\\", "#", "?", "\u0000", "\u001f", "\n", "\u007f", "\u009f"]) {
      test(`U+${character.codePointAt(0).toString(16).padStart(4, "0")} is refused in a key`, async (t) => {
        const table = await service.newTable(t);
        const key = `a${character}b`;
        const calls = {
          PartitionKey: () => table.createEntity({ partitionKey: key, rowKey: "r" }),
          RowKey: () => table.createEntity({ partitionKey: "p", rowKey: key }),
        };
        for (const [name, call] of Object.entries(calls)) {
          await refused(call, 400, "OutOfRangeInput", new RegExp(`^The '${name}' parameter of value '`));
        }
        assert.deepEqual(await all(table.listEntities()), []);
      });
    }

    test("rows come in ordinal order of UTF-16 code units", async (t) => {
      const table = await service.newTable(t);
      const sorted = [
        "",
        " ",
        "!",
        "-1",
        "0",
        "1",
        "10",
        "2",
        "A",
        "AA",
        "Z",
        "a",
        "a ",
        "aa",
        "z",
        "é",
        "你",
        "𐀀",
        "😀",
        "\ufb01",
        "\uffff",
      ];
      assert.deepEqual([...sorted].sort(), sorted, "JavaScript sorts by code units");
      for (const key of [...sorted].reverse()) {
        await table.createEntity({ partitionKey: "p", rowKey: key });
        await table.createEntity({ partitionKey: key, rowKey: "r" });
      }
      const rows = await all(table.listEntities({ queryOptions: { filter: "PartitionKey eq 'p'" } }));
      assert.deepEqual(
        rows.map((row) => row.rowKey),
        sorted,
      );
      const partitions = await all(table.listEntities({ queryOptions: { filter: "RowKey eq 'r'" } }));
      assert.deepEqual(
        partitions.map((row) => row.partitionKey),
        sorted,
      );
    });
  });
}

async function everyOperation(table, key) {
  const at = { partitionKey: key, rowKey: key };
  const value = async () => (await table.getEntity(key, key)).v;
  await table.createEntity({ ...at, v: 1 });
  await refused(table.createEntity({ ...at, v: 1 }), 409, "EntityAlreadyExists");
  assert.equal(await value(), 1);
  await table.updateEntity({ ...at, v: 2 }, "Merge");
  assert.equal(await value(), 2);
  await table.updateEntity({ ...at, v: 3 }, "Replace");
  await table.upsertEntity({ ...at, v: 4 }, "Merge");
  await table.upsertEntity({ ...at, v: 5 }, "Replace");
  const filter = odata`PartitionKey eq ${key} and RowKey eq ${key}`;
  const found = await all(table.listEntities({ queryOptions: { filter } }));
  assert.deepEqual(
    found.map(({ partitionKey, rowKey, v }) => ({ partitionKey, rowKey, v })),
    [{ ...at, v: 5 }],
  );
  await table.deleteEntity(key, key);
  await refused(table.getEntity(key, key), 404, "ResourceNotFound");
}
