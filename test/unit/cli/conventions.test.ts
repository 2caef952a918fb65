import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createCommandLine } from '../../../src/cli/program.js';
import { run } from '../../../src/cli/main.js';
import { widgetCatalog } from '../../e2e/catalogs.js';
import { directoryWith } from '../../support/temporary.js';
import { commandsIn } from './declared.js';
import { createWorld } from './world.js';

const declared = (await commandsIn()).filter(({ name }) => name !== '__complete');
const commandLine = createCommandLine(createWorld(), 'opmate', {
  run: () => Promise.resolve(),
  onCommand: () => undefined,
  print: () => undefined,
});
await commandLine.loadBelow(commandLine.program, { deeply: true });

/** Lines that fail after their flags are read, for commands that do not fail for arguments that name nothing. */
const failing: Readonly<Record<string, readonly string[]>> = {
  init: ['widget', '-i', './absent'],
  'catalog build': ['./absent', '--save', 'oci:out'],
  'catalog remove': ['./absent', '--package', 'widget'],
  'catalog deprecate': ['./absent', '--package', 'widget', '--message', 'gone'],
  'catalog filter': ['./absent', '--to', 'out'],
  'catalog publish': ['./absent', '--to', 'out'],
  'catalog mirror': ['./absent', 'r.example/m', '--source-name', 'r.example/c:v1', '--manifests-only'],
  'registry add': ['./absent', 'a.db'],
  'registry rm': ['widget', 'absent.db'],
  'registry delete': ['widget', 'absent.db'],
  'registry delete-latest': ['widget', 'absent.db'],
  'registry prune': ['absent/a.db', '-p', 'widget'],
  'registry prune-stranded': ['absent/a.db'],
  'registry deprecatetruncate': ['absent.db', '-b', 'r.example/b:v1'],
  'registry create': ['absent/a.db'],
  'registry migrate': ['absent/a.db'],
  'registry init': ['-m', './absent'],
  'registry build': ['--manifests', './absent', '--from', 'scratch', '--save', 'a.tar'],
  'registry serve': ['absent/a.db'],
  'registry images': ['--from', './absent'],
  'registry bundles': ['absent/a.db'],
  'index add': ['-b', './absent', '-t', 'oci:out:v1'],
  'index rm': ['--package', 'widget', '-f', 'oci:absent:v1', '-t', 'oci:out:v1'],
  'index delete': ['--package', 'widget', '-f', 'oci:absent:v1', '-t', 'oci:out:v1'],
  'index delete-latest': ['widget', '-f', 'oci:absent:v1', '-t', 'oci:out:v1'],
  'index prune': ['-p', 'widget', '-f', 'oci:absent:v1', '-t', 'oci:out:v1'],
  'index prune-stranded': ['-f', 'oci:absent:v1', '-t', 'oci:out:v1'],
  'index deprecatetruncate': ['-b', 'r.example/b:v1', '-f', 'oci:absent:v1', '-t', 'oci:out:v1'],
  'index build': ['absent.db', '-t', 'oci:out:v1', '-i', 'scratch'],
  'index export': ['-i', './absent'],
  serve: ['./absent'],
  'catalogs wait': ['--url', 'ftp://host'],
  'catalogs status': ['--storage', './absent'],
  'catalogs packages': ['--storage', './absent'],
  'catalogs metas': ['--storage', './absent'],
  'template render': ['./absent'],
  'template convert basic': ['./absent'],
  'template convert substitutes': ['./absent'],
  'bundle generate': ['-d', './absent', '-p', 'widget', '-c', 'a'],
  'bundle build': ['-d', './absent', '--save', 'oci:out'],
  'bundle push': ['oci:absent:v1', 'r.example/b:v1'],
  'bundle validate': ['./absent'],
  'bundle extract': ['./absent', '-c', 'a'],
  'bundle render': ['./absent', '--install-namespace', 'a'],
  'bundle permissions': ['./absent', '--install-namespace', 'a'],
  'cluster capture': ['./absent'],
  'cluster migrate': ['./absent'],
  'deployment create': ['widget', '--catalog', './absent', '-n', 'a'],
  'deployment render': ['-f', './absent'],
  'deployment diff': ['-f', './absent', '--against', './absent'],
  'deployment apply': ['-f', './absent', '--yes'],
  'deployment history': ['widget', '-n', 'a', '--kubectl', './absent'],
  'deployment rollback': ['widget', '-n', 'a', '--kubectl', './absent'],
  'deployment plan': ['-f', './absent'],
  'deployment adopt': ['-f', './absent', '--from', 'kubectl', '--yes'],
  'deployment watch': ['-f', '-', '--yes'],
  'deployment status': ['widget', '-n', 'a', '--kubectl', './absent'],
  'deployment wait': ['widget', '-n', 'a', '--kubectl', './absent'],
  'deployment delete': ['widget', '-n', 'a', '--kubectl', './absent', '--yes'],
  'bundle resolve': ['widget', '--catalog', './absent'],
  'bundle successors': ['widget', 'widget.v1', '--catalog', './absent'],
  mirror: ['-f', './absent'],
  'mirror plan': ['docker://r.example/m', '-c', './absent'],
  'mirror status': ['docker://r.example/m', '--lock', './absent'],
  'mirror inventory': ['docker://r.example/m', '--lock', './absent'],
  'mirror capture': ['./absent'],
  'mirror delete': ['docker://r.example/m', '--delete-yaml-file', './absent'],
  'mirror list operators': ['--catalog', './absent'],
  'mirror list releases': ['--channel', '../x'],
  verify: ['oci:absent:v1', '--key', './absent'],
  probe: ['--addr', 'localhost:1', '--connect-timeout', '50ms'],
  view: ['./absent', '--export', 'out'],
  'oci serve': ['./plain/file'],
  'oci gc': ['./absent'],
  'oci copy': ['oci:absent:v1', 'oci:out:v1'],
  'oci inspect': ['oci:absent:v1'],
  completion: ['csh'],
};
/** Commands of `alpha` are those without it, and those of `bundle deployment` without `bundle`. */
const alpha: Readonly<Record<string, string>> = {
  'render-graph': 'graph',
  'render-template': 'template render',
  'convert-template basic': 'template convert basic',
  'convert-template substitutes': 'template convert substitutes',
};
const neverFails: ReadonlySet<string> = new Set(['version', 'licenses']);

