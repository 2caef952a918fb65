import cluster, { type Worker } from 'node:cluster';
import process from 'node:process';
import { onAbort, sleep } from '../../core/concurrency.js';
import { isExecutable } from '../../files/own-files.js';
import type { Logger } from '../../core/log.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';

/** A worker that ended sooner than this after its start is started again only after it. */
const restartMs = 1000;
const stopMessage = 'stop';

/** Returns whether this process is a worker of another one. */
export function isWorker(): boolean {
  return cluster.isWorker;
}

/** Runs the work of a worker process, whose signal the primary can fire too. */
export async function runAsWorker(
  context: CommandContext,
  work: (context: CommandContext) => Promise<void>,
): Promise<void> {
  const stopped = new AbortController();
  // A signal of a terminal reaches the worker too; a second one would end it before its calls are finished.
  const onMessage = (message: unknown): void => {
    if (message === stopMessage) stopped.abort();
  };
  process.on('message', onMessage);
  try {
    await work({ ...context, signal: AbortSignal.any([context.signal, stopped.signal]) });
  } finally {
    process.off('message', onMessage);
    // The channel to the primary would keep the process.
    process.channel?.unref();
  }
}

/**
 * Runs this command in `count` processes with shared ports until `signal` fires; restarts ended ones. Returns the exit
 * code. The first starts alone, and fills the cache for the others.
 */
export async function runWorkers(
  count: number,
  { signal }: Pick<CommandContext, 'signal'>,
  logger: Logger,
): Promise<number> {
  // Node.js starts a worker with the script of this process as first argument, and an executable has none.
  const [exec, ...args] = process.argv.slice(2);
  if (isExecutable() && exec !== undefined) cluster.setupPrimary({ exec, args });
  const first = cluster.fork();
  const firstCode = getExitCode(first);
  const stopFirst = onAbort(signal, () => stop(first));
  const isListening = new Promise<undefined>(
    (resolve) => void first.once('listening', () => resolve(undefined)),
  );
  const early = await Promise.race([firstCode, isListening]);
  stopFirst();
  if (early !== undefined) return early;
  const others = Array.from({ length: count - 1 }, () => cluster.fork());
  const keep = async (worker: Worker, exit: Promise<number>): Promise<number> => {
    const started = performance.now();
    const stopStopping = onAbort(signal, () => stop(worker));
    const code = await exit;
    stopStopping();
    if (signal.aborted) return code;
    logger.log('warn', `worker process ${worker.process.pid} ended with ${code}: starting another one`);
    const pauseMs = Math.max(0, restartMs - (performance.now() - started));
    const isStopped = await sleep(pauseMs, signal).then(
      () => false,
      () => true,
    );
    if (isStopped) return exitCodes.done;
    const next = cluster.fork();
    return keep(next, getExitCode(next));
  };
  const codes = await Promise.all([
    keep(first, firstCode),
    ...others.map((worker) => keep(worker, getExitCode(worker))),
  ]);
  return codes.find((code) => code !== exitCodes.done) ?? exitCodes.done;
}

function getExitCode(worker: Worker): Promise<number> {
  return new Promise((resolve) => void worker.once('exit', (code) => resolve(code ?? exitCodes.failed)));
}

function stop(worker: Worker): void {
  if (worker.isConnected()) worker.send(stopMessage);
  else worker.process.kill('SIGTERM');
}
