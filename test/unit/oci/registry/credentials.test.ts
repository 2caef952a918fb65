import { readFileSync } from 'node:fs';
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CancelledError } from '../../../../src/core/errors.js';
import {
  type CredentialOptions,
  type Credentials,
  createCredentialStore,
} from '../../../../src/oci/registry/credentials.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import { busy } from '../../../support/waiting.js';

let bench: Workbench;

beforeEach(async () => {
  bench = await openWorkbench();
});

afterEach(() => bench.close());

const logger = {
  log: (level: string, message: string) => void bench.logged.push(`${level}: ${message}`),
  progress: () => undefined,
};

function find(
  registry: string,
  repository: string,
  options: Partial<CredentialOptions> = {},
): Promise<Credentials | undefined> {
  return createCredentialStore({ environment: {}, homeDirectory: bench.home, logger, ...options }).find(
    registry,
    repository,
  );
}

const encoded = (user: string, password: string): { auth: string } => ({
  auth: Buffer.from(`${user}:${password}`).toString('base64'),
});

async function config(auths: object, path = '.docker/config.json'): Promise<string> {
  return bench.file(path, { auths });
}

describe('oci/credentials: files', () => {
  it('looks into five places in order, and falls through where an entry is missing or empty', async () => {
    const places = [
      'authfile',
      'env',
      'docker/config.json',
      '.docker/config.json',
      'run/containers/auth.json',
    ];
    const file = (index: number): string => join(bench.home, places[index] as string);
    const options = {
      authFile: file(0),
      environment: { REGISTRY_AUTH_FILE: file(1), DOCKER_CONFIG: join(bench.home, 'docker') },
      runtimeDirectory: join(bench.home, 'run'),
    };
    for (const [index, path] of places.entries()) {
      await config({ other: encoded('x', 'x'), 'r.io': index === 4 ? encoded('u4', 'p') : {} }, path);
    }
    for (let index = 4; index >= 0; index--) {
      await config({ 'r.io': encoded(`u${index}`, 'p') }, places[index]);
      const found = await find('r.io', 'a/b', options);
      expect(found).toEqual({ username: `u${index}`, password: 'p', source: `${file(index)}, key "r.io"` });
    }
    expect(createCredentialStore({ ...options, homeDirectory: bench.home }).files).toEqual(
      places.map((_, i) => file(i)),
    );
  });

  it('finds nothing where there are no files', async () => {
    expect(await find('r.io', 'a')).toBeUndefined();
  });

  it('takes the most specific key', async () => {
    await config({
      'quay.io': encoded('host', 'p'),
      'quay.io/ns': encoded('ns', 'p'),
      'quay.io/ns/repo': encoded('repo', 'p'),
      'quay.io/empty': { auth: '' },
    });
    const user = async (repository: string): Promise<string | undefined> =>
      (await find('quay.io', repository))?.username;
    expect(await user('ns/repo')).toBe('repo');
    expect(await user('ns/repo/sub')).toBe('repo');
    expect(await user('ns/repository')).toBe('ns');
    expect(await user('ns')).toBe('ns');
    expect(await user('nsx/repo')).toBe('host');
    expect(await user('empty/repo')).toBe('host');
  });

  it.each(['quay.io.evil.com', 'evil-quay.io', 'quay.i', 'quay.io:443', 'quay.io:5000', 'sub.quay.io'])(
    'does not give the credentials of quay.io to %s',
    async (host) => {
      await config({ 'quay.io': encoded('u', 'p'), 'https://quay.io/v1/': encoded('u', 'p') });
      expect(await find(host, 'a/b')).toBeUndefined();
    },
  );

  it.each([
    'https://index.docker.io/v1/',
    'index.docker.io',
    'docker.io',
    'https://docker.io',
    'registry-1.docker.io',
  ])('knows Docker Hub as %s', async (key) => {
    await config({ [key]: encoded('hub', 'p') });
    expect((await find('docker.io', 'library/x'))?.username).toBe('hub');
  });

  it.each(['r.io:5000', 'https://r.io:5000', 'http://r.io:5000/v2/', 'R.io:5000', 'r.io:5000/v1/'])(
    'takes key %s for host r.io:5000',
    async (key) => {
      await config({ [key]: encoded('u', 'p') });
      expect((await find('r.io:5000', 'x/y'))?.username).toBe('u');
    },
  );

  it('reads every form of an entry', async () => {
    await config({
      a: encoded('u', 'p:with:colons ü'),
      b: { username: 'u', password: 'p' },
      c: { auth: '', identitytoken: 'idt' },
      d: { ...encoded('00000000-0000', ''), identitytoken: 'idt' },
      e: {},
    });
    const at = async (host: string): Promise<object> => {
      const found: Partial<Credentials> = { ...(await find(host, 'x')) };
      delete found.source;
      return found;
    };
    expect(await at('a')).toEqual({ username: 'u', password: 'p:with:colons ü' });
    expect(await at('b')).toEqual({ username: 'u', password: 'p' });
    expect(await at('c')).toEqual({ username: '', password: '', identityToken: 'idt' });
    expect(await at('d')).toEqual({ username: '00000000-0000', password: '', identityToken: 'idt' });
    expect(await at('e')).toEqual({});
  });

  it('logs the key at debug level, and never a secret', async () => {
    const path = await config({ 'quay.io/ns': encoded('jo', 'hunter2') });
    await find('quay.io', 'ns/repo');
    expect(bench.logged).toEqual([`debug: quay.io/ns/repo: credentials from ${path}, key "quay.io/ns"`]);
  });

  it('reads a file that begins with a byte order mark', async () => {
    await bench.file('.docker/config.json', `\uFEFF${JSON.stringify({ auths: { a: encoded('u', 'p') } })}`);
    expect((await find('a', 'x'))?.username).toBe('u');
  });

  it.each([
    ['not JSON', '{"auths":{"a":{"auth":"aHVudGVyMg"}', 'is not valid JSON'],
    ['not JSON at the secret', '{"auths":\n{"a":{"auth":hunter2}}}', 'is not valid JSON'],
    ['UTF-16', '\0{\0}\0', 'is not valid JSON'],
    ['an array', '[]', 'expected an object, got a list'],
    ['auths of the wrong type', '{"auths":["hunter2"]}', 'auths: expected an object, got a list'],
    ['an entry of the wrong type', '{"auths":{"a":"hunter2"}}', 'auths.a: expected an object, got a string'],
    ['auth of the wrong type', '{"auths":{"a":{"auth":5771}}}', 'auths.a.auth: expected a string'],
    ['a misspelled field', '{"auths":{"a":{"atuh":"hunter2"}}}', 'auths.a.atuh: unknown field'],
    ['junk base64', '{"auths":{"a":{"auth":"hunter2!!"}}}', 'auths.a.auth: expected base64'],
    ['base64 without a colon', '{"auths":{"a":{"auth":"aHVudGVyMg=="}}}', 'auths.a.auth: expected base64'],
  ])('names the file without the secret for %s', async (_name, content, problem) => {
    const path = await bench.file('.docker/config.json', content);
    const failure = await failureOf(find('a', 'x'));
    expect(failure).toMatchObject({ code: 'AUTH', file: path });
    expect(failure.message).toContain(path);
    expect(failure.message).toContain(problem);
    expect(`${failure.message}${String(failure.cause)}`).not.toMatch(/hunter2|aHVudGVyMg|5771/);
  });

  it('ignores an invalid entry of another registry', async () => {
    await config({ a: { auth: '%%%' }, b: encoded('u', 'p') });
    expect((await find('b', 'x'))?.username).toBe('u');
  });

  it('names a file that cannot be read', async () => {
    await mkdir(join(bench.home, '.docker/config.json'), { recursive: true });
    const failure = await failureOf(find('a', 'x'));
    expect(failure.message).toBe(
      `${bench.home}/.docker/config.json: credential file cannot be read (EISDIR)`,
    );
  });

  it('fails when --authfile names no file, and warns when REGISTRY_AUTH_FILE does', async () => {
    await config({ a: encoded('u', 'p') });
    const missing = join(bench.home, 'missing');
    expect(await failureOf(find('a', 'x', { authFile: missing }))).toMatchObject({ code: 'NOT_FOUND' });
    expect((await find('a', 'x', { environment: { REGISTRY_AUTH_FILE: missing } }))?.username).toBe('u');
    expect(bench.logged[0]).toBe(`warn: REGISTRY_AUTH_FILE: ${missing}: not found`);
  });
});

