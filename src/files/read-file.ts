import { constants, createReadStream } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { LimitError, OpmateError, fileError, systemCode } from '../core/errors.js';

interface OpenRegularFileOptions {
  /** Refuses a symbolic link in the last component (ELOOP). */
  noFollow?: boolean;
  /** Name of the file in errors; the path by default. */
  name?: string;
  /** Subject of messages; `name` by default. */
  label?: string;
}

/**
 * Opens a file for reading, at once whatever it is: opening a named pipe would wait for its writer, and reading a
 * device need not end. A directory is opened; reading it fails with EISDIR.
 *
 * Throws OpmateError IO for a pipe or device, and errors of the system as they are.
 */
export async function openRegularFile(
  file: string,
  { noFollow = false, name = file, label = name }: OpenRegularFileOptions = {},
): Promise<FileHandle> {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | (noFollow ? constants.O_NOFOLLOW : 0);
  const handle = await open(file, flags);
  try {
    const stats = await handle.stat();
    if (stats.isFile() || stats.isDirectory()) return handle;
    throw new OpmateError('IO', 'not an ordinary file', { subject: label, file: name });
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/**
 * Opens a regular file for reading, links followed. Returns undefined where the name leads to nothing or to something
 * else: a directory, pipe, socket or device, a circle of links. Throws errors of the system as they are.
 */
export async function openIfRegularFile(file: string): Promise<FileHandle | undefined> {
  let handle: FileHandle;
  try {
    handle = await openRegularFile(file);
  } catch (error) {
    // A socket cannot be opened (ENXIO); a device or pipe opens, and is refused with an error of our own.
    if (error instanceof OpmateError || ['ENOENT', 'ELOOP', 'ENXIO'].includes(systemCode(error) ?? '')) {
      return undefined;
    }
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

/**
 * Reads a regular file of at most `limit` bytes whole: one of a directory, layout or archive, which others may have
 * filled. Throws what `openRegularFile` throws, and LimitError.
 */
export async function readRegularFile(
  file: string,
  limit: number,
  options: OpenRegularFileOptions = {},
): Promise<Buffer> {
  const handle = await openRegularFile(file, options);
  try {
    const { size } = await handle.stat();
    if (size > limit) throw tooLarge(options.label ?? options.name ?? file, limit);
    // Files of /proc have no size, and others may grow.
    return await collect(
      handle.createReadStream({ autoClose: false }),
      options.label ?? options.name ?? file,
      limit,
    );
  } finally {
    await handle.close();
  }
}

/**
 * Reads a file that a person named on the command line, in a variable or as a well-known place, of at most `limit`
 * bytes. It may be `/dev/stdin`, `/dev/null` or a pipe (`<(…)` of a shell), whose writer is waited for.
 * Throws LimitError, and errors of the system as they are.
 */
export async function readNamedFile(file: string, limit: number): Promise<Buffer> {
  const stats = await stat(file);
  if (stats.isFile() && stats.size > limit) throw tooLarge(file, limit);
  return collect(createReadStream(file), file, limit);
}

/** Maximum size of an input file. */
export const maxInputSize = 64 * 1024 * 1024;

/** Reads an input file that a person named, of at most 64 MiB, or a pipe. Throws OpmateError with `open FILE`. */
export async function readInputFile(file: string): Promise<Buffer> {
  try {
    return await readNamedFile(file, maxInputSize);
  } catch (error) {
    throw fileError(`open ${file}`, error, { file });
  }
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
  return new LimitError(`more than ${limit} bytes`, { subject: label, file: label });
}
