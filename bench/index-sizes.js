import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { measure } from './support/measure.js';

export const summary =
  'sizes and times of indexes of 10 to 100,000 bundles: the cost per bundle must not grow with their number';

const build = fileURLToPath(new URL('./support/build-index.js', import.meta.url));

/** Megabytes that the enhancement reckons with, by number of bundles. */
const expected = new Map([
  [10, 0.2],
  [1000, 33.5],
  [10_000, 300],
  [100_000, 3000],
]);

export async function run() {
  const work = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
  let good = true;
  try {
    for (const kind of ['full', 'minimal']) {
      const seconds = new Map();
      for (const [count, megabytes] of expected) {
        if (count > 10_000 && kind === 'full') continue;
        const file = path.join(work, `${kind}-${count}.db`);
        const used = await measure(build, [file, String(count), kind]);
        seconds.set(count, used.seconds);
        const size = statSync(file).size;
        rmSync(file);
        console.log(
          `  ${count} bundles, ${kind}: ${(size / 1e6).toFixed(2)} MB (enhancement ${megabytes}), ${used.seconds.toFixed(2)} s, ` +
            `${((used.seconds / count) * 1000).toFixed(2)} ms and ${(size / count / 1000).toFixed(1)} KB a bundle, peak ${used.megabytes.toFixed(0)} MB`,
        );
      }
      const growth = seconds.get(10_000) / seconds.get(1000);
      good &&= growth <= 12;
      console.log(
        `  ${kind}: 10,000 bundles cost ${growth.toFixed(1)} times 1,000 (limit 12)${growth <= 12 ? '' : '  EXCEEDED'}`,
      );
    }
    return good;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
