import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mapConcurrent } from '../../src/core/concurrency.js';
import { FaultTrials, buildFaultLibrary, faultKinds, writingCommands } from '../support/file-faults.js';

/** Every call of every command with every fault: an hour. `-t` takes some commands, OPMATE_FAULT_KINDS some faults. */
const kinds = faultKinds.filter((kind) =>
  (process.env['OPMATE_FAULT_KINDS'] ?? kind).split(',').includes(kind),
);
let directory = '';
let library: string | undefined;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'opmate-faults-'));
  library = await buildFaultLibrary(directory);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

describe('a command that is killed or fails at any call', () => {
  it.each(writingCommands)('leaves nothing half-written and can be repeated: $name', async (command) => {
    if (library === undefined) throw new Error('needs Linux and a C compiler');
    const trials = await FaultTrials.prepare(command, library);
    const plan = trials.calls.flatMap((_, i) => kinds.map((kind) => ({ call: i + 1, kind })));
    const wrong = await mapConcurrent(plan, 2, ({ call, kind }) => trials.run(call, kind));
    expect(wrong.flat().join('\n')).toBe('');
    await trials.remove();
  });
});
