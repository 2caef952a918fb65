// Builds an index of synthetic bundles through the library: BUILD-INDEX FILE COUNT full|minimal.
import { addBundles, editDatabase } from './internals.js';

const [file, count, kind] = process.argv.slice(2);
const perPackage = 20;

/** About 30 KB, as the enhancement reckons with: a CSV and a definition. */
const filler = 'The quick brown fox jumps over the lazy dog. '.repeat(300);

function bundleOf(index) {
  const number = index % perPackage;
  const packageName = `package-${Math.floor(index / perPackage)}`;
  const version = `1.${number}.0`;
  const name = `${packageName}.v${version}`;
  const group = `${packageName}.example.com`;
  const record = {
    name,
    packageName,
    channels: ['stable'],
    defaultChannel: 'stable',
    version,
    skipRange: '',
    replaces: number === 0 ? '' : `${packageName}.v1.${number - 1}.0`,
    skips: [],
    substitutesFor: '',
    image: `quay.io/bench/${packageName}:v${version}`,
    relatedImages: [
      `quay.io/bench/${packageName}-operator:v${version}`,
      `quay.io/bench/${packageName}:v${version}`,
    ],
    dependencies: [],
    properties: [
      { type: 'olm.package', value: JSON.stringify({ packageName, version }) },
      { type: 'olm.gvk', value: JSON.stringify({ group, kind: 'Widget', version: 'v1' }) },
    ],
    providedApis: [{ group, version: 'v1', kind: 'Widget', plural: 'widgets' }],
    requiredApis: [],
  };
  const manifests = async () => {
    const text = `${JSON.stringify({
      apiVersion: 'operators.coreos.com/v1alpha1',
      kind: 'ClusterServiceVersion',
      metadata: { name },
      spec: { description: filler, version },
    })}\n`;
    const csv = Buffer.from(text);
    return { csv, objects: csv };
  };
  return { record, reference: record.image, manifests };
}

// In parts, as an index grows.
const part = 10_000;
for (let start = 0; start < Number(count); start += part) {
  const length = Math.min(part, Number(count) - start);
  const bundles = Array.from({ length }, (_, i) => bundleOf(start + i));
  await editDatabase(file, { create: true }, (database) =>
    addBundles(database, bundles, { mode: 'replaces', minimal: kind === 'minimal' }),
  );
}
