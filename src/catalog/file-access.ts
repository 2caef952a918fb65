import type { FileHandle } from 'node:fs/promises';
import { throwFileError } from '../core/errors.js';
import { changedFileError } from '../files/file-status.js';
import { fillBuffer } from '../files/file-region.js';
import { openRegularFile } from '../files/read-file.js';

/**
 * Opens a file for reading; `label` is its name in messages. Throws OpmateError NOT_FOUND or IO, also for a pipe,
 * whose writer may never come, or a device.
 */
export async function openFile(file: string, label: string): Promise<FileHandle> {
  return openRegularFile(file, { name: label }).catch(throwFileError(label, { file: label }));
}

/**
 * Fills `target` from `offset` on, with as many reads as needed. Returns the number of bytes read, which is smaller
 * only at the end of the file. Throws OpmateError IO.
 */
export async function readFully(
  handle: FileHandle,
  target: Buffer,
  offset: number,
  label: string,
): Promise<number> {
  return fillBuffer(handle, target, offset).catch(throwFileError(label, { file: label }));
}

/** Reads once; returns 0 at the end of the file. Throws OpmateError IO. */
export async function readSome(
  handle: FileHandle,
  target: Buffer,
  offset: number,
  label: string,
): Promise<number> {
  const reading = handle.read(target, 0, target.length, offset);
  return (await reading.catch(throwFileError(label, { file: label }))).bytesRead;
}

/** Returns the bytes of a place that was read before. Throws OpmateError IO, also for a file that became shorter. */
export async function readAgain(
  handle: FileHandle,
  place: { file: string; offset: number; length: number },
): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(place.length);
  if ((await readFully(handle, bytes, place.offset, place.file)) < bytes.length)
    throw changedFileError(place.file, 'catalog');
  return bytes;
}
