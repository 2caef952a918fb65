import { catalogOf } from './support/catalog.js';
import { measure, opmate } from './support/measure.js';

export const summary = 'peak memory on catalogs of 100 and 700 MB: it must not grow with the catalog';

export async function run() {
  const [small, large] = [await catalogOf(100, 'json'), await catalogOf(700, 'json')];
  let good = true;
  for (const args of [['validate'], ['render'], ['render', '-o', 'yaml'], ['alpha', 'list', 'channels']]) {
    const before = await measure(opmate, [...args, small]);
    const after = await measure(opmate, [...args, large]);
    const grown = after.megabytes / before.megabytes;
    good &&= grown < 1.5 && after.megabytes < 300;
    console.log(
      `  ${args.join(' ')}: ${before.megabytes.toFixed(0)} MB and ${after.megabytes.toFixed(0)} MB, ratio ${grown.toFixed(2)} (limit 1.5)`,
    );
  }
  return good;
}
