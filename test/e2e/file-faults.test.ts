import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mapConcurrent } from '../../src/core/concurrency.js';
import { FaultTrials, buildFaultLibrary, writingCommands } from '../support/file-faults.js';

let directory = '';
let library: string | undefined;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'opmate-faults-'));
  library = await buildFaultLibrary(directory);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** A sample; `npm run test:faults` takes every call of every command. */
const sampled = [
  'migrate to an empty directory',
  'catalog add over two files',
  'mirror delete --generate over an older list',
];

describe('a command killed at a file-system call', () => {
  it.for(writingCommands.filter(({ name }) => sampled.includes(name)))(
    'leaves nothing half-written and can be repeated: $name',
    { timeout: 240_000 },
    async (command, context) => {
      // Needs Linux and a C compiler.
      if (library === undefined) return context.skip();
      const trials = await FaultTrials.prepare(command, library);
      const calls = trials.calls.map((_, i) => i + 1).filter((call) => call % 6 === 1);
      expect(calls.length).toBeGreaterThan(5);
      const wrong = await mapConcurrent(calls, 2, (call) => trials.run(call, 'kill'));
      expect(wrong.flat().join('\n')).toBe('');
      await trials.remove();
    },
  );
});

describe('a command that cannot create a directory on a full disk', () => {
  it('reports the full disk and leaves nothing behind', { timeout: 240_000 }, async (context) => {
    const command = writingCommands.find(({ name }) => name === 'migrate to a new directory');
    if (library === undefined || command === undefined) return context.skip();
    const trials = await FaultTrials.prepare(command, library);
    const calls = trials.callsFor('ENOSPC').filter((call) => / mkdir /.test(trials.calls[call - 1] ?? ''));
    expect(calls.length).toBeGreaterThan(2);
    const wrong = await mapConcurrent(calls, 2, (call) => trials.run(call, 'ENOSPC'));
    expect(wrong.flat().join('\n')).toBe('');
    await trials.remove();
  });
});
