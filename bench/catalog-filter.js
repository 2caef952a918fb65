import { readdirSync } from 'node:fs';
import { catalogOf } from './support/catalog.js';
import { compare, opmate, reference } from './support/measure.js';

export const summary =
  'catalog filter on a JSON catalog of 355 MB, as ratios to reading, splitting and JSON.parse';

const cases = [
  { name: 'everything', args: ['--min-version', '0.0.0-0'], maxRatio: 7 },
  { name: 'heads only', args: ['--heads-only'], maxRatio: 3 },
];

export async function run() {
  const catalog = await catalogOf(355, 'json');
  const [first] = readdirSync(catalog).sort();
  const onePackage = { name: 'one package', args: ['--package', first], maxRatio: 3 };
  let good = true;
  for (const { name, args, maxRatio } of [...cases, onePackage]) {
    const subject = [opmate, ['catalog', 'filter', catalog, '-o', '-', ...args]];
    const baseline = [reference, [catalog]];
    good = (await compare({ name, subject, baseline, maxRatio, maxMegabytes: 300 })) && good;
  }
  return good;
}
