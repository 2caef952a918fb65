// Updates every second under load: memory, descriptors and stored bytes do not grow. OPMATE_SOAK_SECONDS is its length.
import { readdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startCatalogs, writeCatalog, writeManifest } from './support/catalogs-process.js';
import { checkReaders, createChecks, inDirectory, startReaders } from './support/frame.js';

export const summary =
  'ten minutes of serve --catalogs with an update every second, readers, slow readers and half requests: nothing grows';

const seconds = Number(process.env.OPMATE_SOAK_SECONDS ?? 600);
const [packages, clients] = [200, 8];
/** The last third as a ratio to the second one: the first warms up. */
const growth = { atMost: 1.15 };

export function run() {
  return inDirectory(async (root) => {
    const { check, passed } = createChecks();
    const [manifests, storage] = [path.join(root, 'manifests'), path.join(root, 'storage')];
    await mkdir(manifests);
    await writeCatalog(path.join(root, '0'), packages, '0.0.0');
    await writeManifest(manifests, 'soaked', path.join(root, '0'));
    const server = await startCatalogs(manifests, storage);
    const query = `graphql?query=${encodeURIComponent('{ olmbundles(limit: 5) { name image } }')}`;
    const urls = ['all', 'metas?package=package-3', 'metas?schema=olm.package', query];
    const base = `${server.url}/catalogs/soaked/api/v1`;
    const readers = startReaders(
      urls.map((url) => `${base}/${url}`),
      { clients, pauseMs: 20 },
    );
    const [begin, end] = [performance.now(), performance.now() + seconds * 1000];
    const hostile = trouble(server.url, end);
    const samples = [];
    let updates = 0;
    for (let next = begin; performance.now() < end; next += 1000) {
      const directory = path.join(root, String(++updates % 4));
      await writeCatalog(directory, packages, `0.0.${updates}`);
      await writeManifest(manifests, 'soaked', directory, 1 + (updates % 2));
      samples.push({ memory: server.memory(), descriptors: await server.descriptors() });
      await sleep(Math.max(0, next + 1000 - performance.now()));
    }
    await Promise.all([readers.stop(), hostile]);
    const contents = readdirSync(path.join(storage, 'contents')).filter((name) =>
      /^[0-9a-f]{64}$/.test(name),
    );
    console.log(
      `  ${updates} updates, ${readers.responses} responses in ${seconds} s; peak ${server.peak().toFixed(0)} MB`,
    );
    await server.stop();
    for (const [field, unit] of [
      ['memory', 'MB'],
      ['descriptors', ''],
    ]) {
      const thirds = meansOfThirds(samples.map((sample) => sample[field]));
      const note = `, by thirds ${thirds.map((mean) => mean.toFixed(0)).join(', ')} ${unit}`.trimEnd();
      check(`${field}, growth`, thirds[2] / thirds[1], '', { ...growth, note });
    }
    check('contents kept', contents.length, '', { atMost: 2 });
    check('states seen', readers.versions.size, '', { atLeast: updates / 2 });
    checkReaders(readers, check);
    return passed();
  });
}

function meansOfThirds(values) {
  return [0, 1, 2].map((third) => {
    const part = values.slice((values.length * third) / 3, (values.length * (third + 1)) / 3);
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}

/** Clients that send half a request, read nothing of a response, or hang up in the middle. */
async function trouble(origin, end) {
  const { hostname, port } = new URL(origin);
  const begins = [
    'GET /catalogs/soaked/api/v1/al',
    'POST /catalogs/soaked/api/v1/graphql HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"que',
  ];
  const whole = 'GET /catalogs/soaked/api/v1/all HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const open = [];
  for (let i = 0; performance.now() < end; i++) {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    socket.pause();
    socket.write([...begins, whole][i % 3]);
    open.push(socket);
    if (open.length > 30) open.shift().destroy();
    await sleep(100);
  }
  for (const socket of open) socket.destroy();
}
