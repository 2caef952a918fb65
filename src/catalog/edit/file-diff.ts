import { withOpen } from '../../core/concurrency.js';
import type { FileHandle } from 'node:fs/promises';
import { diffLines } from '../../core/text/line-diff.js';
import { LineCounter } from '../documents.js';
import { openFile, readAgain } from '../file-access.js';
import type { FileEdit, Splice } from './blob-edits.js';

/** Maximum bytes between edits of one region. */
const maxGap = 64 * 1024;
/** Bytes read to find the lines around an edit. */
const contextSize = 16 * 1024;
/** Unchanged lines shown around an edit. */
const context = 3;

/** Returns the changes as a unified diff of files below the catalog directory. Throws OpmateError IO. */
export async function diffFiles(edits: readonly FileEdit[]): Promise<string> {
  let text = '';
  for (const edit of edits) text += await diffFile(edit);
  return text;
}

async function diffFile(edit: FileEdit): Promise<string> {
  if (edit.kind === 'create') {
    return `--- /dev/null\n+++ b/${edit.name}\n${diffLines('', edit.text).text}`;
  }
  const { file } = edit;
  return withOpen(openFile(file.path, file.name), async (handle) => {
    const { size } = await handle.stat();
    if (edit.kind === 'remove') {
      const old = await readAgain(handle, { file: file.name, offset: 0, length: size });
      return `--- a/${file.name}\n+++ /dev/null\n${diffLines(old.toString(), '').text}`;
    }
    let hunks = '';
    let delta = 0;
    let floor = 0;
    const counter = new LineCounter(file.name);
    const left = [...edit.splices];
    while (left.length > 0) {
      const splices = left.splice(0, countNear(left));
      let region = await readRegion(handle, file.name, splices, size, floor);
      // Lines may be very long.
      while (left[0] !== undefined && left[0].offset <= region.offset + Buffer.byteLength(region.old)) {
        splices.push(...left.splice(0, 1));
        region = await readRegion(handle, file.name, splices, size, floor);
      }
      const line = await counter.lineOf(handle, region.offset);
      const diff = diffLines(region.old, region.now, { firstOldLine: line, firstNewLine: line + delta });
      hunks += diff.text;
      delta += diff.addedLines;
      floor = region.offset + Buffer.byteLength(region.old);
    }
    return hunks === '' ? '' : `--- a/${file.name}\n+++ b/${file.name}\n${hunks}`;
  });
}

/** Returns the number of leading edits that are close together. */
function countNear(splices: readonly Splice[]): number {
  let count = 1;
  for (; count < splices.length; count++) {
    const { offset, length } = splices[count - 1] as Splice;
    if ((splices[count] as Splice).offset - offset - length > maxGap) break;
  }
  return count;
}

/** Returns whole lines with edits and some lines around them, before and after. */
async function readRegion(
  handle: FileHandle,
  file: string,
  splices: readonly Splice[],
  size: number,
  floor: number,
): Promise<{ offset: number; old: string; now: string }> {
  const [first, last] = [splices[0] as Splice, splices.at(-1) as Splice];
  const end = last.offset + last.length;
  const read = (offset: number, to: number): Promise<Buffer> =>
    readAgain(handle, { file, offset, length: to - offset });
  const offset = await startOfContext(read, first.offset, floor);
  let until = end;
  let lines = 0;
  while (until < size && lines <= context) {
    const part = await read(until, Math.min(size, until + contextSize));
    let position = 0;
    while (lines <= context && position < part.length) {
      const index = part.indexOf(0x0a, position);
      if (index >= 0) lines++;
      position = index < 0 ? part.length : index + 1;
    }
    until += position;
  }
  const bytes = await read(offset, until);
  let now = '';
  let at = offset;
  for (const splice of splices) {
    now += bytes.toString('utf8', at - offset, splice.offset - offset) + splice.text;
    at = splice.offset + splice.length;
  }
  return { offset, old: bytes.toString(), now: now + bytes.toString('utf8', at - offset) };
}

/** Returns the start of the line some lines above an offset, at or after `floor`. */
async function startOfContext(
  read: (offset: number, to: number) => Promise<Buffer>,
  from: number,
  floor: number,
): Promise<number> {
  let lines = 0;
  for (let to = from; to > floor;) {
    const start = Math.max(floor, to - contextSize);
    const part = await read(start, to);
    for (let position = part.length - 1; position >= 0; position--) {
      if (part[position] === 0x0a && lines++ === context) return start + position + 1;
    }
    to = start;
  }
  return floor;
}
