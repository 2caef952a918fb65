// What benchmarks of servers have in common: a temporary directory, values with limits, clients that read all the time.
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fetchText, versionsIn } from './catalogs-process.js';

/** Passes a temporary directory to `run`, and removes it afterwards. */
export async function inDirectory(run) {
  const directory = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
  try {
    return await run(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Prints values beside their limits; `passed()` is whether all were within them. */
export function createChecks() {
  let isWithin = true;
  return {
    check(name, value, unit, { atLeast = -Infinity, atMost = Infinity, note = '' }) {
      const isGood = value >= atLeast && value <= atMost;
      isWithin &&= isGood;
      const shown = Number.isInteger(value) ? value : value.toFixed(2);
      const limit = atLeast === -Infinity ? `at most ${atMost}` : `at least ${atLeast}`;
      const text = [name, ': ', shown, unit === '' ? '' : ` ${unit}`, ` (${limit})`, note];
      console.log(`  ${text.join('')}${isGood ? '' : '  EXCEEDED'}`);
    },
    passed: () => isWithin,
  };
}

/** Waits until a condition is met; throws after `seconds`. */
export async function until(isMet, seconds = 300) {
  for (const end = performance.now() + seconds * 1000; !(await isMet()); await sleep(50)) {
    if (performance.now() > end) throw new Error(`not met after ${seconds} s: ${isMet}`);
  }
}

/**
 * Starts clients, each with a connection of its own, that read `urls` in turn again and again until they are stopped.
 * A response of a catalog is torn unless all its lines have one version. `versions` counts the responses of each.
 */
export function startReaders(urls, { clients, pauseMs = 0 }) {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const readers = { responses: 0, failed: 0, torn: 0, failures: new Set(), versions: new Map() };
  let isStopped = false;
  const fail = (reason) => {
    readers.failed++;
    if (readers.failures.size < 5) readers.failures.add(reason);
  };
  const read = async (url) => {
    const { status, text } = await fetchText(url, agent);
    readers.responses++;
    if (status !== 200) return fail(`status ${status}`);
    if (url.includes('/graphql')) return;
    const versions = versionsIn(text);
    if (versions.length !== 1) readers.torn++;
    for (const version of versions) readers.versions.set(version, (readers.versions.get(version) ?? 0) + 1);
  };
  const loop = async (url) => {
    while (!isStopped) {
      await read(url).catch((error) => fail(error.message));
      if (pauseMs > 0) await sleep(pauseMs);
    }
  };
  const reading = Array.from({ length: clients }, (_, i) => loop(urls[i % urls.length]));
  return Object.assign(readers, {
    async stop() {
      isStopped = true;
      await Promise.all(reading);
      agent.destroy();
    },
  });
}

/** Checks that no response of the readers failed or was torn. */
export function checkReaders({ failed, failures, torn }, check) {
  const note = failures.size === 0 ? '' : `: ${[...failures].join(', ')}`;
  check('failed responses', failed, '', { atMost: 0, note });
  check('torn responses', torn, '', { atMost: 0 });
}
