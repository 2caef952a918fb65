import { open, rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createWriteStream } from 'node:fs';
import { LineCounter, type OpenFile } from '../catalog/documents.js';
import { makeTemporaryDirectory } from '../files/temporary-directory.js';
import { openFile } from '../catalog/file-access.js';
import { OpmateError, systemReason, throwIfCancelled } from '../core/errors.js';
import type { CommandContext } from './context.js';

/** A file that was opened; `close` it. */
export interface OpenedInput extends OpenFile {
  /** The line, from 1, on which the byte at `offset` stands. */
  lineOf(offset: number): Promise<number>;
  close(): Promise<void>;
}

/**
 * Opens a file that the user named, or standard input for `-`, to be read at any place: what comes from standard input
 * is put into a file without a name. Throws OpmateError.
 */
export async function openInput(name: string, context: CommandContext): Promise<OpenedInput> {
  if (name === '-') return openStandardInput(context);
  const handle = await openFile(name, name);
  try {
    const stats = await handle.stat();
    if (stats.isDirectory()) {
      throw new OpmateError('IO', `read ${name}: is a directory`, { file: name });
    }
    return inputOf({ handle, label: name, size: stats.size });
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function inputOf(file: OpenFile): OpenedInput {
  const { handle, label } = file;
  const counter = new LineCounter(label);
  return {
    ...file,
    lineOf: (offset) => counter.lineOf(handle, offset),
    close: () => handle.close(),
  };
}

async function openStandardInput(context: CommandContext): Promise<OpenedInput> {
  const { stdin, signal, temporaryDirectory, now } = context;
  const temporary = await makeTemporaryDirectory(temporaryDirectory, now());
  try {
    const file = path.join(temporary.path, 'stdin');
    try {
      await pipeline(stdin, createWriteStream(file, { mode: 0o600 }), { signal });
    } catch (error) {
      throwIfCancelled(signal);
      throw new OpmateError('IO', `standard input: ${systemReason(error)}`, { cause: error });
    }
    const handle = await open(file, 'r');
    const { size } = await handle.stat();
    await rm(file);
    return inputOf({ handle, label: 'standard input', size });
  } finally {
    await temporary.remove();
  }
}
