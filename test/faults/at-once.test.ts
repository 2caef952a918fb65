import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { runAtOnce, writingCommands } from '../support/file-faults.js';
import { serveOperatorSet } from '../support/operator-set.js';

let registry: FaultRegistry;
let catalogImage = '';
beforeAll(async () => {
  registry = await startFaultRegistry();
  ({ catalog: catalogImage } = await serveOperatorSet(registry));
});
afterAll(() => registry.close());

/** Further commands that a command is run with, besides itself. */
const others: Record<string, readonly string[]> = {
  'migrate to an empty directory': ['catalog', 'filter', 'cat', '-p', 'widget', '-o', 'out'],
  'catalog add over two files': ['catalog', 'deprecate', 'cat', '--package', 'gadget', '--message', 'old'],
  'catalog remove of three files': ['catalog', 'deprecate', 'cat', '--package', 'widget', '--message', 'old'],
  'registry add to a database': ['registry', 'add', '-d', 'a.db', '-b', 'g1'],
  'catalog build to a layout': ['catalog', 'build', 'cat/widget', '-i', 'scratch', '--save', 'oci:layout:v2'],
};

describe('two commands that write to the same place at once', () => {
  it.each(writingCommands)('end as if one had been run after the other: $name', async (command) => {
    const other = others[command.name];
    const wrong = await runAtOnce(command, command.args, { catalogImage });
    if (other !== undefined) wrong.push(...(await runAtOnce(command, other, { catalogImage })));
    expect(wrong.join('\n')).toBe('');
  });
});
