import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, fileError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { statIfPresent } from '../../files/file-status.js';
import { withLock } from '../../files/lock.js';
import { makeDirectory } from '../../files/make-directory.js';
import { readRegularFile } from '../../files/read-file.js';
import { type ImageSetLock, encodeLock, lockName, readLock } from '../lock/lock.js';
import {
  replaceDirectories,
  requireNoLinks,
  requireWritableDirectory,
  writeOutputFiles,
} from '../output-files.js';
import { type ReleaseSignatures, parseSignatures, signatureFile } from '../release/release-resources.js';

/** How long a run waits for another one to write its results into the same workspace. */
const waitMilliseconds = 30_000;
const resourcesName = 'cluster-resources';
const maxSignatureBytes = 64 * 1024 * 1024;

/** Files of a directory by name. */
type Files = ReadonlyMap<string, string>;

interface WorkspaceOptions {
  /** Absolute; messages name files relative to it. */
  workingDirectory: string;
  /** Holds `working-dir`; absolute. Default the working directory. */
  directory?: string | undefined;
  /** Absolute path of the lock; default `working-dir/opmate.lock.json`. */
  lockFile?: string | undefined;
}

/** Where a run over an image set writes its results: `working-dir` with the lock and cluster resources. */
export class Workspace {
  readonly #root: string;
  readonly #lockFile: string;
  readonly #workingDirectory: string;

  constructor({ workingDirectory, directory = workingDirectory, lockFile }: WorkspaceOptions) {
    this.#root = path.join(directory, 'working-dir');
    this.#lockFile = lockFile ?? path.join(this.#root, lockName);
    this.#workingDirectory = workingDirectory;
  }

  /** The lock file as messages name it. */
  get shownLock(): string {
    return path.relative(this.#workingDirectory, this.#lockFile) || '.';
  }

  /** Returns a path below `working-dir` as messages name it. */
  show(...names: string[]): string {
    return path.join(path.relative(this.#workingDirectory, this.#root), ...names);
  }

  /** Throws OpmateError where results cannot be written, before a run has worked for them. */
  async requireWritable(): Promise<void> {
    await requireNoLinks([this.#root]);
    if ((await statIfPresent(this.#lockFile))?.isDirectory() === true) {
      throw new OpmateError('IO', `--lock ${quoteGo(this.shownLock)}: is a directory`, {
        hint: 'specify a file',
      });
    }
    for (const directory of new Set([path.dirname(this.#lockFile), this.#root])) {
      await requireWritableDirectory(directory);
    }
  }

  /** Throws OpmateError NOT_FOUND where there is no lock, and what `parseLock` throws. */
  async readLock(): Promise<ImageSetLock> {
    try {
      return await readLock(this.#lockFile, this.shownLock);
    } catch (error) {
      if (!(error instanceof OpmateError) || error.code !== 'NOT_FOUND') throw error;
      throw new OpmateError('NOT_FOUND', `${this.shownLock}: lock not found`, {
        file: this.shownLock,
        hint: 'create it with opmate mirror plan, or select another one with --lock or --workspace',
        cause: error,
      });
    }
  }

  async writeLock(lock: ImageSetLock): Promise<void> {
    const files = new Map([[path.basename(this.#lockFile), encodeLock(lock)]]);
    await writeOutputFiles(path.dirname(this.#lockFile), files);
  }

  /** Returns signatures of releases that earlier runs wrote. */
  async readSignatures(): Promise<ReleaseSignatures> {
    const file = path.join(this.#root, resourcesName, signatureFile);
    if ((await statIfPresent(file)) === undefined) return new Map();
    const name = this.show(resourcesName, signatureFile);
    return parseSignatures((await readRegularFile(file, maxSignatureBytes, { name })).toString(), name);
  }

  /** Replaces `cluster-resources`, and `dry-run` where its files are named, while no other run does. */
  async writeResults(
    files: { clusterResources?: Files | undefined; dryRun?: Files | undefined },
    { signal }: CancelOptions,
  ): Promise<void> {
    const directories = new Map<string, Files>();
    if (files.dryRun !== undefined) directories.set('dry-run', files.dryRun);
    if (files.clusterResources !== undefined) directories.set(resourcesName, files.clusterResources);
    try {
      await makeDirectory(this.#root);
    } catch (error) {
      throw fileError(`output dir ${quoteGo(this.#root)}`, error);
    }
    await requireNoLinks([this.#root]);
    await withLock(this.#root, { task: 'opmate mirror', waitMilliseconds, signal }, () =>
      replaceDirectories(this.#root, directories),
    );
  }
}
