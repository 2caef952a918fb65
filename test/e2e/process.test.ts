import { execFile, spawnSync } from 'node:child_process';
import { mkdir, open, readFile, readdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  bundlesDirectory,
  commandFile,
  commandWords,
  isExecutable,
  projectRoot,
  useSandbox,
} from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { startProxyServer } from '../support/proxy-server.js';
import { caseOf, catalogOf, widgetCatalog } from './catalogs.js';
import { makeBundleImage, makeCatalogImage, serveBuilt } from './images.js';

const sandbox = useSandbox();
const stack = /^ +at .*:\d+:\d+/m;
const bundle = path.join(bundlesDirectory, 'microcks/0.3.0');

/** Runs a line of bash with `$OPMATE` set to the command. */
async function bash(script: string): Promise<{ stdout: string; stderr: string }> {
  const env = {
    ...sandbox.environment({ PATH: process.env['PATH'] }),
    OPMATE: commandWords.join(' '),
  };
  return promisify(execFile)('bash', ['--norc', '-c', script], {
    cwd: sandbox.work,
    env: env as NodeJS.ProcessEnv,
  });
}

beforeAll(async () => {
  const names = Array.from({ length: 4000 }, (_, i) => `large.v${i}`);
  const entries = names.map((name, i) => (i === 0 ? { name } : { name, replaces: names[i - 1] as string }));
  await sandbox.write({ 'large/all.json': catalogOf('large', entries), 'widget/all.json': widgetCatalog });
});

describe('a user without a home directory', () => {
  const identity = { uid: 54321, gid: 54321 };
  // Node.js and the clone may lie in a directory that only their owner can enter.
  const canRun =
    process.getuid?.() === 0 &&
    spawnSync('/bin/sh', ['-c', 'test -x "$0" && test -r "$1"', commandWords[0], commandFile], identity)
      .status === 0;

  it.runIf(canRun)('runs every command', async () => {
    const run = (...args: string[]) =>
      promisify(execFile)(commandWords[0], [...commandWords.slice(1), ...args], {
        env: { PATH: process.env['PATH'] },
        cwd: '/',
        ...identity,
      });
    expect((await run('--help')).stdout).toContain('opmate');
    const { stdout } = await run('render', bundle);
    expect(stdout).toContain('olm.bundle');
  });
});

// Only Node.js loads a module of NODE_OPTIONS.
describe.skipIf(isExecutable)('an error that no command catches', () => {
  // The first write to stdout is followed by an exception outside of any promise.
  const script =
    'const { write } = process.stdout; process.stdout.write = function (...all) {' +
    ' process.nextTick(() => { throw new Error("boom"); }); return write.apply(this, all); };';
  const thrower = `data:text/javascript,${encodeURIComponent(script)}`;
  const fail = (...args: string[]): ReturnType<typeof sandbox.run> =>
    sandbox.run(['licenses', ...args], { ownProcess: true, env: { NODE_OPTIONS: `--import=${thrower}` } });

  it('is a message without a stack trace', async () => {
    const { code, stderr } = await fail();
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'internal error: boom\nhint: please report this with the output of --debug\n',
    });
    expect((await fail('--debug')).stderr).toMatch(stack);
  });

  it('is a line of JSON with --log-format json', async () => {
    const { code, stderr } = await fail('--log-format', 'json');
    expect(code).toBe(1);
    expect(JSON.parse(stderr)).toMatchObject({ level: 'error', code: 'internal', message: 'boom' });
  });
});

