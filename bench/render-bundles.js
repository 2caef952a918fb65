import { bundleDirectories } from './support/catalog.js';
import { compare, measure, median, opmate, timeCommand } from './support/measure.js';
import { fileURLToPath } from 'node:url';

export const summary =
  'render of all bundle directories in one invocation, as a ratio to parsing their files with js-yaml; with OPM in the environment, also to opm';

const image = ['--alpha-image-ref-template', 'example.com/bundle:v1'];

/** Processor time of `opm render` and of opmate, in turn. */
async function compareWithOpm(opm, directories) {
  const [ours, theirs] = [[], []];
  for (let run = 0; run < 3; run++) {
    theirs.push((await timeCommand(opm, ['render', ...directories, ...image], {})).processor);
    ours.push(
      (await timeCommand(process.execPath, [opmate, 'render', ...directories, ...image], {})).processor,
    );
  }
  const ratio = median(ours.map((seconds, run) => seconds / theirs[run]));
  const isGood = ratio <= 0.42;
  console.log(
    `  processor time: ${median(ours).toFixed(2)} s, opm ${median(theirs).toFixed(2)} s, ` +
      `ratio ${ratio.toFixed(2)} (limit 0.42)${isGood ? '' : '  EXCEEDED'}`,
  );
  return isGood;
}

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
  const isGood = await compare({
    name: 'render',
    subject: [opmate, ['render', ...usable]],
    baseline: [parse, usable],
    runs: 3,
    maxRatio: 1,
    maxMegabytes: 200,
  });
  return process.env.OPM === undefined ? isGood : (await compareWithOpm(process.env.OPM, usable)) && isGood;
}
