import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, throwFileError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { statIfPresent } from '../../files/file-status.js';
import { withLock } from '../../files/lock.js';
import { makeDirectory } from '../../files/make-directory.js';
import { readRegularFile } from '../../files/read-file.js';
import { encodeLock } from '../lock/encode-lock.js';
import { type ImageSetLock, lockName } from '../lock/lock.js';
import { readLock } from '../lock/parse-lock.js';
import {
  replaceDirectories,
  requireNoLinks,
  requireWritableDirectory,
  writeOutputFiles,
} from '../output-files.js';
import { type ReleaseSignatures, parseSignatures, signatureFile } from '../release/release-resources.js';

/** Maximum time to wait for another run to write its results into the workspace. */
const waitMilliseconds = 30_000;
const resourcesName = 'cluster-resources';
const maxSignatureBytes = 64 * 1024 * 1024;

interface WorkspaceOptions {
  /** Absolute; messages name files relative to it. */
  workingDirectory: string;
  /** Holds `working-dir`; absolute. Default the working directory. */
  directory?: string | undefined;
  /** Absolute path of the lock; default `working-dir/opmate.lock.json`. */
  lockFile?: string | undefined;
}

/** The directory `working-dir` of a run, with the lock and cluster resources. */
export class Workspace {
  readonly #root: string;
  readonly #lockFile: string;
  readonly #workingDirectory: string;

  constructor({ workingDirectory, directory = workingDirectory, lockFile }: WorkspaceOptions) {
    this.#root = path.join(directory, 'working-dir');
    this.#lockFile = lockFile ?? path.join(this.#root, lockName);
    this.#workingDirectory = workingDirectory;
  }

  /** Path of the lock file for messages. */
  get shownLock(): string {
    return path.relative(this.#workingDirectory, this.#lockFile) || '.';
  }

  /** Returns a path below `working-dir` for messages. */
  show(...names: string[]): string {
    return path.join(path.relative(this.#workingDirectory, this.#root), ...names);
  }

  /** Checks, before a run, that its results can be written. Throws OpmateError. */
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

  /** Throws OpmateError NOT_FOUND for a missing lock, and errors of `parseLock`. */
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

  /** Returns the release signatures that earlier runs wrote. */
  async readSignatures(): Promise<ReleaseSignatures> {
    const file = path.join(this.#root, resourcesName, signatureFile);
    if ((await statIfPresent(file)) === undefined) return new Map();
    const name = this.show(resourcesName, signatureFile);
    return parseSignatures((await readRegularFile(file, maxSignatureBytes, { name })).toString(), name);
  }

  /** Replaces `cluster-resources` and `dry-run`, if given, under a lock. */
  async writeResults(
    {
      clusterResources,
      dryRun,
    }: Partial<Record<'clusterResources' | 'dryRun', ReadonlyMap<string, string> | undefined>>,
    { signal }: CancelOptions,
  ): Promise<void> {
    const directories = new Map<string, ReadonlyMap<string, string>>();
    if (dryRun !== undefined) directories.set('dry-run', dryRun);
    if (clusterResources !== undefined) directories.set(resourcesName, clusterResources);
    await makeDirectory(this.#root).catch(throwFileError(`output dir ${quoteGo(this.#root)}`));
    await requireNoLinks([this.#root]);
    await withLock(this.#root, { task: 'opmate mirror', waitMilliseconds, signal }, () =>
      replaceDirectories(this.#root, directories),
    );
  }
}
