// Loaded into a measured process: writes its peak memory in kilobytes and its processor time in seconds to descriptor 3 when it
// ends.
import { writeSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

function report() {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  writeSync(3, `${maxRSS} ${(userCPUTime + systemCPUTime) / 1e6}`);
}

if (isMainThread) process.on('exit', report);
