import { describe, expect, it } from 'vitest';
import { collectOutputs } from '../../../src/cli/command/loaded-tree.js';
import { encodePrepared, printPrepared } from '../../../src/cli/command/prepared-output.js';
import { commandsIn } from './declared.js';

describe('prepared outputs', () => {
  it('contain the help of every command', async () => {
    const outputs = await collectOutputs();
    for (const { name } of await commandsIn()) {
      expect(outputs.get(`${name} --help`)).toMatch(/^Usage: opmate /);
      expect(outputs.get(`help ${name}`)).toBe(outputs.get(`${name} --help`));
    }
    expect(outputs.get('mirror')).toBeUndefined();
    expect(outputs.get('oci')).toBe(outputs.get('oci --help'));
  });

  it('are stored once, after their places', () => {
    const outputs = new Map([
      ['--help', 'Usage…\n'],
      ['-h', 'Usage…\n'],
      ['--version', '1\n'],
    ]);
    expect(encodePrepared(outputs).toString()).toBe(
      '{"--help":[0,9],"-h":[0,9],"--version":[9,11]}\nUsage…\n1\n',
    );
  });

  it.each([
    ['opm', ['--help']],
    ['opmate', []],
    ['opmate', ['--hel']],
    ['opmate', ['Usage:']],
    ['opmate', ['--help"']],
    ['opmate', ['mirror --help']],
    ['opmate', ['render', 'catalog']],
  ])('leave %s %j to the program', (name, args) => {
    const content = encodePrepared(
      new Map([
        ['--help', 'Usage: opmate\n'],
        ['mirror --help', 'Usage: opmate mirror\n'],
      ]),
    );
    expect(printPrepared(name, args, () => content)).toBe(false);
  });
});
