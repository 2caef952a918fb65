import type { ContentBlob, MetasQuery } from '../catalogs/content-index.js';
import type { ContentReader, ServedCatalog } from '../catalogs/stored-content.js';

/** Approximate size of a yielded piece. */
const pieceBytes = 64 * 1024;

/**
 * Yields lines with the matching blobs of several catalogs: each is an object with the unchanged blob in `blob`, its
 * catalog in `catalog`, and `CATALOG/PACKAGE` in `package` if it belongs to one.
 */
export async function* wrapBlobs(
  open: readonly { served: ServedCatalog; reader: ContentReader }[],
  query: MetasQuery,
): AsyncGenerator<Buffer, void, undefined> {
  let lines: Buffer[] = [];
  let bytes = 0;
  for (const { served, reader } of open) {
    for (const blob of served.content.blobs(query)) {
      const [before, after] = getWrapping(served.name, blob).map((text) => Buffer.from(text)) as [
        Buffer,
        Buffer,
      ];
      // Without the line break of the blob.
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

function getWrapping(catalog: string, blob: ContentBlob): [string, string] {
  const name = blob.package !== '' ? blob.package : blob.schema === 'olm.package' ? blob.name : '';
  const last = name === '' ? '' : `,"package":${JSON.stringify(`${catalog}/${name}`)}`;
  // Keys are sorted, as in all lines.
  return ['{"blob":', `,"catalog":${JSON.stringify(catalog)}${last}}\n`];
}
