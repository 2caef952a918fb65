import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, throwFileError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { statIfPresent } from '../../files/file-status.js';
import { withLock } from '../../files/lock.js';
import { makeDirectory } from '../../files/make-directory.js';
import { readRegularFile } from '../../files/read-file.js';
import {
  type AuditEntry,
  type RecordedRun,
  appendAudit,
  isOfImageSet,
  readRecordedRuns,
} from '../history/audit-trail.js';
import { addGeneration, listGenerations } from '../history/generations.js';
import { encodeLock } from '../lock/encode-lock.js';
import { type ImageSetLock, lockName } from '../lock/lock.js';
import { joinReplaced } from '../lock/lock-diff.js';
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

/** The directory `working-dir` of a run, with the lock and cluster resources. */
export class Workspace {
  /** Absolute path of its parent directory. */
  readonly directory: string;
  /** Absolute. */
  readonly root: string;
  /** Path of the lock file for messages. */
  readonly shownLock: string;
  /** Path of the lock that the last one replaced, beside it, for messages. */
  readonly shownReplaced: string;
  private readonly workingDirectory: string;
  private readonly lockFile: string;
  private readonly replacedFile: string;

  /**
   * Paths are relative to `workingDirectory`, also in messages; `file://` may stand before the directory. Default lock:
   * `working-dir/opmate.lock.json`.
   */
  constructor(workingDirectory: string, directory: string, lockPath?: string) {
    this.workingDirectory = workingDirectory;
    this.directory = path.resolve(workingDirectory, directory.replace(/^file:\/\//, ''));
    this.root = path.join(this.directory, 'working-dir');
    this.lockFile =
      lockPath === undefined ? path.join(this.root, lockName) : path.resolve(workingDirectory, lockPath);
    this.replacedFile = this.lockFile.replace(/(\.json)?$/, '.previous.json');
    this.shownLock = path.relative(workingDirectory, this.lockFile) || '.';
    this.shownReplaced = path.relative(workingDirectory, this.replacedFile);
  }

  /** Returns the generations of the lock. */
  listGenerations(): ReturnType<typeof listGenerations> {
    return listGenerations(this.root);
  }

  /** Returns a path below `working-dir` for messages. */
  show(...names: string[]): string {
    return path.join(path.relative(this.workingDirectory, this.root), ...names);
  }

  /** Checks, before a run, that its results can be written. Throws OpmateError. */
  async requireWritable(): Promise<void> {
    await requireNoLinks([this.root]);
    if ((await statIfPresent(this.lockFile))?.isDirectory() === true) {
      throw new OpmateError('IO', `mirror.lockFile ${quoteGo(this.shownLock)}: is a directory`, {
        hint: 'specify a file',
      });
    }
    for (const directory of new Set([path.dirname(this.lockFile), this.root])) {
      await requireWritableDirectory(directory);
    }
  }

  /** Throws OpmateError NOT_FOUND for a missing lock, and errors of `parseLock`. */
  async readLock(): Promise<ImageSetLock> {
    try {
      return await readLock(this.lockFile, this.shownLock);
    } catch (error) {
      if (!(error instanceof OpmateError) || error.code !== 'NOT_FOUND') throw error;
      throw new OpmateError('NOT_FOUND', `${this.shownLock}: lock not found`, {
        file: this.shownLock,
        hint: 'create it with api.planMirror, or select another one with mirror.lockFile or mirror.workspace',
        cause: error,
      });
    }
  }

  /**
   * Writes the lock, and adds it to the generations. Keeps the one that it replaces if that is passed: it names images that
   * are still at the target.
   */
  async writeLock(lock: ImageSetLock, now: Date, replaced?: ImageSetLock): Promise<void> {
    const text = encodeLock(lock);
    const files = new Map([[path.basename(this.lockFile), text]]);
    const before = await statIfPresent(this.lockFile);
    if (before !== undefined && (await listGenerations(this.root)).length === 0) {
      // Written by an earlier release, which kept no generations.
      const known = await this.readLock().catch(() => undefined);
      if (known !== undefined) await addGeneration(this.root, encodeLock(known), before.mtime);
    }
    await addGeneration(this.root, text, now);
    if (replaced !== undefined) {
      const older = await readLock(this.replacedFile).catch(() => undefined);
      files.set(path.basename(this.replacedFile), encodeLock(joinReplaced(replaced, older, lock)));
    }
    await writeOutputFiles(path.dirname(this.lockFile), files);
  }

  /** Returns the last runs in the audit trail, newest first. */
  readRuns(): Promise<RecordedRun[]> {
    return readRecordedRuns(this.root);
  }

  /** Returns the last runs that mirrored or archived the image set, newest first. */
  async readImageSetRuns(): Promise<RecordedRun[]> {
    return (await this.readRuns()).filter(isOfImageSet);
  }

  /** Appends entries to the audit trail; creates a missing `working-dir`. */
  async record(entries: readonly AuditEntry[]): Promise<void> {
    await makeDirectory(this.root).catch(throwFileError(`output dir ${quoteGo(this.root)}`));
    await requireNoLinks([this.root]);
    await appendAudit(this.root, entries);
  }

  /** Returns the release signatures that earlier runs wrote. */
  async readSignatures(): Promise<ReleaseSignatures> {
    const file = path.join(this.root, resourcesName, signatureFile);
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
    await makeDirectory(this.root).catch(throwFileError(`output dir ${quoteGo(this.root)}`));
    await requireNoLinks([this.root]);
    await withLock(this.root, { task: 'mirror', waitMilliseconds, signal }, () =>
      replaceDirectories(this.root, directories),
    );
  }
}
