import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasDockerRegistry, serveDockerRegistry } from './support/docker-registry.js';
import { serveLink } from './support/link.js';
import { median, opmate, timeCommand } from './support/measure.js';
import { pushRepositories } from './support/registry.js';

export const summary =
  'requests, processor time and wall time of mirroring 100 images between two docker-registries, beside skopeo and $OC_MIRROR';

const count = 100;
const repositories = 8;
/** One tag list per repository of either side, 100 manifests and 222 blobs, 222 × (POST, PUT) and 100 PUT are 882. */
const maxRequests = 950;
const maxRepeated = 250;
const maxProcessorSeconds = 1;
/** To the same requests by node:http alone: what verifying, retrying, locking and starting cost. */
const maxProcessorRatio = 2;
const maxRatioAtDistance = 1 / 3;
const distanceMs = 50;

const skopeoLoop = fileURLToPath(new URL('./support/skopeo-loop.js', import.meta.url));
const bareMirror = fileURLToPath(new URL('./support/bare-mirror.js', import.meta.url));
const { OC_MIRROR: ocMirror } = process.env;

export async function run() {
  if (!hasDockerRegistry) {
    console.log('  docker-registry is not installed');
    return true;
  }
  const work = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
  const source = await serveDockerRegistry(path.join(work, 'source'), { accessLog: true });
  try {
    const names = await pushRepositories(source.host, work, { count, repositories });
    const ours = { name: 'opmate', again: true, distance: true, command: opmateCommand };
    const bare = { name: 'node:http alone', maxProcessorRatio, command: bareCommand };
    // One process per image, one after the other.
    const others = [bare, { name: 'skopeo', runs: 1, maxRatio: 1 / 6, command: skopeoCommand }];
    if (ocMirror) {
      const sides = { again: true, distance: true };
      others.push({ name: 'oc-mirror', ...sides, maxRatio: 1 / 2, command: ocMirrorCommand });
    }
    const results = new Map();
    for (const tool of [...others, ours]) results.set(tool, await measureTool(tool, { source, names, work }));
    return judge(results.get(ours), new Map(others.map((other) => [other, results.get(other)])));
  } finally {
    await source.stop();
    rmSync(work, { recursive: true, force: true });
  }
}

async function measureTool({ name, runs = 3, again, distance, command }, { source, names, work }) {
  const first = [];
  const repeated = [];
  for (let i = 0; i < runs; i++) {
    const directory = path.join(work, `${name}-${i}`);
    const target = await serveDockerRegistry(path.join(directory, 'target'), { accessLog: true });
    try {
      const counted = async () => {
        source.takeRequests();
        target.takeRequests();
        const [program, args] = command(source.host, target.host, names, directory);
        const times = await timeCommand(program, args, { cwd: directory, HOME: directory });
        return { ...times, requests: [source.takeRequests(), target.takeRequests()] };
      };
      first.push(await counted());
      if (again) repeated.push(await counted());
    } finally {
      await target.stop();
    }
  }
  const result = { first: summarize(first), repeated: again && summarize(repeated) };
  if (distance) result.distant = await measureAtDistance(name, command, { source, names, work });
  for (const [what, one] of Object.entries(result))
    if (one) console.log(`  ${name}, ${what}: ${describe(one)}`);
  return result;
}

/** The same copy where every request waits for a link of 50 ms there and back. */
async function measureAtDistance(name, command, { source, names, work }) {
  const directory = path.join(work, `${name}-distant`);
  const target = await serveDockerRegistry(path.join(directory, 'target'));
  const links = [await serveLink(source.host, distanceMs), await serveLink(target.host, distanceMs)];
  try {
    const [program, args] = command(links[0].host, links[1].host, names, directory);
    return await timeCommand(program, args, { cwd: directory, HOME: directory });
  } finally {
    for (const link of links) link.stop();
    await target.stop();
  }
}

function opmateCommand(source, target, names, directory) {
  const config = writeConfig(source, names, directory);
  const args = ['mirror', '-c', config, '--workspace', `file://${directory}`, '--use-http'];
  return [process.execPath, [opmate, ...args, `docker://${target}`]];
}

function ocMirrorCommand(source, target, names, directory) {
  const config = writeConfig(source, names, directory);
  const flags = ['--v2', '--src-tls-verify=false', '--dest-tls-verify=false'];
  const places = ['--workspace', `file://${directory}`, '--cache-dir', directory];
  return [ocMirror, ['-c', config, ...places, ...flags, `docker://${target}`]];
}

function bareCommand(source, target, names) {
  return [process.execPath, [bareMirror, source, target, ...names]];
}

function skopeoCommand(source, target, names) {
  return [process.execPath, [skopeoLoop, source, target, ...names]];
}

function writeConfig(source, names, directory) {
  const file = path.join(directory, 'imageset.yaml');
  const images = names.map((name) => `    - name: ${source}/${name}\n`).join('');
  const head = 'apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\nmirror:\n';
  writeFileSync(file, `${head}  additionalImages:\n${images}`);
  return file;
}

function summarize(measured) {
  return {
    seconds: median(measured.map(({ seconds }) => seconds)),
    processor: Math.min(...measured.map(({ processor }) => processor)),
    requests: measured.at(-1).requests,
  };
}

function describe({ seconds, processor, requests }) {
  const times = `${seconds.toFixed(2)} s, processor ${processor.toFixed(2)} s`;
  return requests === undefined ? times : `${times}, requests ${requests.join(' + ')}`;
}

function judge({ first, repeated, distant }, others) {
  const sum = ({ requests }) => requests[0] + requests[1];
  const checks = [
    ['requests', sum(first), maxRequests],
    ['requests of a run with nothing to do', sum(repeated), maxRepeated],
    ['processor time', first.processor, maxProcessorSeconds],
  ];
  for (const [{ name, maxRatio, maxProcessorRatio: maxCost }, other] of others) {
    if (maxCost !== undefined)
      checks.push([`processor time to that of ${name}`, first.processor / other.first.processor, maxCost]);
    if (maxRatio !== undefined)
      checks.push([`wall time to that of ${name}`, first.seconds / other.first.seconds, maxRatio]);
    if (other.distant === undefined) continue;
    const ratio = distant.seconds / other.distant.seconds;
    checks.push([`wall time at ${distanceMs} ms to that of ${name}`, ratio, maxRatioAtDistance]);
  }
  for (const [what, value, limit] of checks) {
    const shown = Number(value.toFixed(2));
    console.log(
      `  ${what}: ${shown} (limit ${Number(limit.toFixed(2))})${value <= limit ? '' : '  EXCEEDED'}`,
    );
  }
  return checks.every(([, value, limit]) => value <= limit);
}
