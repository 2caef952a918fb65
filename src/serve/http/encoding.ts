import type { Transform, Writable } from 'node:stream';
import * as zlib from 'node:zlib';

export type Coding = 'zstd' | 'gzip';

/** Bodies that are smaller are not worth it. (Source: catalogd's handler.) */
export const minCompressedBytes = 1024;

/** Node.js 22.15 and newer have zstd; the types that this project builds with do not. */
interface ZstdZlib {
  createZstdCompress?: (options?: { params: Record<number, number> }) => Transform;
  constants: { ZSTD_c_compressionLevel: number };
}
const zstd = zlib as unknown as ZstdZlib;
const createZstd = zstd.createZstdCompress;

/** Codings that this Node.js can make, the preferred one first. */
export const availableCodings: readonly Coding[] = createZstd === undefined ? ['gzip'] : ['zstd', 'gzip'];

/**
 * The coding that an `Accept-Encoding` header wants most, by its q-values (RFC 9110, 12.5.3); undefined for none.
 * Of those wanted equally, the first of `available`, and any of them rather than none.
 */
export function negotiateCoding(
  header: string | undefined,
  available: readonly Coding[] = availableCodings,
): Coding | undefined {
  if (header === undefined) return undefined;
  const weights = new Map<string, number>();
  for (const part of header.split(',')) {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    const q = weight === undefined ? 1 : /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight) : 0;
    if (name !== '') weights.set(name === 'x-gzip' ? 'gzip' : name, q);
  }
  let best: Coding | undefined;
  let bestWeight = weights.get('identity') ?? 0;
  for (const coding of available) {
    const weight = weights.get(coding) ?? weights.get('*') ?? 0;
    if (weight === 0 || weight < bestWeight || (weight === bestWeight && best !== undefined)) continue;
    best = coding;
    bestWeight = weight;
  }
  return best;
}

/**
 * A stream that compresses, for one response or, as well as can be, for a file that is served many times. Throws for a
 * coding that is not available.
 */
export function createCompressor(coding: Coding, effort: 'fast' | 'best' = 'fast'): Transform {
  if (coding === 'gzip') return zlib.createGzip({ level: effort === 'best' ? 9 : gzipLevel });
  if (createZstd === undefined) throw new Error('zstd is not available');
  if (effort === 'fast') return createZstd();
  return createZstd({ params: { [zstd.constants.ZSTD_c_compressionLevel]: bestZstdLevel } });
}

/** Levels beyond it take memory of hundreds of megabytes from readers. */
const bestZstdLevel = 19;

/** Of a catalog of manifests this leaves 22 % at 115 MB/s; the default 21 % at 81, the fastest 26 % at 145. */
const gzipLevel = 4;

/**
 * Compresses pieces, each of which is done with before the next one is asked for. Throws what reading them throws.
 */
export async function* compressPieces(
  pieces: AsyncIterable<Buffer>,
  coding: Coding,
): AsyncGenerator<Buffer, void, undefined> {
  const compressor = createCompressor(coding);
  const feed = createSender(compressor);
  const compress = async (): Promise<void> => {
    try {
      for await (const piece of pieces) if (!(await feed(piece))) return;
      compressor.end();
    } catch (error) {
      compressor.destroy(error as Error);
    }
  };
  const compressing = compress();
  try {
    yield* compressor as AsyncIterable<Buffer>;
  } finally {
    compressor.destroy();
    await compressing;
  }
}

/** Writes pieces; tells that one has been taken, or that nobody takes any more. */
export function createSender(stream: Writable): (piece: Buffer) => Promise<boolean> {
  let settle: ((taken: boolean) => void) | undefined;
  stream.once('close', () => settle?.(false));
  return (piece) =>
    new Promise((resolve) => {
      if (stream.destroyed) return resolve(false);
      settle = resolve;
      stream.write(piece, (error) => resolve(!error));
    });
}
