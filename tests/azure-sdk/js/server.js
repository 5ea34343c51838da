// Starts the program with TLS and bearer tokens, for the tests that need both.
//
// RANGEHOLD_BIN names the program. Its data, certificate and settings are in a temporary directory, which is
// removed when the server stops.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Service, WELL_KNOWN_ACCOUNT } from "./service.js";

const LISTENING = /Table service is successfully listening at (https?:\/\/\S+)/;
const START_MS_MAX = 30_000;

export const PROGRAM = process.env.RANGEHOLD_BIN;

// Starts a server with TLS. tokens: "claims-only", or the object of an --oauth file.
export async function startServer({ tokens }) {
  const data = await mkdtemp(join(tmpdir(), "rangehold-js-"));
  const oauth = tokens === "claims-only" ? tokens : join(data, "oauth.json");
  if (oauth !== tokens) await writeFile(oauth, JSON.stringify(tokens));
  const options = [
    "dev",
    "--host",
    "127.0.0.1",
    "--table-port",
    "0",
    "--object-port",
    "0",
    "--admin-port",
    "0",
    "--data",
    join(data, "store"),
    "--tls",
    "self-signed",
    "--oauth",
    oauth,
  ];
  const child = spawn(PROGRAM, options, { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const url = await listeningAt(child);
    return new Server(child, data, url, await readFile(join(data, "store", "tls", "cert.pem")));
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

class Server {
  constructor(child, data, url, certificate) {
    Object.assign(this, { child, data, url: new URL(url), certificate });
  }

  // The account in the cloud's form: in the host's name, with a verified certificate.
  hostStyle(credential, version) {
    const endpoint = `https://${WELL_KNOWN_ACCOUNT}.table.localhost:${this.url.port}`;
    return new Service({ endpoint, credential, version, agent: this.agent });
  }

  // The account in the path, over TLS.
  pathStyle(credential) {
    return new Service({
      endpoint: `https://127.0.0.1:${this.url.port}/${WELL_KNOWN_ACCOUNT}`,
      credential,
      agent: this.agent,
    });
  }

  // Connects to this server for every host name, so that nothing leaves this machine.
  get agent() {
    const lookup = (name, options, done) =>
      options.all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4);
    return (this.connections ??= new https.Agent({ keepAlive: true, ca: this.certificate, lookup }));
  }

  async stop() {
    this.connections?.destroy();
    if (this.child.exitCode === null) {
      this.child.kill("SIGTERM");
      await once(this.child, "exit");
    }
    await rm(this.data, { recursive: true, force: true });
  }
}

// Waits for the line with the address. Reads on after it, so that the program never blocks.
function listeningAt(child) {
  return new Promise((resolve, reject) => {
    const late = setTimeout(
      () => reject(new Error(`${PROGRAM} did not listen within ${START_MS_MAX} ms`)),
      START_MS_MAX,
    );
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${PROGRAM} ended with ${code} before it listened`)));
    createInterface({ input: child.stdout }).on("line", (line) => {
      const [, url] = LISTENING.exec(line) ?? [];
      if (!url) return;
      clearTimeout(late);
      resolve(url);
    });
  });
}
