import { keepOpen } from '../../core/concurrency.js';
import { type Stats, createWriteStream } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { statIfPresent } from '../../files/file-status.js';
import { LineCounter, type OpenFile } from '../../catalog/documents.js';
import { makeTemporaryDirectory } from '../../files/temporary-directory.js';
import { openStream } from '../../files/read-file.js';
import { openFile } from '../../catalog/file-access.js';
import { LimitError, OpmateError, systemReason, throwIfCancelled } from '../../core/errors.js';
import type { Session } from '../../source/session.js';

/** A file by name, or a stream such as stdin with its name for messages. */
export type TemplateInput = string | { stream: Readable; name: string };

/** Open file, to be closed. */
export interface OpenedInput extends OpenFile {
  /** Returns the line of the byte at `offset`, from 1. */
  lineOf(offset: number): Promise<number>;
  close(): Promise<void>;
}

/**
 * Opens an input for random access; streams and pipes, at most 4 GiB, are spooled to an unnamed file. Throws OpmateError.
 */
export async function openInput(input: TemplateInput, session: Session): Promise<OpenedInput> {
  if (typeof input !== 'string') return spool(input.stream, input.name, session);
  // A shell's `<(…)` can be read once only.
  const stats = await statIfPresent(input);
  if (isPipe(stats)) return spool(openStream(input, stats), input, session);
  return keepOpen(openFile(input, input), async (handle) => {
    const stats = await handle.stat();
    if (stats.isDirectory()) throw new OpmateError('IO', 'is a directory', { about: input });
    return getInput({ handle, label: input, size: stats.size });
  });
}

/** Reports whether an input can be read only once. */
export async function isStream(input: TemplateInput): Promise<boolean> {
  return typeof input !== 'string' || isPipe(await statIfPresent(input));
}

function isPipe(stats: Stats | undefined): stats is Stats {
  return stats?.isFIFO() === true || stats?.isCharacterDevice() === true;
}

function getInput(file: OpenFile): OpenedInput {
  const { handle, label } = file;
  const counter = new LineCounter(label);
  return {
    ...file,
    lineOf: (offset) => counter.lineOf(handle, offset),
    close: () => handle.close(),
  };
}

async function spool(source: Readable, label: string, session: Session): Promise<OpenedInput> {
  const { signal, temporaryDirectory, now } = session;
  const temporary = await makeTemporaryDirectory(temporaryDirectory, now());
  try {
    const file = path.join(temporary.path, 'stdin');
    try {
      await pipeline(source, limitedTo(maxSpooledSize, label), createWriteStream(file, { mode: 0o600 }), {
        signal,
      });
    } catch (error) {
      throwIfCancelled(signal);
      if (error instanceof OpmateError) throw error;
      throw new OpmateError('IO', `${label}: ${systemReason(error)}`, { cause: error });
    }
    const handle = await open(file, 'r');
    const { size } = await handle.stat();
    await rm(file);
    return getInput({ handle, label, size });
  } finally {
    await temporary.remove();
  }
}

const maxSpooledSize = 4 * 1024 ** 3;

/** Passes chunks on, up to `limit` bytes in all. Throws LimitError beyond. */
function limitedTo(limit: number, label: string) {
  return async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let size = 0;
    for await (const chunk of chunks) {
      size += chunk.length;
      if (size > limit) throw new LimitError(`${label}: more than ${limit} bytes`);
      yield chunk;
    }
  };
}
