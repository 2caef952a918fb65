import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { measure, opmate } from './support/measure.js';

export const summary =
  'render and list of indexes of 30 and 300 MB: memory must stay below 300 MB, and time grow as the index does';

const build = fileURLToPath(new URL('./support/build-index.js', import.meta.url));
const maxMegabytes = 300;
/** Ten times the bundles; start-up makes the smaller one look dearer. */
const maxGrowth = 12;
const commands = [['render'], ['render', '--migrate'], ['list', 'packages'], ['list', 'channels']];

export async function run() {
  const work = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
  let good = true;
  try {
    const files = [1000, 10_000].map((count) => path.join(work, `${count}.db`));
    for (const file of files) await measure(build, [file, path.basename(file, '.db'), 'full']);
    for (const command of commands) {
      const small = await measure(opmate, [...command, files[0]]);
      const large = await measure(opmate, [...command, files[1]]);
      const growth = large.seconds / small.seconds;
      const fits = large.megabytes <= maxMegabytes && growth <= maxGrowth;
      good &&= fits;
      console.log(
        `  ${command.join(' ')}, ${(statSync(files[1]).size / 1e6).toFixed(0)} MB: ${large.seconds.toFixed(2)} s, ` +
          `peak ${large.megabytes.toFixed(0)} MB (limit ${maxMegabytes}), ` +
          `${growth.toFixed(1)} times the index of a tenth (limit ${maxGrowth})${fits ? '' : '  EXCEEDED'}`,
      );
    }
    return good;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