describe('usage', () => {
  it.each([
    // Commands that opm has too end with 1, as they do there.
    [['render'], 1, 'missing required argument "reference"', 'see opmate render --help'],
    [['render', '--nope', 'x'], 1, 'unknown option "--nope"', 'see opmate render --help'],
    [
      ['alpha', 'list', 'packages'],
      1,
      'missing required argument "reference"',
      'see opmate alpha list packages',
    ],
    [['generate', 'frob'], 1, 'unknown command "frob"', 'see opmate generate --help'],
    [['registry', 'add', '--mode', 'newest'], 1, 'Invalid channel update mode newest', 'use one of replaces'],
    [['index', 'rm', '--nope'], 1, 'unknown option "--nope"', 'see opmate index rm --help'],
    // All others with 2, those that opmate has beside them included.
    [['registry', 'create'], 2, 'missing required argument "database"', 'see opmate registry create --help'],
    [
      ['registry', 'images'],
      2,
      '--from, --from-archive or --from-db: missing',
      'add --from IMAGE, --from-archive FILE or --from-db FILE',
    ],
    [['registry', 'build', '--db-only'], 2, '--db-only: needs --save', 'add --save PATH'],
    [['index', 'build'], 2, 'missing required argument "database"', 'see opmate index build --help'],
    [['rendr'], 2, 'did you mean "opmate render"? see opmate --help', 'see opmate --help'],
    [['--nope'], 2, 'unknown option "--nope"', 'see opmate --help'],
    [['oci', 'serve', '--prt', '0', 'x'], 2, 'did you mean --port?', 'see opmate oci serve --help'],
    [['oci', 'inspect', 'a', '--raw', '--tags'], 2, '--raw and --tags', 'keep one of them'],
    [['completion', 'tcsh'], 2, 'unsupported shell "tcsh"', 'use one of bash, zsh, fish'],
    [['completion', 'bsh'], 2, 'unsupported shell "bsh"', 'did you mean "bash"?'],
    [['list', 'packages'], 2, 'missing required argument "reference"', 'see opmate list packages --help'],
    [
      ['--max-entries', '0', 'list', 'packages', 'x'],
      2,
      'expected an integer from 1 to 1000000000',
      'see opmate',
    ],
    [['--max-unpacked-size', '1X', 'graph', 'x'], 2, 'expected a size such as 500M or 8G', 'see opmate'],
    [['--platform', 'linux', 'graph', 'widget'], 2, '"linux": invalid platform', 'linux/amd64'],
  ])('%j ends with %i and a hint', async (args, code, message, hint) => {
    const result = await sandbox.run(args);
    expect(result).toMatchObject({ code, stdout: '' });
    expect(result.stderr).toContain(message);
    expect(result.stderr).toMatch(/^hint: /m);
    expect(result.stderr).toContain(hint);
    expect(result.stderr).not.toMatch(stack);
  });

  it.each([[[]], [['generate']], [['oci']], [['list']], [['alpha', 'list']]])(
    'shows the help of %j, where a command is missing',
    async (args) => {
      const { code, stdout, stderr } = await sandbox.run(args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(
        new RegExp(`^Usage: ${['opmate', ...args].join(' ')} \\[options\\] \\[command\\]\n`),
      );
    },
  );

  it('accepts global options before and after the command', async () => {
    const missing = 'registry.invalid/x:v1';
    const runs = await Promise.all([
      sandbox.run(['--debug', 'render', missing, '--use-http', '--retry-timeout', '2s']),
      sandbox.run(['render', '--use-http', missing, '--retry-timeout=2s', '--debug']),
      sandbox.run(['--retry-timeout', '2s', '--use-http', 'render', '--debug', missing]),
    ]);
    for (const { code, stderr } of runs) {
      expect(code).toBe(1);
      expect(stderr).toContain('registry.invalid');
      expect(stderr).toMatch(stack);
    }
  });

  it('behaves as opm when called through a link of that name', async () => {
    const link = path.join(sandbox.work, 'bin', 'opm');
    await mkdir(path.dirname(link), { recursive: true });
    await symlink(commandFile, link);
    const asOpm = (...args: string[]) => sandbox.run(args, { file: link });
    expect((await asOpm('render', bundle)).stdout).toBe((await sandbox.run(['render', bundle])).stdout);
    expect((await asOpm('render', '--help')).stdout).toMatch(/^Usage: opm render /);
    expect(await asOpm('frobnicate')).toMatchObject({ code: 1, stdout: '' });
    expect((await asOpm('completion', 'bash')).stdout).toContain('complete -F _opm opm');
  });

  it('runs the commands that replace the programs before opm when called through links of their names', async () => {
    const as = async (name: string, ...args: string[]) => {
      const link = path.join(sandbox.work, 'programs', name);
      await mkdir(path.dirname(link), { recursive: true });
      await symlink(commandFile, link).catch(() => undefined);
      return sandbox.run(args, { file: link });
    };
    const rendered = await as('operator-registry', 'render', bundle);
    expect(rendered.stdout).toBe((await sandbox.run(['render', bundle])).stdout);
    expect((await as('initializer', '--help')).stdout).toMatch(/^Usage: opm registry init /);
    expect((await as('initializer', '-m', 'none', '-o', 'none.db')).stderr).toContain('none: no such');
    expect(await as('registry-server', '-d', 'none.db')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^error: none\.db: no such file or directory/) as string,
    });
    for (const [name, flag] of [
      ['configmap-server', '--configmap'],
      ['appregistry-server', '--appregistry-namespace'],
    ] as const) {
      expect((await as(name, '--help')).stdout).toMatch(/^Usage: opm registry serve /);
      expect(await as(name)).toMatchObject({ code: 1, stderr: expect.stringContaining(flag) as string });
      expect((await as(name, flag, 'none')).stderr).toContain('none: no such');
    }
  });
});

