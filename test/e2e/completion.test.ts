import { spawn } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { useCommandInPath } from '../support/command-in-path.js';
import { bundlesDirectory, runProgram, useSandbox } from '../support/command-line.js';
import { startFaultRegistry } from '../support/fault-registry.js';
import { makeCatalogImage, serveBuilt } from './images.js';
import { serve } from './served-catalogs.js';

const sandbox = useSandbox();
useCommandInPath(sandbox);

/** A catalog, some of whose names are no words that a shell may be handed. */
const widget = [
  { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
  { schema: 'olm.channel', package: 'widget', name: 'stable', entries: [{ name: 'widget.v1.0.0' }] },
  { schema: 'olm.channel', package: 'widget', name: 'stable-1.x', entries: [{ name: 'widget.v1.0.0' }] },
  { schema: 'olm.channel', package: 'widget', name: 'fast', entries: [{ name: 'widget.v1.0.0' }] },
  bundle('widget'),
];
const gadget = [
  { schema: 'olm.package', name: 'gadget', defaultChannel: 'beta' },
  { schema: 'olm.channel', package: 'gadget', name: 'beta', entries: [{ name: 'gadget.v1.0.0' }] },
  bundle('gadget'),
];
const hostile = [
  '$(touch pwned)',
  '`touch pwned`',
  'a b',
  '-rf',
  'new\nline',
  'é',
  'a;b',
  '../up',
  '\u001b[31m',
];

function bundle(name: string): object {
  const value = { packageName: name, version: '1.0.0' };
  const image = `registry.test/${name}@sha256:${'0'.repeat(64)}`;
  const properties = [{ type: 'olm.package', value }];
  return { schema: 'olm.bundle', package: name, name: `${name}.v1.0.0`, image, properties };
}

function text(blobs: readonly object[]): string {
  return blobs.map((blob) => `${JSON.stringify(blob, null, 2)}\n`).join('');
}

beforeAll(async () => {
  await sandbox.write({
    'catalog/widget/catalog.json': text(widget),
    'catalog/gadget/catalog.json': text(gadget),
    'catalog/bad/catalog.json': text(
      hostile.flatMap((name) => [
        { schema: 'olm.package', name, defaultChannel: name },
        { schema: 'olm.channel', package: 'widget', name, entries: [] },
      ]),
    ),
    'flat/catalog.json': text([...widget, ...gadget]),
    'files/one.yaml': '',
    'files/two words.yaml': '',
    'files/sub/three.yaml': '',
    'broken/catalog.json': `${text(widget)}{ "schema": `,
    'a b/widget/catalog.json': text(widget),
  });
  const bundle = path.join(bundlesDirectory, 'microcks', '0.2.1');
  expect(
    await sandbox.run(['registry', 'add', '--mode', 'semver', '-d', 'index.db', '-b', bundle]),
  ).toMatchObject({ code: 0 });
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { stdout } = await sandbox.run(['completion', shell]);
    await writeFile(path.join(sandbox.work, `completion.${shell}`), stdout);
  }
});

