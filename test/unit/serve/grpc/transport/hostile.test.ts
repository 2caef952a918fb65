import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { GrpcMethod, RequestLimits } from '../../../../../src/serve/grpc/transport/call.js';
import { GrpcTransport } from '../../../../../src/serve/grpc/transport/transport.js';
import { listenOn } from '../../../../../src/serve/server/listening.js';
import {
  callHeaders,
  emptyCall,
  endHeaders,
  endStream,
  frame,
  frameTypes,
  greeting,
  headerBlock,
  openRaw,
  uint32,
} from '../../../../support/http2-frames.js';
import { busy } from '../../../../support/waiting.js';

const { DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION } = frameTypes;
const cancel = uint32(8);
const path = '/test.Service/Call';
const postHeaders = { ':method': 'POST', 'content-type': 'application/grpc' };

/** Serves one method; `logged` are the lines of the log, `isServed` whether another client gets a reply. */
async function start(
  method: Omit<Extract<GrpcMethod, { kind: 'unary' }>, 'level'> | GrpcMethod,
  limits: RequestLimits = {},
) {
  const logged: string[] = [];
  const ping: GrpcMethod = { kind: 'unary', level: 'debug', reply: () => Buffer.from('pong') };
  const transport = new GrpcTransport({
    services: [{ name: 'test.Service', methods: { Call: { level: 'info', ...method }, Ping: ping } }],
    ...limits,
    logger: {
      log: (level, message, fields) =>
        void logged.push(`${level}: ${message} ${String(fields?.code ?? '')}`.trim()),
      shows: (level) => level !== 'debug',
      progress: () => undefined,
    },
  });
  const listener = createServer({ noDelay: true }, (socket) => transport.accept(socket));
  const port = await listenOn(listener, { host: '127.0.0.1', port: 0 });
  const sockets: { destroy(): void }[] = [];
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    listener.close();
    await transport.close();
  });
  const open = (window?: number) => {
    const client = openRaw(port);
    sockets.push(client.socket);
    client.socket.write(greeting(window));
    return client;
  };
  const isServed = async (): Promise<boolean> => {
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    sockets.push(session);
    const stream = session.request({ ...postHeaders, ':path': '/test.Service/Ping' });
    stream.end(Buffer.alloc(5)).resume();
    const [trailers] = (await once(stream, 'trailers')) as [Record<string, string>];
    return trailers['grpc-status'] === '0';
  };
  return { port, open, isServed, logged };
}

const times = (count: number, create: (i: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, i) => create(i)));

