/**
 * An archive set is a directory of images: `mirror_000001.tar`, `mirror_000002.tar` … and the index
 * `mirror_archive.json`. Each part is an uncompressed tar of files of an OCI layout; a blob is never divided. The last
 * part has `oci-layout` and `index.json`, so a set of one part is an `oci-archive:`. Blobs of a base set are omitted.
 */
import type { KeyObject } from 'node:crypto';
import { rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { computeDigest } from '../../core/digest.js';
import { OpmateError, fileError, throwFileError } from '../../core/errors.js';
import { openJson } from '../../document/document.js';
import { type Field, quoteShort } from '../../document/field.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { readRegularFile } from '../../files/read-file.js';
import { type ArchiveImage, getLayout, maxParts } from './archive-layout.js';
import { signDetached, verifyDetached } from '../../trust/signing-key.js';
import { isRepositoryName, isTag } from '../registry/registry-names.js';
import { writeNewFile } from '../../files/write-new-file.js';

export const archiveIndexName = 'mirror_archive.json';

/** File name of the detached signature over the index. */
export const archiveSignatureName = `${archiveIndexName}.sig`;
const maxSignatureBytes = 8192;

/** Expected properties of an archive, from another source than the archive. */
export interface ArchiveProof {
  /** ID printed by the run that wrote it. */
  id?: string | undefined;
  /** Public key of its signature. */
  key?: KeyObject | undefined;
}

/** Maximum size of the index of an archive set, in bytes. */
export const maxArchiveIndexBytes = 256 * 1024 * 1024;
/** Maximum blobs, and maximum images, of an archive set. */
export const maxItems = 1_000_000;
const version = 1;
const indexKeys = ['version', 'id', 'base', 'parts', 'images', 'blobs', 'inBase', 'lock'] as const;

export interface ArchiveIndex {
  /** Digest of the content, independent of the division into parts: `sha256:…`. */
  id: string;
  /** ID of the base set or inventory whose blobs are omitted. */
  base: string | undefined;
  /** `sha256` is hexadecimal, as `sha256sum` prints it. */
  parts: { file: string; size: number; sha256: string }[];
  /** Blobs and manifests in the parts, by digest; parts are one-based. */
  blobs: ReadonlyMap<string, { size: number; part: number; offset: number }>;
  /** Sizes of the blobs and manifests that are in the base, or its base, by digest. */
  inBase: ReadonlyMap<string, number>;
  /** Repositories of the target registry that have these blobs, by digest; from an inventory only. */
  holders?: ReadonlyMap<string, string> | undefined;
  /** Images by name: `repository:tag`, or `repository@digest` if untagged. */
  images: readonly ArchiveImage[];
  /** Text of the lock that the archive was made from. */
  lock: string;
}

/** Content that an archive set may omit: that of another set, or of a registry by its inventory. */
export interface ArchiveBase {
  /** `sha256:…` of the set or inventory. */
  id: string;
  /** Returns the size of a blob or manifest in bytes; undefined if missing. */
  sizeOf(digest: string): number | undefined;
  /** Returns a repository that has it, preferably one whose name ends in `repository`. */
  findHolder(digest: string, repository: string | undefined): string | undefined;
}

/** Returns an archive set as the base of another. */
export function getArchiveBase({ id, blobs, inBase, holders }: ArchiveIndex): ArchiveBase {
  return {
    id,
    sizeOf: (digest) => blobs.get(digest)?.size ?? inBase.get(digest),
    findHolder: (digest) => holders?.get(digest),
  };
}

/** Returns the ID of an archive set: a digest of all that does not depend on the division into parts. */
export function computeSetId(index: Omit<ArchiveIndex, 'id' | 'parts'>): string {
  const { base = '', blobs, inBase, holders, images, lock } = index;
  const sizes = (items: ReadonlyMap<string, number | { size: number }>) =>
    sortedByBytes(items.keys()).map((digest) => {
      const item = items.get(digest) as number | { size: number };
      const holder = holders?.get(digest);
      return [digest, typeof item === 'number' ? item : item.size, ...(holder === undefined ? [] : [holder])];
    });
  return computeDigest(
    JSON.stringify([version, base, sizes(blobs), sizes(inBase), images.map(imageFields), lock]),
  );
}

/** Returns the text of an index. Equal indexes have equal bytes. */
export function encodeArchiveIndex(index: ArchiveIndex): string {
  const list = (items: readonly object[]): string =>
    items.length === 0 ? '[]' : `[\n${items.map((item) => `    ${JSON.stringify(item)}`).join(',\n')}\n  ]`;
  const blobs = [...index.blobs]
    .map(([digest, { size, part, offset }]) => ({ digest, size, part, offset }))
    .sort((a, b) => a.part - b.part || a.offset - b.offset);
  const inBase = sortedByBytes(index.inBase.keys()).map((digest) => ({
    digest,
    size: index.inBase.get(digest),
    repository: index.holders?.get(digest),
  }));
  const fields = [
    ['version', String(version)],
    ['id', JSON.stringify(index.id)],
    ...(index.base === undefined ? [] : [['base', JSON.stringify(index.base)]]),
    ['parts', list(index.parts.map(({ file, size, sha256 }) => ({ file, size, sha256 })))],
    ['images', list(index.images.map(imageFields))],
    ['blobs', list(blobs)],
    ['inBase', list(inBase)],
    ['lock', JSON.stringify(index.lock)],
  ];
  return `{\n${fields.map(([key, value]) => `  "${key}": ${value}`).join(',\n')}\n}\n`;
}

/** Compares images by repository, tag and digest. */
export function compareImages(a: ArchiveImage, b: ArchiveImage): number {
  return (
    compareBytes(a.repository, b.repository) ||
    compareBytes(a.tag ?? '', b.tag ?? '') ||
    compareBytes(a.descriptor.digest, b.descriptor.digest)
  );
}

/** Returns the problem of an image name that no registry accepts; undefined for a valid one. */
export function findNameProblem({ repository, tag }: { repository: string; tag?: string | undefined }) {
  if (!isRepositoryName(repository)) return `invalid repository name ${quoteShort(repository)}`;
  if (tag !== undefined && !isTag(tag)) return `invalid tag ${quoteShort(tag)}`;
  return undefined;
}

/**
 * Reads the index of an archive set from its directory or its file. The signature is verified before parsing, the ID
 * before anything else is used. Throws OpmateError NOT_FOUND, IO, SYNTAX, INVALID, UNSUPPORTED (a newer version),
 * LIMIT, and DIGEST if the archive does not match `proof`.
 */
export async function readArchiveIndex(place: string, proof: ArchiveProof = {}): Promise<ArchiveIndex> {
  const stats = await stat(place).catch(throwFileError(place));
  const file = stats.isDirectory() ? path.join(place, archiveIndexName) : place;
  try {
    const bytes = await readPlainFile(file, maxArchiveIndexBytes);
    if (proof.key !== undefined) await requireSignature(bytes, file, proof.key);
    return parseArchiveIndex(bytes, file, { id: proof.id });
  } catch (error) {
    if (!(error instanceof OpmateError) || error.code !== 'NOT_FOUND') throw error;
    throw new OpmateError('NOT_FOUND', `not an archive: ${path.basename(file)} not found`, {
      subject: place,
      hint: 'specify the directory that api.archiveImageSet wrote to; an unfinished archive has no index yet',
      cause: error,
    });
  }
}

/** Signs an archive set: writes a detached signature beside its index. Throws OpmateError. */
export async function signArchive(directory: string, key: KeyObject): Promise<void> {
  const bytes = await readPlainFile(path.join(directory, archiveIndexName), maxArchiveIndexBytes);
  const file = path.join(directory, archiveSignatureName);
  try {
    // Never writes through a symbolic link.
    await rm(file, { force: true });
    await writeNewFile(file, signDetached(bytes, key));
  } catch (error) {
    throw fileError(file, error, { file });
  }
}

async function requireSignature(bytes: Buffer, file: string, key: KeyObject): Promise<void> {
  const signatureFile = `${file}.sig`;
  const signature = await readPlainFile(signatureFile, maxSignatureBytes).catch((error: unknown) => {
    if (!(error instanceof OpmateError) || error.code !== 'NOT_FOUND') throw error;
    throw new OpmateError('DIGEST', `not signed: ${path.basename(signatureFile)} not found`, {
      about: file,
      hint: 'sign the archive with options.signingKey when writing it, and move the signature along with it',
    });
  });
  if (verifyDetached(bytes, signature.toString('latin1'), key)) return;
  throw new OpmateError('DIGEST', 'signature does not match the key and the archive', {
    about: file,
    hint: 'check the key, or copy the archive again: it was changed, or signed with another key',
  });
}

/** Reads a regular file, no symbolic link or device. Throws OpmateError. */
export async function readPlainFile(file: string, limit: number): Promise<Buffer> {
  return readRegularFile(file, limit, { noFollow: true }).catch(throwFileError(file, { file }));
}

/** Parses an index, which must have this `id`. With `unfinished`, sums of parts may be missing. */
export function parseArchiveIndex(
  bytes: Buffer,
  file: string,
  options: { unfinished?: boolean; id?: string | undefined } = {},
): ArchiveIndex {
  const root = openJson(bytes, { name: file, hint: 'copy the index again: it is damaged' });
  const fields = root.object(indexKeys, { unknown: 'ignore' });
  fields.version.formatVersion(version);
  const id = fields.id.digest();
  if (options.id !== undefined && id !== options.id) {
    throw new OpmateError('DIGEST', `expected archive ${options.id}, got ${id}`, {
      about: file,
      hint: 'check the ID in the output of the run that wrote the archive',
    });
  }
  const parts = readParts(fields.parts, options.unfinished === true);
  const blobs = readPlacedBlobs(fields.blobs);
  const { inBase, holders } = readBaseBlobs(fields.inBase, blobs);
  const images = readImages(fields.images);
  const base = fields.base.isPresent ? fields.base.digest() : undefined;
  if (base === undefined && inBase.size > 0) fields.base.missing();
  const index: ArchiveIndex = {
    id,
    base,
    parts,
    blobs,
    inBase,
    images,
    lock: fields.lock.anyText(Infinity),
    ...(holders.size > 0 && { holders }),
  };
  requireImages(index, root);
  getLayout(parts, blobs, images, file);
  if (index.id !== computeSetId(index)) {
    throw new OpmateError('INVALID', `content does not match ID ${index.id}`, {
      about: file,
      hint: 'copy the index again: it is damaged or was edited',
    });
  }
  return index;
}

function readParts(field: Field<never>, isUnfinished: boolean): ArchiveIndex['parts'] {
  const isSum = (text: string) => /^[0-9a-f]{64}$/.test(text) || (isUnfinished && text === '');
  return field.list(maxParts).map((item) => {
    const part = item.object(['file', 'size', 'sha256'], { unknown: 'ignore' });
    const sha256 = part.sha256.anyText();
    if (!isSum(sha256)) part.sha256.fail(`expected a SHA-256 sum, got ${quoteShort(sha256)}`);
    return { file: part.file.anyText(), size: part.size.size(), sha256 };
  });
}

function readPlacedBlobs(field: Field<never>): Map<string, { size: number; part: number; offset: number }> {
  const blobs = new Map<string, { size: number; part: number; offset: number }>();
  for (const item of field.list(maxItems)) {
    const blob = item.object(['digest', 'size', 'part', 'offset'], { unknown: 'ignore' });
    const digest = blob.digest.digest();
    if (blobs.has(digest)) item.fail(`duplicate ${digest}`, { code: 'duplicate' });
    blobs.set(digest, {
      size: blob.size.size(),
      part: blob.part.integer(0, maxParts),
      offset: blob.offset.size(),
    });
  }
  return blobs;
}

/** Reads the blobs of base archives, and the repositories that hold them. */
function readBaseBlobs(
  field: Field<never>,
  blobs: ReadonlyMap<string, unknown>,
): { inBase: Map<string, number>; holders: Map<string, string> } {
  const inBase = new Map<string, number>();
  const holders = new Map<string, string>();
  for (const item of field.list(maxItems)) {
    const blob = item.object(['digest', 'size', 'repository'], { unknown: 'ignore' });
    const digest = blob.digest.digest();
    if (inBase.has(digest) || blobs.has(digest)) item.fail(`duplicate ${digest}`, { code: 'duplicate' });
    inBase.set(digest, blob.size.size());
    const holder = blob.repository.optionalMatching(isRepositoryName, 'a repository name');
    if (holder !== undefined) holders.set(digest, holder);
  }
  return { inBase, holders };
}

function readImages(field: Field<never>): ArchiveImage[] {
  return field.list(maxItems).map((item): ArchiveImage => {
    const image = item.object(['repository', 'tag', 'mediaType', 'digest', 'size'], { unknown: 'ignore' });
    return {
      repository: image.repository.matching(isRepositoryName, 'a repository name'),
      tag: image.tag.isPresent ? image.tag.matching(isTag, 'a tag') : undefined,
      descriptor: {
        mediaType: image.mediaType.anyText(),
        digest: image.digest.digest(),
        size: image.size.size(),
      },
    };
  });
}

/** Requires that the manifest of each image is in the archive or its base. */
function requireImages({ images, blobs, inBase }: ArchiveIndex, root: Field<never>): void {
  for (const { repository, tag, descriptor } of images) {
    const { digest, size } = descriptor;
    const known = blobs.get(digest)?.size ?? inBase.get(digest);
    if (known !== size) {
      const problem = known === undefined ? 'not found' : `expected ${size} bytes, got ${known}`;
      root.fail(`${repository}${tag === undefined ? '' : `:${tag}`}: ${digest}: ${problem}`);
    }
  }
}

function imageFields({ repository, tag, descriptor: { mediaType, digest, size } }: ArchiveImage): object {
  return { repository, ...(tag !== undefined && { tag }), mediaType, digest, size };
}
