import { bundleDirectories } from './support/catalog.js';
import { compare, measure, opmate } from './support/measure.js';
import { fileURLToPath } from 'node:url';

export const summary =
  'render of all bundle directories in one invocation, as a ratio to parsing their files with js-yaml';

export async function run() {
  const directories = [...bundleDirectories().values()].flat();
  const usable = [];
  for (const directory of directories) {
    const rendered = await measure(opmate, ['render', directory]).catch(() => undefined);
    if (rendered !== undefined) usable.push(directory);
    if (usable.length >= Number(process.env.OPMATE_BENCH_BUNDLES ?? 10_000)) break;
  }
  const parse = fileURLToPath(new URL('./support/parse-manifests.js', import.meta.url));
  const { seconds } = await measure(opmate, ['render', ...usable]);
  console.log(
    `  ${usable.length} bundles in ${seconds.toFixed(2)} s: ${(usable.length / seconds).toFixed(0)} bundles/s (goal 160)`,
  );
  return compare({
    name: 'render',
    subject: [opmate, ['render', ...usable]],
    baseline: [parse, usable],
    runs: 3,
    maxRatio: 1,
  });
}
