import { once } from 'node:events';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { FrameReader } from '../../../../../src/serve/grpc/http2/frame-reader.js';
import { encodeHeaderBlock } from '../../../../../src/serve/grpc/http2/hpack.js';
import { errorCodes, frameFlags, frameTypes, preface } from '../../../../../src/serve/grpc/http2/protocol.js';
import type { Http2Stream } from '../../../../../src/serve/grpc/http2/stream.js';
import { Http2Session } from '../../../../../src/serve/grpc/http2/session.js';

const {
  DATA,
  HEADERS,
  PRIORITY,
  RST_STREAM,
  SETTINGS,
  PUSH_PROMISE,
  PING,
  GOAWAY,
  WINDOW_UPDATE,
  CONTINUATION,
} = frameTypes;
const { END_STREAM, END_HEADERS, PADDED, ACK } = frameFlags;

interface Frame {
  type: number;
  flags: number;
  id: number;
  payload: Buffer;
}

function frame(type: number, flags: number, id: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, payload]);
}

const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const setting = (id: number, value: number): Buffer => Buffer.concat([Buffer.from([0, id]), number(value)]);

const fields = { ':method': 'POST', ':scheme': 'http', ':path': '/' };
const request = encodeHeaderBlock(fields);
const response = encodeHeaderBlock({ ':status': '200' });
const trailers = encodeHeaderBlock({ end: 'yes' });
const hello = Buffer.concat([preface, frame(SETTINGS, 0, 0)]);

