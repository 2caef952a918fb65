import type { ContentBlob, MetasQuery } from '../catalogs/content-index.js';
import type { ContentReader, ServedCatalog } from '../catalogs/stored-content.js';

/** Lines are handed out in pieces of about this size. */
const pieceBytes = 64 * 1024;

/**
 * The blobs of a query in several catalogs, told apart: each line is an object with the blob as it is in `blob`, its
 * catalog in `catalog`, and `CATALOG/PACKAGE` in `package` where it belongs to one.
 */
export async function* wrapBlobs(
  open: readonly { served: ServedCatalog; reader: ContentReader }[],
  query: MetasQuery,
): AsyncGenerator<Buffer, void, undefined> {
  let lines: Buffer[] = [];
  let bytes = 0;
  for (const { served, reader } of open) {
    for (const blob of served.content.blobs(query)) {
      const [before, after] = wrapping(served.name, blob).map((text) => Buffer.from(text)) as [
        Buffer,
        Buffer,
      ];
      // The line break of the blob's own line is written over.
      const text = blob.section.length - 1;
      const line = Buffer.allocUnsafe(before.length + text + after.length);
      before.copy(line);
      await reader.read(line.subarray(before.length, before.length + text), blob.section.offset);
      after.copy(line, before.length + text);
      lines.push(line);
      bytes += line.length;
      if (bytes < pieceBytes) continue;
      yield Buffer.concat(lines);
      lines = [];
      bytes = 0;
    }
  }
  if (bytes > 0) yield Buffer.concat(lines);
}

function wrapping(catalog: string, blob: ContentBlob): [string, string] {
  const name = blob.package !== '' ? blob.package : blob.schema === 'olm.package' ? blob.name : '';
  const last = name === '' ? '' : `,"package":${JSON.stringify(`${catalog}/${name}`)}`;
  // The order of keys is that of every other line.
  return ['{"blob":', `,"catalog":${JSON.stringify(catalog)}${last}}\n`];
}