describe('GrpcTransport with hostile clients', () => {
  it.each<[string, Buffer]>([
    ['pings', times(20_000, () => frame(PING, 0, 0, Buffer.alloc(8)))],
    ['settings', times(20_000, () => frame(SETTINGS, 0, 0))],
    ['empty data', Buffer.concat([callHeaders(1, path), times(20_000, () => frame(DATA, 0, 1))])],
    [
      'resets',
      times(20_000, (i) =>
        Buffer.concat([callHeaders(2 * i + 1, path), frame(RST_STREAM, 0, 2 * i + 1, cancel)]),
      ),
    ],
    [
      'malformed requests',
      times(20_000, (i) => frame(HEADERS, endHeaders | endStream, 2 * i + 1, headerBlock({ a: 'b' }))),
    ],
    [
      'continuations',
      Buffer.concat([
        frame(HEADERS, 0, 1, headerBlock({ a: 'b' })),
        times(20_000, () => frame(CONTINUATION, 0, 1)),
      ]),
    ],
    [
      'header fields',
      Buffer.concat([
        frame(HEADERS, 0, 1, headerBlock({ a: 'b' })),
        times(64, () =>
          frame(
            CONTINUATION,
            0,
            1,
            times(200, () => headerBlock({ name: 'x'.repeat(70) })),
          ),
        ),
      ]),
    ],
  ])('disconnects a client for a flood of %s, and serves others', async (_, bytes) => {
    const { open, isServed } = await start({ kind: 'unary', reply: (request) => request });
    const { socket, closed } = open();
    socket.write(bytes);
    // Replies to pings and settings stay unread.
    socket.pause();
    expect(await isServed()).toBe(true);
    socket.resume();
    await closed;
    expect(await isServed()).toBe(true);
  });

  it('does no work for calls that are cancelled at once, closes their connection, and logs one line', async () => {
    const reply = vi.fn((request: Buffer) => request);
    const { open, isServed, logged } = await start({ kind: 'unary', reply });
    for (let round = 0; round < 3; round++) {
      const { socket, closed } = open();
      socket.resume();
      socket.write(
        times(600, (i) =>
          Buffer.concat([emptyCall(2 * i + 1, path), frame(RST_STREAM, 0, 2 * i + 1, cancel)]),
        ),
      );
      await closed;
    }
    expect(await isServed()).toBe(true);
    expect(reply).not.toHaveBeenCalled();
    expect(logged).toEqual(['warn: gRPC connection closed: more than 200 cancelled calls per second']);
  });

  it('sends no more than the windows of the client allow', async () => {
    const { open } = await start({ kind: 'unary', reply: () => Buffer.alloc(100, 'r') });
    const { socket, frames, sent } = open(10);
    const received = (): number =>
      frames.filter(({ type }) => type === DATA).reduce((sum, { payload }) => sum + payload.length, 0);
    socket.write(emptyCall(1, path));
    await vi.waitUntil(() => received() === 10, busy);
    socket.write(frame(WINDOW_UPDATE, 0, 1, uint32(5)));
    await vi.waitUntil(() => received() === 15, busy);
    socket.write(frame(WINDOW_UPDATE, 0, 1, uint32(1000)));
    await sent(HEADERS, ({ flags }) => (flags & endStream) !== 0);
    expect(received()).toBe(105);
  });

  it('works on few calls of a client whose windows are closed, and on none once it disconnects', async () => {
    const reply = vi.fn(() => Buffer.alloc(100));
    const { open, isServed } = await start({ kind: 'unary', reply });
    const { socket, sent } = open(0);
    socket.write(times(300, (i) => emptyCall(2 * i + 1, path)));
    // Beyond 100 open calls, further ones are refused.
    const refused = await sent(RST_STREAM, ({ id }) => id === 599);
    expect(refused.payload.readUInt32BE(0)).toBe(7);
    socket.write(frame(PING, 0, 0, Buffer.alloc(8)));
    await sent(PING);
    await vi.waitUntil(() => reply.mock.calls.length === 16, busy);
    socket.destroy();
    expect(await isServed()).toBe(true);
    expect(reply).toHaveBeenCalledTimes(16);
  });

  it('replies to few messages of streams that read no reply, and ends those that send on', async () => {
    const reply = vi.fn((request: Buffer) => request);
    const { open, isServed } = await start({ kind: 'bidi-stream', level: 'debug', reply });
    const { socket, sent, frames } = open(0);
    const ids = Array.from({ length: 24 }, (_, i) => 2 * i + 1);
    for (const id of ids) socket.write(callHeaders(id, path));
    for (const id of ids) socket.write(frame(DATA, 0, id, Buffer.alloc(5)));
    await vi.waitUntil(() => reply.mock.calls.length === 16, busy);
    socket.write(frame(PING, 0, 0, Buffer.alloc(8)));
    await sent(PING);
    expect(reply).toHaveBeenCalledTimes(16);
    // In frames of one byte, more than a window holds.
    for (let part = 0; part < 14; part++) {
      for (const id of ids) socket.write(times(5_000, () => frame(DATA, 0, id, Buffer.alloc(1))));
    }
    const isEnded = (id: number): boolean => frames.some((one) => one.id === id && one.type === RST_STREAM);
    await vi.waitUntil(() => ids.every(isEnded), busy);
    expect(await isServed()).toBe(true);
  });

  it('refuses unfinished requests of more than 64 MiB in all, and goes on', async () => {
    // Takes more than the 5 s of a request on a busy machine.
    const { port, isServed } = await start(
      { kind: 'unary', reply: () => Buffer.alloc(0) },
      { requestMs: 600_000 },
    );
    // By default, a client that has more than 10 MB to send takes no replies.
    const session = connectHttp2(`http://127.0.0.1:${port}`, { maxSessionMemory: 128 });
    session.setMaxListeners(0);
    onTestFinished(() => session.destroy());
    await once(session, 'remoteSettings');
    const piece = Buffer.alloc(4 * 1024 * 1024);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(piece.length, 1);
    // One byte is missing.
    const unfinished = Buffer.concat([head, piece.subarray(1)]);
    const statuses: unknown[] = [];
    for (let i = 0; i < 20; i++) {
      const stream = session.request({ ...postHeaders, ':path': path });
      stream.on('error', () => undefined);
      stream.on('response', (headers) => statuses.push(headers['grpc-status']));
      stream.resume();
      stream.write(unfinished);
    }
    await vi.waitUntil(() => statuses.length > 0, busy);
    expect(new Set(statuses)).toEqual(new Set(['8']));
    expect(await isServed()).toBe(true);
  });

  it('ends a stream whose reply is not read in time', async () => {
    const { open } = await start(
      { kind: 'bidi-stream', level: 'debug', reply: (request) => request },
      { idleMs: 100 },
    );
    const { socket, sent } = open(0);
    socket.write(Buffer.concat([callHeaders(1, path), frame(DATA, 0, 1, Buffer.alloc(5))]));
    const { payload } = await sent(RST_STREAM, ({ id }) => id === 1);
    expect(payload).toEqual(cancel);
  });
});
