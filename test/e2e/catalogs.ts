/** Small catalogs, written by hand. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { projectRoot } from '../support/command-line.js';

/** A valid catalog of one package with a channel of four bundles, a blob a line. */
export const widgetCatalog = readFileSync(path.join(projectRoot, 'fixtures/fbc-cases/valid.json'), 'utf8');

/** One of the catalogs that have something special or wrong, and what `opm validate` says of it. */
export function caseOf(name: string): { catalog: string; message: string } {
  const read = (suffix: string): string =>
    readFileSync(path.join(projectRoot, `fixtures/fbc-cases/${name}.${suffix}`), 'utf8');
  return { catalog: read('json'), message: read('txt') };
}

/** The blobs of a package with one channel, one bundle an entry. */
export function catalogOf(packageName: string, entries: { name: string; replaces?: string }[]): string {
  const blobs = [
    { schema: 'olm.package', name: packageName, defaultChannel: 'stable' },
    { schema: 'olm.channel', package: packageName, name: 'stable', entries },
    ...entries.map(({ name }, i) => ({
      schema: 'olm.bundle',
      name,
      package: packageName,
      image: `quay.io/example/${packageName}:v${i}`,
      properties: [{ type: 'olm.package', value: { packageName, version: `1.${i}.0` } }],
    })),
  ];
  return blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('');
}
