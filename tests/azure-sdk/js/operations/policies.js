// Stored access policies of a table.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { raw, refused } from "../service.js";

export default function policies(service) {
  describe("stored access policies", () => {
    // The service accepts only the account's key for these, not a bearer token.
    const owned = async (t) => service.table((await service.newTable(t)).tableName, service.keyCredential);

    test("a new table has none", async (t) => {
      assert.deepEqual(await policiesOf(await owned(t)), []);
    });

    test("policies are set, read back and replaced", async (t) => {
      const table = await owned(t);
      const start = new Date("2021-06-08T02:10:09Z"),
        expiry = new Date("2031-06-08T02:10:09Z");
      const policies = [
        { id: "full", accessPolicy: { start, expiry, permission: "raud" } },
        { id: "partial", accessPolicy: { permission: "r" } },
        { id: "empty", accessPolicy: {} },
        { id: "with <odd> & 'characters'", accessPolicy: { expiry } },
      ];
      const response = await raw((options) => table.setAccessPolicy(policies, options));
      assert.equal(response.status, 204);
      assert.deepEqual(await policiesOf(table), policies);
      await table.setAccessPolicy(policies.slice(1, 2));
      assert.deepEqual(await policiesOf(table), policies.slice(1, 2));
      await table.setAccessPolicy([]);
      assert.deepEqual(await policiesOf(table), []);
    });

    test("five policies are accepted, six are not", async (t) => {
      const table = await owned(t);
      const policies = (count) =>
        Array.from({ length: count }, (_, i) => ({ id: `id${i}`, accessPolicy: { permission: "r" } }));
      await table.setAccessPolicy(policies(5));
      await refused(table.setAccessPolicy(policies(6)), 400, "InvalidXmlDocument");
      assert.equal((await policiesOf(table)).length, 5);
    });

    test("a table that does not exist has no policies", async (t) => {
      const table = await owned(t);
      await table.deleteTable();
      await refused(table.getAccessPolicy(), 404, "TableNotFound");
      await refused(table.setAccessPolicy([]), 404, "TableNotFound");
      await table.createTable();
    });
  });
}

// The stored policies, without the fields that the SDK gives as undefined.
async function policiesOf(table) {
  return [...(await table.getAccessPolicy())].map(({ id, accessPolicy }) => ({
    id,
    accessPolicy: Object.fromEntries(Object.entries(accessPolicy).filter(([, value]) => value !== undefined)),
  }));
}
