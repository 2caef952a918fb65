import { type CancelOptions, withOpen } from '../core/concurrency.js';
import { type Stats, closeSync, constants, createReadStream, fstatSync, openSync, readSync } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import path from 'node:path';
import { type Readable, addAbortSignal } from 'node:stream';
import {
  LimitError,
  OpmateError,
  fileError,
  systemCode,
  throwFileError,
  throwIfCancelled,
} from '../core/errors.js';

interface OpenRegularFileOptions {
  /** Refuse a symbolic link in the last component (ELOOP). */
  noFollow?: boolean;
  /** Name of the file in errors; default: its path. */
  name?: string;
}

/**
 * Opens a file for reading without blocking: a named pipe would wait for its writer, and a device may never end. A
 * directory opens; reading it fails with EISDIR.
 *
 * Throws OpmateError IO for a pipe or device, and system errors unchanged.
 */
export async function openRegularFile(
  file: string,
  { noFollow = false, name = file }: OpenRegularFileOptions = {},
): Promise<FileHandle> {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | (noFollow ? constants.O_NOFOLLOW : 0);
  const handle = await open(file, flags);
  try {
    const stats = await handle.stat();
    if (stats.isFile() || stats.isDirectory()) return handle;
    throw new OpmateError('IO', 'not an ordinary file', { about: name });
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Codes of system errors for paths without a regular file: missing, a loop of links, a socket. */
const notFileCodes: readonly (string | undefined)[] = ['ENOENT', 'ELOOP', 'ENXIO'];

/**
 * Opens a regular file for reading, following links. Returns undefined for anything else: missing files, directories,
 * pipes, sockets, devices, link loops. Throws system errors unchanged.
 */
export async function openIfRegularFile(file: string): Promise<FileHandle | undefined> {
  let handle: FileHandle;
  try {
    handle = await openRegularFile(file);
  } catch (error) {
    // A device or pipe opens and is then refused.
    if (error instanceof OpmateError || notFileCodes.includes(systemCode(error))) return undefined;
    throw error;
  }
  try {
    if ((await handle.stat()).isFile()) return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
  await handle.close();
  return undefined;
}

/** Throws if a file of this size must not be read. */
export type SizeCheck = (size: number, file: string) => void;

/**
 * Reads a regular file of a directory, following links; undefined for anything else. Reads synchronously: the files of a
 * directory are many and small, and handing each call to another thread takes ten times its processor time. Throws
 * OpmateError NOT_FOUND or IO, and errors of `checkSize`, which is called before reading.
 */
export function readFileWithin(file: string, checkSize: SizeCheck): Buffer | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) return undefined;
    checkSize(stats.size, file);
    const content = Buffer.allocUnsafe(stats.size);
    for (let length = 0; length < content.length;) {
      const bytesRead = readSync(descriptor, content, length, content.length - length, null);
      if (bytesRead === 0) return content.subarray(0, length);
      length += bytesRead;
    }
    return content;
  } catch (error) {
    if (descriptor === undefined && notFileCodes.includes(systemCode(error))) return undefined;
    throw fileError(file, error, { file });
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/**
 * Reads a whole regular file of at most `limit` bytes: one of a directory, layout or archive, which others may have
 * written. Throws as `openRegularFile`, and LimitError.
 */
export async function readRegularFile(
  file: string,
  limit: number,
  options: OpenRegularFileOptions = {},
): Promise<Buffer> {
  return withOpen(openRegularFile(file, options), async (handle) => {
    const { size } = await handle.stat();
    if (size > limit) throw tooLarge(options.name ?? file, limit);
    // Files in /proc report no size, and others may grow.
    return await collect(handle.createReadStream({ autoClose: false }), options.name ?? file, limit);
  });
}

/**
 * Reads a file of at most `limit` bytes that the user named on the command line, in a variable or by convention. It
 * may be `/dev/stdin`, `/dev/null` or a pipe (`<(…)` of a shell), whose writer is awaited. Throws LimitError,
 * CancelledError, and system errors unchanged.
 */
export async function readNamedFile(
  file: string,
  limit: number,
  { signal }: CancelOptions = {},
): Promise<Buffer> {
  const stats = await stat(file);
  if (stats.isFile() && stats.size > limit) throw tooLarge(file, limit);
  const stream = openStream(file, stats);
  if (signal !== undefined) addAbortSignal(signal, stream);
  return collect(stream, file, limit).catch((error: unknown) => {
    throwIfCancelled(signal);
    throw error;
  });
}

/** Opens a file or device as a stream, or a named pipe, whose writer is awaited. */
export function openStream(file: string, stats: Stats): Readable {
  if (!stats.isFIFO()) return createReadStream(file);
  // Opening it as a file would block a thread until there is a writer, and the process could not end.
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  return new Socket({ fd, readable: true, writable: false });
}

/** Maximum size of an input file. */
export const maxInputSize = 64 * 1024 * 1024;

/**
 * Reads an input file or pipe that the user named, of at most 64 MiB. Throws OpmateError, which names it as the user
 * wrote it.
 */
export async function readInputFile(
  file: string,
  { workingDirectory = '.', signal }: CancelOptions & { workingDirectory?: string },
): Promise<Buffer> {
  const place = path.resolve(workingDirectory, file);
  return readNamedFile(place, maxInputSize, { signal }).catch(throwFileError(file, { file }));
}

async function collect(stream: AsyncIterable<unknown>, label: string, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) throw tooLarge(label, limit);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge(label: string, limit: number): LimitError {
  return new LimitError(`more than ${limit} bytes`, { about: label });
}
