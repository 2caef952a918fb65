// Hostile clients of serve, over HTTP and gRPC: what each costs the server in memory and processor time, and others in waiting.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { request } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import { clearInterval, setInterval, setTimeout } from 'node:timers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fetchText, startCatalogs, writeCatalog, writeManifest } from './support/catalogs-process.js';
import { createChecks, inDirectory } from './support/frame.js';
import { freePort, rate, startOpmate } from './support/registry-server.js';
import { requestTypes } from '../dist/catalog/content/messages.js';

export const summary =
  'hostile queries, slow clients and floods of connections and gRPC calls against serve: memory and processor time stay bounded';

const repeat = (count, text) => Array.from({ length: count }, (_, i) => text(i)).join(' ');

/** Bodies of POST requests to `graphql`. */
const queries = {
  'an honest query': { query: '{ olmbundles(limit: 100) { name image properties { type value } } }' },
  'depth 7,000': { query: '{a'.repeat(7_000) },
  '10,000 aliases': { query: `{ ${repeat(3_500, (i) => `a${i}: olmbundles { name }`)} }` },
  'fragments in a circle': { query: '{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }' },
  'fragments that multiply': {
    query: `{ __schema { types { ...F0 } } } ${repeat(20, (i) => `fragment F${i} on __Type { ${`...F${i + 1} `.repeat(20)}}`)} fragment F20 on __Type { name }`,
  },
  'overlapping fields': {
    query: `{ ${repeat(450, (i) => `olmbundles(limit: 1) { name ...F${i % 50} }`)} } ${repeat(50, (i) => `fragment F${i} on OlmBundle { name image package schema }`)}`,
  },
  'a flood of directives': { query: `{ __typename ${'@skip(if: false) '.repeat(2_400)} }` },
  'a flood of unknown directives': { query: `{ __typename ${'@a '.repeat(7_000)} }` },
  'a flood of arguments': { query: `{ olmbundles(${repeat(4_500, (i) => `a${i}: 1`)}) { name } }` },
  'a flood of variables': {
    query: `query (${repeat(3_500, (i) => `$a${i}: Int`)}) { olmbundles(limit: $a0) { name } }`,
    variables: Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`a${i}`, i])),
  },
  '500 unknown long names': { query: `{ ${repeat(490, (i) => `${'olmbundle'.repeat(10)}${i}`)} }` },
  '200 operations': { query: repeat(200, (i) => `query q${i} { __typename }`), operationName: 'q7' },
  'introspection depth': {
    query: `{ __schema { types { ${'fields { type { '.repeat(8)}name${' } }'.repeat(8)} } } }`,
  },
  'whole introspection': {
    query: '{ __schema { types { name fields { name args { name } type { name kind } } } } }',
  },
  'an array of 10,000 queries': Array.from({ length: 10_000 }, () => ({ query: '{ __typename }' })),
  'nested variables': { query: '{ __typename }', variables: { a: 'DEEP' } },
  'a query of 1 MB': { query: `{ ${'a '.repeat(500_000)} }` },
  'a body of 20 MB': { query: 'a'.repeat(20e6) },
};

function bodyOf(value) {
  return JSON.stringify(value).replace('"DEEP"', `${'['.repeat(100_000)}${']'.repeat(100_000)}`);
}

