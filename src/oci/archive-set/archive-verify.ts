import { type Hash, createHash } from 'node:crypto';

import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { paddedSize } from '../../archive/tar-header.js';
import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { computeDigest, parseDigest } from '../../core/digest.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { fileError, getMessage, systemCode, systemReason, throwIfCancelled } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { sortedByBytes } from '../../core/order.js';
import { openRegularFile } from '../../files/read-file.js';
import { type ArchiveIndex, type ArchiveProof, archiveIndexName, readArchiveIndex } from './archive-index.js';
import { type PartLayout, blobHeader, getLayout } from './archive-layout.js';
import { findPartFiles, findPartProblem } from './archive-set-reader.js';
import { readRegion } from '../../files/file-region.js';
import { isNonDistributable, readManifestFacts } from '../layout/layout-manifest.js';
import { type Descriptor, maxManifestBytes } from '../image/types.js';

/** What is wrong with an archive set. `file` is a part, or the index; `subject` is the digest of a damaged blob. */
export interface ArchiveDiagnostic extends Diagnostic {
  code: 'damaged' | 'missing-blob' | 'unexpected-file' | 'unreadable' | 'invalid-index';
  file: string;
}

function damage(file: string, problem: string, digest?: string): ArchiveDiagnostic {
  return { severity: 'error', code: 'damaged', subject: digest, problem, file };
}

/** Parts that are read at a time: more would only make a disk seek. */
const parallelParts = 2;

/**
 * Reads every byte of an archive set and reports all that is damaged, missing or should not be there: sums and
 * sizes of parts, digests of blobs, what stands between them, parts that the index does not name, and blobs that
 * an image needs and neither the set nor its base has. Throws what `readArchiveIndex` throws.
 */
export async function verifyArchiveSet(
  directory: string,
  options: CancelOptions & { logger?: Logger; proof?: ArchiveProof } = {},
): Promise<ArchiveDiagnostic[]> {
  const { logger = silentLogger, proof } = options;
  const index = await readArchiveIndex(directory, proof);
  const files = await findPartFiles(directory, index);
  const parts = getLayout(index.parts, index.blobs, index.images, archiveIndexName);
  const task = `verify ${directory}`;
  const total = parts.reduce((sum, { size }) => sum + size, 0);
  let current = 0;
  logger.progress({ task, state: 'start' });
  const tell = (bytes: number): void => {
    current += bytes;
    logger.progress({ task, state: 'update', current, total, unit: 'bytes' });
  };
  try {
    const verified = await mapConcurrent(
      parts,
      parallelParts,
      (part) =>
        verifyPart(
          files[part.number - 1] as string,
          part,
          index.parts[part.number - 1]?.sha256,
          tell,
          options,
        ),
      options,
    );
    const faults = [...verified.flat(), ...(await findExtraParts(directory, index, files))];
    faults.push(...(await findMissingBlobs(files, index, faults, options)));
    logger.progress({ task, state: 'done' });
    return faults;
  } catch (error) {
    logger.progress({ task, state: 'failed' });
    throw error;
  }
}

/** Bytes of a part, in their order: either known as such, or a blob's. */
type Segment = { bytes: Buffer; what: string } | { digest: string; size: number };

function* iterateSegments(part: PartLayout): Generator<Segment> {
  for (const blob of part.blobs) {
    yield { bytes: blobHeader(blob), what: `the tar header of ${blob.digest}` };
    yield blob;
    const padding = paddedSize(blob.size) - blob.size;
    if (padding > 0) yield { bytes: Buffer.alloc(padding), what: `the end of ${blob.digest}` };
  }
  yield { bytes: part.tail, what: 'what follows the last blob' };
}

