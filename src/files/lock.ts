import { randomBytes, randomInt } from 'node:crypto';
import { type FileHandle, readdir, rename, rm, utimes } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { type CancelOptions, sleep } from '../core/concurrency.js';
import {
  OpmateError,
  fileError,
  throwFileError,
  systemCode,
  throwIfCancelled,
  writeError,
} from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { isJsonObject } from '../document/json.js';
import { getProcessId, isRunning, ownProcess } from './process-identity.js';
import { openRegularFile } from './read-file.js';
import { stagingName, sweepLeftovers } from './staging.js';
import { writeNewFile } from './write-new-file.js';

/** Renewal interval of a holder, and age at which a lock of another host is stale. */
const renewalMilliseconds = 10_000;
const staleMilliseconds = 300_000;
/** Maximum attempts of processes that publish locks simultaneously. */
const maxTies = 20;
const maxLockBytes = 4096;

const lockPattern = /^\.opmate\.lock-[0-9a-f]{16}$/;

interface LockOptions extends CancelOptions {
  /** Work of the holder, shown to others: `opmate mirror`. */
  task: string;
  /** Maximum wait for another holder, in milliseconds; default: 0. */
  waitMilliseconds?: number | undefined;
}

/** An acquired lock. */
interface DirectoryLock {
  /** Releases the lock; further calls do nothing. */
  release(): Promise<void>;
}

/** Holder as recorded in a lock file. */
interface Holder {
  process: string;
  host: string;
  since: string;
  task: string;
}

/** Runs `work` with the lock of a directory. Throws what `acquireLock` and `work` throw. */
export async function withLock<T>(
  directory: string,
  options: LockOptions,
  work: () => Promise<T>,
): Promise<T> {
  const lock = await acquireLock(directory, options);
  try {
    return await work();
  } finally {
    await lock.release();
  }
}

/**
 * Acquires the lock of an existing directory, which has one holder at a time across processes. Locks of ended
 * processes are taken over, with a sweep of what they left, those of other hosts after five minutes without renewal.
 * Contenders publish separate files and then look for others, so that only files of ended processes are removed and two
 * never hold the lock. Throws OpmateError IO, naming the holder, and NOT_FOUND.
 */
export async function acquireLock(directory: string, options: LockOptions): Promise<DirectoryLock> {
  const deadline = performance.now() + (options.waitMilliseconds ?? 0);
  const own: Holder = {
    process: ownProcess(),
    host: os.hostname(),
    since: new Date().toISOString(),
    task: options.task,
  };
  for (let ties = 0; ;) {
    throwIfCancelled(options.signal);
    let holder = await findHolder(directory, undefined);
    if (holder === undefined) {
      const name = `.opmate.lock-${randomBytes(8).toString('hex')}`;
      const file = path.join(directory, name);
      await publish(directory, file, own);
      holder = await findHolder(directory, name).catch(async (error: unknown) => {
        await rm(file, { force: true });
        throw error;
      });
      if (holder === undefined) return hold(file);
      await rm(file, { force: true });
      // Both back off; a random delay decides who is first next time.
      if (++ties < maxTies) {
        await sleep(randomInt(20 * ties));
        continue;
      }
    }
    if (performance.now() >= deadline) throw inUse(directory, holder);
    await sleep(Math.min(100, Math.max(1, deadline - performance.now())));
  }
}

function hold(file: string): DirectoryLock {
  const renewal = setInterval(() => {
    const now = new Date();
    utimes(file, now, now).catch(() => undefined);
  }, renewalMilliseconds);
  renewal.unref();
  return {
    release: async () => {
      clearInterval(renewal);
      await rm(file, { force: true }).catch(() => undefined);
    },
  };
}

/** Publishes a complete lock file, and sweeps what killed processes left beside it. */
async function publish(directory: string, file: string, holder: Holder): Promise<void> {
  const staging = path.join(directory, stagingName());
  try {
    await writeNewFile(staging, `${JSON.stringify(holder)}\n`, { mode: 0o644 });
    await rename(staging, file);
  } catch (error) {
    await rm(staging, { force: true }).catch(() => undefined);
    throw writeError(directory, error);
  }
  await sweepLeftovers(directory);
}

interface FoundLock {
  file: string;
  /** Undefined for a file without a readable holder. */
  holder: Holder | undefined;
}

/** Returns a lock held by another process, and removes those of ended ones. */
async function findHolder(directory: string, ownName: string | undefined): Promise<FoundLock | undefined> {
  const names = await readdir(directory).catch(throwFileError(directory));
  let held: FoundLock | undefined;
  for (const name of names.sort()) {
    if (name === ownName) continue;
    if (!lockPattern.test(name)) continue;
    const file = path.join(directory, name);
    const lock = await readLockFile(file);
    if (lock === undefined) continue;
    const { holder, modified } = lock;
    const age = new Date().getTime() - modified;
    const isAlive = (holder && isRunning(holder.process)) ?? age < staleMilliseconds;
    if (isAlive) held ??= { file, holder };
    else await rm(file, { force: true }).catch(() => undefined);
  }
  return held;
}

/** Reads a lock file; undefined if it disappeared. */
async function readLockFile(
  file: string,
): Promise<{ holder: Holder | undefined; modified: number } | undefined> {
  let handle: FileHandle;
  try {
    handle = await openRegularFile(file, { noFollow: true });
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw fileError(file, error, { file });
  }
  try {
    const { size, mtimeMs: modified } = await handle.stat();
    if (size > maxLockBytes) return { holder: undefined, modified };
    return { holder: parseHolder(await handle.readFile('utf8')), modified };
  } catch (error) {
    throw fileError(file, error, { file });
  } finally {
    await handle.close();
  }
}

function parseHolder(text: string): Holder | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  const { process, host, since, task } = value;
  if (typeof process !== 'string' || getProcessId(process) === undefined) return undefined;
  if (typeof host !== 'string' || typeof since !== 'string' || typeof task !== 'string') return undefined;
  return { process, host, since, task };
}

function inUse(directory: string, { file, holder }: FoundLock): OpmateError {
  const shown = (text: string, plain = /^[\w.:-]{1,253}$/, limit = 253): string =>
    plain.test(text) ? text : quoteGo(text.slice(0, limit));
  let who = 'another process';
  if (holder !== undefined) {
    const task = shown(holder.task, /^[\w ./-]{1,100}$/, 100);
    who = `process ${getProcessId(holder.process)} on ${shown(holder.host)} (${task}) since ${shown(holder.since)}`;
  }
  return new OpmateError('IO', `in use by ${who}`, {
    subject: directory,
    hint: `wait for it to finish, or remove ${file} if it has finished`,
  });
}
