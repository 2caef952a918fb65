import { once } from 'node:events';
import { type ClientHttp2Session, type OutgoingHttpHeaders, connect as connectHttp2 } from 'node:http2';
import { connect, createServer } from 'node:net';
import { deflateSync, gzipSync } from 'node:zlib';
import { Client, ChannelCredentials, compressionAlgorithms } from '@grpc/grpc-js';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { OpmateError } from '../../../../../src/core/errors.js';
import { silentLogger } from '../../../../../src/core/log.js';
import { listenOn } from '../../../../../src/serve/server/listening.js';
import type { ConnectionLimits } from '../../../../../src/serve/server/connections.js';
import type { GrpcMethod, RequestLimits } from '../../../../../src/serve/grpc/transport/call.js';
import { GrpcTransport } from '../../../../../src/serve/grpc/transport/transport.js';
import { busy } from '../../../../support/waiting.js';

const maxRequestBytes = 4 * 1024 * 1024;

async function start(methods: Record<string, GrpcMethod>, limits: ConnectionLimits & RequestLimits = {}) {
  const services = [{ name: 'test.Service', methods }];
  const transport = new GrpcTransport({ services, maxConnections: 10, ...limits, logger: silentLogger });
  const listener = createServer({ noDelay: true }, (socket) => transport.accept(socket));
  const port = await listenOn(listener, { host: '127.0.0.1', port: 0 });
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    listener.close();
    return (closed ??= transport.close());
  };
  onTestFinished(close);
  return { port, close };
}

const echo: GrpcMethod = { kind: 'unary', level: 'info', reply: (request) => request };

function open(port: number): ClientHttp2Session {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  session.on('error', () => undefined);
  onTestFinished(() => session.destroy());
  return session;
}

function frame(message: Uint8Array, isCompressed = false): Buffer {
  const head = Buffer.alloc(5);
  head[0] = isCompressed ? 1 : 0;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function withResolvers<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((fulfil) => (resolve = fulfil));
  return { promise, resolve };
}

interface Received {
  http: unknown;
  status: unknown;
  message: unknown;
  messages: string[];
  isTrailersOnly: boolean;
}

/** One call with these bytes as its body; undefined leaves its end open, after `begin`. */
function call(
  session: ClientHttp2Session,
  body: Buffer | undefined,
  headers: OutgoingHttpHeaders = {},
  begin?: Buffer,
): Promise<Received> {
  const stream = session.request(
    {
      ':method': 'POST',
      ':path': '/test.Service/Echo',
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    },
    { endStream: false },
  );
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let fields: Record<string, unknown> = {};
    let isTrailersOnly = true;
    stream.on('response', (received) => (fields = { ...received }));
    stream.on('trailers', (received) => {
      isTrailersOnly = false;
      fields = { ...fields, ...received };
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    stream.on('close', () => {
      const bytes = Buffer.concat(chunks);
      const messages: string[] = [];
      for (let at = 0; at < bytes.length; at += 5 + bytes.readUInt32BE(at + 1)) {
        messages.push(bytes.toString('utf8', at + 5, at + 5 + bytes.readUInt32BE(at + 1)));
      }
      const { ':status': http, 'grpc-status': status, 'grpc-message': message } = fields;
      resolve({ http, status, message, messages, isTrailersOnly });
    });
    if (begin !== undefined) for (const byte of begin) stream.write(Buffer.of(byte));
    if (body !== undefined) stream.end(body);
  });
}

