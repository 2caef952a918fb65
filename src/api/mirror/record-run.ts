import { CancelledError, OpmateError, getMessage, redactUrls } from '../../core/errors.js';
import { statIfPresent } from '../../files/file-status.js';
import type { AuditEntry } from '../../mirror/history/audit-trail.js';
import { planOf } from '../../mirror/lock/encode-lock.js';
import type { ImageSetLock } from '../../mirror/lock/lock.js';
import { getTargetName } from '../../mirror/lock/lock-plan.js';
import type { TransferReport } from '../../mirror/transfer/transfer-types.js';
import type { ImageSetRun } from './image-set-run.js';

type Result = { report: TransferReport; lock: ImageSetLock };

/**
 * Runs a copy, and appends its start, its images and its end to the audit trail of the workspace, if there is one. A run
 * that is killed has no end there.
 */
export async function recordRun<T extends Result>(run: ImageSetRun, work: () => Promise<T>): Promise<T> {
  const { workspace, session, configFile } = run;
  if (workspace === undefined) return work();
  const started = session.now().toISOString();
  const at = () => ({ time: session.now().toISOString(), run: started });
  const task = run.destination.kind === 'disk' ? ('archive' as const) : ('mirror' as const);
  const destination = run.destination.text;
  const start = { ...at(), event: 'started', task, destination, configuration: configFile } as const;
  // A first run that fails leaves no directory behind.
  const isFirst = (await statIfPresent(workspace.root)) === undefined;
  if (!isFirst) await workspace.record([start]);
  try {
    const result = await work();
    const images = listImages(run, result, at);
    await workspace.record([...(isFirst ? [start] : []), ...images, { ...at(), ...summarize(result) }]);
    return result;
  } catch (error) {
    const problem = error instanceof CancelledError ? 'cancelled' : getMessage(error);
    const nothing = { images: 0, failed: 0, blobs: 0, bytes: 0 };
    const end = { event: 'ended', result: 'failed', ...nothing, problem: redactUrls(problem) } as const;
    // The failure of the run itself is what matters.
    if (!isFirst) await workspace.record([{ ...at(), ...end }]).catch(ignoreFileFaults);
    throw error;
  }
}

function ignoreFileFaults(error: unknown): void {
  if (!(error instanceof OpmateError)) throw error;
}

function summarize({ report, lock }: Result) {
  const { done, missing, failed, blobs, bytes } = report;
  const lost = missing.length + failed.length;
  const result = lost === 0 ? ('done' as const) : ('partly' as const);
  return {
    event: 'ended' as const,
    result,
    images: done.length,
    failed: lost,
    blobs,
    bytes,
    plan: planOf(lock),
  };
}

/** Returns entries for the images that a run has copied, and for those that it could not. */
function listImages(
  { destination: { target } }: ImageSetRun,
  { report, lock }: Result,
  at: () => Pick<AuditEntry, 'time' | 'run'>,
): AuditEntry[] {
  const verdicts = new Map(
    lock.images.map((image) => [getTargetName(image, target), image.verification] as const),
  );
  const copied = report.done.flatMap(({ transfer, digest, isPresent }): AuditEntry[] => {
    if (isPresent === true) return [];
    const { sourceName, targetName } = transfer;
    const verification = verdicts.get(targetName);
    const image = { image: targetName, digest, from: redactUrls(sourceName) };
    return [
      { ...at(), event: 'copied', ...image, ...(verification && { verification: { ...verification } }) },
    ];
  });
  const lost = [
    ...report.missing.map((transfer) => ({ transfer, problem: 'not found' })),
    ...report.failed.map(({ transfer, error }) => ({ transfer, problem: redactUrls(error.message) })),
  ];
  const failed = lost.map(({ transfer: { sourceName, targetName }, problem }): AuditEntry => ({
    ...at(),
    event: 'failed',
    image: targetName,
    from: redactUrls(sourceName),
    problem,
  }));
  return [...copied, ...failed];
}
