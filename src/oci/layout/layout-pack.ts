import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { type TarInput, writeTar } from '../../archive/tar-writer.js';
import { type CancelOptions } from '../../core/concurrency.js';
import { throwIfCancelled } from '../../core/errors.js';
import { replaceFile } from '../../files/replace-file.js';

interface PackOptions extends CancelOptions {
  /** Additional files of the archive. */
  files?: readonly TarInput[] | undefined;
}

/**
 * Writes an OCI image layout as an `oci-archive:` file, whose bytes depend on the layout only. An existing file is
 * replaced when the new one is complete and on disk. The layout must not change meanwhile. Throws OpmateError IO or
 * NOT_FOUND, and INVALID if `file` is a device or pipe.
 */
export async function packLayout(directory: string, file: string, options: PackOptions = {}): Promise<void> {
  const { files = [], signal } = options;
  await replaceFile(file, iterateChunks(writeTar(iterateFiles(directory, files)), signal));
}

async function* iterateChunks(tar: AsyncIterable<unknown>, signal: AbortSignal | undefined) {
  for await (const chunk of tar) {
    throwIfCancelled(signal);
    yield chunk as Buffer;
  }
}

/** Yields the files of a layout without others such as a lock, then additional ones. */
async function* iterateFiles(directory: string, added: readonly TarInput[]): AsyncGenerator<TarInput> {
  for (const name of ['oci-layout', 'index.json']) yield toTarInput(directory, name);
  for (const algorithm of await readdir(path.join(directory, 'blobs'))) {
    for (const hex of await readdir(path.join(directory, 'blobs', algorithm)))
      yield toTarInput(directory, `blobs/${algorithm}/${hex}`);
  }
  yield* added;
}

async function toTarInput(directory: string, name: string): Promise<TarInput> {
  const file = path.join(directory, name);
  return { path: name, content: { file, size: (await stat(file)).size } };
}
