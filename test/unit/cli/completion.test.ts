import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { Argument, Command, Option } from 'commander';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loadTree } from '../../../src/cli/command/loaded-tree.js';
import { completionScript, shells } from '../../../src/cli/completion/scripts.js';
import { type WantedName, offerFor } from '../../../src/cli/completion/words.js';
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

const wanted = (...words: string[]): WantedName | undefined => offerFor(program, words, '/home/me').name;

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

describe('cli/completion offers', () => {
  const tree = new Command('opmate')
    .option('--debug', 'show more')
    .addCommand(
      new Command('copy')
        .argument('<source>')
        .addOption(new Option('-o, --output <format>', 'format').choices(['json', 'jsonl', 'yaml']))
        .option('--save <path>')
        .option('--dir <directory>')
        .option('--label <text>')
        .option('--http [address]')
        .addOption(new Option('--old').hideHelp()),
    )
    .addCommand(new Command('shell').addArgument(new Argument('<shell>').choices(['bash', 'zsh'])))
    .addCommand(new Command('group').addCommand(new Command('sub').description('do it\n\nat length')));

  const offered = (...words: string[]): string[] => {
    const { words: found, paths } = offerFor(tree, words, '/home/me');
    return [...found.map(({ word }) => word), ...(paths === undefined ? [] : [`:${paths}`])];
  };

  it.each<[string[], string[]]>([
    [[''], ['copy', 'shell', 'group', 'help']],
    [['c'], ['copy']],
    [
      ['group', ''],
      ['sub', 'help'],
    ],
    [['help', 'gr'], ['group']],
    [
      ['help', 'group', ''],
      ['sub', 'help'],
    ],
    [['help', 'exit'], ['exit-codes']],
    [['help', 'nope', ''], []],
    // Flags only after a dash, and what an argument takes elsewhere.
    [['copy', ''], [':files']],
    [
      ['copy', '-'],
      ['--output', '--save', '--dir', '--label', '--http', '--help', '--debug'],
    ],
    [['copy', '--s'], ['--save']],
    [['copy', 'a', ''], []],
    [['copy', 'a', '--', '--s'], []],
    [['copy', '--', '-'], [':files']],
    [
      ['shell', ''],
      ['bash', 'zsh'],
    ],
    [['shell', 'z'], ['zsh']],
    [['shell', 'bash', ''], []],
    // Values, also after "=".
    [
      ['copy', '-o', 'j'],
      ['json', 'jsonl'],
    ],
    [
      ['copy', '--output', ''],
      ['json', 'jsonl', 'yaml'],
    ],
    [['copy', '--output=jsonl'], ['jsonl']],
    [['copy', '--save', 'x'], [':files']],
    [['copy', '--save=x'], [':files']],
    [['copy', '--dir='], [':directories']],
    [['copy', '--label', ''], []],
    [['copy', '--http', '--sa'], ['--save']],
    [['copy', '--http', 'x'], []],
    [['copy', '--save', '--sa'], [':files']],
    [['copy', '--nope='], []],
  ])('after %j %j', (words, expected) => {
    expect(offered(...words)).toEqual(expected);
  });
});

describe('cli/completion', () => {
  it.each(shells)('writes a script that %s can read', async (shell) => {
    const script = completionScript(shell, 'opmate');
    expect(script.includes('__complete')).toBe(true);
    if (spawnSync(shell, ['--version']).status !== 0) return;
    const file = path.join(await directoryWith({ script }), 'script');
    const { status, stderr } = spawnSync(shell, ['-n', file], { encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });

  it('takes every value that is a path for one', async () => {
    const { program: whole } = await loadTree();
    const wrong: string[] = [];
    const visit = (command: Command, line: readonly string[]): void => {
      for (const option of command.options) {
        const value = /[<[](.*)[>\]]/.exec(option.flags)?.[1] ?? '';
        if (!/^(?:file|directory|path|archive|database|lock)$/.test(value)) continue;
        const { paths, name } = offerFor(whole, [...line, option.long ?? option.short ?? '', ''], '/');
        if (paths === undefined && name === undefined) wrong.push([...line, option.flags].join(' '));
      }
      for (const sub of command.commands) visit(sub, [...line, sub.name()]);
    };
    visit(whole, []);
    expect(wrong).toEqual([]);
  });
});
