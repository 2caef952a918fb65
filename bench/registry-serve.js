import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { requestTypes } from '../dist/catalog/content/messages.js';
import { measure, median, opmate } from './support/measure.js';
import { call, connect, freePort, rate, startServer } from './support/registry-server.js';

export const summary =
  'registry serve of indexes of 30 and 300 MB: memory must stay below 250 MB, time grow as the index does, and GetBundle reach a share of a bare node:http2 server';

const build = fileURLToPath(new URL('./support/build-index.js', import.meta.url));
const bareServer = fileURLToPath(new URL('./support/bare-server.js', import.meta.url));
const maxMegabytes = 250;
/** Ten times the bundles; what a process costs makes the smaller one look dearer. */
const maxGrowth = 12;
const minBundleRatio = 0.1;
const runs = 3;
const perPackage = 20;

export async function run() {
  const work = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
  try {
    const files = [1000, 10_000].map((count) => path.join(work, `${count}.db`));
    for (const file of files) await measure(build, [file, path.basename(file, '.db'), 'full']);
    const start = (file, port) =>
      startServer(
        process.execPath,
        [
          opmate,
          'registry',
          'serve',
          '-d',
          file,
          '-p',
          port,
          '--host',
          '127.0.0.1',
          '--log-level',
          'warn',
        ].map(String),
        port,
      );
    const small = await measureServer(start, files[0], 1000);
    const large = await measureServer(start, files[1], 10_000, true);
    const growth = large.list / small.list;
    const ratio = large.bundles / large.bare;
    const good = large.megabytes <= maxMegabytes && growth <= maxGrowth && ratio >= minBundleRatio;
    console.log(
      `  ${(statSync(files[1]).size / 1e6).toFixed(0)} MB: ${told(large)}; of a tenth: ${told(small)}\n` +
        `  memory ${large.megabytes.toFixed(0)} MB (limit ${maxMegabytes}), ListBundles ${growth.toFixed(1)} times that ` +
        `of a tenth (limit ${maxGrowth}), GetBundle ${ratio.toFixed(2)} of a bare server's (least ${minBundleRatio})` +
        `${good ? '' : '  EXCEEDED'}`,
    );
    if (process.env.OPM173 !== undefined) {
      const opm = (file, port) =>
        startServer(
          process.env.OPM173,
          ['registry', 'serve', '-d', file, '-p', String(port), '-t', '/dev/null'],
          port,
        );
      console.log(`  opm 1.73: ${told(await measureServer(opm, files[1], 10_000))}`);
    }
    return good;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const told = ({ ready, list, bundles, packages, megabytes }) =>
  `ready in ${ready.toFixed(2)} s, ListBundles ${list.toFixed(2)} s, GetBundle ${bundles.toFixed(0)}/s, ` +
  `GetPackage ${packages.toFixed(0)}/s, then ${megabytes.toFixed(0)} MB`;

async function measureServer(start, file, count, withBare = false) {
  const starts = [];
  for (let i = 1; i < runs; i++) {
    const server = await start(file, await freePort());
    starts.push(server.seconds);
    await server.stop();
  }
  const server = await start(file, await freePort());
  try {
    starts.push(server.seconds);
    const client = connect(server.port);
    const lists = [];
    for (let i = 0; i < runs; i++) {
      const began = performance.now();
      const { status } = await call(client, '/api.Registry/ListBundles', Buffer.alloc(0));
      if (status !== '0') throw new Error(`ListBundles: status ${status}`);
      lists.push((performance.now() - began) / 1000);
    }
    const requests = Array.from({ length: 1000 }, (_, i) => requestOf((i * 7919) % count));
    const { bytes } = await call(client, '/api.Registry/GetBundle', requests[0]);
    client.destroy();
    const bare = withBare ? await bareRate(bytes, requests) : undefined;
    return {
      ready: median(starts),
      list: median(lists),
      bundles: await rate(server.port, '/api.Registry/GetBundle', requests),
      packages: await rate(server.port, '/api.Registry/GetPackage', requests),
      bare,
      megabytes: server.memory(),
    };
  } finally {
    await server.stop();
  }
}

async function bareRate(size, requests) {
  const port = await freePort();
  const bare = await startServer(process.execPath, [bareServer, String(port), String(size)], port);
  try {
    return await rate(port, '/bare', requests);
  } finally {
    await bare.stop();
  }
}

/** What asks for a bundle; its first field is the package, which is all that GetPackage reads. */
function requestOf(index) {
  const packageName = `package-${Math.floor(index / perPackage)}`;
  return requestTypes.getBundle.encode({
    pkgName: packageName,
    channelName: 'stable',
    csvName: `${packageName}.v1.${index % perPackage}.0`,
  });
}
