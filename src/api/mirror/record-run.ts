import { CancelledError, OpmateError, getMessage, redactUrls } from '../../core/errors.js';
import { statIfPresent } from '../../files/file-status.js';
import type { AuditEntry } from '../../mirror/history/audit-trail.js';
import { Workspace } from '../../mirror/image-set/workspace.js';
import { planOf } from '../../mirror/lock/encode-lock.js';
import { type ImageSetLock, type LockedImage, withoutHeld } from '../../mirror/lock/lock.js';
import { getTargetName } from '../../mirror/lock/lock-plan.js';
import type { NamedTransfer, TransferOptions, TransferReport } from '../../mirror/transfer/transfer-types.js';
import type { Verdict } from '../../oci/signatures/verify-image.js';
import type { Session } from '../../source/session.js';
import type { ImageSetRun, WithPlan } from './image-set-run.js';

type Result = { report: TransferReport; lock: ImageSetLock };

/**
 * Runs a copy, and appends its start, its images and its end to the audit trail of the workspace, if there is one. A run
 * that is killed has no end there.
 */
export async function recordRun<T extends Result>(
  run: ImageSetRun,
  work: (run: ImageSetRun) => Promise<T>,
): Promise<WithPlan<T>> {
  const { workspace, session, configFile } = run;
  if (workspace === undefined) {
    const result = await work(run);
    return { ...result, plan: planOf(result.lock) };
  }
  const task = run.destination.kind === 'disk' ? ('archive' as const) : ('mirror' as const);
  const destination = run.destination.text;
  const trail = new RunTrail(workspace, session, { task, destination, configuration: configFile });
  // A first run that fails before it knows its images leaves no directory behind, nor does one that archives.
  let isRecorded = (await statIfPresent(workspace.root)) !== undefined;
  if (isRecorded) await trail.flush();
  const copies = createCopyLog(run, trail);
  const { options, transfer } = run;
  const recorded: ImageSetRun = {
    ...run,
    transfer: { ...transfer, onCopied: copies.add, onFailed: copies.addFailed },
    options: {
      ...options,
      onPlanned: (plan) => {
        isRecorded ||= task === 'mirror';
        options.onPlanned?.(plan);
      },
      onSurveyed: (bytes) => {
        isRecorded ||= task === 'mirror';
        options.onSurveyed?.(bytes);
      },
    },
    onCopying: () => {
      isRecorded = true;
      return trail.flush();
    },
    onVerified: copies.setVerified,
  };
  try {
    const result = await work(recorded);
    if (task === 'archive') copies.addArchived(result.lock);
    const { report, lock } = result;
    trail.addLost(report);
    const { missing, failed, blobs, bytes } = report;
    const plan = planOf(lock);
    const images = task === 'archive' ? copies.getCount() : report.done.length;
    await trail.end({ images, failed: missing.length + failed.length, blobs, bytes, plan });
    return { ...result, plan };
  } catch (error) {
    if (isRecorded) await trail.fail(error, copies.getCount(), copies.getFailedCount());
    throw error;
  }
}

/** Returns a log of copied images, with the verdicts on their signatures. */
function createCopyLog({ destination: { target } }: ImageSetRun, trail: RunTrail) {
  const verdicts = new Map<string, LockedImage['verification']>();
  let count = 0;
  const failed = new Set<string>();
  function addImage(image: string, digest: string, from: string): void {
    count++;
    const verification = verdicts.get(image);
    trail.addCopied({ sourceName: from, targetName: image }, digest, verification);
  }
  return {
    add: ({ sourceName, targetName }: NamedTransfer, digest: string) =>
      addImage(targetName, digest, sourceName),
    addFailed: ({ targetName }: NamedTransfer) => void failed.add(targetName),
    /** Adds the images of an archive. */
    addArchived(lock: ImageSetLock): void {
      for (const image of withoutHeld(lock).images)
        addImage(getTargetName(image, target), image.contents.root.digest, image.source);
    },
    setVerified(images: readonly LockedImage[]): void {
      for (const image of images) verdicts.set(getTargetName(image, target), image.verification);
    },
    getCount: () => count,
    getFailedCount: () => failed.size,
  };
}

/** Number of entries that a killed run may lose, and the time after which it loses none. */
const maxPending = 100;
const maxPendingMs = 500;

