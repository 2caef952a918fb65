import { describe, expect, it } from 'vitest';
import { CommandLine } from '../../../src/cli/command/command-line.js';
import { argument, defineCommand } from '../../../src/cli/command/declaration.js';
import { UsageError } from '../../../src/core/errors.js';
import {
  choice,
  flag,
  list,
  optionalValue,
  parsed,
  repeated,
  required,
  requiredUnless,
  text,
} from '../../../src/cli/command/flags.js';
import { leaf } from '../../../src/cli/command/tree.js';
import { integer } from '../../../src/cli/command/values.js';
import { createWorld } from './world.js';

/** What a command with all kinds of flags is called with. */
async function call(line: string): Promise<unknown> {
  let seen: unknown;
  const command = defineCommand({
    summary: 'try flags',
    arguments: [argument('<first>'), argument('[rest...]')],
    flags: {
      output: choice('format', ['json', 'yaml'], 'output format', { short: 'o', default: 'json' }),
      count: parsed('count', 'how many', integer(1), { default: 4 }),
      package: list('name', 'packages', { aliases: ['packages'] }),
      label: repeated('label', 'labels'),
      http: optionalValue('address', 'also over HTTP'),
      name: text('name', 'name', { aliases: ['old-name'] }),
      file: text('file', 'file'),
      force: flag('force'),
      verify: flag('verify', { default: true }),
    },
    run({ args, options }) {
      seen = { args, ...options };
      return Promise.resolve();
    },
  });
  const commandLine = new CommandLine('opmate', { try: leaf(async () => ({ command })) }, createWorld(), {
    print: () => undefined,
    onCommand: () => undefined,
    run: async (work) => void (await work()),
  });
  await commandLine.program.parseAsync(['try', ...line.split(' ')], { from: 'user' });
  return seen;
}

/** What a command is called with whose file was named by `-o` and `--output` before. */
async function callWithOldOutput(...words: string[]): Promise<unknown> {
  let seen: unknown;
  const command = defineCommand({
    summary: 'try old flags',
    flags: { to: text('file', 'file to write', { default: 'a.db', aliases: ['output', 'o'] }) },
    run({ options }) {
      seen = options.to;
      return Promise.resolve();
    },
  });
  const commandLine = new CommandLine('opmate', { try: leaf(async () => ({ command })) }, createWorld(), {
    print: () => undefined,
    onCommand: () => undefined,
    run: async (work) => void (await work()),
  });
  await commandLine.program.parseAsync(['try', ...words], { from: 'user' });
  return seen;
}

/** What a command says of a line whose flags depend on each other. */
async function refuse(line: string): Promise<unknown> {
  const command = defineCommand({
    summary: 'try combinations',
    flags: {
      from: required(text('file', 'file', { aliases: ['source'] })),
      cacheDir: text('directory', 'cache'),
      cacheOnly: flag('only the cache', { needs: 'cacheDir' }),
      latest: list('count', 'newest', { excludes: ['headsOnly'] }),
      headsOnly: flag('heads'),
      name: text('name', 'name', { excludes: ['prefix'] }),
      prefix: text('name', 'prefix'),
      output: choice('format', ['json', 'text'], 'format', { default: 'text' }),
      to: requiredUnless(
        ['dryRun', 'output=json'],
        text('directory', 'directory', { excludes: ['output=json'] }),
      ),
      dryRun: flag('nothing is written'),
      shard: text('n', 'shard', { needs: ['locked', 'plan'] }),
      locked: flag('locked', { excludes: ['<catalog>'] }),
      plan: text('digest', 'plan', { default: 'none' }),
    },
    arguments: [argument('[catalog]')],
    run: () => Promise.resolve(),
  });
  const commandLine = new CommandLine('opmate', { try: leaf(async () => ({ command })) }, createWorld(), {
    print: () => undefined,
    onCommand: () => undefined,
    run: async (work) => void (await work()),
  });
  return commandLine.program.parseAsync(['try', ...line.split(' ')], { from: 'user' }).then(
    () => undefined,
    (error: unknown) => (error instanceof UsageError ? [error.message, error.hint] : error),
  );
}

