import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { type TarInput, writeTar } from '../../archive/tar-writer.js';
import { type CancelOptions } from '../../core/concurrency.js';
import { throwIfCancelled } from '../../core/errors.js';
import { replaceFile } from '../../files/replace-file.js';

interface PackOptions extends CancelOptions {
  /** Further files of the archive. */
  files?: readonly TarInput[] | undefined;
}

/**
 * Writes an OCI image layout directory as one file, an `oci-archive:`, whose bytes depend on the layout alone.
 * What has that name is replaced when the new file is whole and on disk, or else stays. Nobody may write to
 * the layout meanwhile. Throws OpmateError IO or NOT_FOUND, and INVALID where `file` is a device or pipe.
 */
export async function packLayout(directory: string, file: string, options: PackOptions = {}): Promise<void> {
  const { files = [], signal } = options;
  await replaceFile(file, iterateChunks(writeTar(iterateInputs(directory, files)), signal));
}

async function* iterateChunks(tar: AsyncIterable<unknown>, signal: AbortSignal | undefined) {
  for await (const chunk of tar) {
    throwIfCancelled(signal);
    yield chunk as Buffer;
  }
}

async function* iterateInputs(directory: string, files: readonly TarInput[]): AsyncGenerator<TarInput> {
  yield* iterateFiles(directory);
  yield* files;
}

/** The files that belong to a layout; others, such as a lock, do not. */
async function* iterateFiles(directory: string): AsyncGenerator<TarInput> {
  for (const name of ['oci-layout', 'index.json']) yield fileInput(directory, name);
  for (const algorithm of await readdir(path.join(directory, 'blobs'))) {
    for (const hex of await readdir(path.join(directory, 'blobs', algorithm)))
      yield fileInput(directory, `blobs/${algorithm}/${hex}`);
  }
}

async function fileInput(directory: string, name: string): Promise<TarInput> {
  const file = path.join(directory, name);
  const { size } = await stat(file);
  return {
    path: name,
    content: { file, size },
  };
}