/** What `__complete` offers: names and other words, and the kind of paths. */
async function offered(...words: string[]): Promise<string[]> {
  const { code, stdout, stderr } = await sandbox.run(['__complete', '--', ...words]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const lines = stdout.split('\n').slice(0, -1);
  return lines.map((line) => line.split('\t')[0] as string);
}

async function names(...words: string[]): Promise<string[]> {
  const lines = await offered(...words);
  expect(lines.at(-1)).toMatch(/^:/);
  return lines.slice(0, -1);
}

describe('names for completion', () => {
  it.each<[string[], string[]]>([
    [
      ['list', 'channels', 'catalog', ''],
      ['gadget', 'widget'],
    ],
    [['list', 'channels', 'catalog', 'w'], ['widget']],
    [['--debug', 'list', '--platform', 'linux/arm64', 'bundles', 'catalog', 'g'], ['gadget']],
    [['mirror', 'list', 'operators', '--catalog', 'catalog', '--package', 'g'], ['gadget']],
    [['mirror', 'list', 'operators', '--catalog=catalog', '--package=g'], ['gadget']],
    [
      ['mirror', 'list', 'operators', '--catalog=catalog', '--package=widget', '--channel', 's'],
      ['stable', 'stable-1.x'],
    ],
    [
      ['mirror', 'list', 'operators', '--catalog', 'catalog', '--channel', ''],
      ['beta', 'fast', 'stable', 'stable-1.x'],
    ],
    [['graph', 'flat', '-p', 'w'], ['widget']],
    [['catalog', 'diff', 'flat', 'catalog', '--package', 'widget,'], ['widget,gadget']],
    [['list', 'channels', "'a b'", 'w'], ['widget']],
    [['list', 'channels', '"a b"', 'w'], ['widget']],
    [['list', 'channels', 'a\\ b', 'w'], ['widget']],
    // What was read before a fault is better than nothing.
    [['list', 'channels', 'broken', ''], ['widget']],
    // No place for a name, no catalog, or none that can be read.
    [['list', 'channels', ''], []],
    [['list', 'channels', 'nothing-here', ''], []],
    [['list', 'packages', 'catalog', ''], []],
    [['init', ''], []],
    [['graph', '--package', ''], []],
    [['list', 'channels', 'http://127.0.0.1:1/catalogs/x', ''], []],
    [['list', 'channels', 'registry.test/never/asked:v1', ''], []],
  ])('after %j are %j', async (words, found) => {
    expect(await names(...words)).toEqual(found);
  });

  it('come from the home directory for a tilde', async () => {
    await mkdir(path.join(sandbox.home, 'widgets'));
    await writeFile(path.join(sandbox.home, 'widgets', 'catalog.json'), text(widget));
    expect(await names('list', 'channels', '~/widgets', '')).toEqual(['widget']);
  });

  it('come from a served catalog', async () => {
    const served = await serve({ widgets: { 'catalog.json': text([...widget, ...gadget]) } });
    const url = `${served.url}/catalogs/widgets`;
    expect(await names('list', 'channels', url, '')).toEqual(['gadget', 'widget']);
    const line = ['mirror', 'list', 'operators', '--catalog', `mine=${url},priority=2`];
    expect(await names(...line, '--package', 'widget', '--channel', 'f')).toEqual(['fast']);
  });

  it('come from an image that was listed before, never over the network', async () => {
    const registry = await startFaultRegistry();
    try {
      const image = await makeCatalogImage({ 'catalog.json': text([...widget, ...gadget]) });
      serveBuilt(registry, 'acme/index', 'v1', image);
      const reference = `${registry.host}/acme/index:v1`;
      expect(await names('list', 'channels', reference, '')).toEqual([]);
      expect(registry.requests).toEqual([]);
      const line = ['mirror', 'list', 'operators', '--catalog', reference];
      expect(await sandbox.run([...line, '--use-http'])).toMatchObject({ code: 0 });
      registry.requests.length = 0;
      expect(await names('list', 'channels', reference, '')).toEqual(['gadget', 'widget']);
      expect(await names(...line, '--package', 'gadget', '--channel', '')).toEqual(['beta']);
      expect(registry.requests).toEqual([]);
      const kept = await readdir(path.join(sandbox.home, '.cache', 'opmate', 'names'));
      expect(kept).toHaveLength(1);
      await writeFile(path.join(sandbox.home, '.cache', 'opmate', 'names', kept[0] as string), '{"a":');
      expect(await names('list', 'channels', reference, '')).toEqual([]);
      // Directories are not remembered: they are read each time.
      expect(await sandbox.run(['list', 'packages', 'flat'])).toMatchObject({ code: 0, stderr: '' });
      expect(await readdir(path.join(sandbox.home, '.cache', 'opmate', 'names'))).toEqual(kept);
    } finally {
      await registry.close();
    }
  });
});

/** Starts bash on a terminal of its own, types a line and presses a key, and ends it with the line as it stands then. */
const terminal = `
import os, pty, select, sys, time
line, keys = sys.argv[1], sys.argv[2].encode()
pid, fd = pty.fork()
if pid == 0:
    os.execvp('bash', ['bash', '--rcfile', 'bashrc', '-i'])
seen = b''
def until(mark):
    global seen
    end = time.time() + 20
    while mark not in seen and time.time() < end:
        if select.select([fd], [], [], 0.2)[0]:
            try: seen += os.read(fd, 65536)
            except OSError: return
until(b'READY')
os.write(fd, line.encode() + keys + b'\\x14')
until(b'>ENDS')
sys.stdout.buffer.write(seen)
`;

/** Runs a shell in the sandbox, with `opmate` in its PATH. */
function shell(file: string, args: string[]): Promise<string> {
  const env = sandbox.environment({
    PATH: `${path.join(sandbox.work, 'bin')}:${process.env['PATH']}`,
    TERM: 'dumb',
  }) as NodeJS.ProcessEnv;
  const child = spawn(file, args, {
    cwd: sandbox.work,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const printed: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => printed.push(chunk));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', () => resolve(Buffer.concat(printed).toString()));
  });
}