const host = 'Host: localhost\r\n';
const api = '/catalogs/hostile/api/v1';
/** What a connection sends at once, and what it goes on sending, one piece every half second. */
const connections = {
  'idle connections': { count: 5_000 },
  'headers that never end': { count: 3_000, begin: `GET ${api}/all HTTP/1.1\r\n${host}`, drip: 'a: b\r\n' },
  'bodies that never end': {
    count: 1_000,
    begin: `POST ${api}/graphql HTTP/1.1\r\n${host}Content-Length: 100000\r\n\r\n{`,
    drip: ' ',
  },
  'bodies in endless chunks': {
    count: 1_000,
    begin: `POST ${api}/graphql HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`,
    drip: '1\r\n \r\n',
  },
  'readers that never read': { count: 990, begin: `GET ${api}/all HTTP/1.1\r\n${host}\r\n` },
  'readers of gzip that never read': {
    count: 990,
    begin: `GET ${api}/all HTTP/1.1\r\n${host}Accept-Encoding: gzip\r\n\r\n`,
  },
  'requests that never read a response': {
    count: 500,
    begin: `GET ${api}/all HTTP/1.1\r\n${host}\r\n`.repeat(1_000),
  },
  'headers of 1 MB': {
    count: 500,
    begin: `GET ${api}/all HTTP/1.1\r\n${host}${'a: b\r\n'.repeat(175_000)}\r\n`,
  },
  'half requests, hung up': { count: 3_000, begin: `GET ${api}/al`, isReset: true },
};

const seconds = 8;
/** Megabytes beyond those before: a pod of 512 MB survives. */
const memoryLimit = { atMost: 250 };

export function run() {
  return inDirectory(async (root) => {
    const { check, passed } = createChecks();
    const manifests = path.join(root, 'manifests');
    await mkdir(manifests);
    await writeCatalog(path.join(root, 'catalog'), 1_000, '1.0.0');
    await writeManifest(manifests, 'hostile', path.join(root, 'catalog'));
    const server = await startCatalogs(manifests, path.join(root, 'storage'));
    try {
      for (const name of Object.keys(queries)) await post(server, queries[name]);
      let honest;
      for (const [name, value] of Object.entries(queries)) {
        const cost = await costOfQuery(server, value);
        honest ??= cost.milliseconds;
        check(name, cost.milliseconds / honest, 'times an honest query', {
          atMost: 100,
          note: `, ${cost.milliseconds.toFixed(1)} ms, status ${cost.status}, ${cost.bytes} bytes`,
        });
      }
      for (const [name, attack] of Object.entries(connections)) {
        const { memory, served, waited } = await besiege(server, attack);
        check(`${attack.count} ${name}`, memory, 'MB', {
          ...memoryLimit,
          note: `, others: ${served.toFixed(0)} % served, waited ${waited.toFixed(0)} ms at most`,
        });
      }
      const { text } = await fetchText(`${server.url}${api}/metas?schema=olm.package`);
      check('packages after all that', text.trim().split('\n').length, '', { atLeast: 1_000 });
      console.log(`  then ${server.memory().toFixed(0)} MB, at most ${server.peak().toFixed(0)} MB`);
    } finally {
      await server.stop();
    }
    await floodCalls(path.join(root, 'catalog'), check);
    return passed();
  });
}

function post(server, value) {
  return new Promise((resolve, reject) => {
    const sent = request(`${server.url}${api}/graphql`, { method: 'POST', agent: false }, (response) => {
      let bytes = 0;
      response.on('data', (chunk) => (bytes += chunk.length));
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode, bytes }));
    });
    sent.on('error', (error) => resolve({ status: error.code, bytes: 0 }));
    sent.end(bodyOf(value));
  });
}

/** Processor time of one query, of several. */
async function costOfQuery(server, value) {
  const [rounds, before] = [5, processorMs(server.pid)];
  let response;
  for (let i = 0; i < rounds; i++) response = await post(server, value);
  return { milliseconds: Math.max((processorMs(server.pid) - before) / rounds, 1), ...response };
}

