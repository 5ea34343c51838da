// Properties of the service, CORS as browsers use it, and the statistics of the secondary endpoint.

import assert from "node:assert/strict";
import http from "node:http";
import https from "node:https";
import { after, before, describe, test } from "node:test";
import { newName, raw, refused } from "../service.js";

const ORIGIN = "https://app.example";
const RETENTION = { enabled: true, days: 5 };

export default function properties(service) {
  describe("service properties", () => {
    const client = service.client();
    let original;
    before(async () => {
      original = await client.getProperties();
    });
    after(() => {
      const { logging, hourMetrics, minuteMetrics, cors = [] } = original;
      return client.setProperties({ logging, hourMetrics, minuteMetrics, cors });
    });

    test("logging and metrics are set and read back", async () => {
      const wanted = {
        logging: { version: "1.0", delete: true, read: true, write: false, retentionPolicy: RETENTION },
        hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: RETENTION },
        minuteMetrics: { version: "1.0", enabled: false, retentionPolicy: { enabled: false } },
      };
      assert.equal((await raw((options) => client.setProperties(wanted, options))).status, 202);
      const { logging, hourMetrics, minuteMetrics } = await client.getProperties();
      // JSON drops the fields that the SDK gives as undefined.
      assert.deepEqual(JSON.parse(JSON.stringify({ logging, hourMetrics, minuteMetrics })), wanted);
    });

    test("what is not named keeps its value", async () => {
      const cors = [corsRule({ allowedOrigins: "https://kept.example" })];
      await client.setProperties({ cors });
      await client.setProperties({
        logging: { version: "1.0", delete: false, read: false, write: true, retentionPolicy: RETENTION },
      });
      const seen = await client.getProperties();
      assert.deepEqual(seen.cors, cors);
      assert.equal(seen.logging.write, true);
      await client.setProperties({ cors: [] });
      const emptied = await client.getProperties();
      assert.deepEqual(emptied.cors ?? [], []);
      assert.equal(emptied.logging.write, true);
    });

    test("retention of more than 365 days, and a sixth CORS rule, are refused", async () => {
      const retentionPolicy = { enabled: true, days: 366 };
      const logging = { version: "1.0", delete: true, read: true, write: true, retentionPolicy };
      await refused(client.setProperties({ logging }), 400, "InvalidXmlDocument");
      await refused(client.setProperties({ cors: Array(6).fill(corsRule({})) }), 400, "InvalidXmlDocument");
    });

    test("a preflight request is answered by the rules", async () => {
      await client.setProperties({ cors: [corsRule({ allowedHeaders: "x-ms-*,content-type" })] });
      const path = `/${newName()}`;
      const asked = {
        origin: ORIGIN,
        "access-control-request-method": "PUT",
        "access-control-request-headers": "x-ms-date",
      };
      const allowed = await send(service, "OPTIONS", path, asked);
      assert.equal(allowed.statusCode, 200);
      assert.equal(allowed.headers["access-control-allow-origin"], ORIGIN);
      assert.match(allowed.headers["access-control-allow-methods"], /PUT/);
      assert.match(allowed.headers["access-control-allow-headers"], /x-ms-/);
      assert.equal(allowed.headers["access-control-max-age"], "500");
      for (const change of [
        { origin: "https://other.example" },
        { "access-control-request-method": "DELETE" },
        { "access-control-request-headers": "x-other" },
      ]) {
        const denied = await send(service, "OPTIONS", path, { ...asked, ...change });
        assert.equal(denied.statusCode, 403);
        assert.match(denied.body, /CorsPreflightFailure/);
        assert.equal(denied.headers["access-control-allow-origin"], undefined);
      }
    });

    test("a request with an allowed origin is told so", async (t) => {
      await client.setProperties({ cors: [corsRule({ exposedHeaders: "etag,x-ms-*" })] });
      const from = (origin) => ({
        name: "origin",
        sendRequest: (request, next) => (request.headers.set("origin", origin), next(request)),
      });
      const { tableName } = await service.newTable(t);
      const page = async (origin) => {
        const table = service.table(tableName, undefined, [from(origin)]);
        return (await raw((options) => table.listEntities(options).next())).headers;
      };
      const allowed = await page(ORIGIN);
      assert.equal(allowed.get("access-control-allow-origin"), ORIGIN);
      assert.equal(allowed.get("access-control-expose-headers"), "etag,x-ms-*");
      assert.equal(allowed.get("access-control-allow-credentials"), "true");
      assert.match(allowed.get("vary"), /origin/i);
      assert.equal((await page("https://other.example")).get("access-control-allow-origin"), undefined);
    });

    test("statistics are those of the secondary", async () => {
      const stats = await service.client(undefined, [secondaryInPath(service)]).getStatistics();
      assert.equal(stats.geoReplication.status, "live");
      assert.ok(Math.abs(stats.geoReplication.lastSyncTime.getTime() - Date.now()) < 3_600_000);
    });
  });
}

function corsRule(more) {
  return {
    allowedOrigins: ORIGIN,
    allowedMethods: "GET,PUT",
    allowedHeaders: "",
    exposedHeaders: "",
    maxAgeInSeconds: 500,
    ...more,
  };
}

// The SDK knows only the host form of a secondary's address; this gives it the path form.
function secondaryInPath({ hostStyle, account }) {
  return {
    name: "secondary in path",
    sendRequest(request, next) {
      if (!hostStyle) request.url = request.url.replace(`/${account}`, `/${account}-secondary`);
      return next(request);
    },
  };
}

// An unsigned request, as a browser's preflight is.
function send(service, method, path, headers) {
  const { request } = service.endpoint.startsWith("https:") ? https : http;
  return new Promise((resolve, reject) => {
    const sent = request(service.endpoint + path, { method, headers, agent: service.agent }, (response) => {
      let body = "";
      response.on("data", (chunk) => (body += chunk));
      response.on("end", () => resolve({ statusCode: response.statusCode, headers: response.headers, body }));
    });
    sent.on("error", reject);
    sent.end();
  });
}
