// Google's JavaScript client and a bucket that is asked for more than it bears: ten writes a second. The server runs with
// `--profile cloud --rate-scale 0.01`, and RANGEHOLD_SCALED_RATES is set.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { Storage } from "@google-cloud/storage";

const scaled = { skip: !process.env.RANGEHOLD_SCALED_RATES && "needs a server with scaled rates" };
const OBJECTS = 40;

// Writes objects at once, each with these conditions. Returns the errors. The bucket stays: deletions would be as slow.
async function save(preconditionOpts) {
  const storage = new Storage({ projectId: "test-project" });
  const [bucket] = await storage.createBucket(`rangehold-${randomUUID()}`);
  const saves = Array.from({ length: OBJECTS }, (_, number) =>
    bucket.file(`${number}`).save("x", { resumable: false, preconditionOpts }),
  );
  const ended = await Promise.allSettled(saves);
  return ended.filter((end) => end.status === "rejected").map((end) => end.reason);
}

test("writes without a condition fail at the first refusal", scaled, async () => {
  const errors = await save(undefined);
  assert.ok(errors.length > 0, "some of them are refused");
  for (const error of errors) assert.ok([429, 503].includes(error.code), `${error.code}: ${error.message}`);
});

test("writes with a condition are repeated until they are made", scaled, async () => {
  assert.deepEqual(await save({ ifGenerationMatch: 0 }), []);
});
