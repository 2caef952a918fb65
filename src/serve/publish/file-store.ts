import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { decompress } from '../../archive/decompress.js';
import {
  type PublishedFile,
  type PublishedIcon,
  iconPath,
  linesPath,
} from '../../catalog/published/published-index.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { digestPieces } from '../../core/digest.js';
import { OpmateError, fileError, throwIfCancelled, throwFileError } from '../../core/errors.js';
import { lstatIfPresent } from '../../files/file-status.js';
import { makeDirectory, missingDirectories, removeEmptyDirectories } from '../../files/make-directory.js';
import { moveWhole } from '../../files/move-whole.js';
import { stagingName } from '../../files/staging.js';
import { writeNewFile } from '../../files/write-new-file.js';
import { type Coding, availableCodings, createCompressor } from '../http/encoding.js';

/** Mode of published files. */
export const fileMode = 0o644;
/** Bytes per read of a file. */
const pieceBytes = 256 * 1024;
/** Extensions of compressed files. */
export const codingExtensions: Readonly<Record<Coding, string>> = { gzip: '.gz', zstd: '.zst' };

/** Opens a directory to which files are added by digest, each complete under its name. Throws OpmateError IO. */
export async function openFileStore(root: string, { signal }: CancelOptions): Promise<FileStore> {
  const staging = path.join(root, stagingName());
  await makeDirectory(staging, 0o700).catch(throwFileError(root));
  return new FileStore(root, staging, signal);
}

/** Files of a directory by digest, written to a directory of their own first. */
export class FileStore {
  readonly #root: string;
  readonly #staging: string;
  readonly #signal: AbortSignal | undefined;
  readonly added = new Set<string>();
  readonly #createdDirectories: string[] = [];
  #files = 0;

  constructor(root: string, staging: string, signal: AbortSignal | undefined) {
    this.#root = root;
    this.#staging = staging;
    this.#signal = signal;
  }

  async #add(
    pieces: AsyncIterable<Buffer> | Iterable<Buffer>,
    getPath: (file: PublishedFile) => string,
    codings: readonly Coding[],
  ): Promise<PublishedFile> {
    const staged = path.join(this.#staging, String(this.#files++));
    try {
      const hash = createHash('sha256');
      let size = 0;
      const signal = this.#signal;
      const hashed = async function* (): AsyncGenerator<Buffer> {
        for await (const piece of pieces) {
          throwIfCancelled(signal);
          hash.update(piece);
          size += piece.length;
          yield piece;
        }
      };
      await writeNewFile(staged, hashed(), { mode: fileMode });
      const file = { hash: `sha256:${hash.digest('hex')}`, size };
      const target = path.join(this.#root, getPath(file));
      for (const coding of codings) {
        const form = `${target}${codingExtensions[coding]}`;
        if (await this.#isIntact(form, file)) continue;
        const compressed = `${staged}${codingExtensions[coding]}`;
        await writeNewFile(compressed, compress(staged, coding), { mode: fileMode });
        await this.#move(compressed, form);
      }
      // Last: a reader that finds it finds the compressed forms too.
      if (!(await this.#isIntact(target, file))) await this.#move(staged, target);
      else await rm(staged);
      return file;
    } catch (error) {
      throw fileError(this.#root, error);
    }
  }

  async #isIntact(target: string, { hash, size }: PublishedFile): Promise<boolean> {
    const stats = await lstatIfPresent(target);
    if (stats?.isFile() !== true) return false;
    const isPlain = !/\.(?:gz|zst)$/.test(target);
    if (isPlain && stats.size !== size) return false;
    const source = createReadStream(target);
    try {
      const bytes = isPlain ? source : decompress(source, { label: target, signal: this.#signal });
      return (await digestPieces(bytes)) === hash;
    } catch (error) {
      throwIfCancelled(this.#signal);
      if (error instanceof OpmateError) return false;
      throw error;
    } finally {
      source.destroy();
    }
  }

  async #move(staged: string, target: string): Promise<void> {
    const isNew = (await lstatIfPresent(target)) === undefined;
    this.#createdDirectories.push(...(await missingDirectories(path.dirname(target))));
    await moveWhole(staged, target);
    if (isNew) this.added.add(target);
  }

  /** Adds JSON lines and their compressed forms. Throws OpmateError IO. */
  addLines(lines: AsyncIterable<Buffer>) {
    return this.#add(lines, linesPath, availableCodings);
  }

  /** Adds an icon. Throws OpmateError IO. */
  async addIcon(bytes: Buffer, mediaType: string): Promise<PublishedIcon> {
    const file = await this.#add([bytes], (publishedFile) => iconPath({ ...publishedFile, mediaType }), []);
    return { ...file, mediaType };
  }

  /** Removes all added files. Never throws. */
  async revert(): Promise<void> {
    for (const file of this.added) await rm(file, { force: true }).catch(() => undefined);
    await removeEmptyDirectories([...new Set(this.#createdDirectories)].sort());
  }

  async close(): Promise<void> {
    await rm(this.#staging, { recursive: true, force: true }).catch(() => undefined);
  }
}

async function* compress(file: string, coding: Coding): AsyncGenerator<Buffer> {
  const compressor = createCompressor(coding, 'best');
  const source = createReadStream(file, { highWaterMark: pieceBytes });
  source.once('error', (error) => compressor.destroy(error));
  try {
    yield* source.pipe(compressor) as AsyncIterable<Buffer>;
  } finally {
    source.destroy();
    compressor.destroy();
  }
}
