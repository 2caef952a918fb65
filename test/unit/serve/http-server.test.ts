import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { type Socket, connect } from 'node:net';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startRegistry } from '../../../src/serve/registry/registry.js';
import { createHostRule, isCrossSite, isLoopbackHost } from '../../../src/serve/server/host-rule.js';
import {
  type HttpListenerOptions,
  closeHttpServer,
  createHttpServer,
} from '../../../src/serve/server/http-server.js';
import { listenOn } from '../../../src/serve/server/listening.js';
import { createSelfSigned } from '../../support/certificates.js';
import { directoryWith } from '../../support/temporary.js';

async function serverOf(
  handle: HttpListenerOptions['handle'],
  options: Partial<HttpListenerOptions> = {},
): Promise<{ port: number; close: (graceMs?: number) => Promise<void> }> {
  const server = createHttpServer({
    handle,
    allowsHost: createHostRule({ names: ['catalogs.example'] }),
    refuse: ({ status, message }, _request, response) => void response.writeHead(status).end(message),
    ...options,
  });
  const port = await listenOn(server, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => closeHttpServer(server, 0));
  return { port, close: (graceMs) => closeHttpServer(server, graceMs) };
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** Waits until something holds; fails by the time of the test where it never does. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(10);
}

const get = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';

