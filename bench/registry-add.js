import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleDirectories } from './support/catalog.js';
import { compare, opmate } from './support/measure.js';
import { pushBundles, serveRegistry } from './support/registry.js';

export const summary =
  'registry add of 222 bundles in replaces mode and of 30 in semver mode, as a ratio to fetching them';

const fetchAll = fileURLToPath(new URL('./support/fetch-images.js', import.meta.url));

export async function run() {
  const work = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
  const registry = await serveRegistry(work);
  try {
    const references = await pushBundles(registry.host, work, bundlesOfOnePackage(222));
    const add = (mode, count) => {
      const taken = references.slice(0, count);
      const files = ['-d', path.join(work, 'none.db'), '--output-db', path.join(work, `${mode}.db`)];
      return compare({
        name: `add of ${count} bundles, ${mode}`,
        subject: [opmate, ['registry', 'add', '--use-http', '--mode', mode, ...files, '-b', taken.join(',')]],
        baseline: [fetchAll, [registry.url, ...taken]],
        runs: 3,
        maxRatio: 12,
        maxMegabytes: 300,
      });
    };
    // The goals are 5.4 s and 0.8 s, a fifth of what opm takes.
    const replaces = await add('replaces', 222);
    return (await add('semver', 30)) && replaces;
  } finally {
    registry.stop();
    rmSync(work, { recursive: true, force: true });
  }
}

/** Versions of one package, made of those of the operator with the most to read, each replacing the one before. */
function bundlesOfOnePackage(count) {
  const [{ operator, sources }] = [...bundleDirectories()]
    .map(([operator, directories]) => ({
      operator,
      sources: directories.map(readSource).filter((source) => source !== undefined),
    }))
    .sort((a, b) => sizeOf(b.sources) - sizeOf(a.sources));
  const bundles = [];
  for (let i = 0; i < count; i++) {
    const { csvFile, name, version, manifests } = sources[i % sources.length];
    const newVersion = `1.${i}.0`;
    const csv = manifests[csvFile]
      .replaceAll(name, `${operator}.v${newVersion}`)
      .replace(/^ {2}(replaces|skips): .*\n/gm, '')
      .replace(
        `\n  version: ${version}`,
        `\n  version: ${newVersion}${i === 0 ? '' : `\n  replaces: ${operator}.v1.${i - 1}.0`}`,
      );
    const prefix = 'operators.operatorframework.io.bundle';
    const annotations = `annotations:
  ${prefix}.package.v1: ${operator}
  ${prefix}.channels.v1: stable
  ${prefix}.channel.default.v1: stable
`;
    bundles.push({
      name: `bench/${operator}:v${newVersion}`,
      packageName: operator,
      manifests: { ...manifests, [csvFile]: csv },
      metadata: { 'annotations.yaml': annotations },
    });
  }
  return bundles;
}

function sizeOf(sources) {
  return sources.flatMap(({ manifests }) => Object.values(manifests)).join('').length;
}

/** The manifests of a bundle, and what of its CSV has to change; undefined where the CSV is written oddly. */
function readSource(directory) {
  const folder = path.join(directory, 'manifests');
  const manifests = Object.fromEntries(
    readdirSync(folder).map((file) => [file, readFileSync(path.join(folder, file), 'utf8')]),
  );
  const csvFile = Object.keys(manifests).find((file) =>
    /^kind: ClusterServiceVersion$/m.test(manifests[file]),
  );
  const csv = manifests[csvFile] ?? '';
  const name = /^metadata:\n(?:[ ].*\n)*? {2}name: (\S+)$/m.exec(csv)?.[1];
  const version = /^ {2}version: (\S+)$/m.exec(csv)?.[1];
  if (name === undefined || version === undefined || /^ {2}skips:/m.test(csv)) return undefined;
  return { csvFile, name, version, manifests };
}