describe('GrpcTransport', () => {
  it('replies with the message and the status in trailers, and to failures with trailers alone', async () => {
    const { port } = await start({
      Echo: echo,
      Fail: {
        kind: 'unary',
        level: 'info',
        reply: () => {
          throw new OpmateError('NOT_FOUND', 'package "é%" not found\nat all');
        },
      },
    });
    const session = open(port);
    expect(await call(session, frame(Buffer.from('hello')))).toEqual({
      http: 200,
      status: '0',
      message: undefined,
      messages: ['hello'],
      isTrailersOnly: false,
    });
    expect(await call(session, frame(Buffer.alloc(0)), { ':path': '/test.Service/Fail' })).toEqual({
      http: 200,
      status: '2',
      message: 'package "%C3%A9%25" not found%0Aat all',
      messages: [],
      isTrailersOnly: true,
    });
  });

  it('ends calls whose request message is not completed in time', async () => {
    const { port } = await start(
      { Echo: echo, Talk: { kind: 'bidi-stream', level: 'info', reply: (request) => request } },
      { requestMs: 100, idleMs: 200 },
    );
    const session = open(port);
    const body = frame(Buffer.from('hello'));
    const begin = (path: string, sent: Buffer): Promise<Received> =>
      call(session, undefined, { ':path': `/test.Service/${path}` }, sent);
    const late = { http: 200, status: '4', message: 'no complete request message within 0.1 s' };
    expect(await begin('Echo', Buffer.alloc(0))).toMatchObject(late);
    // A whole message, but not the end of the request.
    expect(await begin('Echo', body)).toMatchObject(late);
    // A message byte by byte.
    expect(await begin('Talk', Buffer.concat([body, body.subarray(0, 7)]))).toMatchObject({
      http: 200,
      status: '4',
      message: 'no complete request message within 0.2 s',
      messages: ['hello'],
    });
    // The deadline of a client may be earlier.
    const deadline = { ':path': '/test.Service/Echo', 'grpc-timeout': '20m' };
    expect(await call(session, undefined, deadline)).toMatchObject({ message: 'deadline exceeded' });
    expect((await call(session, body)).messages).toEqual(['hello']);
  });

  it('names unknown services and methods', async () => {
    const session = open((await start({ Echo: echo })).port);
    const body = frame(Buffer.alloc(0));
    const results = [];
    for (const path of ['/test.Service/Nope', '/other.Service/Echo', '/Echo']) {
      results.push(await call(session, body, { ':path': path }));
    }
    expect(results.map(({ status, message }) => [status, message])).toEqual([
      ['12', 'unknown method Nope for service test.Service'],
      ['12', 'unknown service other.Service'],
      ['12', 'malformed method name: "/Echo"'],
    ]);
  });

  it('refuses requests other than gRPC with an HTTP status', async () => {
    const session = open((await start({ Echo: echo })).port);
    expect(await call(session, frame(Buffer.alloc(0)), { ':method': 'PUT' })).toMatchObject({ http: 405 });
    const json = await call(session, frame(Buffer.alloc(0)), { 'content-type': 'application/json' });
    expect(json).toMatchObject({ http: 415 });
  });

  it.each([
    ['gzip', gzipSync('hello')],
    ['deflate', deflateSync('hello')],
  ])('reads a message compressed by %s', async (encoding, bytes) => {
    const session = open((await start({ Echo: echo })).port);
    expect(await call(session, frame(bytes, true), { 'grpc-encoding': encoding })).toMatchObject({
      status: '0',
      messages: ['hello'],
    });
  });

  it('reads messages that a client of the library compresses', async () => {
    const { port } = await start({ Echo: echo });
    const client = new Client(`127.0.0.1:${port}`, ChannelCredentials.createInsecure(), {
      'grpc.default_compression_algorithm': compressionAlgorithms.gzip,
    });
    onTestFinished(() => client.close());
    const same = (bytes: Buffer): Buffer => bytes;
    const request = Buffer.from('x'.repeat(100_000));
    const reply = await new Promise<Buffer | undefined>((resolve, reject) => {
      client.makeUnaryRequest('/test.Service/Echo', same, same, request, (error, bytes) =>
        error === null ? resolve(bytes) : reject(error),
      );
    });
    expect(reply?.equals(request)).toBe(true);
  });

  it('refuses an unknown encoding, invalid data, and messages that exceed the limit decompressed', async () => {
    const session = open((await start({ Echo: echo })).port);
    const large = gzipSync(Buffer.alloc(maxRequestBytes + 1));
    expect(large.length).toBeLessThan(10_000);
    const results = [
      await call(session, frame(Buffer.from('x'), true), { 'grpc-encoding': 'snappy' }),
      await call(session, frame(Buffer.from('x'), true), { 'grpc-encoding': 'gzip' }),
      await call(session, frame(large, true), { 'grpc-encoding': 'gzip' }),
    ];
    expect(results.map(({ status, message }) => [status, message])).toEqual([
      ['12', 'unsupported message encoding "snappy"'],
      ['13', 'invalid compressed message'],
      ['8', `message exceeds ${maxRequestBytes} bytes decompressed`],
    ]);
  });

  it('reads a message in pieces of any size', async () => {
    const session = open((await start({ Echo: echo })).port);
    const bytes = frame(Buffer.from('in pieces'));
    for (const size of [1, 3, 7]) {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/test.Service/Echo',
        'content-type': 'application/grpc+proto',
      });
      for (let at = 0; at < bytes.length; at += size) {
        stream.write(bytes.subarray(at, at + size));
        await new Promise((resolve) => setImmediate(resolve));
      }
      stream.end();
      const received: Buffer[] = [];
      for await (const chunk of stream) received.push(chunk as Buffer);
      expect(Buffer.concat(received).subarray(5).toString()).toBe('in pieces');
    }
  });

  it('refuses a missing message, a second one, and one that is too large before it arrives', async () => {
    const session = open((await start({ Echo: echo })).port);
    const one = frame(Buffer.from('x'));
    const head = Buffer.alloc(5);
    head.writeUInt32BE(maxRequestBytes + 1, 1);
    const results = [
      await call(session, Buffer.alloc(0)),
      await call(session, Buffer.concat([one, one])),
      await call(session, head),
    ];
    expect(results.map(({ status, message }) => [status, message])).toEqual([
      ['12', 'no request message for /test.Service/Echo'],
      ['12', 'second request message for /test.Service/Echo'],
      ['8', `message of ${maxRequestBytes + 1} bytes exceeds ${maxRequestBytes}`],
    ]);
    expect(await call(session, one)).toMatchObject({ status: '0' });
  });

  it('ends a call at its deadline, whether its request or its reply is missing', async () => {
    const never: GrpcMethod = { kind: 'unary', level: 'info', reply: () => new Promise(() => undefined) };
    const session = open((await start({ Echo: echo, Never: never })).port);
    const late = { status: '4', message: 'deadline exceeded' };
    expect(await call(session, undefined, { 'grpc-timeout': '20m' })).toMatchObject(late);
    const headers = { 'grpc-timeout': '20000u', ':path': '/test.Service/Never' };
    expect(await call(session, frame(Buffer.alloc(0)), headers)).toMatchObject(late);
    // The longest timeout that can be written is no short one.
    const longest = await call(session, frame(Buffer.from('x')), { 'grpc-timeout': '99999999H' });
    expect(longest).toMatchObject({ status: '0', messages: ['x'] });
    const invalid = await call(session, frame(Buffer.from('x')), { 'grpc-timeout': 'soon' });
    expect(invalid).toMatchObject({ status: '13', message: 'invalid grpc-timeout' });
  });

  it('sends the messages of a stream that fails, then its status', async () => {
    const { port } = await start({
      Echo: {
        kind: 'server-stream',
        level: 'info',
        *reply() {
          yield Buffer.from('first');
          yield Buffer.alloc(100_000, 'x');
          throw new OpmateError('IO', 'the disk is gone');
        },
      },
    });
    expect(await call(open(port), frame(Buffer.alloc(0)))).toMatchObject({
      status: '13',
      message: 'the disk is gone',
      messages: ['first', 'x'.repeat(100_000)],
    });
  });

  it('replies to the messages of a bidirectional stream in order, compressed ones too', async () => {
    const { port } = await start({
      Echo: { kind: 'bidi-stream', level: 'debug', reply: (request) => request },
    });
    const body = [frame(Buffer.from('a')), frame(gzipSync('b'), true), frame(Buffer.from('c'))];
    const headers = { 'grpc-encoding': 'gzip' };
    expect(await call(open(port), Buffer.concat(body), headers)).toMatchObject({
      status: '0',
      messages: ['a', 'b', 'c'],
    });
  });

  it('replies to other calls between the messages of a long stream', async () => {
    let produced = 0;
    let isAnswered = false;
    const { port } = await start({
      Echo: echo,
      List: {
        kind: 'server-stream',
        level: 'info',
        *reply() {
          while (produced < 1000 && !isAnswered) {
            for (const end = performance.now() + 2; performance.now() < end;);
            produced++;
            yield Buffer.from('x');
          }
        },
      },
    });
    const [lister, caller] = [open(port), open(port)];
    await call(caller, frame(Buffer.from('connected')));
    const listed = call(lister, frame(Buffer.alloc(0)), { ':path': '/test.Service/List' });
    await vi.waitFor(() => expect(produced).toBeGreaterThan(0), busy);
    expect((await call(caller, frame(Buffer.from('hello')))).messages).toEqual(['hello']);
    isAnswered = true;
    expect(produced).toBeLessThan(1000);
    expect((await listed).messages).toHaveLength(produced);
  });

  it('works on few of the streams that many connections open at once, and on each in turn', async () => {
    let working = 0;
    let most = 0;
    const released = withResolvers<void>();
    const { port } = await start(
      {
        List: {
          kind: 'server-stream',
          level: 'info',
          async *reply() {
            most = Math.max(most, ++working);
            await released.promise;
            working--;
            yield Buffer.from('x');
          },
        },
      },
      { maxConnections: 100 },
    );
    const sessions = Array.from({ length: 40 }, () => open(port));
    const calls = sessions.flatMap((session) =>
      Array.from({ length: 16 }, () =>
        call(session, frame(Buffer.alloc(0)), { ':path': '/test.Service/List' }),
      ),
    );
    await vi.waitFor(() => expect(most).toBeGreaterThanOrEqual(256), busy);
    released.resolve();
    for (const { messages } of await Promise.all(calls)) expect(messages).toEqual(['x']);
    // 256 in all, and one of each connection.
    expect(most).toBeLessThanOrEqual(256 + sessions.length);
  });

  it('sends GOAWAY when it closes, and finishes the open call', async () => {
    const { resolve: reply, promise: replied } = withResolvers<Buffer>();
    const { resolve: begin, promise: begun } = withResolvers<void>();
    const { port, close } = await start({
      Echo: {
        kind: 'unary',
        level: 'info',
        reply: () => {
          begin();
          return replied;
        },
      },
    });
    const session = open(port);
    const goaway = once(session, 'goaway');
    const received = call(session, frame(Buffer.alloc(0)));
    await begun;
    const closed = close();
    expect((await goaway)[0]).toBe(0);
    reply(Buffer.from('late'));
    expect(await received).toMatchObject({ status: '0', messages: ['late'] });
    await closed;
  });

  it('closes a connection without HTTP/2, and replaces one with an incomplete request', async () => {
    const { port } = await start({ Echo: echo }, { maxConnections: 1 });
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined).resume();
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(socket, 'close');
    const half = open(port);
    const gone = once(half, 'close');
    call(half, undefined).catch(() => undefined);
    await once(half, 'remoteSettings');
    expect(await call(open(port), frame(Buffer.from('x')))).toMatchObject({ status: '0' });
    await gone;
  });

  it('closes the connection of a client that does not read its reply for a new one, and no other', async () => {
    const release = withResolvers<Uint8Array>();
    const methods: Record<string, GrpcMethod> = {
      Echo: echo,
      Large: { kind: 'unary', level: 'info', reply: () => Buffer.alloc(20_000_000) },
      Slow: { kind: 'unary', level: 'info', reply: () => release.promise },
    };
    const { port } = await start(methods, { maxConnections: 2, stalledMs: 300 });
    const begin = async (method: string): Promise<ClientHttp2Session> => {
      const session = open(port);
      await once(session, 'remoteSettings');
      const path = `/test.Service/${method}`;
      const stream = session.request({
        ':method': 'POST',
        ':path': path,
        'content-type': 'application/grpc',
      });
      stream.on('error', () => undefined).end(frame(Buffer.from('x')));
      await new Promise<void>((resolve) => session.ping(() => resolve()));
      return session;
    };
    const [reader, works] = [await begin('Large'), await begin('Slow')];
    // Pings are no reading.
    const pings = setInterval(() => reader.closed || reader.destroyed || reader.ping(() => undefined), 100);
    onTestFinished(() => clearInterval(pings));
    await vi.waitUntil(
      async () => {
        try {
          return (await call(open(port), frame(Buffer.from('y')))).status === '0';
        } catch {
          return false;
        }
      },
      { ...busy, interval: 50 },
    );
    await vi.waitUntil(() => reader.destroyed, busy);
    expect(works.destroyed).toBe(false);
    release.resolve(Buffer.from('done'));
  });
});