function failingArguments(name: string): readonly string[] {
  const short = name.replace(/^(?:alpha|bundle(?= deployment)) /, '');
  const own = failing[alpha[short] ?? short];
  if (own !== undefined) return own;
  const { command } = declared.find((one) => one.name === name) ?? {};
  const required = (command?.arguments ?? []) as readonly { spec: string }[];
  return required.filter(({ spec }) => spec.startsWith('<')).map(() => './absent');
}

let directory: string;
const before = process.cwd();
beforeEach(async () => {
  directory = await directoryWith({ 'catalog/all.json': widgetCatalog, 'plain/file': '' });
  process.chdir(directory);
});
afterEach(() => process.chdir(before));

interface Result {
  code: number;
  stdout: string;
  stderr: string;
}

async function opmate(...args: readonly string[]): Promise<Result> {
  const world = createWorld({
    workingDirectory: directory,
    homeDirectory: path.join(directory, 'home'),
    temporaryDirectory: directory,
  });
  world.stdin.push(null);
  const code = await run(args, world);
  return { code, stdout: world.stdout.text, stderr: world.stderr.text };
}

/** The exit code of wrong usage: that of opm, oc and oc-mirror for their commands. */
function usageCode(name: string): number {
  const command = name.split(' ').reduce((parent, word) => {
    const next = parent.commands.find((sub) => sub.name() === word);
    if (next === undefined) throw new Error(`no command ${name}`);
    return next;
  }, commandLine.program);
  return commandLine.findTool(command) === undefined ? 2 : 1;
}

function expectJsonLines(stderr: string): void {
  expect(stderr).not.toBe('');
  for (const line of stderr.trimEnd().split('\n')) {
    expect(JSON.parse(line)).toMatchObject({
      time: expect.stringMatching(/^\d{4}-/) as string,
      level: expect.stringMatching(/^(?:error|warn|info|debug)$/) as string,
    });
  }
}

