// 1,000 catalogs with 10,000 packages in one server: start, memory, start again, and a swap under 2,000 clients.
import { mkdtempSync, rmSync } from 'node:fs';
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
  '1,000 catalogs with 10,000 packages in one serve --catalogs, and a swap under 2,000 clients: no failed or torn response';

const [catalogs, packages, clients] = [1000, 10, 2000];
/** Megabytes over those of a server of one catalog; each catalog has an index and an open file. */
const maxMemoryPerCatalog = 0.25;

export async function run() {
  const root = mkdtempSync(path.join(tmpdir(), 'opmate-bench-scale-'));
  try {
    return await runIn(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function runIn(root) {
  const results = [];
  const check = (name, value, unit, limit) => {
    const isGood = value <= limit;
    console.log(`  ${name}: ${value.toFixed(2)} ${unit} (at most ${limit})${isGood ? '' : '  EXCEEDED'}`);
    results.push(isGood);
  };
  const [manifests, single] = [path.join(root, 'manifests'), path.join(root, 'single')];
  for (const directory of [manifests, single]) await mkdir(directory);
  const directoryOf = (i) => path.join(root, 'catalogs', String(i));
  for (let i = 0; i < catalogs; i++) {
    await writeCatalog(directoryOf(i), packages, `1.0.${i}`);
    await writeManifest(manifests, `catalog-${i}`, directoryOf(i));
  }
  await writeManifest(single, 'catalog-0', directoryOf(0));

  const one = await startCatalogs(single, path.join(root, 'single-storage'));
  const base = one.memory();
  await one.stop();

  const storage = path.join(root, 'storage');
  const first = await startCatalogs(manifests, storage);
  console.log(`  first start: ready after ${first.ready.toFixed(1)} s`);
  check('memory per catalog', (first.peak() - base) / catalogs, 'MB', maxMemoryPerCatalog);
  const { text } = await fetchText(`${first.url}/catalogs`);
  check('catalogs missing', catalogs - JSON.parse(text).catalogs.length, '', 0);
  await first.stop();

  const again = await startCatalogs(manifests, storage, ['--max-connections', String(clients + 100)]);
  try {
    console.log(
      `  second start: listening after ${again.listening.toFixed(2)} s, all served after ${again.ready.toFixed(2)} s`,
    );
    check('memory per catalog after a restart', (again.peak() - base) / catalogs, 'MB', maxMemoryPerCatalog);
    await swapUnderLoad(again, check, {
      swap: async () => {
        await writeCatalog(path.join(root, 'next'), packages, '2.0.0');
        await writeManifest(manifests, 'catalog-7', path.join(root, 'next'));
      },
      before: '1.0.7',
      after: '2.0.0',
    });
  } finally {
    await again.stop();
  }
  return results.every(Boolean);
}

/** Every client asks for a catalog again and again, while it is replaced by another state. */
async function swapUnderLoad(server, check, { swap, before, after }) {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const url = `${server.url}/catalogs/catalog-7/api/v1/all`;
  const seen = new Map();
  let [failed, torn, isDone] = [0, 0, false];
  const ask = async () => {
    while (!isDone) {
      try {
        const { status, text } = await fetchText(url, agent);
        if (status !== 200) failed++;
        const versions = versionsIn(text);
        if (versions.length !== 1) torn++;
        for (const version of versions) seen.set(version, (seen.get(version) ?? 0) + 1);
      } catch {
        failed++;
      }
    }
  };
  const start = performance.now();
  const asking = Array.from({ length: clients }, ask);
  const until = async (isMet) => {
    while (!isMet()) await sleep(50);
  };
  await until(() => (seen.get(before) ?? 0) > clients);
  await swap();
  await until(() => (seen.get(after) ?? 0) > 2 * clients);
  isDone = true;
  await Promise.all(asking);
  agent.destroy();
  const total = [...seen.values()].reduce((sum, count) => sum + count, 0);
  const seconds = (performance.now() - start) / 1000;
  console.log(
    `  ${clients} clients: ${total} responses of 45 KB in ${seconds.toFixed(1)} s, ${seen.get(before)} of the old state, ` +
      `${seen.get(after)} of the new; then ${server.memory().toFixed(0)} MB, at most ${server.peak().toFixed(0)} MB`,
  );
  check('failed responses', failed, '', 0);
  check('torn responses', torn, '', 0);
}
