import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { catalogOf } from './support/catalog.js';
import { measure, median, reference } from './support/measure.js';
import { freePort, startOpm, startOpmate } from './support/registry-server.js';

export const summary =
  'serve on a JSON catalog of 350 MB until it answers, without and with a cache; ratio to reading and JSON.parse';

const runs = 3;
const maxMegabytes = 250;
/** Long enough for all bundles to be encoded. */
const settleMs = 6000;
const cases = [
  { name: 'cold', args: () => [], maxRatio: 3 },
  {
    name: 'cold, with HTTP and the page',
    args: () => ['--http', '127.0.0.1:0', '--ui', '127.0.0.1:0'],
    maxRatio: 4.5,
  },
  { name: 'cold, making a cache', args: (cache) => ['--cache-dir', `${cache}-new`], maxRatio: 3.6 },
  { name: 'warm', args: (cache) => ['--cache-dir', cache], maxRatio: 0.75 },
];

export async function run() {
  const catalog = await catalogOf(350, 'json');
  const parent = mkdtempSync(path.join(tmpdir(), 'opmate-bench-cache-'));
  const cache = path.join(parent, 'cache');
  try {
    await measure(...opmateArgs(['serve', catalog, '--cache-dir', cache, '--cache-only']));
    const baselines = [];
    for (let i = 0; i < runs; i++) baselines.push((await measure(reference, [catalog])).seconds);
    let good = true;
    for (const { name, args, maxRatio } of cases) {
      const seconds = [];
      let megabytes = 0;
      for (let i = 0; i < runs; i++) {
        rmSync(`${cache}-new`, { recursive: true, force: true });
        const server = await startOpmate(catalog, await freePort(), args(cache));
        seconds.push(server.seconds);
        if (i === runs - 1) {
          await sleep(settleMs);
          megabytes = server.memory();
        }
        await server.stop();
      }
      const ratio = median(seconds) / median(baselines);
      const isGood = ratio <= maxRatio && megabytes <= maxMegabytes;
      good = good && isGood;
      console.log(
        `  ${name}: ${median(seconds).toFixed(2)} s, reference ${median(baselines).toFixed(2)} s, ratio ` +
          `${ratio.toFixed(2)} (limit ${maxRatio}), then ${megabytes.toFixed(0)} MB (limit ${maxMegabytes})` +
          `${isGood ? '' : '  EXCEEDED'}`,
      );
    }
    if (process.env.OPM !== undefined) {
      const server = await startOpm(process.env.OPM, catalog, await freePort());
      console.log(`  opm, cold: ${server.seconds.toFixed(2)} s, then ${server.memory().toFixed(0)} MB`);
      await server.stop();
    }
    return good;
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
}

function opmateArgs(args) {
  return [new URL('../bin/opmate.cjs', import.meta.url).pathname, args];
}
