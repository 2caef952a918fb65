import { open } from 'node:fs/promises';
import path from 'node:path';
import { withOpen } from '../../core/concurrency.js';
import { throwFileError, writeError } from '../../core/errors.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { readBytes } from '../../files/file-region.js';
import { statIfPresent } from '../../files/file-status.js';
import { appendLines } from '../../files/write-new-file.js';

/** File below `working-dir` with what its runs did: JSON Lines, oldest first. */
const auditName = 'audit.jsonl';

/** Result of a run; `done` without failed images. */
type RunResult = 'done' | 'partly' | 'failed';

/** An entry of the trail; `run` is the time at which the run started. */
export type AuditEntry = { time: string; run: string } & (
  | {
      event: 'started';
      /** `mapping` and `catalog` copy without an image set. */
      task: 'mirror' | 'archive' | 'prune' | 'delete' | 'mapping' | 'catalog';
      destination: string;
      configuration?: string | undefined;
    }
  | { event: 'copied'; image: string; digest: string; from: string; verification?: JsonObject | undefined }
  /** `from` is undefined for a deletion. */
  | { event: 'failed'; image: string; from?: string | undefined; problem: string }
  | { event: 'deleted'; image: string; digest: string }
  | {
      event: 'ended';
      result: RunResult;
      images: number;
      failed: number;
      blobs: number;
      bytes: number;
      plan?: string | undefined;
      problem?: string | undefined;
    }
);

/** Appends entries to the trail below a `working-dir`. Throws OpmateError. */
export async function appendAudit(root: string, entries: readonly AuditEntry[]): Promise<void> {
  const file = path.join(root, auditName);
  const lines = entries.map((entry) => JSON.stringify(entry));
  await appendLines(file, lines).catch((error: unknown) => {
    throw writeError(file, error);
  });
}

/** Bytes at the end of a trail that are read for its last runs. */
const tailBytes = 8 * 1024 * 1024;
/** Maximum bytes for large runs: of 100,000 images, the most that a lock has, one takes about 50 MiB. */
const maxTailBytes = 256 * 1024 * 1024;
/** Number of runs that the tail must have whole: the current one and the last before it. */
const minRuns = 2;

/** Reports whether a run mirrored an image set, which has a state. */
export function isOfImageSet({ started: { task } }: Pick<RecordedRun, 'started'>): boolean {
  return task === 'mirror' || task === 'archive';
}

/** A run in the trail; without `ended` it was interrupted, or goes on. */
export interface RecordedRun {
  started: Extract<AuditEntry, { event: 'started' }>;
  ended: Extract<AuditEntry, { event: 'ended' }> | undefined;
  failed: Extract<AuditEntry, { event: 'failed' }>[];
  /** Numbers of copied images by the status of their verification; empty without verification. */
  verdicts: Map<string, number>;
}

/** Reads the last runs in the trail below a `working-dir`, newest first; damaged lines are ignored. Throws OpmateError. */
export async function readRecordedRuns(root: string): Promise<RecordedRun[]> {
  const file = path.join(root, auditName);
  const stats = await statIfPresent(file).catch(throwFileError(file));
  if (stats === undefined) return [];
  return withOpen(open(file), async (handle) => {
    for (let length = tailBytes; ; length *= 2) {
      const start = Math.max(0, stats.size - length);
      const lines = (await readBytes(handle, start, stats.size - start)).toString().split('\n');
      // A tail begins within a line.
      const runs = parseRuns(start > 0 ? lines.slice(1) : lines);
      if (start === 0 || runs.length >= minRuns || length >= maxTailBytes) return runs;
    }
  }).catch(throwFileError(file));
}

/** Returns the runs whose start is among lines of a trail, newest first. */
function parseRuns(lines: readonly string[]): RecordedRun[] {
  const runs = new Map<string, RecordedRun>();
  for (const line of lines) {
    const entry = parseEntry(line);
    if (entry === undefined) continue;
    if (entry.event === 'started')
      runs.set(entry.run, { started: entry, ended: undefined, failed: [], verdicts: new Map() });
    const run = runs.get(entry.run);
    if (entry.event === 'ended' && run !== undefined) run.ended = entry;
    if (entry.event === 'failed') run?.failed.push(entry);
    const status = entry.event === 'copied' ? entry.verification?.['status'] : undefined;
    if (typeof status === 'string') run?.verdicts.set(status, (run.verdicts.get(status) ?? 0) + 1);
  }
  return [...runs.values()].reverse();
}

function parseEntry(line: string): AuditEntry | undefined {
  try {
    const value: unknown = JSON.parse(line);
    const isEntry = isJsonObject(value as JsonObject) && typeof (value as JsonObject)['run'] === 'string';
    return isEntry ? (value as AuditEntry) : undefined;
  } catch {
    return undefined;
  }
}
