// Updates every second under load: memory, descriptors and stored bytes do not grow. OPMATE_SOAK_SECONDS is its length.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  fetchText,
  startCatalogs,
  versionsIn,
  writeCatalog,
  writeManifest,
} from './support/catalogs-process.js';

export const summary =
  'ten minutes of serve --catalogs with an update every second, readers, slow readers and half requests: nothing grows';

const seconds = Number(process.env.OPMATE_SOAK_SECONDS ?? 600);
const [packages, readers] = [200, 8];
/** Memory of the last third, as a ratio to that of the second one: the first warms up. */
const maxGrowth = 1.15;

export async function run() {
  const root = mkdtempSync(path.join(tmpdir(), 'opmate-bench-soak-'));
  try {
    return await runIn(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function runIn(root) {
  const [manifests, storage] = [path.join(root, 'manifests'), path.join(root, 'storage')];
  await mkdir(manifests);
  await writeCatalog(path.join(root, '0'), packages, '0.0.0');
  await writeManifest(manifests, 'soaked', path.join(root, '0'));
  const server = await startCatalogs(manifests, storage);
  const agent = new Agent({ keepAlive: true, maxSockets: readers });
  const [url, samples, seen] = [`${server.url}/catalogs/soaked/api/v1`, [], new Set()];
  const [begin, end] = [performance.now(), performance.now() + seconds * 1000];
  let [responses, failed, torn] = [0, 0, 0];
  const read = async (path) => {
    while (performance.now() < end) {
      try {
        const { status, text } = await fetchText(`${url}/${path}`, agent);
        if (status !== 200) failed++;
        const versions = path.startsWith('graphql') ? [] : versionsIn(text);
        if (versions.length > 1) torn++;
        for (const version of versions) seen.add(version);
        responses++;
      } catch {
        failed++;
      }
      await sleep(20);
    }
  };
  const query = `graphql?query=${encodeURIComponent('{ olmbundles(limit: 5) { name image } }')}`;
  const paths = ['all', 'metas?package=package-3', 'metas?schema=olm.package', query];
  const reading = Array.from({ length: readers }, (_, i) => read(paths[i % paths.length]));
  const hostile = trouble(server.url, end);
  let updates = 0;
  for (let next = begin; performance.now() < end; next += 1000) {
    const directory = path.join(root, String(++updates % 4));
    await writeCatalog(directory, packages, `0.0.${updates}`);
    await writeManifest(manifests, 'soaked', directory, 1 + (updates % 2));
    samples.push({ memory: server.memory(), descriptors: await server.descriptors() });
    await sleep(Math.max(0, next + 1000 - performance.now()));
  }
  await Promise.all([...reading, hostile]);
  agent.destroy();
  const contents = readdirSync(path.join(storage, 'contents')).filter((name) => /^[0-9a-f]{64}$/.test(name));
  const mean = (from, to, of) => {
    const part = samples.slice(Math.floor(samples.length * from), Math.floor(samples.length * to));
    return part.reduce((sum, one) => sum + of(one), 0) / part.length;
  };
  const memory = [0, 1, 2].map((third) => mean(third / 3, (third + 1) / 3, (one) => one.memory));
  const descriptors = [0, 1, 2].map((third) => mean(third / 3, (third + 1) / 3, (one) => one.descriptors));
  const show = (values) => values.map((value) => value.toFixed(0)).join(', ');
  console.log(
    `  ${updates} updates, ${seen.size} states seen, ${responses} responses in ${seconds} s; peak ${server.peak().toFixed(0)} MB`,
  );
  console.log(
    `  memory by thirds: ${show(memory)} MB; descriptors: ${show(descriptors)}; contents kept: ${contents.length}`,
  );
  console.log(`  failed ${failed}, torn ${torn}`);
  await server.stop();
  const isGood =
    failed === 0 &&
    torn === 0 &&
    memory[2] / memory[1] <= maxGrowth &&
    contents.length <= 2 &&
    seen.size > updates / 2;
  if (!isGood) console.log('  EXCEEDED');
  return isGood;
}

/** Clients that send half a request, read nothing of a response, or hang up in the middle. */
async function trouble(origin, end) {
  const { connect } = await import('node:net');
  const { hostname, port } = new URL(origin);
  const begins = [
    'GET /catalogs/soaked/api/v1/al',
    'POST /catalogs/soaked/api/v1/graphql HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"que',
  ];
  const whole = 'GET /catalogs/soaked/api/v1/all HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const open = [];
  for (let i = 0; performance.now() < end; i++) {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    socket.pause();
    socket.write([...begins, whole][i % 3]);
    open.push(socket);
    if (open.length > 30) open.shift().destroy();
    await sleep(100);
  }
  for (const socket of open) socket.destroy();
}