/** Starts an echo server; path /size=N responds with N bytes instead, /pause waits for /resume. */
async function start() {
  const closed: number[] = [];
  const paused: Http2Stream[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    new Http2Session(socket, {
      maxStreams: 4,
      onStream(stream, headers) {
        const pieces: Uint8Array[] = [];
        if (headers[':path'] === '/pause') paused.push(stream);
        for (const one of headers[':path'] === '/resume' ? paused : []) one.resume();
        if (paused.includes(stream)) stream.pause();
        const size = /size=(\d+)/.exec(headers[':path'] ?? '')?.[1];
        stream.handler = {
          receive: (piece) => void pieces.push(piece),
          end() {
            stream.respond(response);
            stream.write(size === undefined ? Buffer.concat(pieces) : Buffer.alloc(Number(size), 'r'));
            stream.end(trailers);
          },
          close: () => void closed.push(stream.id),
        };
      },
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const sockets: Socket[] = [];
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    closed,
    /** Opens a connection; `frames` are the received ones, `sent` waits for a matching one. */
    open(greeting: Uint8Array = hello) {
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
      sockets.push(socket);
      socket.on('error', () => undefined);
      const frames: Frame[] = [];
      const reader = new FrameReader((type, flags, id, payload) => {
        frames.push({ type, flags, id, payload: Buffer.from(payload) });
      });
      socket.on('data', (piece: Buffer) => reader.read(piece));
      socket.write(greeting);
      const sent = (type: number, fits: (frame: Frame) => boolean = () => true): Promise<Frame> =>
        vi.waitUntil(() => frames.find((one) => one.type === type && fits(one)), {
          timeout: 10_000,
          interval: 5,
        });
      return {
        socket,
        frames,
        sent,
        body: (id: number) =>
          Buffer.concat(
            frames.filter((one) => one.type === DATA && one.id === id).map(({ payload }) => payload),
          ),
        /** Returns the code and debug data of GOAWAY once the server has ended the connection. */
        ends: async () => {
          const ended = socket.closed ? undefined : once(socket, 'close');
          const { payload } = await sent(GOAWAY);
          await ended;
          return { code: payload.readUInt32BE(4), message: payload.toString('utf8', 8) };
        },
        resets: async (id: number) =>
          (await sent(RST_STREAM, (one) => one.id === id)).payload.readUInt32BE(0),
        finishes: (id: number) => sent(HEADERS, (one) => one.id === id && (one.flags & END_STREAM) !== 0),
      };
    },
  };
}

const begin = (id: number, block = request, isLast = true): Buffer =>
  frame(HEADERS, END_HEADERS | (isLast ? END_STREAM : 0), id, block);

describe('Http2Session', () => {
  it('echoes a padded body that arrives byte by byte between unknown frames', async () => {
    const client = (await start()).open();
    const bytes = Buffer.concat([
      begin(1, request, false),
      frame(99, 255, 7, Buffer.from('?')),
      frame(PRIORITY, 0, 1, Buffer.alloc(5)),
      frame(DATA, PADDED, 1, Buffer.concat([Buffer.from([3]), Buffer.from('one '), Buffer.alloc(3)])),
      frame(DATA, 0, 1, Buffer.from('two')),
      frame(HEADERS, END_STREAM, 1, trailers.subarray(0, 1)),
      frame(CONTINUATION, END_HEADERS, 1, trailers.subarray(1)),
    ]);
    for (const byte of bytes) {
      client.socket.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await client.finishes(1);
    expect(client.body(1).toString()).toBe('one two');
  });

  it('sends no more than the windows allow, and continues when they grow', async () => {
    const { open, closed } = await start();
    const client = open(Buffer.concat([preface, frame(SETTINGS, 0, 0, setting(4, 10))]));
    client.socket.write(begin(1, encodeHeaderBlock({ ...fields, ':path': '/size=100' })));
    await vi.waitUntil(() => client.body(1).length === 10);
    client.socket.write(frame(WINDOW_UPDATE, 0, 1, number(5)));
    await vi.waitUntil(() => client.body(1).length === 15);
    // The window shrinks below nothing, and later grows beyond what is left.
    client.socket.write(frame(SETTINGS, 0, 0, setting(4, 0)));
    client.socket.write(frame(WINDOW_UPDATE, 0, 1, number(10)));
    client.socket.write(frame(PING, 0, 0, Buffer.alloc(8)));
    await client.sent(PING);
    expect(client.body(1)).toHaveLength(15);
    client.socket.write(frame(SETTINGS, 0, 0, setting(4, 1000)));
    await client.finishes(1);
    expect(client.body(1).toString()).toBe('r'.repeat(100));
    await vi.waitUntil(() => closed.includes(1));
  });

  it('shares the window of the connection between streams', async () => {
    const client = (await start()).open(
      Buffer.concat([preface, frame(SETTINGS, 0, 0, setting(4, 1_000_000))]),
    );
    const large = encodeHeaderBlock({ ...fields, ':path': '/size=200000' });
    client.socket.write(Buffer.concat([begin(1, large), begin(3, large)]));
    await vi.waitUntil(() => client.body(1).length + client.body(3).length === 65_535);
    expect(client.body(1).length).toBeGreaterThan(16_000);
    expect(client.body(3).length).toBeGreaterThan(16_000);
    client.socket.write(frame(WINDOW_UPDATE, 0, 0, number(1_000_000)));
    await Promise.all([client.finishes(1), client.finishes(3)]);
    expect([client.body(1).length, client.body(3).length]).toEqual([200_000, 200_000]);
  });

  it('returns the windows while a larger body arrives', async () => {
    const client = (await start()).open();
    client.socket.write(begin(1, request, false));
    for (let i = 0; i < 10; i++) {
      client.socket.write(frame(DATA, i === 9 ? END_STREAM : 0, 1, Buffer.alloc(16_384, 'b')));
      const returned = (id: number) => (): boolean =>
        client.frames
          .filter((one) => one.type === WINDOW_UPDATE && one.id === id)
          .reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0) >=
        Math.min(i, 8) * 16_384 - 16_384;
      await vi.waitUntil(() => returned(0)() && returned(1)());
    }
    client.socket.write(frame(WINDOW_UPDATE, 0, 0, number(1_000_000)));
    client.socket.write(frame(WINDOW_UPDATE, 0, 1, number(1_000_000)));
    await client.finishes(1);
    expect(client.body(1)).toHaveLength(163_840);
  });

  it('announces an empty header table to a client that limits it', async () => {
    const client = (await start()).open(Buffer.concat([preface, frame(SETTINGS, 0, 0, setting(1, 0))]));
    client.socket.write(Buffer.concat([begin(1), begin(3)]));
    await client.finishes(3);
    const heads = client.frames.filter(({ type }) => type === HEADERS).map(({ payload }) => payload[0]);
    expect(heads).toEqual([0x20, 0x88, 0, 0]);
  });

  it.each<[string, number, Buffer]>([
    ['a frame before its settings', errorCodes.PROTOCOL_ERROR, Buffer.concat([preface, begin(1)])],
    [
      'a request of HTTP/1.1',
      errorCodes.PROTOCOL_ERROR,
      Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'),
    ],
  ])('ends a connection that begins with %s', async (_, code, greeting) => {
    const ending = await (await start()).open(greeting).ends();
    expect(ending.code).toBe(code);
    expect(ending.message).not.toBe('');
  });

  it('names the violation in the debug data of GOAWAY', async () => {
    const client = (await start()).open();
    client.socket.write(frame(PING, 0, 3, Buffer.alloc(8)));
    expect(await client.ends()).toEqual({ code: errorCodes.PROTOCOL_ERROR, message: 'PING on stream 3' });
  });

  it.each<[string, number, Buffer]>([
    ['a frame that is too large', errorCodes.FRAME_SIZE_ERROR, frame(DATA, 0, 1, Buffer.alloc(16_385))],
    ['a ping of the wrong size', errorCodes.FRAME_SIZE_ERROR, frame(PING, 0, 0, Buffer.alloc(7))],
    ['a ping on a stream', errorCodes.PROTOCOL_ERROR, frame(PING, 0, 1, Buffer.alloc(8))],
    ['settings that are cut off', errorCodes.FRAME_SIZE_ERROR, frame(SETTINGS, 0, 0, Buffer.alloc(5))],
    ['settings on a stream', errorCodes.PROTOCOL_ERROR, frame(SETTINGS, 0, 1)],
    [
      'a reply to settings with settings',
      errorCodes.FRAME_SIZE_ERROR,
      frame(SETTINGS, ACK, 0, Buffer.alloc(6)),
    ],
    ['an invalid frame size', errorCodes.PROTOCOL_ERROR, frame(SETTINGS, 0, 0, setting(5, 100))],
    [
      'an initial window that is too large',
      errorCodes.FLOW_CONTROL_ERROR,
      frame(SETTINGS, 0, 0, setting(4, 2 ** 31)),
    ],
    ['a push', errorCodes.PROTOCOL_ERROR, frame(PUSH_PROMISE, 0, 1, Buffer.alloc(8))],
    ['an even stream', errorCodes.PROTOCOL_ERROR, begin(2)],
    ['a request on the connection', errorCodes.PROTOCOL_ERROR, begin(0)],
    ['data for a stream that is not open', errorCodes.PROTOCOL_ERROR, frame(DATA, 0, 1, Buffer.from('x'))],
    ['a reset of a stream that is not open', errorCodes.PROTOCOL_ERROR, frame(RST_STREAM, 0, 9, number(8))],
    ['a window update of nothing', errorCodes.PROTOCOL_ERROR, frame(WINDOW_UPDATE, 0, 0, number(0))],
    [
      'a window beyond the limit',
      errorCodes.FLOW_CONTROL_ERROR,
      frame(WINDOW_UPDATE, 0, 0, number(2 ** 31 - 1)),
    ],
    ['a continuation of nothing', errorCodes.PROTOCOL_ERROR, frame(CONTINUATION, 0, 1)],
    ['a stream behind another', errorCodes.PROTOCOL_ERROR, Buffer.concat([begin(5), begin(3)])],
    [
      'a request behind the reset of its stream',
      errorCodes.STREAM_CLOSED,
      Buffer.concat([begin(1, request, false), frame(RST_STREAM, 0, 1, number(8)), begin(1)]),
    ],
    [
      'another frame within a header block',
      errorCodes.PROTOCOL_ERROR,
      Buffer.concat([frame(HEADERS, 0, 1, request), frame(PING, 0, 0, Buffer.alloc(8))]),
    ],
    [
      'more padding than payload',
      errorCodes.PROTOCOL_ERROR,
      Buffer.concat([begin(1, request, false), frame(DATA, PADDED, 1, Buffer.from([9, 1]))]),
    ],
    [
      'a header block that cannot be decoded',
      errorCodes.COMPRESSION_ERROR,
      begin(1, Buffer.from([0xff, 0xff])),
    ],
    [
      'continuations without end',
      errorCodes.ENHANCE_YOUR_CALM,
      Buffer.concat([
        frame(HEADERS, 0, 1, request),
        ...Array.from({ length: 20 }, () => frame(CONTINUATION, 0, 1)),
      ]),
    ],
    [
      'a header block that is too large',
      errorCodes.ENHANCE_YOUR_CALM,
      Buffer.concat([
        frame(HEADERS, 0, 1, request),
        ...Array.from({ length: 5 }, () => frame(CONTINUATION, 0, 1, Buffer.alloc(16_384))),
      ]),
    ],
    [
      'a flood of pings',
      errorCodes.ENHANCE_YOUR_CALM,
      Buffer.concat(Array.from({ length: 3_000 }, () => frame(PING, 0, 0, Buffer.alloc(8)))),
    ],
    [
      'a flood of settings',
      errorCodes.ENHANCE_YOUR_CALM,
      Buffer.concat(Array.from({ length: 5_000 }, () => frame(SETTINGS, 0, 0))),
    ],
    [
      'a flood of empty data',
      errorCodes.ENHANCE_YOUR_CALM,
      Buffer.concat([begin(1, request, false), ...Array.from({ length: 1_001 }, () => frame(DATA, 0, 1))]),
    ],
    [
      'a flood of malformed requests',
      errorCodes.ENHANCE_YOUR_CALM,
      Buffer.concat(Array.from({ length: 1_001 }, (_, i) => begin(2 * i + 1, encodeHeaderBlock({ a: 'b' })))),
    ],
  ])('ends the connection for %s', async (_, code, bytes) => {
    const client = (await start()).open();
    client.socket.write(bytes);
    const ending = await client.ends();
    expect(ending.code).toBe(code);
    expect(ending.message).not.toBe('');
  });

  it.each<[string, number, Buffer]>([
    [
      'an upper case name',
      errorCodes.PROTOCOL_ERROR,
      begin(1, encodeHeaderBlock({ ...fields, Accept: 'x' })),
    ],
    [
      'a field of a connection',
      errorCodes.PROTOCOL_ERROR,
      begin(1, encodeHeaderBlock({ ...fields, upgrade: 'x' })),
    ],
    ['a line break', errorCodes.PROTOCOL_ERROR, begin(1, encodeHeaderBlock({ ...fields, a: 'x\ny' }))],
    [
      'a pseudo field behind others',
      errorCodes.PROTOCOL_ERROR,
      begin(1, encodeHeaderBlock({ a: 'b', ...fields })),
    ],
    [
      'an unknown pseudo field',
      errorCodes.PROTOCOL_ERROR,
      begin(1, encodeHeaderBlock({ ...fields, ':a': 'b' })),
    ],
    [
      'a pseudo field that comes twice',
      errorCodes.PROTOCOL_ERROR,
      begin(1, Buffer.concat([request, request])),
    ],
    [
      'no path',
      errorCodes.PROTOCOL_ERROR,
      begin(1, encodeHeaderBlock({ ':method': 'POST', ':scheme': 'http' })),
    ],
    [
      'a header list that is too large',
      errorCodes.PROTOCOL_ERROR,
      begin(1, Buffer.concat([request, Buffer.alloc(200, 0x82)])),
    ],
    [
      'data behind its end',
      errorCodes.STREAM_CLOSED,
      Buffer.concat([begin(1, encodeHeaderBlock({ ...fields, ':path': '/size=99999' })), frame(DATA, 0, 1)]),
    ],
    ...[8, 3].map((length): [string, number, Buffer] => [
      `${length} bytes announced of 5`,
      errorCodes.PROTOCOL_ERROR,
      Buffer.concat([
        begin(1, encodeHeaderBlock({ ...fields, 'content-length': String(length) }), false),
        frame(DATA, END_STREAM, 1, Buffer.from('bytes')),
      ]),
    ]),
    [
      'data behind a reset',
      errorCodes.STREAM_CLOSED,
      Buffer.concat([begin(1, request, false), frame(RST_STREAM, 0, 1, number(8)), frame(DATA, 0, 1)]),
    ],
    [
      'trailers without end',
      errorCodes.PROTOCOL_ERROR,
      Buffer.concat([begin(1, request, false), begin(1, trailers, false)]),
    ],
    [
      'a window update of nothing',
      errorCodes.PROTOCOL_ERROR,
      Buffer.concat([begin(1, request, false), frame(WINDOW_UPDATE, 0, 1, number(0))]),
    ],
    [
      'a window beyond the limit',
      errorCodes.FLOW_CONTROL_ERROR,
      Buffer.concat([begin(1, request, false), frame(WINDOW_UPDATE, 0, 1, number(2 ** 31 - 1))]),
    ],
  ])('resets a stream for %s, and serves the next one', async (_, code, bytes) => {
    const { open, closed } = await start();
    const client = open();
    client.socket.write(bytes);
    expect(await client.resets(1)).toBe(code);
    client.socket.write(
      Buffer.concat([begin(3, request, false), frame(DATA, END_STREAM, 3, Buffer.from('next'))]),
    );
    await client.finishes(3);
    expect(client.body(3).toString()).toBe('next');
    await vi.waitUntil(() => closed.includes(3));
  });

  it('holds back data for a paused stream, up to its window', async () => {
    const client = (await start()).open();
    const pause = encodeHeaderBlock({ ...fields, ':path': '/pause' });
    client.socket.write(Buffer.concat([begin(1, pause, false), begin(3, pause, false)]));
    for (const id of [1, 3]) {
      for (let i = 0; i < 3; i++) client.socket.write(frame(DATA, 0, id, Buffer.alloc(16_384, 'p')));
    }
    client.socket.write(frame(DATA, END_STREAM, 1, Buffer.from('last')));
    client.socket.write(frame(DATA, 0, 3, Buffer.alloc(16_384)));
    expect(await client.resets(3)).toBe(errorCodes.FLOW_CONTROL_ERROR);
    expect(client.frames.some(({ type, id }) => type === HEADERS && id === 1)).toBe(false);
    client.socket.write(begin(5, encodeHeaderBlock({ ...fields, ':path': '/resume' })));
    await client.finishes(1);
    expect(client.body(1).toString()).toBe(`${'p'.repeat(49_152)}last`);
  });

  it('ignores frames for a stream that it has just reset', async () => {
    const client = (await start()).open();
    const bad = encodeHeaderBlock({ ...fields, upgrade: 'x' });
    client.socket.write(
      Buffer.concat([begin(1, bad, false), frame(DATA, 0, 1, Buffer.from('x')), begin(1, trailers)]),
    );
    client.socket.write(begin(3));
    await client.finishes(3);
    expect(client.frames.filter(({ type }) => type === RST_STREAM)).toHaveLength(1);
  });

  it('refuses streams beyond the maximum until an open one has ended', async () => {
    const { open, closed } = await start();
    const client = open();
    client.socket.write(Buffer.concat([1, 3, 5, 7, 9].map((id) => begin(id, request, false))));
    expect(await client.resets(9)).toBe(errorCodes.REFUSED_STREAM);
    client.socket.write(frame(RST_STREAM, 0, 1, number(8)));
    client.socket.write(frame(DATA, END_STREAM, 3));
    await vi.waitUntil(() => closed.includes(1) && closed.includes(3));
    client.socket.write(Buffer.concat([begin(11), begin(13)]));
    await Promise.all([client.finishes(11), client.finishes(13)]);
  });

  it('keeps few responses for a client that reads none', async () => {
    const { open, closed } = await start();
    const client = open(Buffer.concat([preface, frame(SETTINGS, 0, 0, setting(4, 0))]));
    client.socket.write(
      Buffer.concat(
        Array.from({ length: 500 }, (_, i) =>
          begin(2 * i + 1, encodeHeaderBlock({ ...fields, ':path': '/size=5' })),
        ),
      ),
    );
    expect(await client.resets(999)).toBe(errorCodes.REFUSED_STREAM);
    expect(client.frames.filter(({ type }) => type === HEADERS)).toHaveLength(4);
    client.socket.destroy();
    await vi.waitUntil(() => closed.length === 4);
  });

  it('closes its streams when the client disconnects', async () => {
    const { open, closed } = await start();
    const client = open();
    client.socket.write(begin(1, request, false));
    client.socket.write(frame(PING, 0, 0, Buffer.alloc(8)));
    await client.sent(PING);
    client.socket.resetAndDestroy();
    await vi.waitUntil(() => closed.includes(1));
  });
});
