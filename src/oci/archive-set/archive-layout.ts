import { paddedSize, tarEnd, tarFileHeader, tarHeaderSize } from '../../archive/tar-header.js';
import { computeDigest, parseDigest } from '../../core/digest.js';
import { LimitError, OpmateError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { quoteShort } from '../../document/field.js';
import { refNameAnnotation } from '../layout/layout-store.js';
import { type Descriptor, mediaTypes } from '../image/types.js';

/** Annotation of an untagged entry of index.json: its repository. */
export const repositoryAnnotation = 'io.opmate.repository';

/** Maximum parts of an archive set. */
export const maxParts = 10_000;
/** Maximum size of the list of images in the last part, in bytes; the same as of any layout. */
const maxImageListBytes = 64 * 1024 * 1024;

/** A blob in a part. */
export interface PlacedBlob {
  digest: string;
  size: number;
  /** Offset of the content, right after its tar header. */
  offset: number;
}

/** Layout of a part: all of its bytes except the contents of its blobs. */
export interface PartLayout {
  /** One-based. */
  number: number;
  file: string;
  size: number;
  /** By offset. */
  blobs: PlacedBlob[];
  /** Bytes after the last blob. */
  tail: Buffer;
}

export interface ArchiveImage {
  repository: string;
  tag: string | undefined;
  descriptor: Descriptor;
}

/** Returns the file name of a part. */
export function partName(number: number): string {
  return `mirror_${String(number).padStart(6, '0')}.tar`;
}

/** Returns the key of a set and its division into parts, for names of unfinished files: 16 hexadecimal digits. */
export function toPlanKey({ id, parts }: { id: string; parts: readonly { size: number }[] }): string {
  const { hex } = parseDigest(computeDigest(`${id} ${parts.map(({ size }) => size).join(' ')}`));
  return hex.slice(0, 16);
}

/** Names of indexes of unfinished archive sets; the first group is the key. */
export const planPattern = /^mirror_archive\.([0-9a-f]{16})\.partial$/;

/** Returns the file name of the index of an unfinished set. */
export function planName(key: string): string {
  return `mirror_archive.${key}.partial`;
}

/** Returns the file name of an unfinished part. */
export function partialName(number: number, key: string): string {
  return `mirror_${String(number).padStart(6, '0')}.${key}.partial`;
}

/** Returns the file name of a complete part while one of a previous set may have its place; takes precedence. */
export function stagedName(number: number, key: string): string {
  return `mirror_${String(number).padStart(6, '0')}.${key}.tar`;
}

/** Returns the tar header of a blob. */
export function blobHeader({ digest, size }: { digest: string; size: number }): Buffer {
  return tarFileHeader(blobPath(digest), size);
}

/** Returns the entries of index.json, named as `opmate oci serve` names them. */
export function getEntries(images: readonly ArchiveImage[]): Descriptor[] {
  return images.map(({ repository, tag, descriptor: { mediaType, digest, size } }) => ({
    mediaType,
    digest,
    size,
    annotations:
      tag === undefined
        ? { [repositoryAnnotation]: repository }
        : { [refNameAnnotation]: `${repository}:${tag}` },
  }));
}

/**
 * Divides blobs into parts of at most `partBytes`, in the order of their digests. Blobs that alone are larger come
 * first, each in a part of its own. Throws OpmateError LIMIT for more than 10,000 parts.
 */
export function divideBlobs(
  blobs: readonly { digest: string; size: number }[],
  images: readonly ArchiveImage[],
  partBytes: number,
): PartLayout[] {
  const sorted = [...blobs].sort((a, b) => compareBytes(a.digest, b.digest));
  const parts: PartLayout[] = [];
  const add = (): PartLayout => {
    if (parts.length === maxParts) {
      throw new LimitError(`more than the maximum of ${maxParts} parts of ${partBytes} bytes`, {
        hint: 'allow larger parts',
      });
    }
    const number = parts.length + 1;
    const part = { number, file: partName(number), size: tarEnd.length, blobs: [], tail: tarEnd };
    parts.push(part);
    return part;
  };
  const place = (part: PartLayout, { digest, size }: { digest: string; size: number }): void => {
    const end = part.size - tarEnd.length;
    part.blobs.push({ digest, size, offset: end + tarHeaderSize(blobPath(digest), size) });
    part.size += getSpan({ digest, size });
  };
  for (const blob of sorted) if (isTooLarge(blob, partBytes)) place(add(), blob);
  let part = add();
  for (const blob of sorted) {
    if (isTooLarge(blob, partBytes)) continue;
    if (part.size + getSpan(blob) > partBytes) part = add();
    place(part, blob);
  }
  const tail = lastTail(images);
  // An empty part has as much room as another one.
  if (part.blobs.length > 0 && part.size - tarEnd.length + tail.length > partBytes) part = add();
  part.size += tail.length - tarEnd.length;
  part.tail = tail;
  return parts;
}

/** Reports whether a blob does not fit into a part of its own. */
export function isTooLarge(blob: { digest: string; size: number }, partBytes: number): boolean {
  return getPartSize(blob) > partBytes;
}

/** Returns the size of a part that holds only this blob, without its index. */
export function getPartSize(blob: { digest: string; size: number }): number {
  return getSpan(blob) + tarEnd.length;
}

/**
 * Returns the layout that an index describes. Throws OpmateError INVALID, naming `file`, for gaps between blobs and
 * wrong sizes of parts.
 */
export function getLayout(
  parts: readonly { file: string; size: number }[],
  blobs: ReadonlyMap<string, { size: number; part: number; offset: number }>,
  images: readonly ArchiveImage[],
  file: string,
): PartLayout[] {
  const invalid = (problem: string) => new OpmateError('INVALID', problem, { about: file });
  const layouts: PartLayout[] = parts.map(({ file: name, size }, i) => {
    if (name !== partName(i + 1)) {
      throw invalid(`parts[${i}].file: expected ${partName(i + 1)}, got ${quoteShort(name)}`);
    }
    return { number: i + 1, file: name, size, blobs: [], tail: tarEnd };
  });
  const last = layouts.at(-1);
  if (last === undefined) throw invalid('no parts');
  last.tail = lastTail(images);
  for (const [digest, { size, part, offset }] of blobs) {
    const layout = layouts[part - 1];
    if (layout === undefined) throw invalid(`${digest}: part ${part} not found`);
    layout.blobs.push({ digest, size, offset });
  }
  for (const layout of layouts) {
    layout.blobs.sort((a, b) => a.offset - b.offset);
    let end = 0;
    for (const { digest, size, offset } of layout.blobs) {
      const expected = end + tarHeaderSize(blobPath(digest), size);
      if (offset !== expected) {
        throw invalid(`${digest}: expected offset ${expected} in ${layout.file}, got ${offset}`);
      }
      end = offset + paddedSize(size);
    }
    if (layout.size !== end + layout.tail.length) {
      throw invalid(`${layout.file}: expected ${end + layout.tail.length} bytes, got ${layout.size}`);
    }
  }
  return layouts;
}

/** Returns the bytes that a blob takes, with header and padding. */
function getSpan({ digest, size }: { digest: string; size: number }): number {
  return tarHeaderSize(blobPath(digest), size) + paddedSize(size);
}

function blobPath(digest: string): string {
  const { algorithm, hex } = parseDigest(digest);
  return `blobs/${algorithm}/${hex}`;
}

/** Returns the files that make the tar an OCI layout, and its end. */
function lastTail(images: readonly ArchiveImage[]): Buffer {
  const list = { schemaVersion: 2, mediaType: mediaTypes.ociIndex, manifests: getEntries(images) };
  const index = Buffer.from(JSON.stringify(list));
  if (index.length > maxImageListBytes) {
    throw new LimitError(`list of ${images.length} images larger than ${maxImageListBytes} bytes`);
  }
  const files: [string, Buffer][] = [
    ['oci-layout', Buffer.from('{"imageLayoutVersion":"1.0.0"}')],
    ['index.json', index],
  ];
  const pieces = files.flatMap(([path, content]) => [
    tarFileHeader(path, content.length),
    content,
    Buffer.alloc(paddedSize(content.length) - content.length),
  ]);
  return Buffer.concat([...pieces, tarEnd]);
}
