// Paging: 10,000 entities come once each and in order, with every size of pages.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { all, inParallel, newName, raw, refused } from "../service.js";

const PARTITIONS = 10;
const ROWS = 1000;
const TRANSACTION_OPERATIONS = 100;

export default function paging(service) {
  describe("paging through 10,000 entities", () => {
    const table = service.table(newName("paging"));
    const addresses = Array.from({ length: PARTITIONS * ROWS }, (_, i) => [
      `p${Math.floor(i / ROWS)}`,
      String(i % ROWS).padStart(4, "0"),
    ]);

    before(async () => {
      await table.createTable();
      await inParallel(
        4,
        transactions(addresses).map((actions) => () => table.submitTransaction(actions)),
      );
    });
    after(() => table.deleteTable());

    test("pages hold 1,000 by default", async () => {
      const pages = await all(table.listEntities().byPage());
      assert.deepEqual(
        pages.map((page) => page.length),
        Array(PARTITIONS).fill(ROWS),
      );
      assert.deepEqual(addressesOf(pages.flat()), addresses);
      assert.equal(pages.at(-1).continuationToken, undefined);
    });

    test("without pages, all come in order", async () => {
      assert.deepEqual(addressesOf(await all(table.listEntities())), addresses);
    });

    test("pages of another size hold the same", async () => {
      const pages = await all(table.listEntities().byPage({ maxPageSize: 777 }));
      assert.ok(pages.every((page) => page.length <= 777));
      assert.deepEqual(addressesOf(pages.flat()), addresses);
    });

    test("a token goes on in another client", async () => {
      const first = await table.listEntities().byPage({ maxPageSize: 450 }).next();
      const { continuationToken } = first.value;
      const rest = await all(service.table(table.tableName).listEntities().byPage({ continuationToken }));
      assert.deepEqual(addressesOf([first.value, ...rest].flat()), addresses);
    });

    test("a filter that few match finds them on any page", async () => {
      const filter = "RowKey eq '0500' and n ge 0";
      const found = await all(table.listEntities({ queryOptions: { filter, select: ["partitionKey", "rowKey"] } }));
      assert.deepEqual(
        addressesOf(found),
        addresses.filter(([, row]) => row === "0500"),
      );
    });

    test("a partition and a row range are paged alone", async () => {
      const filter = "PartitionKey eq 'p3' and RowKey ge '0100' and RowKey lt '0300'";
      const pages = await all(table.listEntities({ queryOptions: { filter } }).byPage({ maxPageSize: 64 }));
      assert.deepEqual(
        pages.map((page) => page.length),
        [64, 64, 64, 8],
      );
      assert.deepEqual(addressesOf(pages.flat()), addresses.slice(3100, 3300));
    });

    test("tokens name the next entity in the recorded form", async () => {
      const { headers } = await raw((options) =>
        table
          .listEntities({ ...options, queryOptions: { filter: "RowKey eq '0001'" } })
          .byPage({ maxPageSize: 1 })
          .next(),
      );
      assert.match(headers.get("x-ms-continuation-nextpartitionkey"), /^1!\d+![A-Za-z0-9_-]+$/);
      assert.match(headers.get("x-ms-continuation-nextrowkey"), /^1!\d+![A-Za-z0-9_-]+$/);
    });

    test("entities inserted and deleted between pages do not disturb the others", async () => {
      const pages = table
        .listEntities({ queryOptions: { filter: "PartitionKey eq 'p9'" } })
        .byPage({ maxPageSize: 300 });
      const seen = [(await pages.next()).value];
      await table.createEntity({ partitionKey: "p9", rowKey: "0000-behind" });
      await table.createEntity({ partitionKey: "p9", rowKey: "0900-ahead" });
      seen.push(...(await all(pages)));
      const rows = seen.flat().map((entity) => entity.rowKey);
      assert.ok(rows.includes("0900-ahead") && !rows.includes("0000-behind"));
      assert.deepEqual(
        rows.filter((row) => row.length === 4),
        addresses.slice(9000).map(([, row]) => row),
      );
      await table.deleteEntity("p9", "0000-behind");
      await table.deleteEntity("p9", "0900-ahead");
    });
  });

  describe("paging", () => {
    test("goes on through empty keys", async (t) => {
      const table = await service.newTable(t);
      const rows = [
        ["", ""],
        ["", "b"],
        ["a", ""],
        ["a", "b"],
        ["b", ""],
        ["b", "c"],
      ];
      for (const [partitionKey, rowKey] of rows) await table.createEntity({ partitionKey, rowKey });
      const pages = await all(table.listEntities().byPage({ maxPageSize: 1 }));
      assert.deepEqual(addressesOf(pages.flat()), rows);
    });

    test("a page larger than 1,000 cannot be asked for", async (t) => {
      const table = await service.newTable(t);
      await refused(table.listEntities().byPage({ maxPageSize: 1001 }).next(), 400, "InvalidInput");
    });
  });
}

// The inserts of all entities, as transactions of one partition each.
function transactions(addresses) {
  const cuts = [];
  for (let at = 0; at < addresses.length; at += TRANSACTION_OPERATIONS) {
    const part = addresses.slice(at, at + TRANSACTION_OPERATIONS);
    cuts.push(
      part.map(([partitionKey, rowKey], i) => ["create", { partitionKey, rowKey, n: at + i, text: "x".repeat(20) }]),
    );
  }
  return cuts;
}

function addressesOf(entities) {
  return entities.map(({ partitionKey, rowKey }) => [partitionKey, rowKey]);
}