describe('version', () => {
  it('prints the version in the format that scripts expect, and as data', async () => {
    const packageFile = await readFile(path.join(projectRoot, 'package.json'), 'utf8');
    const { version } = JSON.parse(packageFile) as { version: string };
    const { code, stdout } = await sandbox.run(['version']);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^Version: version\.Version\{OpmVersion:"v[\d.]+", .*GoOs:"linux", GoArch:"\w+"\}\n$/,
    );
    expect(stdout).toContain(`OpmVersion:"v${version}"`);
    expect(JSON.parse((await sandbox.run(['version', '-o', 'json'])).stdout)).toMatchObject({ version });
  });
});

describe('streams', () => {
  it('ends quietly when the reader of a large output closes the pipe', async () => {
    const script = '$OPMATE render large | head -n 1; echo "${PIPESTATUS[0]}"';
    expect(await bash(script)).toEqual({ stdout: '{\n141\n', stderr: '' });
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it.each(['render large', 'render widget', 'list bundles large', 'graph large', 'version', 'render --help'])(
    'does not hide that standard output could not be written (%s)',
    async (command) => {
      const full = await open('/dev/full', 'w');
      try {
        const { code, stderr } = await sandbox.run(command.split(' '), { stdoutTo: full.fd });
        expect({ code, stderr }).toEqual({
          code: 1,
          stderr:
            'error: standard output: no space left on device\nhint: free space, or write to another disk\n',
        });
      } finally {
        await full.close();
      }
    },
  );

  it('fails on a partly written output file', async () => {
    // A limit on the size of files does what a full disk does: the first write is cut short, the next fails.
    const limit = "trap '' XFSZ; ulimit -f 64; $OPMATE migrate blob limited; echo $?";
    await sandbox.write({ 'blob/all.json': { schema: 'example.large', text: 'x'.repeat(300_000) } });
    const { stdout, stderr } = await bash(limit);
    expect(stdout).toBe('1\n');
    expect(stderr).toContain('output dir "limited": ');
    expect((await readdir(sandbox.work)).filter((name) => name.startsWith('limited'))).toEqual([]);
  });

  it('separates messages from data', async () => {
    const quiet = await sandbox.run(['render', 'widget']);
    const loud = await sandbox.run(['render', 'widget', '--debug', '--log-format', 'json']);
    expect(loud.stdout).toBe(quiet.stdout);
    for (const line of loud.stderr.split('\n').filter(Boolean))
      expect(JSON.parse(line)).toHaveProperty('level');
  });

  it('shows causes and stacks with --debug only', async () => {
    for (const args of [
      ['render', 'registry.invalid/x'],
      ['validate', 'nowhere'],
      ['migrate', 'nowhere', 'out'],
    ]) {
      const plain = await sandbox.run(args);
      const debug = await sandbox.run([...args, '--debug']);
      expect([plain.code, debug.code]).toEqual([1, 1]);
      expect(plain.stderr).not.toMatch(stack);
      expect(debug.stderr).toMatch(stack);
    }
  });

  it('reports invalid catalogs without a stack, even with --debug', async () => {
    await sandbox.write({ 'cycle/all.json': caseOf('cycle').catalog });
    const { code, stderr } = await sandbox.run(['validate', 'cycle', '--debug']);
    expect(code).toBe(1);
    expect(stderr).not.toMatch(stack);
  });
});

describe('interruption', () => {
  let registry: FaultRegistry;
  const layers: string[] = [];
  beforeAll(async () => {
    registry = await startFaultRegistry();
    const images = [
      ['ns/catalog', await makeCatalogImage({ 'all.json': widgetCatalog })],
      ['ns/bundle', await makeBundleImage('microcks/0.3.0')],
    ] as const;
    for (const [name, image] of images) {
      serveBuilt(registry, name, 'v1', image);
      for (const { descriptor, bytes } of image.layers) {
        layers.push(descriptor.digest);
        registry.on({
          path: `/v2/${name}/blobs/${descriptor.digest}`,
          respond: { body: bytes, drip: { bytes: 1, everyMs: 200 } },
        });
      }
    }
  });
  afterAll(() => registry.close());

  it.each([
    ['SIGINT', ['render', 'IMAGE/catalog:v1']],
    ['SIGTERM', ['render', 'IMAGE/bundle:v1']],
    ['SIGHUP', ['migrate', 'IMAGE/catalog:v1', 'out']],
    ['SIGINT', ['validate', 'IMAGE/catalog:v1', '-o', 'json']],
    ['SIGINT', ['oci', 'copy', 'IMAGE/catalog:v1', 'oci:copied:v1']],
  ] as const)('ends with 130 on %s in the middle of %j and leaves nothing', async (signal, args) => {
    const before = await readdir(sandbox.work);
    const seen = registry.requests.length;
    const cache = path.join(sandbox.home, 'cache');
    const command = sandbox.start(
      ['--use-http', ...args.map((arg) => arg.replace('IMAGE', `${registry.host}/ns`))],
      { env: { OPMATE_CACHE_DIR: cache } },
    );
    await expect
      .poll(
        () =>
          registry.requests.slice(seen).some(({ path: at }) => layers.some((layer) => at.endsWith(layer))),
        {
          timeout: 10_000,
        },
      )
      .toBe(true);
    const { code, stdout, stderr } = await command.stop(signal);
    expect({ code, stdout }).toEqual({ code: 130, stdout: '' });
    expect(stderr).toMatch(/^(info: .*\n)*interrupted\n$/);
    expect(await sandbox.leftovers()).toEqual([]);
    expect(await readdir(path.join(cache, 'tmp'))).toEqual([]);
    const after = (await readdir(sandbox.work)).filter((name) => !before.includes(name) && name !== 'copied');
    expect(after).toEqual([]);
  });

  it('stops a server without reporting a failure', async () => {
    const server = sandbox.start(['oci', 'serve', 'served', '--port', '0']);
    await server.firstLine();
    expect(await server.stop('SIGINT')).toMatchObject({ code: 0, stderr: '' });
    const other = sandbox.start(['oci', 'serve', 'served', '--port', '0']);
    await other.firstLine();
    expect(await other.stop('SIGHUP')).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('credentials', () => {
  const secret = 'hunter2-very-secret';
  const login = Buffer.from(`robot:${secret}`).toString('base64');
  const forms = [secret, login, encodeURIComponent(login)];

  function expectNoSecret({ stdout, stderr }: { stdout: string; stderr: string }): void {
    for (const form of forms) expect(stdout + stderr).not.toContain(form);
  }

  it('never show in messages, also with --debug', async () => {
    const registry = await startFaultRegistry();
    const proxy = await startProxyServer({ refuse: { status: 403 } });
    try {
      registry.requireBasic('robot', 'something else');
      await sandbox.write({ 'auth.json': { auths: { [registry.host]: { auth: login } } } });
      const image = `${registry.host}/ns/x:v1`;
      for (const format of ['text', 'json']) {
        const flags = ['--debug', '--log-format', format, '--use-http', '--authfile', 'auth.json'];
        const refused = await sandbox.run([...flags, 'render', image]);
        expect(refused.code).toBe(1);
        expect(refused.stderr).toContain('auth.json');
        expectNoSecret(refused);
      }
      expect(registry.authorizations()).toContain(`Basic ${login}`);

      const proxied = await sandbox.run(
        ['--debug', 'render', 'registry.test/ns/x:v1', '--retry-timeout', '2s'],
        {
          env: { HTTPS_PROXY: `http://robot:${secret}@${proxy.host}` },
        },
      );
      expect(proxied.code).toBe(1);
      expect(proxied.stderr).toContain(proxy.host);
      expectNoSecret(proxied);
    } finally {
      await registry.close();
      await proxy.close();
    }
  });

  it('never show for a reference with a password', async () => {
    for (const reference of [
      `https://robot:${secret}@quay.io/ns/x:v1`,
      `docker://robot:${secret}@quay.io/ns/x:v1`,
    ]) {
      for (const args of [
        ['render', reference],
        ['oci', 'inspect', reference],
        ['list', 'packages', reference],
      ]) {
        const result = await sandbox.run([...args, '--debug']);
        expect(result.code).not.toBe(0);
        expectNoSecret(result);
      }
    }
  });

  it('never show from a broken credentials file', async () => {
    const registry = await startFaultRegistry();
    try {
      registry.requireBasic('robot', secret);
      await sandbox.write({ 'broken.json': `{"auths": {"quay.io": {"auth": "${login}"}},` });
      const flags = ['--use-http', '--authfile', 'broken.json', '--debug'];
      const result = await sandbox.run(['render', `${registry.host}/ns/x:v1`, ...flags]);
      expect(result.code).toBe(1);
      expect(result.stderr).toContain('broken.json');
      expectNoSecret(result);
    } finally {
      await registry.close();
    }
  });

  it('are not sent along a redirect to a signed URL', async () => {
    const registry = await startFaultRegistry();
    try {
      const image = await makeCatalogImage({ 'all.json': widgetCatalog });
      serveBuilt(registry, 'ns/x', 'v1', image);
      registry.on({
        path: /\/blobs\//,
        respond: {
          status: 307,
          headers: { location: `/storage/blob?X-Amz-Signature=${secret}&sig=${secret}` },
        },
      });
      const result = await sandbox.run(['render', '--use-http', `${registry.host}/ns/x:v1`, '--debug']);
      expect(result.code).toBe(1);
      expect(registry.requests.some(({ path: at }) => at.includes(secret))).toBe(true);
      expectNoSecret(result);
    } finally {
      await registry.close();
    }
  });
});
