import { createHash, randomFillSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { compare, opmate } from './support/measure.js';

export const summary =
  'writing and verifying an archive of 2 GB, as a ratio to cat, sync and sha256sum of the same bytes';

const writer = fileURLToPath(new URL('./support/write-archive.js', import.meta.url));
const shell = fileURLToPath(new URL('./support/shell.js', import.meta.url));
const amount = 64;
const blobSize = 32 * 1024 * 1024;

export async function run() {
  const work = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
  try {
    const list = path.join(work, 'blobs.json');
    writeFileSync(list, JSON.stringify(makeBlobs(path.join(work, 'blobs'))));
    const at = (name) => path.join(work, name);
    const copy = `rm -rf ${at('archive')} ${at('copy')}; cat ${at('blobs')}/* > ${at('copy')}; sync ${at('copy')}`;
    // Both hash what they have written; opmate checks each blob besides.
    const written = await compare({
      name: 'write 2 GB',
      subject: [writer, [list, at('archive')]],
      baseline: [shell, [`${copy}; sha256sum ${at('copy')}`]],
      runs: 2,
      maxRatio: 2,
      maxMegabytes: 200,
    });
    const verified = await compare({
      name: 'verify 2 GB',
      subject: [opmate, ['archive', 'verify', at('archive')]],
      baseline: [shell, [`sha256sum ${at('archive')}/*.tar`]],
      runs: 2,
      maxRatio: 1.5,
      maxMegabytes: 200,
    });
    return written && verified;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Files of random bytes. */
function makeBlobs(directory) {
  mkdirSync(directory);
  const bytes = Buffer.alloc(blobSize);
  return Array.from({ length: amount }, (_, i) => {
    randomFillSync(bytes);
    const file = path.join(directory, String(i));
    writeFileSync(file, bytes);
    return { file, size: blobSize, digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}` };
  });
}
