// Tables: create, list, query, delete; their names.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { odata } from "@azure/data-tables";
import { all, newName, raw, refused } from "../service.js";

export default function tables(service) {
  describe("tables", () => {
    test("a table is created, listed and deleted", async () => {
      const client = service.client();
      const name = newName();
      assert.equal((await raw((options) => client.createTable(name, options))).status, 201);
      assert.deepEqual(
        (await named(client, name)).map((table) => table.name),
        [name],
      );
      assert.equal((await raw((options) => client.deleteTable(name, options))).status, 204);
      assert.deepEqual(await named(client, name), []);
    });

    test("creating a table twice answers 409 TableAlreadyExists, in any case of letters", async (t) => {
      const table = await service.newTable(t);
      for (const name of [table.tableName, table.tableName.toUpperCase()]) {
        const again = await raw((options) => service.client().createTable(name, options));
        assert.equal(again.status, 409);
        assert.equal(again.parsedBody.odataError.code, "TableAlreadyExists");
      }
    });

    test("deleting a table that does not exist answers 404 ResourceNotFound", async () => {
      const missing = await raw((options) => service.client().deleteTable(newName(), options));
      assert.equal(missing.status, 404);
      assert.equal(missing.parsedBody.odataError.code, "ResourceNotFound");
    });

    test("a deleted table can be created again at once and is empty", async (t) => {
      const table = await service.newTable(t);
      await table.createEntity({ partitionKey: "p", rowKey: "r" });
      await table.deleteTable();
      await refused(table.getEntity("p", "r"), 404, "TableNotFound");
      await table.createTable();
      assert.deepEqual(await all(table.listEntities()), []);
      await refused(table.getEntity("p", "r"), 404, "ResourceNotFound");
    });

    test("a table keeps the case of its name and is found under any", async (t) => {
      const table = service.table(newName("jsMixedCase"));
      await table.createTable();
      t.after(() => table.deleteTable());
      const shouted = service.table(table.tableName.toUpperCase());
      await shouted.createEntity({ partitionKey: "p", rowKey: "r", v: 1 });
      assert.equal((await table.getEntity("p", "r")).v, 1);
      const [listed] = await named(service.client(), table.tableName);
      assert.equal(listed.name, table.tableName);
    });

    test("a name with wrong characters, or of a wrong length, is refused", async () => {
      for (const name of ["a-b", "a b", "a_b", "1abc", "ünïcode"]) {
        await refused(service.client().createTable(name), 400, "InvalidResourceName");
      }
      for (const name of ["ab", "a".repeat(64)]) {
        await refused(service.client().createTable(name), 400, "OutOfRangeInput", /length/);
      }
    });

    test("names of 3 and of 63 characters are accepted", async () => {
      const client = service.client();
      for (const name of [
        newName("j")
          .slice(0, 3)
          .replace(/[^a-z]/g, "x"),
        newName("j").padEnd(63, "x"),
      ]) {
        await client.createTable(name);
        assert.equal((await named(client, name)).length, 1);
        await client.deleteTable(name);
      }
    });

    test("the list is in order, filtered, and cut into pages with tokens", async (t) => {
      const client = service.client();
      const prefix = newName("list");
      const names = [..."abcdefg"].map((letter) => prefix + letter);
      for (const name of [...names].reverse()) await client.createTable(name);
      t.after(() => Promise.all(names.map((name) => client.deleteTable(name))));

      const filter = odata`TableName ge ${prefix} and TableName lt ${prefix + "z"}`;
      const listed = await all(client.listTables({ queryOptions: { filter } }));
      assert.deepEqual(
        listed.map((table) => table.name),
        names,
      );

      const pages = await all(client.listTables({ queryOptions: { filter } }).byPage({ maxPageSize: 3 }));
      assert.deepEqual(
        pages.map((page) => page.map((table) => table.name)),
        [names.slice(0, 3), names.slice(3, 6), names.slice(6)],
      );
      const resumed = client
        .listTables({ queryOptions: { filter } })
        .byPage({ maxPageSize: 3, continuationToken: pages[0].continuationToken });
      assert.deepEqual(
        (await resumed.next()).value.map((table) => table.name),
        names.slice(3, 6),
      );
      assert.equal(pages.at(-1).continuationToken, undefined);
    });

    test("a filter with a syntax error is refused", async () => {
      const listing = all(service.client().listTables({ queryOptions: { filter: "aaa bbb ccc" } }));
      await refused(listing, 400, "InvalidInput", /Syntax error at position 7 in 'aaa bbb ccc'\./);
    });
  });
}

function named(client, name) {
  return all(client.listTables({ queryOptions: { filter: odata`TableName eq ${name}` } }));
}
