import { createHash } from 'node:crypto';
import { Transform } from 'node:stream';
import { DigestMismatchError, OpmateError } from './errors.js';
import { quoteGo } from './go-json-quote.js';

export type DigestAlgorithm = 'sha256' | 'sha384' | 'sha512';

/** Parts of a digest, which are safe in paths and URLs. */
interface Digest {
  algorithm: DigestAlgorithm;
  /** Digest in lower case, of the length of the algorithm. */
  hex: string;
}

const hexLengths: Readonly<Record<DigestAlgorithm, number>> = { sha256: 64, sha384: 96, sha512: 128 };

/**
 * Parses `algorithm:hex`. Accepts SHA-256, SHA-384 and SHA-512 in lower case and full length. Throws OpmateError
 * INVALID.
 */
export function parseDigest(text: string): Digest {
  const fault = findDigestError(text);
  if (fault !== undefined) {
    const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text;
    throw new OpmateError('INVALID', `digest ${quoteGo(shown)}: ${fault}`, {
      hint: 'use sha256: and 64 lower-case hexadecimal digits',
    });
  }
  const colon = text.indexOf(':');
  return { algorithm: text.slice(0, colon) as DigestAlgorithm, hex: text.slice(colon + 1) };
}

/** Reports whether `parseDigest` accepts a text. */
export function isDigest(text: string): boolean {
  return findDigestError(text) === undefined;
}

/** Returns the problem of a digest in the words of the distribution tools; undefined for a valid one. */
export function findDigestError(text: string): string | undefined {
  const colon = text.indexOf(':');
  if (colon <= 0 || colon === text.length - 1) return 'invalid checksum digest format';
  const algorithm = text.slice(0, colon);
  if (!Object.hasOwn(hexLengths, algorithm)) {
    const isWellFormed = /^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$/.test(text);
    return isWellFormed ? 'unsupported digest algorithm' : 'invalid checksum digest format';
  }
  const hex = text.slice(colon + 1);
  if (hex.length !== hexLengths[algorithm as DigestAlgorithm]) return 'invalid checksum digest length';
  return /^[a-f0-9]+$/.test(hex) ? undefined : 'invalid checksum digest format';
}

/** Returns the digest of content in memory. */
export function computeDigest(content: Uint8Array | string, algorithm: DigestAlgorithm = 'sha256'): string {
  return `${algorithm}:${createHash(algorithm).update(content).digest('hex')}`;
}

/** The SHA-256 digest of content that arrives in pieces. Throws what reading it throws. */
export async function digestPieces(pieces: AsyncIterable<Uint8Array | string>): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of pieces) hash.update(piece);
  return `sha256:${hash.digest('hex')}`;
}

interface ExpectedContent {
  digest: string;
  /** Size in bytes. */
  size: number;
  /** Name of the content in messages, with its digest. */
  subject: string;
  hint?: string | undefined;
}

/**
 * Returns a stream that passes content on and fails with DigestMismatchError as soon as it is too long, or at its end
 * if it is too short or has another digest. Readers may trust the content only after its end. Throws OpmateError
 * INVALID for an invalid `digest`.
 */
export function verifyContent({ digest, size, ...details }: ExpectedContent): Transform {
  const { algorithm } = parseDigest(digest);
  const hash = createHash(algorithm);
  let received = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      received += chunk.length;
      if (received > size) {
        done(new DigestMismatchError(`expected ${size} bytes, got more`, details));
        return;
      }
      hash.update(chunk);
      done(null, chunk);
    },
    flush(done) {
      const actual = `${algorithm}:${hash.digest('hex')}`;
      let problem: string | undefined;
      if (received !== size) problem = `expected ${size} bytes, got ${received}`;
      else if (actual !== digest) problem = `content has digest ${actual}`;
      done(problem === undefined ? null : new DigestMismatchError(problem, details));
    },
  });
}
