import { catalogOf } from './support/catalog.js';
import { compare, opmate, reference } from './support/measure.js';

export const summary = 'commands on a JSON catalog of 350 MB, as ratios to reading, splitting and JSON.parse';

const cases = [
  { name: 'validate', args: ['validate'], maxRatio: 2.5 },
  { name: 'render -o json', args: ['render', '-o', 'json'], maxRatio: 5 },
  { name: 'render -o yaml', args: ['render', '-o', 'yaml'], maxRatio: 9 },
  { name: 'alpha list channels', args: ['alpha', 'list', 'channels'], maxRatio: 2.5 },
];

export async function run() {
  const catalog = await catalogOf(350, 'json');
  let good = true;
  for (const { name, args, maxRatio } of cases) {
    const subject = [opmate, [...args, catalog]];
    const baseline = [reference, [catalog]];
    good = (await compare({ name, subject, baseline, maxRatio, maxMegabytes: 300 })) && good;
  }
  return good;
}
