import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { stderr } from 'node:process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mapConcurrent } from '../../src/core/concurrency.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { FaultTrials, buildFaultLibrary, faultKinds, writingCommands } from '../support/file-faults.js';
import { serveOperatorSet } from '../support/operator-set.js';

/**
 * Every call of every command with every fault: hours. `-t` takes some commands, OPMATE_FAULT_KINDS some faults,
 * OPMATE_FAULT_EVERY each so-manieth call.
 */
const kinds = faultKinds.filter((kind) =>
  (process.env['OPMATE_FAULT_KINDS'] ?? kind).split(',').includes(kind),
);
const every = Number(process.env['OPMATE_FAULT_EVERY'] ?? 1);
let directory = '';
let library: string | undefined;
let registry: FaultRegistry;
let catalog = '';
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'opmate-faults-'));
  library = await buildFaultLibrary(directory);
  registry = await startFaultRegistry();
  ({ catalog } = await serveOperatorSet(registry));
});
afterAll(async () => {
  await registry.close();
  await rm(directory, { recursive: true, force: true });
});

describe('a command that is killed or fails at any call', () => {
  it.each(writingCommands)('leaves nothing half-written and can be repeated: $name', async (command) => {
    if (library === undefined) throw new Error('needs Linux and a C compiler');
    const trials = await FaultTrials.prepare(command, library, catalog);
    const plan = kinds.flatMap((kind, offset) =>
      trials
        .callsFor(kind)
        .filter((_, i) => (i + offset) % every === 0)
        .map((call) => ({ call, kind })),
    );
    const wrong = await mapConcurrent(plan, 2, async ({ call, kind }) => {
      const found = await trials.run(call, kind);
      // The run is long: what is wrong is told at once.
      for (const text of found) stderr.write(`${text}\n`);
      return found;
    });
    expect(wrong.flat().join('\n')).toBe('');
    await trials.remove();
  });
});
