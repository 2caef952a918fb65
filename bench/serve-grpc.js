// OPM=PATH measures that opm beside opmate; with GHZ=PATH too, both are called by that ghz in turn, which is what counts:
// it is a program of its own, and reports what the servers' CPU time of each call was. CATALOG=PATH is another catalog.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleType, requestTypes } from '../dist/catalog/content/messages.js';
import { catalogOf } from './support/catalog.js';
import { measure, opmate } from './support/measure.js';
import {
  call,
  connect,
  freePort,
  ghzRate,
  rate,
  startOpm,
  startOpmate,
  startServer,
} from './support/registry-server.js';

export const summary =
  'calls of the registry API with 8 callers (node:http2), as ratios to a bare node:http2 server that sends buffers of the same sizes';

const bareServer = fileURLToPath(new URL('./support/bare-server.js', import.meta.url));
const minBundleRatio = 0.6;
const minPackages = 0.4;
/** CPU time of a call with ghz as a ratio to that of opm, whose calls may take several cores. */
const maxOpmCpu = {
  'api.Registry/GetPackage': 1.25,
  'api.Registry/GetBundle': 1,
  'api.Registry/ListBundles': 1,
};
/** Bundles of about this size are asked for. */
const [smallest, largest] = [150_000, 400_000];

export async function run() {
  const catalog = process.env.CATALOG ?? (await catalogOf(350, 'json'));
  const cache = mkdtempSync(path.join(tmpdir(), 'opmate-bench-cache-'));
  const stopping = [];
  try {
    await measure(opmate, ['serve', catalog, '--cache-dir', cache, '--cache-only']);
    const server = await startOpmate(catalog, await freePort(), ['--cache-dir', cache]);
    stopping.push(server);
    const { requests, sizes, names } = await chooseBundles(server.port);
    const bare = await startBare(sizes);
    stopping.push(bare);
    const tiny = await startBare([Math.round(smallSize(catalog))]);
    stopping.push(tiny);
    const packages = [requestTypes.getPackage.encode({ name: names[0].pkgName })];

    // In turn, so that what else the machine does counts for both.
    const rounds = [];
    for (let i = 0; i < 3; i++) {
      rounds.push({
        bundles: await rate(server.port, '/api.Registry/GetBundle', requests),
        bareBundles: await rate(bare.port, '/bare', requests),
        packages: await rate(server.port, '/api.Registry/GetPackage', packages),
        barePackages: await rate(tiny.port, '/bare', packages),
      });
    }
    const of = (key) => rounds.map((round) => round[key]).sort((a, b) => a - b)[1];
    const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length / 1000;
    const report = (name, got, base, limit) => {
      const ratio = got / base;
      const isGood = ratio >= limit;
      console.log(
        `  ${name}: ${got.toFixed(0)}/s, bare ${base.toFixed(0)}/s, ratio ${ratio.toFixed(2)} (least ${limit})` +
          `${isGood ? '' : '  MISSED'}`,
      );
      return isGood;
    };
    const good = [
      report(`GetBundle of ${mean.toFixed(0)} KB`, of('bundles'), of('bareBundles'), minBundleRatio),
      report('GetPackage', of('packages'), of('barePackages'), minPackages),
    ];
    console.log(`  ListBundles: ${await listing(server.port)}; then ${server.memory().toFixed(0)} MB`);
    if (process.env.OPM !== undefined) {
      const opm = await startOpm(process.env.OPM, catalog, await freePort());
      stopping.push(opm);
      const bundles = await rate(opm.port, '/api.Registry/GetBundle', requests);
      const small = await rate(opm.port, '/api.Registry/GetPackage', packages);
      console.log(
        `  opm: GetBundle ${bundles.toFixed(0)}/s, GetPackage ${small.toFixed(0)}/s, ListBundles ${await listing(opm.port)}; ` +
          `then ${opm.memory().toFixed(0)} MB`,
      );
      if (process.env.GHZ !== undefined)
        good.push(await compareByGhz(process.env.GHZ, server, opm, names[0]));
    }
    return good.every(Boolean);
  } finally {
    for (const one of stopping) await one.stop();
    rmSync(cache, { recursive: true, force: true });
  }
}

/** Returns whether opmate stays within its limits. */
async function compareByGhz(ghz, server, opm, bundle) {
  const calls = {
    'api.Registry/GetPackage': [{ name: bundle.pkgName }, 20_000],
    'api.Registry/GetBundle': [bundle, 5_000],
    'api.Registry/ListBundles': [{}, 20],
  };
  let isGood = true;
  for (const [method, [request, count]] of Object.entries(calls)) {
    const rounds = [];
    for (let i = 0; i < 3; i++) {
      rounds.push({
        opm: await ghzRate(ghz, opm, method, request, count),
        opmate: await ghzRate(ghz, server, method, request, count),
      });
    }
    // Others on the machine only take away.
    const most = (name) => Math.max(...rounds.map((round) => round[name].rate));
    const least = (name) => Math.min(...rounds.map((round) => round[name].microseconds));
    const [rateRatio, cpuRatio] = [most('opmate') / most('opm'), least('opmate') / least('opm')];
    const isBelow = cpuRatio > maxOpmCpu[method];
    console.log(
      `  ${method} with ghz: ${most('opmate').toFixed(0)}/s, opm ${most('opm').toFixed(0)}/s, ratio ` +
        `${rateRatio.toFixed(2)}; CPU ${least('opmate').toFixed(0)} µs a call, opm ` +
        `${least('opm').toFixed(0)} µs, ratio ${cpuRatio.toFixed(2)} (limit ${maxOpmCpu[method]})` +
        `${isBelow ? '  MISSED' : ''}`,
    );
    isGood &&= !isBelow;
  }
  return isGood;
}

async function startBare(sizes) {
  const port = await freePort();
  return startServer(process.execPath, [bareServer, String(port), ...sizes.map(String)], port);
}

/** About what an answer to GetPackage takes. */
function smallSize() {
  return 120;
}

/** Requests for bundles of the wanted size, and the sizes of their answers. */
async function chooseBundles(port) {
  const client = connect(port);
  const { body } = await call(client, '/api.Registry/ListBundles', Buffer.alloc(0), true);
  const [requests, sizes, names] = [[], [], []];
  for (let at = 0; at < body.length && requests.length < 200; at += 5 + body.readUInt32BE(at + 1)) {
    const bundle = bundleType.decode(body.subarray(at + 5, at + 5 + body.readUInt32BE(at + 1)));
    const { packageName: pkgName, channelName, csvName } = bundle;
    const request = requestTypes.getBundle.encode({ pkgName, channelName, csvName });
    const { bytes } = await call(client, '/api.Registry/GetBundle', request);
    if (bytes < smallest || bytes > largest) continue;
    requests.push(request);
    sizes.push(bytes);
    names.push({ pkgName, channelName, csvName });
  }
  client.destroy();
  if (requests.length === 0)
    throw new Error('the catalog has no bundles of the wanted size: set OPMATE_CORPUS');
  return { requests, sizes, names };
}

async function listing(port) {
  const client = connect(port);
  const times = [];
  let bytes = 0;
  for (let i = 0; i < 3; i++) {
    const start = performance.now();
    ({ bytes } = await call(client, '/api.Registry/ListBundles', Buffer.alloc(0)));
    times.push((performance.now() - start) / 1000);
  }
  client.destroy();
  return `${Math.min(...times).toFixed(2)} s for ${(bytes / 1e6).toFixed(1)} MB`;
}
