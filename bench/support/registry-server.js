// Servers of the registry API as processes, and a client that only counts: HTTP/2 of Node.js with the frames of gRPC.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import http2 from 'node:http2';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
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
  return {
    port,
    seconds: (performance.now() - start) / 1000,
    /** Megabytes that the process holds now. */
    memory: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))[1]) / 1024,
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
export function call(client, path, message, keep = false) {
  return new Promise((resolve, reject) => {
    const stream = client.request({
      ':method': 'POST',
      ':path': path,
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
export async function rate(port, path, messages, { callers = 8, seconds = 4 } = {}) {
  const client = connect(port);
  let [count, next] = [0, 0];
  const start = performance.now();
  const end = start + seconds * 1000;
  const work = async () => {
    while (performance.now() < end) {
      const { status } = await call(client, path, messages[next++ % messages.length]);
      if (status !== '0') throw new Error(`${path}: status ${status}`);
      count++;
    }
  };
  await Promise.all(Array.from({ length: callers }, work));
  const elapsed = (performance.now() - start) / 1000;
  client.destroy();
  return count / elapsed;
}