describe('cli/command', () => {
  it.each([
    ['--from a --to d'],
    ['--source a --dry-run --cache-only --cache-dir c'],
    ['--from a --output json --latest 1 --heads-only=false'],
    ['--from a --to d --output text --shard 1 --plan p'],
    ['--from a --dry-run --locked'],
  ])('runs %s', async (line) => {
    expect(await refuse(line)).toBeUndefined();
  });

  it.each([
    ['--heads-only', '--from: missing', 'add --from FILE'],
    ['--from a', '--to or --dry-run: missing', 'add --to DIRECTORY or --dry-run'],
    ['--from a --to d --output json', '--to and --output json cannot be used together', 'keep one of them'],
    ['--from a --dry-run --shard 1', '--shard: needs --locked or --plan', 'add --locked or --plan DIGEST'],
    [
      '--from a --dry-run --shard 1 --plan none',
      '--shard: needs --locked or --plan',
      'add --locked or --plan DIGEST',
    ],
    ['c --from a --dry-run --locked', '--locked and <catalog> cannot be used together', 'keep one of them'],
    ['--from a --dry-run --cache-only', '--cache-only: needs --cache-dir', 'add --cache-dir DIRECTORY'],
    [
      '--from a --dry-run --name= --prefix=',
      '--name and --prefix cannot be used together',
      'keep one of them',
    ],
    [
      '--from a --dry-run --latest 1 --heads-only',
      '--latest and --heads-only cannot be used together',
      'keep one of them',
    ],
  ])('refuses %s', async (line, problem, hint) => {
    expect(await refuse(line)).toEqual([problem, hint]);
  });

  it('passes defaults for flags that are not on the line', async () => {
    expect(await call('a')).toMatchObject({
      args: ['a', []],
      output: 'json',
      count: 4,
      package: undefined,
      http: undefined,
      force: false,
      verify: true,
    });
  });

  it('reads values, lists, switches and older names', async () => {
    expect(
      await call(
        'a b c -o yaml --count 2 --package x,y --packages z --label k=1,2 --label l --http --old-name n',
      ),
    ).toMatchObject({
      args: ['a', ['b', 'c']],
      output: 'yaml',
      count: 2,
      package: ['x', 'y', 'z'],
      label: ['k=1,2', 'l'],
      http: true,
      name: 'n',
    });
    expect(await call('a --force=true --verify=false --http=:80')).toMatchObject({
      force: true,
      verify: false,
      http: ':80',
    });
  });

  it('passes global flags, wherever they are on the line', async () => {
    expect(await call('--max-entries 7 a --debug')).toMatchObject({
      maxEntries: 7,
      debug: true,
      useHttp: false,
    });
  });

  it.each([
    ['a --output xml', 'invalid --output value "xml", expected (json|yaml)'],
    ['a --file=', '--file: expected a path, got ""'],
    ['a --package=,', '--package ",": expected at least one item'],
  ])('refuses %s', async (line, message) => {
    await expect(call(line)).rejects.toThrow(message);
  });

  it('takes older short and long names of a path, and no output format there', async () => {
    expect(await callWithOldOutput()).toBe('a.db');
    for (const words of [['--to', 'yaml'], ['-o', './yaml'], ['--output=b.db']]) {
      expect(await callWithOldOutput(...words)).toBe(words.at(-1)?.replace('--output=', ''));
    }
    await expect(callWithOldOutput('-o', 'yaml')).rejects.toThrow(
      '-o: expected <file>, got the output format "yaml"',
    );
    await expect(callWithOldOutput('--output', 'json')).rejects.toThrow('--output: expected <file>');
    await expect(callWithOldOutput('--output=')).rejects.toThrow('--output: expected a path, got ""');
  });
});
