import { parentPort, workerData } from 'node:worker_threads';
import {
  type RenderWorkerData,
  type RenderWorkerMessage,
  toFault,
  takeDirectories,
} from './render-directories.js';

/** Runs a thread of `renderDirectories`. */
await takeDirectories(workerData as RenderWorkerData, undefined, (index, outcome) => {
  const fault = 'error' in outcome ? toFault(outcome.error) : undefined;
  if ('error' in outcome && fault === undefined) throw outcome.error;
  const message = fault === undefined ? { index, ...outcome } : { index, fault };
  const transferred = 'result' in outcome ? [outcome.result.text.buffer] : [];
  parentPort?.postMessage(message as RenderWorkerMessage, transferred);
});
