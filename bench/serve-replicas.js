// Three stateless replicas behind a TCP load balancer over one static publishing: a swap and a rolling restart under clients.
import { createReadStream } from 'node:fs';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fetchText, startCatalogs, writeCatalog } from './support/catalogs-process.js';
import { checkReaders, createChecks, inDirectory, startReaders, until } from './support/frame.js';
import { measure, opmate } from './support/measure.js';

export const summary =
  'three serve --catalogs behind a load balancer over static files: a swap and a rolling restart fail no request';

const [replicas, packages, clients] = [3, 500, 60];
/** A replica that is to stop gets no new connection for this long before, as by the preStop hook of docs/examples/replicas.yaml. */
const drainMs = 1_000;

export function run() {
  return inDirectory(async (root) => {
    const { check, passed } = createChecks();
    const [published, manifests] = [path.join(root, 'public'), path.join(root, 'manifests')];
    const publish = async (version) => {
      await writeCatalog(path.join(root, version), packages, version);
      const args = ['catalog', 'publish', path.join(root, version), '--name', 'demo', '--to', published];
      await measure(opmate, [...args, '--update', '--quiet']);
    };
    await publish('1.0.0');
    const web = await serveStatic(published);
    await mkdir(manifests);
    await writeServedManifest(manifests, `${web.url}/catalogs/demo`);
    const start = (i) => startCatalogs(manifests, path.join(root, `storage-${i}`));
    const servers = await Promise.all(Array.from({ length: replicas }, (_, i) => start(i)));
    const balancer = await balance(servers);
    try {
      const url = `${balancer.url}/catalogs/demo/api/v1`;
      const readers = startReaders([`${url}/all`, `${url}/metas?package=package-3`], {
        clients,
        pauseMs: 20,
      });
      const responsesOf = (version) => readers.versions.get(version) ?? 0;
      await until(() => responsesOf('1.0.0') > 10 * clients);
      const swapped = performance.now();
      await publish('2.0.0');
      await until(async () => {
        const states = await Promise.all(
          servers.map(({ url }) => fetchText(`${url}/catalogs/demo/api/v1/metas?package=package-1`)),
        );
        return states.every(({ text }) => text.includes('2.0.0'));
      });
      console.log(
        `  all replicas have the next version after ${seconds(swapped)} s, of a poll interval of 60 s`,
      );
      const restarted = performance.now();
      for (const i of servers.keys()) {
        const old = servers[i];
        balancer.remove(old);
        await sleep(drainMs);
        await old.stop();
        servers[i] = await start(i);
        await until(async () => (await fetchText(`${servers[i].url}/readyz`)).status === 200);
        balancer.add(servers[i]);
      }
      console.log(`  rolling restart: ${seconds(restarted)} s`);
      const before = responsesOf('2.0.0');
      await until(() => responsesOf('2.0.0') > before + 10 * clients);
      await readers.stop();
      const requests = web.count();
      console.log(
        `  ${clients} clients: ${readers.responses} responses, ${responsesOf('1.0.0')} of the old state, ` +
          `${responsesOf('2.0.0')} of the new; ${requests} requests to the web server`,
      );
      check('replicas that served', balancer.used(), '', { atLeast: replicas });
      checkReaders(readers, check);
    } finally {
      balancer.close();
      await Promise.all(servers.map((server) => server.stop()));
      web.close();
    }
    return passed();
  });
}

function seconds(since) {
  return ((performance.now() - since) / 1000).toFixed(1);
}

async function writeServedManifest(manifests, url) {
  const source = { type: 'Served', served: { url, insecure: true, pollIntervalMinutes: 1 } };
  const manifest = {
    apiVersion: 'olm.operatorframework.io/v1',
    kind: 'ClusterCatalog',
    metadata: { name: 'demo' },
    spec: { source },
  };
  await writeFile(path.join(manifests, 'demo.json'), JSON.stringify(manifest));
}

/** Files below a directory, with the tags that web servers make of size and time; nothing is known of catalogs. */
async function serveStatic(directory) {
  let requests = 0;
  const server = createServer((request, response) => {
    requests++;
    const file = path.join(directory, path.normalize(decodeURIComponent(request.url.split('?')[0])));
    stat(file).then(
      ({ size, mtimeMs }) => {
        const tag = `"${size}-${mtimeMs}"`;
        if (request.headers['if-none-match'] === tag) return response.writeHead(304, { etag: tag }).end();
        response.writeHead(200, { etag: tag, 'content-length': size });
        createReadStream(file).pipe(response);
      },
      () => response.writeHead(404).end(),
    );
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    count: () => requests,
    close: () => server.close(),
  };
}

/** Passes connections on to the replicas in turn; `remove` takes one out for new connections. */
async function balance(servers) {
  const targets = [...servers];
  const used = new Set();
  let turn = 0;
  const server = createTcpServer((client) => {
    const target = targets[turn++ % targets.length];
    used.add(target);
    const { hostname, port } = new URL(target.url);
    const upstream = connect(Number(port), hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ]) {
      from.on('error', () => to.destroy());
      from.pipe(to);
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    add: (target) => void targets.push(target),
    remove: (target) => void targets.splice(targets.indexOf(target), 1),
    used: () => used.size,
    close: () => server.close(),
  };
}
