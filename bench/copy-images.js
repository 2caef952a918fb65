import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasDockerRegistry, serveDockerRegistry } from './support/docker-registry.js';
import { measure, median, opmate } from './support/measure.js';
import { pushBundles, readBundles, serveRegistry } from './support/registry.js';

export const summary =
  'copying 100 bundle images between two registries, as a ratio to skopeo copying one after the other';

const maxRatio = 1 / 3;
const runs = 3;

export async function run() {
  let good = true;
  const kinds = { "opmate's registry": serveRegistry, 'docker-registry': serveDockerRegistry };
  if (!hasDockerRegistry) delete kinds['docker-registry'];
  for (const [kind, serve] of Object.entries(kinds)) {
    const work = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
    try {
      good = (await compareOn(kind, serve, work)) && good;
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  }
  return good;
}

async function compareOn(kind, serve, work) {
  const source = await serve(path.join(work, 'source'));
  try {
    const bundles = hundredBundles();
    await pushBundles(source.host, work, bundles);
    const names = bundles.map(({ name }) => name);
    const loop = fileURLToPath(new URL('./support/skopeo-loop.js', import.meta.url));
    const ours = [];
    const theirs = [];
    for (let i = 0; i < runs; i++) {
      theirs.push(await into(`skopeo-${i}`, (target) => measure(loop, [source.host, target.host, ...names])));
      ours.push(
        await into(`opmate-${i}`, (target) => {
          const mapping = path.join(work, `mapping-${i}.txt`);
          const lines = names.map((name) => `${source.host}/${name}=${target.host}/${name}\n`);
          writeFileSync(mapping, lines.join(''));
          return measure(opmate, ['mirror', '--use-http', '-f', mapping]);
        }),
      );
    }
    const seconds = median(ours.map((one) => one.seconds));
    const base = median(theirs.map((one) => one.seconds));
    const ratio = seconds / base;
    const peak = Math.max(...ours.map((one) => one.megabytes));
    console.log(
      `  ${kind}: ${seconds.toFixed(2)} s, skopeo ${base.toFixed(2)} s, ratio ${ratio.toFixed(2)} (limit ${maxRatio.toFixed(2)}), peak ${peak.toFixed(0)} MB${ratio <= maxRatio ? '' : '  EXCEEDED'}`,
    );
    return ratio <= maxRatio;
  } finally {
    await source.stop();
  }

  /** Runs something with an empty registry to copy to. */
  async function into(name, use) {
    const target = await serve(path.join(work, name));
    try {
      return await use(target);
    } finally {
      await target.stop();
    }
  }
}

/** Bundles no two of which are alike. */
function hundredBundles() {
  return readBundles(100).map((bundle, i) => ({
    ...bundle,
    packageName: `${bundle.packageName}-${i}`,
    metadata: { ...bundle.metadata, 'number.txt': String(i) },
  }));
}
