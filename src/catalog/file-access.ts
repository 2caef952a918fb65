import type { FileHandle } from 'node:fs/promises';
import { OpmateError, fileError } from '../core/errors.js';
import { fillBuffer } from '../files/file-region.js';
import { openRegularFile } from '../files/read-file.js';

/**
 * Opens a file for reading; `label` is how messages name it. Throws OpmateError NOT_FOUND or IO, also for a pipe or
 * device: the writer of a pipe may never come.
 */
export async function openFile(file: string, label: string): Promise<FileHandle> {
  try {
    return await openRegularFile(file, { name: label, label: `open ${label}` });
  } catch (error) {
    throw fileError(`open ${label}`, error, { file: label });
  }
}

/**
 * Fills `target` with what stands from `offset` on, however many calls of the system that takes. Returns
 * how many bytes there are, which is less only when the file ends. Throws OpmateError IO.
 */
export async function readFully(
  handle: FileHandle,
  target: Buffer,
  offset: number,
  label: string,
): Promise<number> {
  try {
    return await fillBuffer(handle, target, offset);
  } catch (error) {
    throw fileError(`read ${label}`, error, { file: label });
  }
}

/** One call of the system; 0 when the file ends at `offset`. Throws OpmateError IO. */
export async function readSome(
  handle: FileHandle,
  target: Buffer,
  offset: number,
  label: string,
): Promise<number> {
  try {
    return (await handle.read(target, 0, target.length, offset)).bytesRead;
  } catch (error) {
    throw fileError(`read ${label}`, error, { file: label });
  }
}

/** The bytes of a place that was read before. Throws OpmateError IO, also when the file has become shorter. */
export async function readAgain(
  handle: FileHandle,
  place: { file: string; offset: number; length: number },
): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(place.length);
  if ((await readFully(handle, bytes, place.offset, place.file)) < bytes.length) throw changed(place.file);
  return bytes;
}

/** The error for a file that is no longer what a first pass has seen. */
export function changed(file: string, cause?: unknown): OpmateError {
  return new OpmateError('IO', 'changed while it was read', {
    subject: file,
    file,
    cause,
    hint: 'run the command again when no other process writes to the catalog',
  });
}