describe.each(declared.map(({ name }) => name))('opmate %s', (name) => {
  const words = name.split(' ');

  it('refuses an unknown flag, with the exit code of wrong usage', async () => {
    const { code, stdout, stderr } = await opmate(...words, '--no-such-flag');
    expect({ code, stdout }).toEqual({ code: usageCode(name), stdout: '' });
    expect(stderr).toMatch(/^error: unknown option "--no-such-flag"\nhint: .*see opmate [a-z -]* --help\n$/);
    expectJsonLines((await opmate(...words, '--no-such-flag', '--log-format', 'json')).stderr);
  });

  it.skipIf(neverFails.has(name))('fails in lines of JSON with --log-format json, quiet or not', async () => {
    const args = failingArguments(name);
    for (const more of [[], ['-q'], ['--log-level', 'debug']]) {
      const { code, stderr } = await opmate(...words, ...args, '--log-format', 'json', ...more);
      expect([1, 2, 3]).toContain(code);
      expectJsonLines(stderr);
      const levels = stderr
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { level: string }).level);
      expect(levels).toContain('error');
      if (more.includes('-q')) expect([...new Set(levels)]).toEqual(['error']);
    }
  });

  it('makes no directory or file that is called as an output format', async () => {
    for (const format of ['yaml', 'json', 'text', 'table']) {
      await opmate(...words, ...failingArguments(name), '-o', format);
      await opmate(...words, ...failingArguments(name), `--output=${format}`);
    }
    expect((await readdir(directory)).filter((entry) => /^(?:yaml|json|text|table)$/.test(entry))).toEqual(
      [],
    );
  });
});

const nouns = [...new Set(declared.map(({ name }) => name.split(' ').slice(0, -1).join(' ')))]
  .filter((noun) => noun !== '' && !noun.startsWith('alpha'))
  .concat('mirror', 'mirror list', 'template convert', 'deployment');

describe('a mistyped word', () => {
  it.each([
    [1, ['alpha', 'catalog', 'generate', 'index', 'mirror', 'registry', 'alpha bundle', 'mirror list']],
    [2, ['bundle', 'catalogs', 'template', 'oci', 'archive', 'bundle deployment', 'deployment']],
  ])('ends with %d, which is the code of the tool that has the group', async (expected, groups) => {
    for (const group of groups) {
      const { code, stderr } = await opmate(...group.split(' '), 'zzzzzz');
      expect([group, code]).toEqual([group, expected]);
      expect(stderr).toBe(`error: unknown command "zzzzzz"\nhint: see opmate ${group} --help\n`);
    }
  });

  it.each([...new Set(nouns)])('below %s is an unknown command, and no work is done', async (noun) => {
    const words = noun.split(' ');
    const own = declared.filter(({ name }) => name.startsWith(`${noun} `)).map(({ name }) => name.split(' '));
    for (const [word] of own.map((path) => path.slice(words.length, words.length + 1))) {
      if (word === undefined) continue;
      const typo = `${word.slice(0, -1)}x`;
      const entries = await readdir(directory);
      const { code, stdout, stderr } = await opmate(...words, typo);
      expect([1, 2]).toContain(code);
      expect(stdout).toBe('');
      expect(stderr).toMatch(new RegExp(`^error: unknown command "${typo}"\nhint: (?:did you mean|see) `));
      if (word.length > 3) expect(stderr).toContain(`did you mean "opmate ${noun} `);
      expect(await readdir(directory)).toEqual(entries);
    }
  });

  it.each([
    ['doctor', 'catalog doctor'],
    ['diff', 'catalog diff'],
    ['build', 'catalog build'],
    ['filter', 'catalog filter'],
    ['filtre', 'catalog filter'],
    ['publish', 'catalog publish'],
    ['prune', 'catalog filter'],
    ['push', 'bundle push'],
    ['copy', 'oci copy'],
    ['inspect', 'oci inspect'],
    ['validte', 'validate'],
  ])('%s leads to opmate %s', async (word, command) => {
    const { code, stderr } = await opmate(word);
    expect(code).toBe(2);
    expect(stderr).toBe(
      `error: unknown command "${word}"\nhint: did you mean "opmate ${command}"? see opmate --help\n`,
    );
  });
});

describe('an option without a command', () => {
  it.each([
    ['--v2', 'did you mean "opmate mirror --v2"? see opmate --help'],
    ['--config', 'did you mean "opmate mirror --config"? see opmate --help'],
    ['--log-levels', 'did you mean --log-level? see opmate --help'],
    ['--platforms', 'did you mean --platform? see opmate --help'],
    ['--zzzzzz', 'see opmate --help'],
  ])('leads from %s to the only command that has it', async (option, hint) => {
    const { code, stderr } = await opmate(option, 'x');
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: `error: unknown option "${option}"\nhint: ${hint}\n`,
    });
  });
});

