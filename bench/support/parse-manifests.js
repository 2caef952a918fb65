// The reference for bundles: read every manifest and parse it with js-yaml, on one core.
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { loadAll } from 'js-yaml';

let documents = 0;
for (const directory of process.argv.slice(2)) {
  for (const name of readdirSync(path.join(directory, 'manifests'))) {
    try {
      documents += loadAll(readFileSync(path.join(directory, 'manifests', name), 'utf8'), {
        json: true,
      }).length;
    } catch {
      // What is not YAML for js-yaml does not count.
    }
  }
}
console.log(documents);