/** Keeps hostile connections open for some seconds, each opened again when it ends, while an honest client asks. */
async function besiege(server, { count, begin, drip, isReset }) {
  const { hostname, port } = new URL(server.url);
  writeFileSync(`/proc/${server.pid}/clear_refs`, '5');
  const before = server.memory();
  const sockets = new Set();
  let isOver = false;
  const open = () => {
    if (isOver) return;
    const socket = connect(Number(port), hostname);
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      setTimeout(open, 200);
    });
    socket.pause();
    if (begin !== undefined) socket.write(begin);
    if (isReset) socket.once('connect', () => setTimeout(() => socket.resetAndDestroy(), 50));
  };
  for (let i = 0; i < count; i++) open();
  const dripping = setInterval(() => {
    if (drip !== undefined) for (const socket of sockets) socket.write(drip);
  }, 500);
  await sleep(1_000);
  const waits = [];
  let [served, asked] = [0, 0];
  for (const end = performance.now() + seconds * 1000; performance.now() < end; await sleep(50)) {
    const start = performance.now();
    asked++;
    const { status } = await fetchText(`${server.url}${api}/metas?package=package-1`).catch(() => ({}));
    if (status === 200) served++;
    waits.push(performance.now() - start);
  }
  isOver = true;
  clearInterval(dripping);
  for (const socket of sockets) socket.destroy();
  const memory = server.peak() - before;
  await sleep(500);
  return { memory, served: (100 * served) / asked, waited: Math.max(...waits) };
}

const gRpcClients = 300;
const callsPerClient = 16;
/** Rate of calls of an honest client beside a flood, as a part of its rate alone; an equal share would be 0.003. */
const minShare = 0.01;

/** Clients request everything and read nothing, while an honest client calls. */
async function floodCalls(catalog, check) {
  const server = await startOpmate(catalog, await freePort());
  const sockets = [];
  try {
    const packages = [requestTypes.getPackage.encode({ name: 'package-1' })];
    const honest = () => rate(server.port, '/api.Registry/GetPackage', packages, { callers: 1 });
    await honest();
    const [alone, before] = [await honest(), server.peak()];
    const begin = openingOfList(callsPerClient);
    for (let i = 0; i < gRpcClients; i++) {
      const socket = connect(server.port, '127.0.0.1');
      sockets.push(socket.on('error', () => undefined).pause());
      socket.write(begin);
    }
    const beside = await honest();
    const name = `${gRpcClients} gRPC clients that never read`;
    check(name, server.peak() - before, 'MB', memoryLimit);
    const note = `, ${beside.toFixed(0)} calls per second, alone ${alone.toFixed(0)}`;
    check(`calls beside ${name}`, beside / alone, 'of the rate alone', { atLeast: minShare, note });
  } finally {
    for (const socket of sockets) socket.destroy();
    await server.stop();
  }
}

/** The bytes of a client that calls ListBundles several times, with windows that let the server send everything. */
function openingOfList(calls) {
  const frame = (type, flags, id, payload) => {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.length, 0, 3);
    head[3] = type;
    head[4] = flags;
    head.writeUInt32BE(id, 5);
    return Buffer.concat([head, payload]);
  };
  const field = (name, value) =>
    Buffer.concat([
      Buffer.of(0, name.length),
      Buffer.from(name),
      Buffer.of(value.length),
      Buffer.from(value),
    ]);
  const number = (value) => Buffer.of(value >>> 24, value >>> 16, value >>> 8, value);
  const headers = Buffer.concat(
    Object.entries({
      ':method': 'POST',
      ':scheme': 'http',
      ':path': '/api.Registry/ListBundles',
      ':authority': 'localhost',
      'content-type': 'application/grpc',
      te: 'trailers',
    }).map(([name, value]) => field(name, value)),
  );
  const [data, header, settings, windowUpdate] = [0, 1, 4, 8];
  const [endStream, endHeaders] = [1, 4];
  const largeWindow = 0x7fffffff;
  return Buffer.concat([
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    frame(settings, 0, 0, Buffer.concat([Buffer.of(0, 4), number(largeWindow)])),
    frame(windowUpdate, 0, 0, number(largeWindow - 65_535)),
    ...Array.from({ length: calls }, (_, i) => [
      frame(header, endHeaders, 2 * i + 1, headers),
      frame(data, endStream, 2 * i + 1, Buffer.alloc(5)),
    ]).flat(),
  ]);
}

/** Processor time of a process up to now, in milliseconds. */
function processorMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond;
}

const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