type Entry = AuditEntry extends infer E ? (E extends AuditEntry ? Omit<E, 'time' | 'run'> : never) : never;
type Start = Omit<Extract<AuditEntry, { event: 'started' }>, 'time' | 'run' | 'event'>;
type Ending = Omit<Extract<AuditEntry, { event: 'ended' }>, 'time' | 'run' | 'event'>;

/** The entries of one run in the audit trail of a workspace; its start is written with the first others, or by `flush`. */
export class RunTrail {
  private readonly workspace: Workspace;
  private readonly now: Session['now'];
  /** Names the run. */
  private readonly startTime: string;
  private pending: AuditEntry[] = [];
  private timer: NodeJS.Timeout | undefined;
  private writing = Promise.resolve();
  private fault: unknown;

  constructor(workspace: Workspace, { now }: Pick<Session, 'now'>, start: Start) {
    this.workspace = workspace;
    this.now = now;
    this.startTime = now().toISOString();
    this.push({ event: 'started', ...start });
  }

  add(entry: Entry): void {
    this.push(entry);
    if (this.pending.length >= maxPending) void this.write();
    else this.timer ??= setTimeout(() => void this.write(), maxPendingMs).unref();
  }

  private push(entry: Entry): void {
    this.pending.push({ time: this.now().toISOString(), run: this.startTime, ...entry } as AuditEntry);
  }

  /** Adds a copied image. */
  addCopied({ sourceName, targetName }: NamedTransfer, digest: string, verdict?: Verdict): void {
    const copied = { event: 'copied', image: targetName, digest, from: redactUrls(sourceName) } as const;
    this.add(verdict === undefined ? copied : { ...copied, verification: { ...verdict } });
  }

  /** Adds the images that a run could not copy. */
  addLost({ missing, failed }: Pick<TransferReport, 'missing' | 'failed'>): void {
    const lost = [
      ...missing.map((transfer) => ({ transfer, problem: 'not found' })),
      ...failed.map(({ transfer, error }) => ({ transfer, problem: error.message })),
    ];
    for (const { transfer, problem } of lost) {
      const { sourceName, targetName } = transfer;
      const from = redactUrls(sourceName);
      this.add({ event: 'failed', image: targetName, from, problem: redactUrls(problem) });
    }
  }

  /** Writes all entries. Throws OpmateError, also for earlier entries. */
  async flush(): Promise<void> {
    await this.write();
    if (this.fault !== undefined) throw this.fault;
  }

  /** Ends a run that did its work. Throws OpmateError. */
  async end(ending: Omit<Ending, 'result'>): Promise<void> {
    this.add({ event: 'ended', result: ending.failed === 0 ? 'done' : 'partly', ...ending });
    await this.flush();
  }

  /** Ends a run that failed with an error, which matters more than one of the trail. */
  async fail(error: unknown, images: number, failed = 0): Promise<void> {
    const problem = error instanceof CancelledError ? 'interrupted' : getMessage(error);
    const amounts = { images, failed, blobs: 0, bytes: 0 };
    this.add({ event: 'ended', result: 'failed', ...amounts, problem: redactUrls(problem) });
    await this.flush().catch(ignoreFileFaults);
  }

  private write(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    const entries = this.pending;
    this.pending = [];
    if (entries.length > 0)
      this.writing = this.writing
        .then(() => this.workspace.record(entries))
        .catch((error: unknown) => void (this.fault ??= error));
    return this.writing;
  }
}

function ignoreFileFaults(error: unknown): void {
  if (!(error instanceof OpmateError)) throw error;
}

/** Runs a copy without an image set, and records it in the audit trail of a workspace, if one is specified. */
export async function recordCopy(
  workspace: string | undefined,
  start: Start,
  session: Session,
  work: (onCopied: TransferOptions['onCopied']) => Promise<TransferReport>,
): Promise<TransferReport> {
  if (workspace === undefined) return work(undefined);
  const trail = new RunTrail(new Workspace(session.workingDirectory, workspace), session, start);
  // A workspace that cannot be written is an error before anything is copied.
  await trail.flush();
  let images = 0;
  try {
    const report = await work((transfer, digest) => {
      images++;
      trail.addCopied(transfer, digest);
    });
    trail.addLost(report);
    const { done, missing, failed, blobs, bytes } = report;
    await trail.end({ images: done.length, failed: missing.length + failed.length, blobs, bytes });
    return report;
  } catch (error) {
    await trail.fail(error, images);
    throw error;
  }
}
