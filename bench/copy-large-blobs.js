import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasDockerRegistry, serveDockerRegistry } from './support/docker-registry.js';
import { measure, median, opmate } from './support/measure.js';
import { serveRegistry } from './support/registry.js';

export const summary =
  'copying blobs of 1 GB between two registries, as a ratio to the speed of curl into curl; peak memory';

const minRatio = 0.7;
const maxMegabytes = 200;
const gigabyte = 1_000_000_000;
const helper = (name) => fileURLToPath(new URL(`./support/${name}.js`, import.meta.url));

export async function run() {
  const serve = hasDockerRegistry ? serveDockerRegistry : serveRegistry;
  const work = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
  const source = await serve(path.join(work, 'source'));
  try {
    const push = (...args) =>
      execFileSync(process.execPath, [helper('push-large'), source.host, ...args], { encoding: 'utf8' });
    const names = Array.from({ length: 4 }, (_, i) => `bench/large${i}:v1`);
    const digests = push(String(gigabyte), ...names)
      .trim()
      .split('\n');
    const blobs = names.map((name, i) => `${name.split(':')[0]}=${digests[i]}`);

    const ours = [];
    const theirs = [];
    for (let i = 0; i < 3; i++) {
      theirs.push(
        await into(`curl-${i}`, (target) => measure(helper('curl-blobs'), [source.host, target, blobs[0]])),
      );
      ours.push(await into(`opmate-${i}`, (target) => copy(target, names.slice(0, 1))));
    }
    const seconds = median(ours.map((one) => one.seconds));
    const base = median(theirs.map((one) => one.seconds));
    const ratio = base / seconds;
    const fast = ratio >= minRatio;
    console.log(
      `  one blob: ${((gigabyte * 1e-6) / seconds).toFixed(0)} MB/s, curl ${((gigabyte * 1e-6) / base).toFixed(0)} MB/s, ratio ${ratio.toFixed(2)} (limit ${minRatio})${fast ? '' : '  EXCEEDED'}`,
    );
    const all = await into('all', (target) => copy(target, names));
    const peak = Math.max(all.megabytes, ...ours.map((one) => one.megabytes));
    console.log(
      `  four blobs at a time: ${all.seconds.toFixed(1)} s, peak ${peak.toFixed(0)} MB (limit ${maxMegabytes})${peak <= maxMegabytes ? '' : '  EXCEEDED'}`,
    );
    return fast && peak <= maxMegabytes;
  } finally {
    await source.stop();
    rmSync(work, { recursive: true, force: true });
  }

  function copy(target, names) {
    const pairs = names.map((name) => `${source.host}/${name}=${target}/${name}`);
    return measure(opmate, ['mirror', '--use-http', ...pairs]);
  }

  /** Runs something with an empty registry to copy to, which is removed afterwards. */
  async function into(name, use) {
    const directory = path.join(work, name);
    const target = await serve(directory);
    try {
      return await use(target.host);
    } finally {
      await target.stop();
      rmSync(directory, { recursive: true, force: true });
    }
  }
}
