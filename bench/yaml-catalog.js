import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { catalogOf } from './support/catalog.js';
import { compare, measure, opmate, reference } from './support/measure.js';

export const summary =
  'validate on a YAML catalog of 350 MB: at least 40 MB/s, as a ratio to the JSON reference';

export async function run() {
  const [yaml, json] = [await catalogOf(350, 'yaml'), await catalogOf(350, 'json')];
  const megabytes = readdirSync(yaml).reduce(
    (sum, name) => sum + statSync(path.join(yaml, name, 'catalog.yaml')).size / 1e6,
    0,
  );
  const { seconds } = await measure(opmate, ['validate', yaml]);
  console.log(
    `  ${megabytes.toFixed(0)} MB in ${seconds.toFixed(2)} s: ${(megabytes / seconds).toFixed(0)} MB/s (goal 40)`,
  );
  // The reference reads about 500 MB/s, so twelve times its time is 40 MB/s.
  return compare({
    name: 'validate',
    subject: [opmate, ['validate', yaml]],
    baseline: [reference, [json]],
    runs: 3,
    maxRatio: 12,
    maxMegabytes: 600,
  });
}