async function verifyPart(
  place: string,
  part: PartLayout,
  sum: string | undefined,
  tell: (bytes: number) => void,
  { signal }: CancelOptions,
): Promise<ArchiveDiagnostic[]> {
  const { file } = part;
  const problem = await findPartProblem(place, part);
  if (problem !== undefined) return [damage(file, problem.message)];
  const faults: ArchiveDiagnostic[] = [];
  const whole = createHash('sha256');
  const check = new SegmentCheck(part, (problem, digest) => faults.push(damage(file, problem, digest)));
  try {
    const handle = await openRegularFile(place, { noFollow: true });
    try {
      for await (const piece of readRegion(handle, 0, part.size, file)) {
        throwIfCancelled(signal);
        whole.update(piece);
        check.update(piece);
        tell(piece.length);
      }
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (systemCode(error) === 'CANCELLED') throw error;
    return [...faults, { ...damage(file, `cannot be read: ${systemReason(error)}`), code: 'unreadable' }];
  }
  const actual = whole.digest('hex');
  if (actual !== sum && faults.length === 0) {
    faults.push(damage(file, `has the SHA-256 sum ${actual}, the index says ${sum}`));
  }
  return faults;
}

/** Compares the bytes of a part, as they come, with what has to be there. */
class SegmentCheck {
  readonly #segments: Iterator<Segment>;
  readonly #report: (message: string, digest?: string) => void;
  #segment: Segment | undefined;
  #hash: Hash | undefined;
  #done = 0;
  #differs = false;

  constructor(part: PartLayout, report: (message: string, digest?: string) => void) {
    this.#segments = iterateSegments(part);
    this.#report = report;
    this.#next();
  }

  update(piece: Buffer): void {
    let used = 0;
    while (this.#segment !== undefined && used < piece.length) {
      const segment = this.#segment;
      const size = 'bytes' in segment ? segment.bytes.length : segment.size;
      const bytes = piece.subarray(used, used + size - this.#done);
      if ('bytes' in segment) {
        this.#differs ||= !bytes.equals(segment.bytes.subarray(this.#done, this.#done + bytes.length));
      } else this.#hash?.update(bytes);
      used += bytes.length;
      this.#done += bytes.length;
      if (this.#done === size) this.#finish(segment);
    }
  }

  #finish(segment: Segment): void {
    if ('bytes' in segment) {
      if (this.#differs) this.#report(`${segment.what} is not what the index says`);
    } else if (this.#hash?.digest('hex') !== parseDigest(segment.digest).hex) {
      this.#report('content does not match its digest', segment.digest);
    }
    this.#next();
  }

  #next(): void {
    this.#done = 0;
    this.#differs = false;
    const { value, done } = this.#segments.next();
    this.#segment = done ? undefined : (value as Segment);
    if (this.#segment === undefined || 'bytes' in this.#segment) return;
    this.#hash = createHash(parseDigest(this.#segment.digest).algorithm);
    // No byte would ever end it.
    if (this.#segment.size === 0) this.#finish(this.#segment);
  }
}

async function findExtraParts(
  directory: string,
  index: ArchiveIndex,
  files: readonly string[],
): Promise<ArchiveDiagnostic[]> {
  const named = new Set(index.parts.map(({ file }) => file));
  // Those of the earlier set go when the last part of this one has come to its place.
  if (files.some((file) => !named.has(path.basename(file)))) return [];
  const names = await readdir(directory).catch((error: unknown) => {
    throw fileError(directory, error);
  });
  return sortedByBytes(names)
    .filter((name) => /^mirror_\d{6}\.tar$/.test(name) && !named.has(name))
    .map((file) => ({ ...damage(file, 'is not part of this archive'), code: 'unexpected-file' }));
}

/**
 * Follows the images to all that they need. Manifests that an index lists may be absent: a mirror of some platforms
 * leaves the others out. Those that are in the base cannot be read here.
 */
async function findMissingBlobs(
  files: readonly string[],
  index: ArchiveIndex,
  known: readonly ArchiveDiagnostic[],
  { signal }: CancelOptions,
): Promise<ArchiveDiagnostic[]> {
  const faults: ArchiveDiagnostic[] = [];
  const seen = new Set(known.map(({ subject }) => subject));
  const broken = new Set(known.map(({ file }) => file));
  for (const { repository, tag, descriptor } of index.images) {
    const name = `${repository}${tag === undefined ? '' : `:${tag}`}`;
    const left: Descriptor[] = [descriptor];
    for (let item = left.pop(); item !== undefined; item = left.pop()) {
      throwIfCancelled(signal);
      const place = index.blobs.get(item.digest);
      if (place === undefined || seen.has(item.digest)) continue;
      seen.add(item.digest);
      const { file } = index.parts[place.part - 1] as { file: string };
      try {
        const bytes = await readManifest(files[place.part - 1] as string, place);
        if (computeDigest(bytes, parseDigest(item.digest).algorithm) !== item.digest) continue;
        const facts = readManifestFacts(bytes, item.digest);
        for (const blob of facts.blobs) {
          if (index.blobs.has(blob.digest) || index.inBase.has(blob.digest) || isNonDistributable(blob))
            continue;
          const problem = `${name} needs it, and neither the archive nor its base has it`;
          if (!seen.has(blob.digest)) {
            faults.push({ ...damage(archiveIndexName, problem, blob.digest), code: 'missing-blob' });
          }
          seen.add(blob.digest);
        }
        left.push(...facts.manifests);
      } catch (error) {
        // What cannot be read has been told.
        if (broken.has(file)) continue;
        faults.push(damage(file, `of ${name}: ${getMessage(error)}`, item.digest));
      }
    }
  }
  return faults;
}

async function readManifest(file: string, place: { size: number; offset: number }): Promise<Buffer> {
  if (place.size > maxManifestBytes) throw new Error(`manifest is larger than ${maxManifestBytes} bytes`);
  const handle = await openRegularFile(file, { noFollow: true });
  try {
    const pieces: Buffer[] = [];
    for await (const piece of readRegion(handle, place.offset, place.size, file))
      pieces.push(Buffer.from(piece));
    return Buffer.concat(pieces);
  } finally {
    await handle.close();
  }
}
