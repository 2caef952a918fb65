import { parentPort, workerData } from 'node:worker_threads';
import {
  type RenderWorkerData,
  type RenderWorkerMessage,
  toFault,
  takeDirectories,
} from './render-directories.js';

/** Runs a thread of `renderDirectories`. */
await takeDirectories(workerData as RenderWorkerData, undefined, (index, outcome) => {
  if ('result' in outcome) {
    post({ index, result: outcome.result });
    return;
  }
  const fault = toFault(outcome.error);
  if (fault === undefined) throw outcome.error;
  post({ index, fault });
});

function post(message: RenderWorkerMessage): void {
  parentPort?.postMessage(message);
}
