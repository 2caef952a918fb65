import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';

import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleDirectories } from './support/catalog.js';
import { compare, measure, opmate } from './support/measure.js';

export const summary =
  'plain manifests of the newest bundle of each operator, as a ratio to parsing their files with js-yaml; memory on 100 MB';

const support = (name) => fileURLToPath(new URL(`./support/${name}.js`, import.meta.url));

export async function run() {
  const newest = [...bundleDirectories().values()].map(newestOf);
  const { seconds } = await measure(support('render-plain'), newest);
  const rate = newest.length / seconds;
  const fast = newest.length < 20 || rate >= 30;
  console.log(
    `  ${newest.length} bundles in ${seconds.toFixed(2)} s: ${rate.toFixed(0)} bundles/s (goal 30)${fast ? '' : '  EXCEEDED'}`,
  );
  const ratio = await compare({
    name: 'bundle render',
    subject: [support('render-plain'), newest],
    baseline: [support('parse-manifests'), newest],
    runs: 3,
    maxRatio: 2,
    maxMegabytes: 300,
  });
  return (await memory(newest[0])) && ratio && fast;
}

function newestOf(directories) {
  const byVersion = new Intl.Collator('en', { numeric: true }).compare;
  return [...directories].sort((a, b) => byVersion(path.basename(a), path.basename(b))).at(-1);
}

/** Rendering a bundle of a hundred ConfigMaps of a megabyte each. */
async function memory(bundle) {
  const work = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
  try {
    for (const part of ['manifests', 'metadata']) {
      mkdirSync(path.join(work, part));
      cpSync(path.join(bundle, part), path.join(work, part), { recursive: true });
    }
    for (let index = 0; index < 100; index++) {
      const lines = Array.from(
        { length: 10_000 },
        (_, line) => `  key-${line}: ${'value '.repeat(15)}${index}`,
      );
      const head = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: large-${index}\ndata:\n`;
      writeFileSync(path.join(work, 'manifests', `large-${index}.yaml`), `${head}${lines.join('\n')}\n`);
    }
    for (const watch of [[], ['--watch-namespace', 'op-system'], ['--watch-namespace', 'watched']]) {
      const args = ['bundle', 'render', work, '--install-namespace', 'op-system', ...watch];
      const used = await measure(opmate, args).catch(() => undefined);
      if (used === undefined) continue;
      const good = used.megabytes <= 300;
      console.log(
        `  ${(used.bytes / 1e6).toFixed(0)} MB of manifests: ${used.seconds.toFixed(1)} s, peak ${used.megabytes.toFixed(0)} MB (limit 300)${good ? '' : '  EXCEEDED'}`,
      );
      return good;
    }
    return false;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
