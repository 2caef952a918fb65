// Writes an archive set of the files of a directory: write-archive.js DIGESTS DIRECTORY, the former a JSON file with
// digest, size and path of each.
import { createReadStream, readFileSync } from 'node:fs';
import { writeArchiveSet } from '../../dist/oci/archive-set/archive-set-writer.js';

const [, , list, directory] = process.argv;
const blobs = JSON.parse(readFileSync(list, 'utf8')).map(({ digest, size, file }) => ({
  descriptor: { mediaType: 'application/octet-stream', digest, size },
  open: () => createReadStream(file, { highWaterMark: 256 * 1024 }),
}));
await writeArchiveSet(directory, [], blobs, { partBytes: 1e9, lock: '' });
