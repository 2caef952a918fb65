// Makes the catalogs that benchmarks read: real bundles, replicated under new package names.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { encodeBlob, readBundleDirectory, renderBundleFiles } from './internals.js';

const fixtures = fileURLToPath(new URL('../../fixtures/bundles', import.meta.url));

/** Directory of operators, each with version directories: the corpus where there is one, else the fixtures. */
export function bundlesDirectory() {
  return process.env.OPMATE_CORPUS === undefined ? fixtures : path.join(process.env.OPMATE_CORPUS, 'bundles');
}

/** All bundle directories, by operator. */
export function bundleDirectories(root = bundlesDirectory()) {
  const operators = new Map();
  for (const operator of readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    const folder = path.join(root, operator.name);
    const versions = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    operators.set(
      operator.name,
      versions.map((version) => path.join(folder, version.name)),
    );
  }
  return operators;
}

/**
 * A catalog of at least `megabytes`, with the bundles' objects in it (`olm.bundle.object`), one file a
 * package. Made once and kept in the temporary directory.
 */
export async function catalogOf(megabytes, format) {
  const size = bundlesDirectory() === fixtures ? 'fixtures' : 'corpus';
  const directory = path.join(tmpdir(), `opmate-bench-${size}-${megabytes}-${format}`);
  if (existsSync(directory)) return directory;
  const staging = `${directory}.new`;
  rmSync(staging, { recursive: true, force: true });
  const packages = await renderPackages();
  let total = 0;
  for (let copy = 0; total < megabytes * 1e6; copy++) {
    for (const [operator, bundles] of packages) {
      const name = copy === 0 ? operator : `${operator.slice(0, 55)}-${copy}`;
      const text = packageText(name, bundles, format);
      mkdirSync(path.join(staging, name), { recursive: true });
      writeFileSync(path.join(staging, name, `catalog.${format}`), text);
      total += Buffer.byteLength(text);
    }
  }
  renameSync(staging, directory);
  return directory;
}

async function renderPackages() {
  const packages = new Map();
  for (const [operator, directories] of bundleDirectories()) {
    const bundles = new Map();
    for (const directory of directories) {
      const blob = await renderOrSkip(directory);
      if (blob !== undefined && !versionsOf(bundles).has(versionOf(blob))) bundles.set(blob.name, blob);
    }
    if (bundles.size > 0) packages.set(operator, [...bundles.values()]);
  }
  return packages;
}

async function renderOrSkip(directory) {
  try {
    return renderBundleFiles(await readBundleDirectory(directory), {
      subject: directory,
      image: `quay.io/bench/${path.basename(path.dirname(directory))}:v${path.basename(directory).replaceAll('+', '_')}`,
    });
  } catch {
    // Some bundles of the corpus are there because they cannot be rendered.
    return undefined;
  }
}

function versionOf(blob) {
  const { value } = blob.properties.find((property) => property.type === 'olm.package');
  return (value.text === undefined ? value : JSON.parse(value.text)).version;
}

function versionsOf(bundles) {
  return new Set([...bundles.values()].map(versionOf));
}

/** A valid package: its bundles under a new name, in one channel that goes from each to the next. */
function packageText(name, bundles, format) {
  const renamed = bundles.map((blob) => ({
    ...blob,
    package: name,
    properties: blob.properties.map((property) =>
      property.type === 'olm.package'
        ? { type: property.type, value: { packageName: name, version: versionOf(blob) } }
        : property,
    ),
  }));
  const entries = renamed.map((blob, i) => ({
    name: blob.name,
    replaces: i === 0 ? '' : renamed[i - 1].name,
    skips: [],
    skipRange: '',
  }));
  const blobs = [
    {
      kind: 'package',
      blob: { schema: 'olm.package', name, defaultChannel: 'stable', description: '', properties: [] },
    },
    {
      kind: 'channel',
      blob: { schema: 'olm.channel', name: 'stable', package: name, entries, properties: [] },
    },
    ...renamed.map((blob) => ({ kind: 'bundle', blob })),
  ];
  return blobs.map((blob) => encodeBlob(blob, format)).join('');
}
