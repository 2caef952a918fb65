// Servers of the registry API as processes, and clients that only count: HTTP/2 of Node.js with the frames of gRPC, or
// ghz, which is a program of its own.
import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import http2 from 'node:http2';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { opmate } from './measure.js';

/** A port that nobody listens on at the moment. */
export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts a program that serves the registry API on `port`; resolves when it answers the health check. */
export async function startServer(command, args, port) {
  const start = performance.now();
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  let ended = false;
  child.stderr.on('data', (chunk) => (said = (said + chunk).slice(-2000)));
  child.on('close', () => (ended = true));
  for (;;) {
    if (ended) throw new Error(`${command} ${args.join(' ')} ended\n${said}`);
    if (await isHealthy(port)) break;
    await sleep(5);
  }
  const status = (field) =>
    Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))[1]) /
    1024;
  return {
    port,
    seconds: (performance.now() - start) / 1000,
    /** Megabytes that the process holds now, and has held at most. */
    memory: () => status('VmRSS'),
    peak: () => status('VmHWM'),
    /** Seconds of CPU time that the process and its threads have taken. */
    cpu: () => {
      const [user, system] = readFileSync(`/proc/${child.pid}/stat`, 'latin1')
        .split(') ')
        .pop()
        .split(' ')
        .slice(11, 13);
      return (Number(user) + Number(system)) / 100;
    },
    async stop() {
      child.kill();
      if (!ended) await new Promise((resolve) => child.once('close', resolve));
    },
  };
}

export const startOpmate = (catalog, port, args = []) =>
  startServer(
    process.execPath,
    [opmate, 'serve', catalog, '-p', port, '--host', '127.0.0.1', '--log-level', 'warn', ...args].map(String),
    port,
  );

export const startOpm = (opm, catalog, port, args = []) =>
  startServer(opm, ['serve', catalog, '-p', String(port), '--pprof-addr', '', ...args], port);

async function isHealthy(port) {
  const client = http2.connect(`http://127.0.0.1:${port}`);
  client.on('error', () => undefined);
  try {
    return (await call(client, '/grpc.health.v1.Health/Check', Buffer.alloc(0))).status === '0';
  } catch {
    return false;
  } finally {
    client.destroy();
  }
}

/** A connection whose windows are large enough not to be the limit. */
export function connect(port) {
  const client = http2.connect(`http://127.0.0.1:${port}`, {
    settings: { initialWindowSize: 16 * 1024 * 1024 },
  });
  client.on('connect', () => client.setLocalWindowSize(64 * 1024 * 1024));
  return client;
}

/** One call; resolves with its status and the bytes of its messages, frames included, kept where `keep` is set. */
export function call(client, method, message, keep = false) {
  return new Promise((resolve, reject) => {
    const stream = client.request({
      ':method': 'POST',
      ':path': method,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const chunks = [];
    let [status, bytes] = [undefined, 0];
    stream.on('response', (headers) => (status = headers['grpc-status']));
    stream.on('trailers', (headers) => (status = headers['grpc-status']));
    stream.on('data', (chunk) => {
      bytes += chunk.length;
      if (keep) chunks.push(chunk);
    });
    stream.on('end', () => resolve({ status, bytes, body: Buffer.concat(chunks) }));
    stream.on('error', reject);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(message.length, 1);
    stream.end(Buffer.concat([head, message]));
  });
}

/** Calls a second that `callers` make in `seconds`, each going on to the next message when its answer is whole. */
export async function rate(port, method, messages, { callers = 8, seconds = 4 } = {}) {
  const client = connect(port);
  let [count, next] = [0, 0];
  const start = performance.now();
  const end = start + seconds * 1000;
  const work = async () => {
    while (performance.now() < end) {
      const { status } = await call(client, method, messages[next++ % messages.length]);
      if (status !== '0') throw new Error(`${method}: status ${status}`);
      count++;
    }
  };
  await Promise.all(Array.from({ length: callers }, work));
  const elapsed = (performance.now() - start) / 1000;
  client.destroy();
  return count / elapsed;
}

const schemas = fileURLToPath(new URL('../../schemas', import.meta.url));

/** Calls a second of ghz with 8 connections and callers, and the server's CPU time for each in microseconds. */
export async function ghzRate(ghz, server, method, request, calls = 20_000) {
  const start = server.cpu();
  const args = ['--insecure', '--import-paths', schemas, '--proto', path.join(schemas, 'registry.proto')];
  args.push('--call', method, '--data', JSON.stringify(request), '--format', 'json');
  args.push('--concurrency', '8', '--connections', '8', '--total', String(calls), `127.0.0.1:${server.port}`);
  // A server waits for whoever reads its log, which is this process.
  const { stdout } = await promisify(execFile)(ghz, args, { maxBuffer: 1e9 });
  const report = JSON.parse(stdout);
  if (report.statusCodeDistribution.OK !== calls) {
    throw new Error(`${method}: ${JSON.stringify(report.statusCodeDistribution)}`);
  }
  return { rate: report.rps, microseconds: ((server.cpu() - start) * 1e6) / calls };
}
