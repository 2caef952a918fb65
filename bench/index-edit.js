import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { catalogOf } from './support/catalog.js';
import { compare, measure, opmate, timeCommand } from './support/measure.js';

export const summary =
  'a fragment into an index image of 350 MB, without and with the cache of opm, and its gates; ratio to opmate validate';

const runs = 3;
const maxMegabytes = 200;

export async function run() {
  const catalog = await catalogOf(350, 'json');
  const work = mkdtempSync(path.join(tmpdir(), 'opmate-bench-index-'));
  try {
    const fragment = makeFragment(catalog, path.join(work, 'fragment'));
    const index = (name) => `oci:${path.join(work, 'index')}:${name}`;
    for (const [name, more] of [
      ['plain', []],
      ['cached', ['--cache']],
    ])
      await measure(opmate, ['catalog', 'build', catalog, '-i', 'scratch', '--save', index(name), ...more]);
    const add = (name) => ['catalog', 'add-fragment', index(name), fragment, '--save', index(`${name}-new`)];
    const gates = ['--gate', 'pruning,breaking,fips', '--openshift', '4.18'];
    const cases = [
      { name: 'without a cache', args: add('plain'), maxRatio: 3.5 },
      { name: 'with a cache', args: add('cached'), maxRatio: 7 },
      {
        name: 'gates',
        args: ['catalog', 'gate', fragment, '--against', index('plain'), ...gates],
        maxRatio: 3,
      },
    ];
    let good = true;
    for (const { name, args, maxRatio } of cases) {
      const baseline = [opmate, ['validate', catalog]];
      good =
        (await compare({ name, subject: [opmate, args], baseline, runs, maxRatio, maxMegabytes })) && good;
    }
    if (process.env.OPM !== undefined) await timeOpm(process.env.OPM, catalog, path.join(work, 'opm-cache'));
    return good;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Copies the package with the most bundles. */
function makeFragment(catalog, target) {
  const packages = readdirSync(catalog).map((name) => {
    const text = readFileSync(path.join(catalog, name, 'catalog.json'), 'utf8');
    return { name, bundles: text.split('"olm.bundle"').length };
  });
  const { name } = packages.reduce((most, one) => (one.bundles > most.bundles ? one : most));
  cpSync(path.join(catalog, name), path.join(target, name), { recursive: true });
  return target;
}

/** Prints what the named opm takes for the same catalog: its cache, which index builds make whole, and validation. */
async function timeOpm(opm, catalog, cache) {
  for (const args of [
    ['serve', catalog, `--cache-dir=${cache}`, '--cache-only'],
    ['validate', catalog],
  ]) {
    const { seconds, processor } = await timeCommand(opm, args, {});
    console.log(`  opm ${args[0]}: ${seconds.toFixed(2)} s, ${processor.toFixed(2)} s of processor time`);
  }
}
