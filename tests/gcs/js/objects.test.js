// What users of Google's JavaScript client do most, against a running object service. STORAGE_EMULATOR_HOST names it.

import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { Storage } from "@google-cloud/storage";

const storage = new Storage({ projectId: "test-project" });
let bucket;

before(async () => {
  [bucket] = await storage.createBucket(`rangehold-${randomUUID()}`);
});

after(async () => {
  await bucket.deleteFiles({ force: true });
  await bucket.delete();
});

test("a small and a large object come back as they were", async () => {
  for (const [name, size, resumable] of [
    ["small", 10, false],
    ["large", 700_000, true],
  ]) {
    const payload = randomBytes(size);
    const file = bucket.file(`folder/${name}`);
    await file.save(payload, { resumable, metadata: { contentType: "image/x-test", metadata: { colour: "red" } } });
    const [found] = await file.download();
    assert.deepEqual(found, payload);
    const [metadata] = await file.getMetadata();
    assert.equal(metadata.contentType, "image/x-test");
    assert.deepEqual(metadata.metadata, { colour: "red" });
    const [part] = await file.download({ start: 3, end: 6, validation: false });
    assert.deepEqual(part, payload.subarray(3, 7));
  }
});

test("a listing has files and folders, page by page", async () => {
  for (const name of ["list/a", "list/b/1", "list/b/2", "list/c"]) await bucket.file(name).save("x");
  const [files, , reply] = await bucket.getFiles({ prefix: "list/", delimiter: "/", autoPaginate: false });
  assert.deepEqual(files.map((file) => file.name), ["list/a", "list/c"]);
  assert.deepEqual(reply.prefixes, ["list/b/"]);
  const all = [];
  let query = { prefix: "list/", maxResults: 1, autoPaginate: false };
  while (query) {
    const [page, next] = await bucket.getFiles(query);
    all.push(...page.map((file) => file.name));
    query = next;
  }
  assert.deepEqual(all, ["list/a", "list/b/1", "list/b/2", "list/c"]);
});

test("a write with a condition that does not hold is refused", async () => {
  const file = bucket.file("guarded");
  await file.save("first", { preconditionOpts: { ifGenerationMatch: 0 }, resumable: false });
  const second = file.save("second", { preconditionOpts: { ifGenerationMatch: 0 }, resumable: false });
  await assert.rejects(second, { code: 412 });
});

test("an object is copied, moved, combined and deleted", async () => {
  await bucket.file("one").save("1");
  await bucket.file("two").save("2");
  await bucket.combine(["one", "two"], "both");
  await bucket.file("both").copy(bucket.file("copy"));
  await bucket.file("both").move("moved");
  const [text] = await bucket.file("moved").download();
  assert.equal(text.toString(), "12");
  assert.deepEqual(await bucket.file("both").exists(), [false]);
  await bucket.file("copy").delete();
  await assert.rejects(bucket.file("copy").getMetadata(), { code: 404 });
});

test("labels, versions and a lifecycle are settings of a bucket", async () => {
  await bucket.setLabels({ team: "red" });
  await bucket.addLifecycleRule({ action: { type: "Delete" }, condition: { age: 365 } });
  const [metadata] = await bucket.getMetadata();
  assert.deepEqual(metadata.labels, { team: "red" });
  assert.equal(metadata.lifecycle.rule[0].condition.age, 365);
});