describe('an unknown option with a value', () => {
  it('leads to a similar one, and its value is not shown', async () => {
    const { code, stderr } = await opmate('mirror', '--prone=30d', 'docker://registry.test');
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'error: unknown option "--prone"\nhint: did you mean --prune? see opmate mirror --help\n',
    });
  });
});

describe('a reference in place of a command', () => {
  it.each([
    ['list', 'catalog.yaml', 'list packages'],
    ['list', './catalog', 'list packages'],
    ['list', 'https://host.example/catalogs/a', 'list packages'],
    ['list', "it's", 'list packages'],
  ])('below %s (%s) leads to the command that takes it', async (noun, word, command) => {
    const { code, stdout, stderr } = await opmate(...noun.split(' '), word);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    const quoted = word.includes("'") ? `'it'\\\\''s'` : word;
    expect(stderr).toBe(
      `error: unknown command "${word}"\nhint: did you mean "opmate ${command} ${quoted}"? see opmate ${noun} --help\n`,
    );
  });
});

/** Commands that write to a registry, each with a target that `NAME` stands for. */
const writing: readonly (readonly string[])[] = [
  ['bundle', 'push', 'oci:absent:v1', 'NAME:v1'],
  ['bundle', 'build', '-d', './absent', '-t', 'NAME:v1'],
  ['alpha', 'bundle', 'build', '-d', './absent', '-t', 'NAME:v1'],
  ['catalog', 'build', './catalog', '-i', 'scratch', '-t', 'NAME:v1'],
  ['catalog', 'build', './catalog', '-i', 'scratch', '-t', 'NAME:v1', '--save', 'oci:out', '--push'],
  ['catalog', 'mirror', 'r.example/a/b:v1', 'NAME'],
  ['catalog', 'mirror', 'r.example/a/b:v1', 'NAME', '--manifests-only'],
  ['index', 'add', '-b', './absent', '-t', 'NAME:v1'],
  ['index', 'rm', '--package', 'a', '-f', 'oci:absent:v1', '-t', 'NAME:v1'],
  ['index', 'delete', '--package', 'a', '-f', 'oci:absent:v1', '-t', 'NAME:v1'],
  ['index', 'delete-latest', 'a', '-f', 'oci:absent:v1', '-t', 'NAME:v1'],
  ['index', 'prune', '-p', 'a', '-f', 'oci:absent:v1', '-t', 'NAME:v1'],
  ['index', 'prune-stranded', '-f', 'oci:absent:v1', '-t', 'NAME:v1'],
  ['index', 'deprecatetruncate', '-b', 'a', '-f', 'oci:absent:v1', '-t', 'NAME:v1'],
  ['index', 'build', 'a.db', '-i', 'scratch', '-t', 'NAME:v1'],
  ['registry', 'build', '--manifests', './absent', '--from', 'scratch', '--to', 'NAME:v1'],
  ['registry', 'images', '--from', './catalog', '--to', 'NAME'],
  ['mirror', 'r.example/a/b:v1=NAME:v1'],
  ['mirror', 'r.example/a/b:v1', 'NAME:v1'],
  ['mirror', '-c', './absent', 'NAME'],
  ['mirror', '-c', './absent', 'docker://NAME'],
  ['mirror', '--from', './absent', 'docker://NAME'],
  ['mirror', 'plan', '-c', './absent', 'docker://NAME'],
  ['mirror', 'delete', '--generate', '-c', './absent', 'docker://NAME'],
  ['oci', 'copy', 'oci:absent:v1', 'NAME:v1'],
];

describe('a target without a registry', () => {
  it.each(
    writing.flatMap((line) => ['widget', 'team/widget'].map((name) => [line.join(' '), name] as const)),
  )('is refused by %s for %s, before anything is read', async (line, name) => {
    const { code, stdout, stderr } = await opmate(...line.replace('NAME', name).split(' '));
    expect([1, 2]).toContain(code);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/(?:^|: )(?:missing registry|not a registry)/m);
    expect(stderr).toMatch(/^hint: use (?:docker:\/\/)?REGISTRY/m);
    expect(stderr).not.toMatch(/absent|(?<!write )docker\.io(?!\/)/);
  });
});