describe('oci/credentials: helpers', () => {
  /** Puts an executable into a directory of its own and returns a PATH with it. */
  async function helper(name: string, script: string): Promise<CredentialOptions['environment']> {
    const path = await bench.file(`bin/docker-credential-${name}`, `#!/bin/sh\n${script}\n`);
    await chmod(path, 0o755);
    return { PATH: `${join(bench.home, 'bin')}:/usr/bin:/bin` };
  }
  const answer = (user: string, secret: string): string =>
    [
      `read server; echo "$1 $server" >> "${bench.home}/asked"`,
      `echo '{"ServerURL":"x","Username":"${user}","Secret":"${secret}"}'`,
    ].join('\n');
  const asked = async (): Promise<string[]> =>
    (await readFile(join(bench.home, 'asked'), 'utf8')).trim().split('\n');

  it('asks the helper of the registry, once', async () => {
    const environment = await helper('test', answer('jo', 'hunter2'));
    const path = await bench.file('.docker/config.json', { credHelpers: { 'r.io:5000': 'test' } });
    const store = createCredentialStore({ environment, homeDirectory: bench.home });
    const found = { username: 'jo', password: 'hunter2', source: `${path}, credHelpers key "r.io:5000"` };
    expect(await store.find('r.io:5000', 'a')).toEqual(found);
    expect(await store.find('r.io:5000', 'b')).toEqual(found);
    expect(await store.find('other', 'b')).toBeUndefined();
    expect(await asked()).toEqual(['get r.io:5000']);
  });

  it('asks credsStore for what the file does not have', async () => {
    const environment = await helper('store', answer('jo', 'hunter2'));
    const auths = { 'own.io': encoded('own', 'p'), 'quay.io': {} };
    await bench.file('.docker/config.json', { auths, credsStore: 'store' });
    const user = async (host: string): Promise<string | undefined> =>
      (await find(host, 'a/b', { environment }))?.username;
    expect(await user('own.io')).toBe('own');
    expect(await user('quay.io')).toBe('jo');
    expect(await user('docker.io')).toBe('jo');
    expect(await asked()).toEqual(['get quay.io', 'get https://index.docker.io/v1/']);
  });

  it('takes the secret of user <token> for an identity token', async () => {
    const environment = await helper('test', answer('<token>', 'idt'));
    await bench.file('.docker/config.json', { credHelpers: { a: 'test' } });
    expect(await find('a', 'x', { environment })).toMatchObject({ username: '', identityToken: 'idt' });
  });

  it('falls through, quietly, when the helper has none', async () => {
    const script = 'echo "credentials not found in native keychain"; exit 1';
    const environment = await helper('test', script);
    await bench.file('.docker/config.json', { credHelpers: { a: 'test' }, auths: { a: encoded('u', 'p') } });
    expect((await find('a', 'x', { environment }))?.username).toBe('u');
    expect(bench.logged.filter((line) => line.startsWith('warn'))).toEqual([]);
  });

  it.each([
    ['is missing', undefined, 'not installed'],
    ['exits with 1', 'echo "keychain is locked"; exit 1', 'failed with exit code 1: keychain is locked'],
    ['fails after printing a secret', `echo '{"Secret":"hunter2"}'; exit 3`, 'failed with exit code 3'],
    ['hangs', 'exec sleep 60', 'timed out after 0.3 s'],
    [
      'prints without end',
      'while :; do echo hunter2hunter2hunter2hunter2hunter2; done',
      'prints more than 65536 bytes',
    ],
    ['prints no JSON', 'echo hunter2', 'response is not valid JSON'],
    ['prints an incomplete response', `echo '{"Username":"hunter2"}'`, 'response lacks Username or Secret'],
    ['kills itself', 'kill -9 $$', 'killed by SIGKILL'],
  ])('warns, with file and key, and goes on when the helper %s', async (_name, script, problem) => {
    const environment = script === undefined ? { PATH: bench.home } : await helper('test', script);
    const path = await bench.file('.docker/config.json', { credHelpers: { a: 'test' } });
    const helperTimeoutMs = script === 'exec sleep 60' ? 300 : 20_000;
    expect(await find('a', 'x', { environment, helperTimeoutMs })).toBeUndefined();
    const warning = bench.logged.find((line) => line.startsWith('warn')) ?? '';
    expect(warning).toContain(`docker-credential-test: ${problem}`);
    expect(warning).toContain(`(from ${path}, credHelpers key "a")`);
    expect(warning).not.toContain('hunter2');
  });

  it('ends a helper, and what it has started, when the command is cancelled', async () => {
    const pids = join(bench.home, 'pids');
    const environment = await helper(
      'test',
      `sleep 60 & echo "$$ $!" > "${pids}.new"; mv "${pids}.new" "${pids}"; wait`,
    );
    await bench.file('.docker/config.json', { credHelpers: { a: 'test' } });
    const controller = new AbortController();
    const asking = find('a', 'x', { environment, signal: controller.signal });
    const started = await vi.waitUntil(async () => readFile(pids, 'utf8').catch(() => ''), busy);
    controller.abort();
    await expect(asking).rejects.toBeInstanceOf(CancelledError);
    const isRunning = (pid: string): boolean => {
      try {
        // A process that has ended and waits for its parent has no command line.
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== '';
      } catch {
        return false;
      }
    };
    await vi.waitUntil(() => !started.trim().split(' ').some(isRunning), busy);
    expect(bench.logged.filter((line) => line.startsWith('warn'))).toEqual([]);
  });

  it.each(['../../bin/sh', 'a b', 'x;y', ''])('runs nothing for the name %j', async (name) => {
    await bench.file('.docker/config.json', { credHelpers: { a: name } });
    expect(await find('a', 'x')).toBeUndefined();
    expect(bench.logged[0]).toContain('invalid name of a credential helper');
  });
});
