import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { Command, Option } from 'commander';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { completionScript, shells } from '../../../src/cli/completion/scripts.js';
import { wantedName } from '../../../src/cli/completion/words.js';
import { directoryWith } from '../../support/temporary.js';

const program = new Command('opmate')
  .option('--debug')
  .option('--authfile <file>')
  .addCommand(
    new Command('show')
      .argument('<reference>')
      .argument('[package]')
      .option('-p, --package-name <name>')
      .option('--http [address]')
      .addOption(new Option('--channel <name,…>')),
  )
  .addCommand(new Command('resolve').alias('find').argument('<package>').option('--catalog <catalog>'))
  .addCommand(new Command('merge').argument('<from>').argument('<to>').argument('<package...>'))
  .addCommand(new Command('plain').argument('<file>'));

const wanted = (...words: string[]): ReturnType<typeof wantedName> => wantedName(program, words, '/home/me');

describe('cli/completion-words', () => {
  it.each<[string[], string, object]>([
    [['show', 'cat', 'w'], 'package', { catalogs: ['cat'], typed: 'w' }],
    [['--debug', '--authfile', 'show', 'show', 'cat', ''], 'package', { catalogs: ['cat'] }],
    [['show', '--http', 'cat', '-p', ''], 'package', { catalogs: [] }],
    [['show', '--http', '--debug', 'cat', '-p', 'x'], 'package', { catalogs: ['cat'], typed: 'x' }],
    [['show', 'cat', '--package-name=a', '--channel=b'], 'channel', { packages: ['a'], typed: 'b' }],
    [['show', 'cat', 'a', '--channel', 'b,c'], 'channel', { packages: ['a'], before: 'b,', typed: 'c' }],
    [['find', '--catalog', 'cat', ''], 'package', { catalogs: ['cat'] }],
    [['merge', 'a', 'b', 'x', 'y', ''], 'package', { catalogs: ['a', 'b'], packages: ['x', 'y'] }],
    [['show', '--', '-cat', '-x'], 'package', { catalogs: ['-cat'], typed: '-x' }],
    [['show', '~/cat', ''], 'package', { catalogs: ['/home/me/cat'] }],
    [['show', `'it'\\''s'`, ''], 'package', { catalogs: ["it's"] }],
    [['show', '"a \\"b\\" $c"', ''], 'package', { catalogs: ['a "b" $c'] }],
  ])('of %j is a %s', (words, kind, more) => {
    const found = wanted(...words);
    if ((more as { catalogs?: string[] }).catalogs?.length === 0) expect(found).toBeUndefined();
    else expect(found).toMatchObject({ kind, ...more });
  });

  it.each([
    [[]],
    [['']],
    [['show', '']],
    [['show', 'cat', '-']],
    [['plain', 'cat', '']],
    [['resolve', '']],
    [['show', 'cat', '--authfile', '']],
    [['show', 'cat', 'package', 'more', '']],
  ])('is none of %j', (words) => {
    expect(wanted(...words)).toBeUndefined();
  });

  it('is never an error, whatever is typed', () => {
    const some = fc.oneof(
      fc.constantFrom(
        'show',
        'resolve',
        '--',
        '--channel',
        '--channel=',
        '-p',
        '--catalog',
        "'",
        '"',
        '\\',
        '~/',
      ),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.array(some, { maxLength: 8 }), (words) => {
        const found = wanted(...words);
        expect(found === undefined || found.catalogs.length > 0).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('cli/completion', () => {
  it.each(shells)('writes a script that %s can read, also of a tree without names', async (shell) => {
    for (const tree of [program, new Command('opmate').addCommand(new Command('plain'))]) {
      const script = completionScript(shell, tree);
      expect(script.includes('__complete')).toBe(true);
      if (spawnSync(shell, ['--version']).status !== 0) continue;
      const { status, stderr } = spawnSync(
        shell,
        ['-n', path.join(await directoryWith({ script }), 'script')],
        { encoding: 'utf8' },
      );
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    }
  });

  it('calls the command only where a name can stand', () => {
    const script = completionScript('bash', program);
    const calls = script.split('\n').filter((line) => line.includes('names=1'));
    expect(calls).toEqual([
      "    'show --package-name' | 'show -p' | 'show --channel') names=1 ;;",
      "    'show' | 'resolve' | 'merge') names=1 ;;",
    ]);
  });
});
