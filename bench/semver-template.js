import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseYaml } from '../dist/document/yaml.js';
import { compare, measure, opmate } from './support/measure.js';
import { pushBundles, readBundles, serveRegistry } from './support/registry.js';

export const summary =
  'semver template of 200 bundle images from a local registry, as a ratio to fetching and unpacking them';

const packageName = 'bench';
const annotations = JSON.stringify({
  annotations: { 'operators.operatorframework.io.bundle.package.v1': packageName },
});

export async function run() {
  const work = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
  const registry = await serveRegistry(work);
  try {
    const references = await pushBundles(registry.host, work, readBundles(200).map(asVersion));
    const template = path.join(work, 'template.yaml');
    const list = (name) =>
      `${name}:\n  bundles:\n${references.map((reference) => `  - image: ${reference}\n`).join('')}`;
    const lists = ['candidate', 'fast', 'stable'].map(list).join('');
    writeFileSync(template, `schema: olm.semver\ngenerateMajorChannels: true\n${lists}`);
    const subject = [opmate, ['template', 'render', '--use-http', 'semver', template]];
    const { seconds } = await measure(...subject);
    console.log(`  ${references.length} images in ${seconds.toFixed(2)} s (goal on two free cores: 3)`);
    const fetchAll = fileURLToPath(new URL('./support/fetch-images.js', import.meta.url));
    return await compare({
      name: `semver template of ${references.length} images`,
      subject,
      baseline: [fetchAll, [registry.url, ...references]],
      runs: 3,
      maxRatio: 8,
      maxMegabytes: 400,
    });
  } finally {
    registry.stop();
    rmSync(work, { recursive: true, force: true });
  }
}

/** A bundle under another name: all of one package, each with a version of its own. */
function asVersion(bundle, index) {
  const version = `1.${Math.floor(index / 10)}.${index % 10}`;
  const manifests = Object.fromEntries(
    Object.entries(bundle.manifests).map(([name, bytes]) => {
      const manifest = parseYaml(bytes.toString());
      if (manifest?.kind !== 'ClusterServiceVersion') return [name, bytes];
      manifest.metadata.name = `${packageName}.v${version}`;
      manifest.spec.version = version;
      return [name, JSON.stringify(manifest)];
    }),
  );
  return { ...bundle, packageName, manifests, metadata: { 'annotations.yaml': annotations } };
}