describe('serve/server/http-server', () => {
  it('refuses a request with two hosts, of which another server may take the last', async () => {
    const { port } = await serverOf((_request, response) => Promise.resolve(void response.end('here')));
    for (const [hosts, status] of [
      ['Host: localhost\r\n', '200'],
      ['Host: localhost\r\nHost: evil.example\r\n', '421'],
    ]) {
      const socket = await open(port);
      socket.write(`GET / HTTP/1.1\r\n${hosts}\r\n`);
      const [reply] = (await once(socket, 'data')) as [Buffer];
      expect(reply.toString()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    }
  });

  it('ends every response of a reset connection, pipelined ones included', async () => {
    const state = { begun: 0, ended: 0 };
    const endless = async function* (): AsyncGenerator<Buffer> {
      for (;;) {
        await sleep(0);
        yield Buffer.alloc(64 * 1024);
      }
    };
    const { port, close } = await serverOf(async (_request, response) => {
      state.begun++;
      await pipeline(Readable.from(endless()), response).catch(() => undefined);
      state.ended++;
    });
    for (let i = 0; i < 20; i++) {
      const socket = await open(port);
      socket.write(get + get + get);
      await once(socket, 'readable');
      socket.resetAndDestroy();
    }
    await until(() => state.ended === state.begun);
    expect(state.begun).toBe(20);
    await close(60_000);
  });

  it('responds to pipelined requests in order, and refuses too many of them', async () => {
    let number = 0;
    const { port } = await serverOf(async (_request, response) => {
      const mine = ++number;
      await sleep(mine % 2);
      response.end(`<${mine}>`);
    });
    const socket = await open(port);
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
    socket.write(get.repeat(50));
    await until(() => text.includes('<50>'));
    expect([...text.matchAll(/<(\d+)>/g)].map(([, digits]) => Number(digits))).toEqual(
      Array.from({ length: 50 }, (_, i) => i + 1),
    );
    socket.write(get.repeat(1_000));
    await once(socket, 'close');
    expect(number).toBeLessThan(200);
  });

  it('closes the connection of a stalled client for a new one, and no other', async () => {
    const large = Buffer.alloc(30_000_000);
    let begun = 0;
    const { port } = await serverOf(
      (request, response) => {
        const { url } = request.resume();
        begun++;
        if (url !== '/slow') response.end(url === '/large' ? large : 'ok');
      },
      { maxConnections: 5, stalledMs: 300 },
    );
    const begin = async (text: string): Promise<Socket> => {
      const [socket, before] = [await open(port), begun];
      socket.pause().write(text);
      await until(() => begun > before);
      return socket;
    };
    const takesNothing = await begin(get.replace('/', '/large'));
    const sendsNothing = await begin('POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n');
    const drips = await begin('POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n');
    const dripping = setInterval(() => drips.write('x'), 50);
    onTestFinished(() => clearInterval(dripping));
    const pauses = await begin('POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999\r\n\r\n');
    pauses.write(Buffer.alloc(100_000));
    const waits = await begin(get.replace('/', '/slow'));
    // They make room, one after the other.
    const served: Socket[] = [];
    while (served.length < 3) {
      const socket = await open(port);
      socket.write(get.replace('/', '/slow'));
      const before = begun;
      await Promise.race([once(socket, 'close'), until(() => begun > before || socket.closed)]);
      if (socket.closed) await sleep(50);
      else served.push(socket);
    }
    takesNothing.resume();
    drips.resume();
    await until(() => takesNothing.closed && sendsNothing.closed && drips.closed);
    // The server works on its request; and a fast upload may pause while slower clients make room.
    expect([waits.closed, pauses.closed]).toEqual([false, false]);
  });

  it('serves new clients while others hold every connection with requests sent byte by byte', async () => {
    let begun = 0;
    const { port } = await serverOf(
      (request, response) => {
        begun++;
        if (request.resume().method === 'GET') response.end('ok');
      },
      { maxConnections: 50 },
    );
    const sockets = await Promise.all(Array.from({ length: 50 }, () => open(port)));
    for (const socket of sockets) {
      socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n');
    }
    const dripping = setInterval(() => sockets.forEach((socket) => socket.write('x')), 100);
    onTestFinished(() => clearInterval(dripping));
    await until(() => begun === 50);
    let served = 0;
    while (served < 5) {
      const socket = await open(port);
      socket.write(get);
      const [reply] = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
      if (Buffer.isBuffer(reply)) served++;
      else await sleep(20);
    }
    await until(() => sockets.some((socket) => socket.closed));
    expect(sockets.filter((socket) => socket.closed).length).toBeLessThanOrEqual(5);
  });

  it('queues at most a thousand pipelined requests over all connections', async () => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const { port } = await serverOf(async (_request, response) => {
      await held;
      response.end('ok');
    });
    const sockets = await Promise.all(Array.from({ length: 40 }, () => open(port)));
    let closed = 0;
    for (const socket of sockets) {
      socket.once('close', () => closed++);
      socket.resume().write(get.repeat(51));
    }
    // Of 40 connections 20 have 50 requests that wait.
    await until(() => closed === 20);
    const others = await open(port);
    others.write(get);
    release();
    await once(others, 'data');
    // All of them were answered, or forgotten with their connections.
    const again = await open(port);
    let text = '';
    again.on('data', (chunk: Buffer) => (text += chunk.toString()));
    again.write(get.repeat(101));
    await until(() => text.split('ok').length === 102);
  });

  it('parses few of thousands of pipelined requests on many connections', async () => {
    const server = createHttpServer({
      handle: () => undefined,
      allowsHost: createHostRule({}),
      refuse: () => undefined,
    });
    let [parsed, closed] = [0, 0];
    server.on('request', () => parsed++);
    const port = await listenOn(server, { host: '127.0.0.1', port: 0 });
    onTestFinished(() => closeHttpServer(server, 0));
    const sockets = await Promise.all(Array.from({ length: 100 }, () => open(port)));
    for (const socket of sockets) {
      socket.once('close', () => closed++);
      socket.resume().write(get.repeat(1_500));
    }
    await until(() => closed === 100);
    // Each makes an object of some kilobytes that lives until its connection is closed.
    expect(parsed).toBeLessThan(100 * 102);
  });

  it('keeps two hundred headers of a request', async () => {
    let kept = 0;
    const { port } = await serverOf(({ headers }, response) => {
      kept = Object.keys(headers).length;
      response.end('ok');
    });
    const socket = await open(port);
    const many = Array.from({ length: 1_000 }, (_, i) => `x-${i}: a\r\n`).join('');
    socket.write(get.replace('\r\n\r\n', `\r\n${many}\r\n`));
    await once(socket, 'data');
    expect(kept).toBeLessThanOrEqual(200);
  });

  it('closes at once where connections have not sent a whole request', async () => {
    const { port, close } = await serverOf((_request, response) => void response.end('ok'));
    const silent = await open(port);
    const half = await open(port);
    half.write('GET / HTTP/1.1\r\nHost: loc');
    const idle = await open(port);
    idle.write(get);
    await once(idle, 'data');
    const closed = Promise.all([silent, half, idle].map((socket) => once(socket.resume(), 'close')));
    // A grace that the test would not survive.
    await close(10 * 60_000);
    await closed;
  });

  it('makes room for new connections at the expense of idle ones, and refuses them where none is', async () => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    let holding = 0;
    const { port } = await serverOf(
      async ({ url }, response) => {
        if (url === '/held') {
          holding++;
          await held;
        }
        response.end('ok');
      },
      { maxConnections: 2 },
    );
    const first = await open(port);
    const second = await open(port);
    first.write(get.replace('/', '/held'));
    await until(() => holding === 1);
    const evicted = once(second.resume(), 'close');
    const third = await open(port);
    await evicted;
    third.write(get.replace('/', '/held'));
    await until(() => holding === 2);
    const fourth = await open(port);
    await once(fourth.resume(), 'close');
    release();
    await Promise.all([once(first, 'data'), once(third, 'data')]);
  });

  it('makes room at the expense of the oldest TLS handshake', async () => {
    const certificate = createSelfSigned();
    const { port } = await serverOf((_request, response) => void response.end('ok'), {
      certificate,
      maxConnections: 2,
    });
    const hanging = [await open(port), await open(port)];
    for (const socket of hanging) socket.resume();
    const sent = secureRequest({ port, host: '127.0.0.1', ca: certificate.cert });
    const [response] = (await once(sent.end(), 'response')) as [import('node:http').IncomingMessage];
    expect(response.resume().statusCode).toBe(200);
    await until(() => hanging[0]?.closed === true);
    expect(hanging[1]?.closed).toBe(false);
  });

  it.each([
    ['localhost:8080', true],
    ['LOCALHOST', true],
    ['127.0.0.1:1', true],
    ['[::1]:8080', true],
    ['10.0.0.1', true],
    ['catalogs.example:443', true],
    ['evil.example', false],
    ['evil.example:8080', false],
    ['localhost.evil.example', false],
    ['127.0.0.1.evil.example', false],
  ])('takes requests for %j on loopback: %s', async (host, isTaken) => {
    const { port } = await serverOf((_request, response) => void response.end('ok'));
    const sent = request({ port, host: '127.0.0.1', headers: { Host: host } }).end();
    const [response] = (await once(sent, 'response')) as [import('node:http').IncomingMessage];
    expect(response.resume().statusCode).toBe(isTaken ? 200 : 421);
  });

  it('tells loopback from other addresses', () => {
    for (const host of ['localhost', '127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1']) {
      expect([host, isLoopbackHost(host)]).toEqual([host, true]);
    }
    for (const host of ['0.0.0.0', '::', '10.0.0.1', '127.evil.example', 'registry.example', '']) {
      expect([host, isLoopbackHost(host)]).toEqual([host, false]);
    }
  });

  it.each([
    [{}, false],
    [{ 'sec-fetch-site': 'none' }, false],
    [{ 'sec-fetch-site': 'same-origin', origin: 'http://localhost:5000' }, false],
    [{ 'sec-fetch-site': 'same-site' }, true],
    [{ 'sec-fetch-site': 'cross-site' }, true],
    [{ origin: 'http://localhost:5000' }, false],
    [{ origin: 'http://localhost:5001' }, true],
    [{ origin: 'https://evil.example' }, true],
    [{ origin: 'null' }, true],
  ])('takes %j for a request of another site: %s', (headers, expected) => {
    expect(isCrossSite({ headers: { host: 'localhost:5000', ...headers } } as never)).toBe(expected);
  });
});

describe('a registry whose clients go away', () => {
  it('keeps no descriptor of blobs that were being sent', async () => {
    const directory = path.join(await directoryWith(), 'layout');
    await mkdir(directory);
    const registry = await startRegistry({ directory });
    onTestFinished(() => registry.close());
    const content = Buffer.alloc(8_000_000, 'x');
    const { createHash } = await import('node:crypto');
    const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`;
    const pushed = await fetch(`${registry.url}/v2/a/blobs/uploads/?digest=${digest}`, {
      method: 'POST',
      body: content,
    });
    expect(pushed.status).toBe(201);
    const descriptors = (): number => readdirSync('/proc/self/fd').length;
    const before = descriptors();
    const line = `GET /v2/a/blobs/${digest} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    for (let i = 0; i < 40; i++) {
      const socket = await open(registry.port);
      socket.write(line + line);
      await once(socket, 'readable');
      socket.resetAndDestroy();
    }
    await until(() => descriptors() <= before + 2);
    await registry.close();
  });
});
