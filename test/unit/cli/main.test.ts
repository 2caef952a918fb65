import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from '../../../src/cli/main.js';
import { formatTable } from '../../../src/cli/table.js';
import { catalogOf, widgetCatalog } from '../../e2e/catalogs.js';
import { directoryWith } from '../../support/temporary.js';
import { createWorld } from './world.js';

const escape = '\u001b]0;owned\u0007';

describe('cli/main', () => {
  it('ends with 130 when it is interrupted, whatever the command was about to say', async () => {
    const world = createWorld({ signal: AbortSignal.abort() });
    const directory = await directoryWith({ 'all.json': widgetCatalog });
    expect(await run(['render', directory], world)).toBe(130);
    expect([world.stdout.text, world.stderr.text]).toEqual(['', 'interrupted\n']);
  });

  it('writes JSON lines only with --log-format json: wrong usage, findings and warnings too', async () => {
    const broken = await directoryWith({ 'all.yaml': 'a: [' });
    for (const [code, ...args] of [
      [2, 'catalog', 'filter', 'catalog', '--latest'],
      [2, 'filtre'],
      [1, 'render', '--nope'],
      [2, 'catalog', 'diff', 'a', 'b', '-o', 'nope'],
      [1, 'validate', broken],
      [1, 'generate', 'dockerfile', '--binary-image', 'scratch', broken],
      [3, 'bundle', 'validate', broken],
      [2, 'probe', '--addr', 'localhost:1', '--connect-timeout', '50ms'],
    ] as [number, ...string[]][]) {
      const world = createWorld({ workingDirectory: broken });
      expect([args, await run([...args, '--log-format', 'json'], world)]).toEqual([args, code]);
      const lines = world.stderr.text.trimEnd().split('\n');
      for (const line of lines) expect(JSON.parse(line)).toHaveProperty('level');
    }
  });

  it('never lets control characters from elsewhere reach the terminal', async () => {
    const broken = await directoryWith({ [`${escape}.yaml`]: 'a: [' });
    const odd = await directoryWith({ 'all.json': catalogOf(`x${escape}`, [{ name: `b${escape}` }]) });
    for (const args of [
      ['render', `${escape}:v1`],
      ['render', broken],
      ['validate', broken],
      ['validate', odd],
      ['list', 'packages', odd],
      [`xyzzy${escape}`],
    ]) {
      const world = createWorld();
      expect(await run([...args, '--debug'], world)).not.toBe(0);
      expect(world.stderr.text).not.toMatch(/[\u001b\u0007]/);
    }
  });

  it.each([
    ['registry', 'images', '--from-db', 'index.db', '--manifests', ''],
    ['render', 'catalog', '--authfile='],
    ['catalog', 'filter', 'catalog', '-p', 'a', '-o', ''],
    ['archive', 'verify', 'archive', '--verify-key', ''],
  ])('refuses an empty path in %j', async (...args) => {
    const world = createWorld();
    expect(await run(args, world)).not.toBe(0);
    expect(world.stderr.text).toMatch(
      /^error: --[a-z-]+: expected a path, got ""\nhint: specify a path, or remove the flag\n$/,
    );
  });

  it('escapes names in every row of a table, the first one included', () => {
    const text = formatTable(['bundle:', `b${escape}`], [['why:', 'a\u202eb\nc']]);
    expect(text).toBe('bundle:  b\\x1b]0;owned\\x07\nwhy:     a\\u202eb\\x0ac\n');
  });

  it('writes failures as JSON lines when messages are', async () => {
    const directory = await directoryWith({ 'all.json': '{"schema":"x",' });
    const world = createWorld();
    expect(await run(['render', directory, '--log-format', 'json'], world)).toBe(1);
    const lines = world.stderr.text.trimEnd().split('\n');
    expect(JSON.parse(lines.at(-1) as string)).toMatchObject({
      time: '1970-01-01T00:00:00.000Z',
      level: 'error',
      code: 'syntax',
      file: path.join(directory, 'all.json'),
      line: 1,
    });
  });

  it('paints messages on a terminal only, and not where NO_COLOR or CI is set', async () => {
    for (const [isTTY, environment, painted] of [
      [true, {}, true],
      [true, { NO_COLOR: '1' }, false],
      [true, { CI: 'true' }, false],
      [false, {}, false],
    ] as const) {
      const world = createWorld({ environment: { ...environment } });
      world.stderr.isTTY = isTTY;
      await run(['xyzzy'], world);
      // Whether colours come out is up to the terminal of the tests; without one they never do.
      if (!painted)
        expect(world.stderr.text).toBe('error: unknown command "xyzzy"\nhint: see opmate --help\n');
      else expect(world.stderr.text).toContain('unknown command "xyzzy"');
    }
  });

  it('shows the help of every command, with options that are grouped', async () => {
    for (const command of [
      ['render'],
      ['validate'],
      ['init'],
      ['migrate'],
      ['generate', 'dockerfile'],
      ['list', 'bundles'],
      ['graph'],
      ['oci', 'serve'],
      ['oci', 'copy'],
      ['oci', 'inspect'],
      ['version'],
      ['completion'],
    ]) {
      const world = createWorld();
      expect(await run([...command, '--help'], world)).toBe(0);
      expect(world.stdout.text).toMatch(new RegExp(`^Usage: opmate ${command.join(' ')} \\[options\\]`));
      expect(world.stdout.text).toContain('See "opmate help options" for global options.');
      expect(world.stderr.text).toBe('');
    }
  });

  const failureOf = async (...args: string[]): Promise<{ code: number; stderr: string }> => {
    const world = createWorld();
    return { code: await run(args, world), stderr: world.stderr.text };
  };

  it('prints the help of the command that help names, and the global options', async () => {
    const world = createWorld();
    expect(await run(['help', 'catalog', 'filter'], world)).toBe(0);
    expect(world.stdout.text).toMatch(/^Usage: opmate catalog filter/);
    const options = createWorld();
    expect(await run(['help', 'options'], options)).toBe(0);
    expect(options.stdout.text).toContain('--authfile <file>');
    expect(options.stdout.text).toContain('-h, --help');
  });

  it.each([
    [['help', 'optons'], 2, 'unknown help topic "optons"', 'did you mean "opmate help options"?'],
    [['lsit'], 2, 'unknown command "lsit"', 'did you mean "opmate list"?'],
    [['help', 'catalog', 'flter'], 2, 'unknown command "flter"', 'did you mean "opmate catalog filter"?'],
    [['help', 'nope'], 2, 'unknown command "nope"', 'see opmate --help'],
    [['rendr', 'catalogs'], 2, 'unknown command "rendr"', 'did you mean "opmate render"? see opmate --help'],
    [['list', 'operators'], 2, 'unknown command "operators"', 'did you mean "opmate mirror list operators"?'],
    [['doctor'], 2, 'unknown command "doctor"', 'did you mean "opmate catalog doctor"?'],
    [['mirror', 'plna'], 1, 'unknown command "plna"', 'did you mean "opmate mirror plan"?'],
    [
      ['mirror', 'plna', 'docker://r.example/m'],
      1,
      'unknown command "plna"',
      'did you mean "opmate mirror plan"?',
    ],
    [
      ['mirror', 'statsu', '-c', 'x', 'docker://r.example/m'],
      1,
      'unknown command "statsu"',
      'did you mean "opmate mirror status"?',
    ],
    [['mirror', 'delte', '--generate'], 1, 'unknown command "delte"', 'did you mean "opmate mirror delete"?'],
    [
      ['--log-level', 'debug', 'mirror', 'plna'],
      1,
      'unknown command "plna"',
      'did you mean "opmate mirror plan"?',
    ],
    [
      ['--authfile', 'mirror', 'mirror', 'docker://r.example/m'],
      1,
      'nothing to mirror',
      'specify an image set',
    ],
    [['mirror', 'verfy'], 1, 'unknown command "verfy"', 'did you mean "opmate verify"?'],
    [['catalog', 'flter', '--nope'], 1, 'unknown command "flter"', 'did you mean "opmate catalog filter"?'],
    [['mirror', 'foo.io/a:v1=bar'], 1, '"foo.io/a:v1=bar": target bar: missing registry', 'use REGISTRY/bar'],
    [['mirror', 'foo=bar'], 1, '"foo=bar": source foo: missing registry', 'use REGISTRY/foo'],
    [['catalog', 'mirror', 'nope', 'file://out'], 1, 'nope: no such file or directory', 'check the path'],
    [
      ['view', '.', '--edit', '--export', 'x'],
      2,
      '--edit and --export cannot be used together',
      'keep one of them',
    ],
    [
      ['bundle', 'resolve', 'a', '--catalog=x', '--version=foo'],
      2,
      '--version "foo": invalid version range',
      'use a',
    ],
    [['list', 'packages', 'nope'], 1, 'nope: no such file or directory', 'check the path'],
    [['catalog', 'mirror', '.', 'file://out'], 1, '.: not an image', 'add --source-name'],
    [
      ['index', 'export', '-i', 'x', '-o', 'yaml'],
      1,
      'got the output format "yaml"',
      'remove -o yaml, or use --package yaml',
    ],
    [['mirror', 'verify', 'carry'], 1, 'unknown command "verify"', 'did you mean "opmate verify"?'],
    [['bundle', 'list'], 2, 'unknown command "list"', 'did you mean "opmate list"?'],
    [['bundle', 'build', 'dir'], 2, 'unexpected argument "dir"', 'see opmate bundle build --help'],
    [['bundle', 'validate'], 2, 'missing source', 'specify the directory or image of a bundle'],
    [['mirror', 'docker://r.example/m'], 1, 'nothing to mirror', 'specify an image set with --config FILE'],
  ])('suggests the nearest command for %j', async (args, code, problem, hint) => {
    const failure = await failureOf(...args);
    expect(failure.code).toBe(code);
    expect(failure.stderr).toContain(problem);
    expect(failure.stderr).toContain(`hint: ${hint}`);
  });

  it('takes no path for an image to mirror', async () => {
    for (const name of ['./nope', '../nope', '/nope', '~/nope']) {
      const { code, stderr } = await failureOf('catalog', 'mirror', name, 'file://out');
      expect({ code, stderr }).toEqual({ code: 1, stderr: `error: ${name}: no such file or directory\n` });
    }
  });

  it('prints help for help help, and draws no graph of an unknown package', async () => {
    const world = createWorld();
    expect(await run(['help', 'help'], world)).toBe(0);
    expect(world.stdout.text).toMatch(/^Usage: opmate/);
    const failure = await failureOf(
      'graph',
      await directoryWith({ 'all.json': catalogOf('demo', [{ name: 'demo.v1' }]) }),
      '-p',
      'nope',
    );
    expect(failure).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('package "nope" not found') as string,
    });
  });

  it.each([
    ['mirror', 'quay.io/a/b:v1=c:v1'],
    ['catalog', 'mirror', 'quay.io/a/b:v1', 'c'],
    ['oci', 'copy', 'oci:none:v1', 'c:v1'],
    ['index', 'add', '-b', 'x', '-t', 'c:v1'],
    ['bundle', 'push', 'oci:none:v1', 'c:v1'],
  ])('refuses to write to a name without a registry: %s %s', async (...args) => {
    const { code, stderr } = await failureOf(...args);
    expect(code).toBeGreaterThan(0);
    expect(stderr).toMatch(/\bc(:v1)?: missing registry\n/);
    expect(stderr).toContain('hint: use REGISTRY/c');
  });
});
