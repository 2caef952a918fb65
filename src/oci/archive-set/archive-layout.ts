import { paddedSize, tarEnd, tarFileHeader, tarHeaderSize } from '../../archive/tar-header.js';
import { computeDigest, parseDigest } from '../../core/digest.js';
import { LimitError, OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { compareBytes } from '../../core/order.js';
import { refNameAnnotation } from '../layout/layout-store.js';
import { type Descriptor, mediaTypes } from '../image/types.js';

/** Annotation of an entry of index.json that has no tag: the repository that it belongs to. */
export const repositoryAnnotation = 'io.opmate.repository';

/** Most parts of an archive set. */
export const maxParts = 10_000;
/** Most bytes of the list of images in the last part, as in any layout. */
const maxImageListBytes = 64 * 1024 * 1024;

/** A blob in a part. */
export interface PlacedBlob {
  digest: string;
  size: number;
  /** Of the content; its header stands right before. */
  offset: number;
}

/** A part of an archive set, to the byte but for the contents of its blobs. */
export interface PartLayout {
  /** From 1. */
  number: number;
  file: string;
  size: number;
  /** In the order of their offsets. */
  blobs: PlacedBlob[];
  /** All that follows the last blob. */
  tail: Buffer;
}

export interface NamedImage {
  repository: string;
  tag: string | undefined;
  descriptor: Descriptor;
}

/** File name of a part. */
export function partName(number: number): string {
  return `mirror_${String(number).padStart(6, '0')}.tar`;
}

/** Names a set as it is divided into parts, in the names of files that are not in their places yet: 16 hex digits. */
export function keyOfParts({ id, parts }: { id: string; parts: readonly { size: number }[] }): string {
  const { hex } = parseDigest(computeDigest(`${id} ${parts.map(({ size }) => size).join(' ')}`));
  return hex.slice(0, 16);
}

/** File name of an unfinished part. */
export function partialName(number: number, key: string): string {
  return `mirror_${String(number).padStart(6, '0')}.${key}.partial`;
}

/**
 * File name of a part that is whole and waits for its place, which the part of an earlier set may still have. Where
 * there is such a file, it is the part.
 */
export function stagedName(number: number, key: string): string {
  return `mirror_${String(number).padStart(6, '0')}.${key}.tar`;
}

/** The tar header of a blob. */
export function blobHeader({ digest, size }: { digest: string; size: number }): Buffer {
  return tarFileHeader(blobPath(digest), size);
}

/** The entries that index.json has for images, named as `opmate oci serve` names them. */
export function getEntries(images: readonly NamedImage[]): Descriptor[] {
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
export function layOut(
  blobs: readonly { digest: string; size: number }[],
  images: readonly NamedImage[],
  partBytes: number,
): PartLayout[] {
  const sorted = [...blobs].sort((a, b) => compareBytes(a.digest, b.digest));
  const parts: PartLayout[] = [];
  const add = (): PartLayout => {
    if (parts.length === maxParts) {
      const hint = 'allow larger parts';
      throw new LimitError(`more than ${maxParts} parts of ${partBytes} bytes would be needed`, { hint });
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
  // Where nothing has been put into the newest part, another one would be no better.
  if (part.blobs.length > 0 && part.size - tarEnd.length + tail.length > partBytes) part = add();
  part.size += tail.length - tarEnd.length;
  part.tail = tail;
  return parts;
}

/** Whether a blob does not fit into a part even alone. */
export function isTooLarge(blob: { digest: string; size: number }, partBytes: number): boolean {
  return getSpan(blob) + tarEnd.length > partBytes;
}

/**
 * The layout that an index tells, blob by blob: each part is full of them without gaps, and as long as it says.
 * Throws OpmateError INVALID for anything else, naming `file`.
 */
export function getLayout(
  parts: readonly { file: string; size: number }[],
  blobs: ReadonlyMap<string, { size: number; part: number; offset: number }>,
  images: readonly NamedImage[],
  file: string,
): PartLayout[] {
  const invalid = (problem: string) => new OpmateError('INVALID', problem, { subject: file, file });
  const layouts: PartLayout[] = parts.map(({ file: name, size }, i) => {
    if (name !== partName(i + 1)) {
      throw invalid(`parts[${i}]: file is ${quoteGo(name.slice(0, 200))}, not ${partName(i + 1)}`);
    }
    return { number: i + 1, file: name, size, blobs: [], tail: tarEnd };
  });
  const last = layouts.at(-1);
  if (last === undefined) throw invalid('names no parts');
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
        throw invalid(`${digest}: offset ${offset} in ${layout.file} is not ${expected}, where it has to be`);
      }
      end = offset + paddedSize(size);
    }
    if (layout.size !== end + layout.tail.length) {
      throw invalid(`${layout.file}: ${layout.size} bytes, its contents have ${end + layout.tail.length}`);
    }
  }
  return layouts;
}

/** Bytes of a blob in an archive, with header and padding. */
function getSpan({ digest, size }: { digest: string; size: number }): number {
  return tarHeaderSize(blobPath(digest), size) + paddedSize(size);
}

function blobPath(digest: string): string {
  const { algorithm, hex } = parseDigest(digest);
  return `blobs/${algorithm}/${hex}`;
}

/** What makes the tar a layout, and its end. */
function lastTail(images: readonly NamedImage[]): Buffer {
  const list = { schemaVersion: 2, mediaType: mediaTypes.ociIndex, manifests: getEntries(images) };
  const index = Buffer.from(JSON.stringify(list));
  if (index.length > maxImageListBytes) {
    throw new LimitError(
      `${images.length} images: their list would be larger than ${maxImageListBytes} bytes`,
    );
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
