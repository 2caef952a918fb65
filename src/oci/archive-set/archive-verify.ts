import { type Hash, createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { paddedSize } from '../../archive/tar-header.js';
import { type CancelOptions, mapConcurrent, withOpen } from '../../core/concurrency.js';
import { computeDigest, parseDigest } from '../../core/digest.js';
import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { throwFileError, getMessage, systemCode, systemReason, throwIfCancelled } from '../../core/errors.js';
import { type Logger, runTask, silentLogger } from '../../core/log.js';
import { sortedByBytes } from '../../core/order.js';
import { openRegularFile } from '../../files/read-file.js';
import { type ArchiveIndex, type ArchiveProof, archiveIndexName, readArchiveIndex } from './archive-index.js';
import { type PartLayout, blobHeader, getLayout } from './archive-layout.js';
import { findPartFiles, findPartProblem } from './archive-set-reader.js';
import { readBytes, readRegion } from '../../files/file-region.js';
import { isNonDistributable, readManifestFacts } from '../image/manifest.js';
import { type Descriptor, maxManifestBytes } from '../image/types.js';

/** A problem of an archive set. `file` is a part or the index, `subject` the digest of a damaged blob. */
export interface ArchiveDiagnostic extends Diagnostic {
  code: 'damaged' | 'missing-blob' | 'unexpected-file' | 'unreadable' | 'invalid-index';
  file: string;
}

function createDiagnostic(
  file: string,
  problem: string,
  { code = 'damaged', digest }: { code?: ArchiveDiagnostic['code']; digest?: string | undefined } = {},
): ArchiveDiagnostic {
  return { ...createFault(code, problem, { subject: digest, file }), code, file };
}

/** Maximum parts read concurrently: more would only make a disk seek. */
const parallelParts = 2;

/**
 * Reads every byte of an archive set and returns all problems: wrong sums and sizes of parts, damaged blobs and tar
 * headers, surplus parts, and blobs missing from both the set and its base. Throws what `readArchiveIndex` throws.
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
  const onRead = (bytes: number): void => {
    current += bytes;
    logger.progress({ task, state: 'update', current, total, unit: 'bytes' });
  };
  return runTask(logger, task, async () => {
    const verified = await mapConcurrent(
      parts,
      parallelParts,
      (part, i) => verifyPart(files[i] as string, part, index.parts[i]?.sha256, onRead, options),
      options,
    );
    const faults = [...verified.flat(), ...(await findSurplusParts(directory, index, files))];
    return [...faults, ...(await findMissingBlobs(files, index, faults, options))];
  });
}

/** Consecutive bytes of a part: known ones, or those of a blob. */
type Segment = { bytes: Buffer; name: string } | { digest: string; size: number };

function* iterateSegments(part: PartLayout): Generator<Segment> {
  for (const blob of part.blobs) {
    yield { bytes: blobHeader(blob), name: `tar header of ${blob.digest}` };
    yield blob;
    const padding = paddedSize(blob.size) - blob.size;
    if (padding > 0) yield { bytes: Buffer.alloc(padding), name: `padding of ${blob.digest}` };
  }
  yield { bytes: part.tail, name: 'end of the archive' };
}

async function verifyPart(
  partFile: string,
  part: PartLayout,
  sum: string | undefined,
  onRead: (bytes: number) => void,
  { signal }: CancelOptions,
): Promise<ArchiveDiagnostic[]> {
  const { file } = part;
  const problem = await findPartProblem(partFile, part);
  if (problem !== undefined) return [createDiagnostic(file, problem.message)];
  const faults: ArchiveDiagnostic[] = [];
  const whole = createHash('sha256');
  const check = createSegmentCheck(part, (problem, digest) =>
    faults.push(createDiagnostic(file, problem, { digest })),
  );
  try {
    await withOpen(openRegularFile(partFile, { noFollow: true }), async (handle) => {
      for await (const piece of readRegion(handle, 0, part.size, file)) {
        throwIfCancelled(signal);
        whole.update(piece);
        check(piece);
        onRead(piece.length);
      }
    });
  } catch (error) {
    if (systemCode(error) === 'CANCELLED') throw error;
    const problem = `cannot be read: ${systemReason(error)}`;
    return [...faults, createDiagnostic(file, problem, { code: 'unreadable' })];
  }
  const actual = whole.digest('hex');
  if (actual !== sum && faults.length === 0) {
    faults.push(createDiagnostic(file, `expected SHA-256 sum ${sum}, got ${actual}`));
  }
  return faults;
}

/** Returns a function that compares the bytes of a part, in pieces of any size, with its layout. */
function createSegmentCheck(part: PartLayout, report: (message: string, digest?: string) => void) {
  const segments = iterateSegments(part);
  let segment: Segment | undefined;
  let hash: Hash | undefined;
  let done = 0;
  let differs = false;

  function finish(): void {
    if (segment === undefined) return;
    if ('bytes' in segment) {
      if (differs) report(`${segment.name} does not match the index`);
    } else if (hash?.digest('hex') !== parseDigest(segment.digest).hex) {
      report('content does not match its digest', segment.digest);
    }
    next();
  }

  function next(): void {
    done = 0;
    differs = false;
    segment = segments.next().value as Segment | undefined;
    if (segment === undefined || 'bytes' in segment) return;
    hash = createHash(parseDigest(segment.digest).algorithm);
    // No piece would ever finish it.
    if (segment.size === 0) finish();
  }

  next();
  return (piece: Buffer): void => {
    let used = 0;
    while (segment !== undefined && used < piece.length) {
      const size = 'bytes' in segment ? segment.bytes.length : segment.size;
      const bytes = piece.subarray(used, used + size - done);
      if ('bytes' in segment) differs ||= !bytes.equals(segment.bytes.subarray(done, done + bytes.length));
      else hash?.update(bytes);
      used += bytes.length;
      done += bytes.length;
      if (done === size) finish();
    }
  };
}

async function findSurplusParts(
  directory: string,
  index: ArchiveIndex,
  files: readonly string[],
): Promise<ArchiveDiagnostic[]> {
  const named = new Set(index.parts.map(({ file }) => file));
  // While parts are still staged, those of the previous set are expected.
  if (files.some((file) => !named.has(path.basename(file)))) return [];
  const names = await readdir(directory).catch(throwFileError(directory));
  return sortedByBytes(names)
    .filter((name) => /^mirror_\d{6}\.tar$/.test(name) && !named.has(name))
    .map((file) => createDiagnostic(file, 'not part of this archive', { code: 'unexpected-file' }));
}

/**
 * Returns the blobs that images need and that are missing. Manifests listed by an index may be missing, as in a mirror
 * of some platforms; manifests in the base are not read.
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
          if (!seen.has(blob.digest)) {
            const problem = `required by ${name}, missing from the archive and its base`;
            const details = { code: 'missing-blob', digest: blob.digest } as const;
            faults.push(createDiagnostic(archiveIndexName, problem, details));
          }
          seen.add(blob.digest);
        }
        left.push(...facts.manifests);
      } catch (error) {
        // Already reported.
        if (broken.has(file)) continue;
        faults.push(createDiagnostic(file, `${name}: ${getMessage(error)}`, { digest: item.digest }));
      }
    }
  }
  return faults;
}

async function readManifest(file: string, place: { size: number; offset: number }): Promise<Buffer> {
  if (place.size > maxManifestBytes) throw new Error(`manifest is larger than ${maxManifestBytes} bytes`);
  return withOpen(openRegularFile(file, { noFollow: true }), (handle) =>
    readBytes(handle, place.offset, place.size),
  );
}