const linesOf = (printed: string): string[] => printed.split('\n').filter((line) => line !== '');
const hasShell = async (name: string): Promise<boolean> => (await runProgram(name, ['--version'])).code === 0;

describe('completion in bash', () => {
  /** What a shell offers after a line, taken apart as readline does it. */
  async function offered(line: string): Promise<string[]> {
    const words: string[] = line.match(/[=:]+|(?:\\.|'[^']*'|"[^"]*"|[^\s=:])+/g) ?? [];
    if (/\s$/.test(line)) words.push('');
    const list = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
    return linesOf(
      await shell('bash', [
        '--norc',
        '-ic',
        `source completion.bash; COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _opmate; printf '%s\\n' "\${COMPREPLY[@]}"`,
      ]),
    );
  }

  it.each([
    ['opmate list channels catalog ', ['gadget', 'widget']],
    ["opmate list channels 'a b' ", ['widget']],
    ['opmate graph catalog --package wid', ['widget']],
    ['opmate graph catalog --package=', ['gadget', 'widget']],
    ['opmate graph catalog --package=ga', ['gadget']],
    ['opmate mirror list operators --catalog=catalog --package widget --channel=stable-', ['stable-1.x']],
    ['opmate mirror list operators --catalog=oci:none:v1 --package ', []],
    ['opmate list packages index.db --', expect.arrayContaining(['--output', '--debug'])],
    ['opmate registry rm --database index.db --package ', ['microcks']],
    ['opmate render -o ', ['json', 'yaml']],
    ['opmate render --output=y', ['yaml']],
    ['opmate catalog filter catalog --undated=', ['keep', 'drop']],
    ['opmate list chan', ['channels']],
    ['opmate help catalog fil', ['filter']],
    ['opmate ', expect.not.arrayContaining(['__complete', '--debug'])],
  ])('after "%s" offers %j', async (line, expected) => {
    expect(await offered(line)).toEqual(expected);
  });

  it('executes no texts of a catalog', async () => {
    await offered('opmate list channels catalog ');
    await offered('opmate graph catalog --package=');
    expect(await readdir(sandbox.work)).not.toContain('pwned');
  });
});

describe('completion on a terminal in bash', () => {
  /** What a line has become after a Tab. */
  async function completed(line: string): Promise<string> {
    await sandbox.write({
      bashrc: `PS1=READY; source completion.bash; leave() { printf '\nLINE<%s>ENDS\n' "$READLINE_LINE"; exit; }
bind 'set bell-style none'; bind -x '"\\C-t": leave'
`,
      'terminal.py': terminal,
    });
    const printed = await shell('python3', ['terminal.py', line, '\t']);
    return /LINE<(.*)>ENDS/.exec(printed)?.[1] ?? printed;
  }

  it.each([
    ['opmate validate files/o', 'opmate validate files/one.yaml '],
    ['opmate mirror plan --config files/two', 'opmate mirror plan --config files/two\\ words.yaml '],
    ['opmate mirror plan --config=files/one', 'opmate mirror plan --config=files/one.yaml '],
    ['opmate migrate catalog --outp', 'opmate migrate catalog --output '],
    ['opmate migrate catalog --output=y', 'opmate migrate catalog --output=yaml '],
    ['opmate catalog filter catalog --to fil', 'opmate catalog filter catalog --to files/'],
    ['opmate catalog filter catalog --to files/o', 'opmate catalog filter catalog --to files/o'],
    ['opmate completion ba', 'opmate completion bash '],
    ['opmate completion bash fil', 'opmate completion bash fil'],
    ['opmate list channels catalog wid', 'opmate list channels catalog widget '],
  ])('makes of "%s" "%s"', async (line, expected) => {
    expect(await completed(line)).toBe(expected);
  });
});

describe.runIf(await hasShell('zsh'))('completion in zsh', () => {
  // Started on a terminal of its own; it says when it listens, and ^X ends it with the line as it stands then.
  const rc = `
PS1=; unsetopt beep; stty columns 200
autoload -U compinit; compinit -u -D; source completion.zsh
zle-line-init() { print LISTENS }; zle -N zle-line-init
leave() { print -r -- "LINE<$BUFFER>"; exit }; zle -N leave; bindkey '^X' leave
`;
  const driver = `
zmodload zsh/zpty
export ZDOTDIR=$PWD/zsh
zpty shell zsh -d -i
zpty -r shell seen '*LISTENS*' || exit 1
zpty -w -n shell "$1"$'\\t\\t\\x18'
while zpty -r shell seen; do print -rn -- "$seen"; done
`;

  /** What is on the terminal after a line and two Tabs, and at its end the line. */
  async function shown(line: string): Promise<string> {
    await sandbox.write({ 'zsh/.zshrc': rc, 'driver.zsh': driver });
    return shell('timeout', ['30', 'zsh', '-f', 'driver.zsh', line]);
  }

  it('completes packages and channels', async () => {
    expect(await shown('opmate list channels catalog w')).toContain(
      'LINE<opmate list channels catalog widget >',
    );
    const all = await shown('opmate graph catalog --package ');
    expect(all).toMatch(/gadget\s+widget|widget\s+gadget/);
    expect(all).not.toContain('touch');
    expect(await shown('opmate graph catalog --package=g')).toContain('--package=gadget');
    expect(await shown('opmate list chan')).toContain('LINE<opmate list channels >');
  });

  it('completes files for file arguments, flags after a dash, and values after "="', async () => {
    expect(await shown('opmate validate files/o')).toContain('LINE<opmate validate files/one.yaml >');
    expect(await shown('opmate mirror plan --config=files/on')).toContain('--config=files/one.yaml >');
    expect(await shown('opmate catalog filter catalog --to files/s')).toContain('--to files/sub/>');
    expect(await shown('opmate catalog filter catalog --to files/o')).toContain('--to files/o>');
    expect(await shown('opmate render --output=y')).toContain('LINE<opmate render --output=yaml >');
    expect(await shown('opmate migrate catalog --outp')).toContain('LINE<opmate migrate catalog --output >');
    expect(await shown('opmate completion bash fil')).toContain('LINE<opmate completion bash fil>');
    expect(await shown('opmate ')).not.toContain('--debug');
  });
});

describe.runIf(await hasShell('fish'))('completion in fish', () => {
  /** The words that fish offers after a line. */
  async function offered(line: string): Promise<string[]> {
    const quoted = line.replaceAll("'", "\\'");
    const script = `source completion.fish; complete -C '${quoted}'`;
    const lines = linesOf(await shell('fish', ['--no-config', '-c', script]));
    return lines.map((one) => one.split('\t')[0] as string);
  }

  it.each([
    ['opmate list channels catalog ga', ['gadget']],
    ['opmate graph catalog --package ', ['gadget', 'widget']],
    ['opmate graph catalog -p w', ['widget']],
    ['opmate graph catalog --package=w', ['--package=widget']],
    ['opmate graph catalog --package=', ['--package=gadget', '--package=widget']],
    ['opmate validate files/o', ['files/one.yaml']],
    ['opmate mirror plan --config=files/o', ['--config=files/one.yaml']],
    ['opmate catalog filter catalog --to fil', ['files/']],
    ['opmate catalog filter catalog --to files/o', []],
    ['opmate render --output=y', ['--output=yaml']],
    ['opmate migrate catalog --outp', ['--output']],
    ['opmate completion bash fil', []],
    ['opmate completion ', ['bash', 'fish', 'zsh']],
    ['opmate mirror list operators --catalog catalog --package widget --channel f', ['fast']],
    ['opmate list chan', ['channels']],
  ])('after "%s" offers %j', async (line, expected) => {
    expect(await offered(line)).toEqual(expected);
  });
});
