import { type Socket, connect } from 'node:net';
import { vi } from 'vitest';
import { busy } from './waiting.js';

/** Frames of HTTP/2 as bytes, for clients that break its rules. (Source: RFC 9113, section 6.) */

export const frameTypes = {
  DATA: 0,
  HEADERS: 1,
  RST_STREAM: 3,
  SETTINGS: 4,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;
export const endStream = 1;
export const endHeaders = 4;
const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
/** Setting INITIAL_WINDOW_SIZE. */
const windowSetting = 4;

export interface Frame {
  type: number;
  flags: number;
  id: number;
  payload: Buffer;
}

export function frame(
  type: number,
  flags: number,
  id: number,
  payload: Uint8Array = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, payload]);
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Encodes header fields as literals without an index; names and values have fewer than 127 bytes. */
export function headerBlock(fields: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(
    Object.entries(fields).flatMap(([name, value]) =>
      [name, value].map((text, i) =>
        Buffer.concat([Buffer.of(...(i === 0 ? [0, text.length] : [text.length])), Buffer.from(text)]),
      ),
    ),
  );
}

/** HEADERS of a gRPC call. */
export function callHeaders(id: number, path: string, fields: Readonly<Record<string, string>> = {}): Buffer {
  const block = headerBlock({
    ':method': 'POST',
    ':scheme': 'http',
    ':path': path,
    ':authority': 'localhost',
    'content-type': 'application/grpc',
    ...fields,
  });
  return frame(frameTypes.HEADERS, endHeaders, id, block);
}

/** One call with an empty message. */
export function emptyCall(id: number, path: string): Buffer {
  return Buffer.concat([callHeaders(id, path), frame(frameTypes.DATA, endStream, id, Buffer.alloc(5))]);
}

/** Preface and settings of a client whose streams have a window of `window` bytes. */
export function greeting(window = 65_535): Buffer {
  const settings = Buffer.concat([Buffer.of(0, windowSetting), uint32(window)]);
  return Buffer.concat([Buffer.from(preface), frame(frameTypes.SETTINGS, 0, 0, settings)]);
}

/** Connects to a server; `frames` are the received ones, and `sent` waits for one that matches. */
export function openRaw(port: number): {
  socket: Socket;
  /** Resolves when the connection has ended, reset or not. */
  closed: Promise<void>;
  frames: Frame[];
  sent: (type: number, matches?: (frame: Frame) => boolean) => Promise<Frame>;
} {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  const frames: Frame[] = [];
  let rest = Buffer.alloc(0);
  socket.on('data', (piece: Buffer) => {
    rest = Buffer.concat([rest, piece]);
    while (rest.length >= 9) {
      const length = 9 + rest.readUIntBE(0, 3);
      if (rest.length < length) return;
      const [type, flags] = [rest[3] as number, rest[4] as number];
      frames.push({ type, flags, id: rest.readUInt32BE(5), payload: rest.subarray(9, length) });
      rest = rest.subarray(length);
    }
  });
  return {
    socket,
    closed: new Promise((resolve) => socket.once('close', () => resolve())),
    frames,
    sent: (type, matches = () => true) =>
      vi.waitUntil(() => frames.find((one) => one.type === type && matches(one)), {
        ...busy,
        interval: 5,
      }),
  };
}
