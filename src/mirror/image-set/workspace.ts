import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, throwFileError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { statIfPresent } from '../../files/file-status.js';
import { withLock } from '../../files/lock.js';
import { makeDirectory } from '../../files/make-directory.js';
import { readRegularFile } from '../../files/read-file.js';
import { type AuditEntry, type RecordedRun, appendAudit, readRecordedRuns } from '../history/audit-trail.js';
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
export type Workspace = ReturnType<typeof createWorkspace>;

/**
 * Returns the workspace in `directory`. Paths are absolute; messages name files relative to `workingDirectory`. Default
 * lock: `working-dir/opmate.lock.json`.
 */
export function createWorkspace(workingDirectory: string, directory: string, lockPath: string | undefined) {
  const root = path.join(directory, 'working-dir');
  const lockFile = lockPath ?? path.join(root, lockName);
  /** Path of the lock file for messages. */
  const shownLock = path.relative(workingDirectory, lockFile) || '.';
  /** File of the lock that the last one replaced, beside it. */
  const replacedFile = lockFile.replace(/(\.json)?$/, '.previous.json');
  const shownReplaced = path.relative(workingDirectory, replacedFile);
  return {
    ...{ shownLock, shownReplaced, show, requireWritable, readLock: readOwnLock },
    ...{
      writeLock,
      readSignatures,
      writeResults,
      directory,
      root,
      record,
      readRuns,
    },
    listGenerations: () => listGenerations(root),
  };

  /** Returns a path below `working-dir` for messages. */
  function show(...names: string[]): string {
    return path.join(path.relative(workingDirectory, root), ...names);
  }

  /** Checks, before a run, that its results can be written. Throws OpmateError. */
  async function requireWritable(): Promise<void> {
    await requireNoLinks([root]);
    if ((await statIfPresent(lockFile))?.isDirectory() === true) {
      throw new OpmateError('IO', `--lock ${quoteGo(shownLock)}: is a directory`, {
        hint: 'specify a file',
      });
    }
    for (const directory of new Set([path.dirname(lockFile), root])) {
      await requireWritableDirectory(directory);
    }
  }

  /** Throws OpmateError NOT_FOUND for a missing lock, and errors of `parseLock`. */
  async function readOwnLock(): Promise<ImageSetLock> {
    try {
      return await readLock(lockFile, shownLock);
    } catch (error) {
      if (!(error instanceof OpmateError) || error.code !== 'NOT_FOUND') throw error;
      throw new OpmateError('NOT_FOUND', `${shownLock}: lock not found`, {
        file: shownLock,
        hint: 'create it with api.planMirror, or select another one with mirror.lockFile or mirror.workspace',
        cause: error,
      });
    }
  }

  /**
   * Writes the lock, and adds it to the generations. Keeps the one that it replaces if that is passed: it names images that
   * are still at the target.
   */
  async function writeLock(lock: ImageSetLock, now: Date, replaced?: ImageSetLock): Promise<void> {
    const text = encodeLock(lock);
    const files = new Map([[path.basename(lockFile), text]]);
    const before = await statIfPresent(lockFile);
    if (before !== undefined && (await listGenerations(root)).length === 0) {
      // Written by an earlier release, which kept no generations.
      const known = await readOwnLock().catch(() => undefined);
      if (known !== undefined) await addGeneration(root, encodeLock(known), before.mtime);
    }
    await addGeneration(root, text, now);
    if (replaced !== undefined) {
      const older = await readLock(replacedFile).catch(() => undefined);
      files.set(path.basename(replacedFile), encodeLock(joinReplaced(replaced, older, lock)));
    }
    await writeOutputFiles(path.dirname(lockFile), files);
  }

  /** Returns the last runs in the audit trail, newest first. */
  function readRuns(): Promise<RecordedRun[]> {
    return readRecordedRuns(root);
  }

  /** Appends entries to the audit trail; creates a missing `working-dir`. */
  async function record(entries: readonly AuditEntry[]): Promise<void> {
    await makeDirectory(root).catch(throwFileError(`output dir ${quoteGo(root)}`));
    await requireNoLinks([root]);
    await appendAudit(root, entries);
  }

  /** Returns the release signatures that earlier runs wrote. */
  async function readSignatures(): Promise<ReleaseSignatures> {
    const file = path.join(root, resourcesName, signatureFile);
    if ((await statIfPresent(file)) === undefined) return new Map();
    const name = show(resourcesName, signatureFile);
    return parseSignatures((await readRegularFile(file, maxSignatureBytes, { name })).toString(), name);
  }

  /** Replaces `cluster-resources` and `dry-run`, if given, under a lock. */
  async function writeResults(
    {
      clusterResources,
      dryRun,
    }: Partial<Record<'clusterResources' | 'dryRun', ReadonlyMap<string, string> | undefined>>,
    { signal }: CancelOptions,
  ): Promise<void> {
    const directories = new Map<string, ReadonlyMap<string, string>>();
    if (dryRun !== undefined) directories.set('dry-run', dryRun);
    if (clusterResources !== undefined) directories.set(resourcesName, clusterResources);
    await makeDirectory(root).catch(throwFileError(`output dir ${quoteGo(root)}`));
    await requireNoLinks([root]);
    await withLock(root, { task: 'opmate mirror', waitMilliseconds, signal }, () =>
      replaceDirectories(root, directories),
    );
  }
}
