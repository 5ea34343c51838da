// Property types: values of every type, also at the limits, come back as they were sent; other values are refused.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { raw, refused } from "../service.js";

const text64KiB = "ä".repeat(32 * 1024);

// [name, the property as it is given to the SDK, the value that the SDK returns (if it differs)]
const ROUND_TRIPS = [
  ["an empty string", ""],
  ["a string that looks like a number", "5"],
  ["a string that looks like a date", "2020-01-01T00:00:00Z"],
  ["a string with quotes, backslashes and control characters", `'"\\/\b\f\n\r\t\u0001`],
  ["a string of 64 KiB", text64KiB],
  ["a string beyond the basic plane", "𐀀 😀 é 你好 \uffff"],
  ["a string in a type annotation", { type: "String", value: "x" }, "x"],
  ["true", true],
  ["false", false],
  ["the smallest Int32", -2147483648],
  ["the largest Int32", 2147483647],
  ["an Int32 given as text", { type: "Int32", value: "12345" }, 12345],
  ["zero", 0],
  ["the smallest Int64", -9223372036854775808n],
  ["the largest Int64", 9223372036854775807n],
  ["an Int64 that fits an Int32", 5n],
  ["an Int64 beyond a double's precision", 9007199254740993n],
  ["a Double", 3.14159],
  ["a Double without a fraction", { type: "Double", value: "5.0" }, 5],
  ["the largest Double", Number.MAX_VALUE],
  ["the smallest Double above zero", Number.MIN_VALUE],
  ["a Double of 17 digits", 0.1 + 0.2],
  ["a Double with a large exponent", 1.5e300],
  ["a Double with a small exponent", -2.5e-10],
  ["a Double given as text", { type: "Double", value: "3.14" }, 3.14],
  ["not a number", { type: "Double", value: "NaN" }, "NaN"],
  ["infinity", { type: "Double", value: "Infinity" }, "Infinity"],
  ["minus infinity", { type: "Double", value: "-Infinity" }, "-Infinity"],
  ["a date with milliseconds", new Date("2021-09-21T01:04:37.967Z")],
  ["a date without a fraction", new Date("1973-10-04T00:00:00Z")],
  ["the first date", new Date("1601-01-01T00:00:00Z")],
  ["the last date in milliseconds", new Date("9999-12-31T23:59:59.999Z")],
  ["a date with an offset", { type: "DateTime", value: "2020-01-01T02:00:00+02:00" }, new Date("2020-01-01T00:00:00Z")],
  ["a date without a zone", { type: "DateTime", value: "2020-01-01T00:00:00" }, new Date("2020-01-01T00:00:00Z")],
  ["a Guid", { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" }],
  ["empty Binary", new Uint8Array(0)],
  ["Binary", new Uint8Array([0, 1, 127, 128, 255])],
  ["Binary of 64 KiB", new Uint8Array(64 * 1024).fill(7)],
];

export default function types(service) {
  describe("types", () => {
    for (const [what, value, expected = value] of ROUND_TRIPS) {
      test(`${what} comes back as it was`, async (t) => {
        const table = await service.newTable(t);
        await table.createEntity({ partitionKey: "p", rowKey: "r", v: value });
        assert.deepEqual(plain((await table.getEntity("p", "r")).v), plain(expected));
        const [listed] = (await table.listEntities().byPage().next()).value;
        assert.deepEqual(plain(listed.v), plain(expected));
      });
    }
    wire(service);
    refusals(service);
  });
}

function wire(service) {
  test("minimal metadata names the types that JSON cannot tell, and no others", async (t) => {
    const table = await service.newTable(t);
    await table.createEntity({
      partitionKey: "p",
      rowKey: "r",
      text: "x",
      flag: true,
      int: 1,
      double: 1.5,
      long: 1n,
      date: new Date(0),
      binary: new Uint8Array([1]),
      guid: { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" },
    });
    const { bodyAsText } = await raw((options) => table.getEntity("p", "r", options));
    const members = Object.entries(JSON.parse(bodyAsText));
    const annotations = members.filter(([name]) => name.endsWith("@odata.type"));
    assert.deepEqual(Object.fromEntries(annotations), {
      "long@odata.type": "Edm.Int64",
      "date@odata.type": "Edm.DateTime",
      "binary@odata.type": "Edm.Binary",
      "guid@odata.type": "Edm.Guid",
    });
    for (const [name] of annotations) {
      const at = members.findIndex(([member]) => member === name);
      assert.equal(members[at + 1][0], name.replace("@odata.type", ""), "an annotation stands before its property");
    }
    assert.deepEqual(
      members.slice(0, 5).map(([name]) => name),
      ["odata.metadata", "odata.etag", "PartitionKey", "RowKey", "Timestamp"],
    );
    assert.deepEqual(
      members
        .slice(5)
        .map(([name]) => name)
        .filter((name) => !name.includes("@")),
      ["text", "flag", "int", "double", "long", "date", "binary", "guid"],
      "properties keep their order",
    );
  });

  test("a Double without a fraction is told from an Int32 on the wire", async (t) => {
    const table = await service.newTable(t);
    await table.createEntity({ partitionKey: "p", rowKey: "r", double: { type: "Double", value: 5 }, int: 5 });
    const { bodyAsText } = await raw((options) => table.getEntity("p", "r", options));
    assert.match(bodyAsText, /"double":5\.0,"int":5}$/);
  });

  test("seven digits of a second's fraction are kept", async (t) => {
    const table = await service.newTable(t);
    const value = "2021-09-21T01:04:37.9678478Z";
    await table.createEntity({ partitionKey: "p", rowKey: "r", v: { type: "DateTime", value } });
    const entity = await table.getEntity("p", "r", { disableTypeConversion: true });
    assert.deepEqual(entity.v, { type: "DateTime", value });
  });

  test("a Guid comes back in lower case", async (t) => {
    const table = await service.newTable(t);
    const value = "C9DA6455-213D-42C9-9A79-3E9149A57833";
    await table.createEntity({ partitionKey: "p", rowKey: "r", v: { type: "Guid", value } });
    assert.equal((await table.getEntity("p", "r")).v.value, value.toLowerCase());
  });
}

function refusals(service) {
  const BAD = [
    ["DateTime", "hello"],
    ["DateTime", "1500-01-01T00:00:00Z", "OutOfRangeInput"],
    ["Guid", "not-a-guid"],
    ["Binary", "***"],
    ["Int32", "3000000000"],
    ["Int32", "1.5"],
    ["Int64", "9223372036854775808"],
    ["Int64", "x"],
    ["Double", "x"],
    ["Boolean", "maybe"],
  ];
  for (const [type, value, code = "InvalidInput"] of BAD) {
    test(`${value} is not of type ${type}`, async (t) => {
      const table = await service.newTable(t);
      await refused(table.createEntity({ partitionKey: "p", rowKey: "r", v: { type, value } }), 400, code);
      await refused(table.getEntity("p", "r"), 404, "ResourceNotFound");
    });
  }
}

// Values by content: the SDK gives a Buffer for a Uint8Array.
function plain(value) {
  return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value;
}
