// `opmate serve --catalogs` as a process, the manifests and catalogs that it reads, and clients of it.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { opmate } from './measure.js';

/** Starts the server on the manifests of a directory; resolves once it is ready. */
export async function startCatalogs(manifests, storage, args = []) {
  const start = performance.now();
  const serve = ['serve', '--catalogs', manifests, '--storage', storage, '--http', '127.0.0.1:0'];
  const child = spawn(process.execPath, [opmate, ...serve, '--log-level', 'error', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => void child.once('close', resolve));
  const line = await new Promise((resolve, reject) => {
    child.stdout.once('data', (text) => resolve(String(text).trim()));
    void ended.then((code) => reject(new Error(`the server has ended with ${code}`)));
  });
  const { origin: url } = new URL(line);
  const listening = (performance.now() - start) / 1000;
  while ((await fetchText(`${url}/readyz`)).status !== 200) {
    await sleep(20);
  }
  const status = (field) =>
    Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))[1]) /
    1024;
  return {
    url,
    pid: child.pid,
    listening,
    ready: (performance.now() - start) / 1000,
    /** Megabytes that the process holds now, and has held at most. */
    memory: () => status('VmRSS'),
    peak: () => status('VmHWM'),
    descriptors: async () => (await readdir(`/proc/${child.pid}/fd`)).length,
    async stop() {
      child.kill();
      await ended;
    },
  };
}

/** Connections that have had a response. */
const kept = new WeakSet();

/**
 * One response: status and body. A kept connection that the server closes as the request leaves is not counted: clients of
 * HTTP repeat such a request on another one.
 */
export function fetchText(url, agent) {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent }, (response) => {
      kept.add(request.socket);
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString() }),
      );
    });
    request.on('error', (error) => {
      if (kept.has(request.socket) && error.code === 'ECONNRESET') resolve(fetchText(url, agent));
      else reject(error);
    });
  });
}

/** Writes a catalog of so many packages; all blobs have `version`, which tells its states apart. */
export async function writeCatalog(directory, packages, version) {
  await mkdir(directory, { recursive: true });
  const lines = [];
  for (let i = 0; i < packages; i++) {
    const [name, bundle] = [`package-${i}`, `package-${i}.v${version}`];
    const value = { packageName: name, version };
    lines.push(
      { schema: 'olm.package', name, defaultChannel: 'stable', description: 'x'.repeat(500), version },
      { schema: 'olm.channel', package: name, name: 'stable', entries: [{ name: bundle }], version },
      {
        schema: 'olm.bundle',
        package: name,
        name: bundle,
        image: `registry.test/${name}:v${version}`,
        properties: [
          { type: 'olm.package', value },
          { type: 'text', value: 'y'.repeat(4000) },
        ],
        version,
      },
    );
  }
  await writeFile(
    path.join(directory, 'catalog.json'),
    lines.map((one) => `${JSON.stringify(one)}\n`).join(''),
  );
}

/** Writes the manifest of a catalog in a directory. */
export async function writeManifest(manifests, name, directory, minutes = 10) {
  const source = { type: 'Directory', directory: { path: directory, pollIntervalMinutes: minutes } };
  const manifest = {
    apiVersion: 'olm.operatorframework.io/v1',
    kind: 'ClusterCatalog',
    metadata: { name },
    spec: { source },
  };
  await writeFile(path.join(manifests, `${name}.json`), JSON.stringify(manifest));
}

/** Which states the lines of a response are of; one unless it is torn. */
export function versionsIn(text) {
  const versions = new Set();
  for (const line of text.split('\n')) if (line !== '') versions.add(JSON.parse(line).version);
  return [...versions];
}
