// The reference for JSON catalogs: read the bytes, split, JSON.parse each blob. Nothing is kept.
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';

function filesBelow(directory) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(directory, entry.name);
    return entry.isDirectory() ? filesBelow(file) : [file];
  });
}

let blobs = 0;
for (const file of filesBelow(process.argv[2])) {
  const bytes = readFileSync(file);
  for (let start = 0; ;) {
    const end = bytes.indexOf('\n}', start);
    if (end < 0) break;
    JSON.parse(bytes.toString('utf8', start, end + 2));
    blobs++;
    start = end + 2;
  }
}
console.log(blobs);
