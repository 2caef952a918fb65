import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { getCredentials, readSecrets } from '../../../src/source/secrets.js';
import { redactForeign } from '../../../src/core/errors.js';
import { failureOf } from '../../support/connect.js';
import { directoryWith } from '../../support/temporary.js';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const secret = (name: string, type: string, fields: object, namespace?: string): string =>
  `${JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, type, ...fields })}\n`;
const basic = 'kubernetes.io/basic-auth';
const ssh = 'kubernetes.io/ssh-auth';
const docker = 'kubernetes.io/dockerconfigjson';

const failure = (work: () => unknown): Promise<Error & { code?: string; hint?: string }> =>
  failureOf(Promise.resolve().then(work));

describe('source/secrets', () => {
  it('reads Secrets by namespace and name, from data and stringData', async () => {
    const config = '{"auths":{"quay.io":{"auth":"bWU6cHc="}}}';
    const directory = await directoryWith({
      'a.yaml': [
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n',
        secret(
          'git',
          basic,
          { data: { username: base64('me'), password: base64('old') }, stringData: { password: 'pw' } },
          'ns',
        ),
        secret('key', ssh, { stringData: { 'ssh-privatekey': 'KEY', 'ssh-knownhosts': 'host' } }, 'ns'),
      ].join('---\n'),
      'b.json': secret('pull', docker, { data: { '.dockerconfigjson': base64(config) } }),
      'README.md': ': not read',
    });
    const secrets = await readSecrets(directory);
    expect(getCredentials(secrets, { namespace: 'ns', name: 'git', kind: 'git' })).toEqual({
      type: 'basic',
      username: 'me',
      password: 'pw',
    });
    expect(getCredentials(secrets, { namespace: 'ns', name: 'key', kind: 'git' })).toEqual({
      type: 'ssh',
      privateKey: 'KEY',
      knownHosts: 'host',
    });
    // Without a namespace of its own, it is in every one.
    expect(getCredentials(secrets, { namespace: 'ns', name: 'pull', kind: 'image' })).toEqual({
      type: 'docker',
      config,
    });
    const missing = await failure(() =>
      getCredentials(secrets, { namespace: 'other', name: 'git', kind: 'git' }),
    );
    expect(missing).toMatchObject({ code: 'NOT_FOUND', hint: 'use ns/git' });
    const wrong = await failure(() =>
      getCredentials(secrets, { namespace: 'ns', name: 'key', kind: 'http' }),
    );
    expect(wrong.message).toBe(
      `${path.join(directory, 'a.yaml')}:7: Secret ns/key: unsupported type "${ssh}"`,
    );
    expect(wrong.hint).toBe(`use type ${basic} for http`);
  });

  it.each([
    [basic, { stringData: { username: 'me' } }, 'data.password: missing'],
    [basic, { data: { password: '%s3cret%' } }, 'data.password: invalid base64'],
    [basic, { stringData: { password: 17 } }, 'stringData.password: expected a string'],
    [ssh, { stringData: { 'ssh-publickey': 's3cret' } }, 'data.ssh-privatekey: missing'],
    [
      docker,
      { stringData: { '.dockerconfigjson': '{"s3cret' } },
      '.dockerconfigjson: expected a JSON object with auths',
    ],
    [
      docker,
      { stringData: { '.dockerconfigjson': 'null' } },
      '.dockerconfigjson: expected a JSON object with auths',
    ],
  ])('tells what is wrong with a %s, without values', async (type, fields, problem) => {
    const directory = await directoryWith({ 's.yaml': `# a comment\n${secret('one', type, fields)}` });
    const secrets = await readSecrets(directory);
    const kind = type === docker ? 'image' : 'git';
    const error = await failure(() => getCredentials(secrets, { namespace: 'ns', name: 'one', kind }));
    expect(error.message).toBe(`${path.join(directory, 's.yaml')}:2: Secret one: ${problem}`);
    expect(`${error.message}${error.hint ?? ''}`).not.toContain('s3cret');
    // As it is shown, it still says all of this.
    expect(redactForeign(error.message)).toBe(error.message);
  });

  it.each([
    ['https://git.example/a/b', {}, {}, false],
    ['https://git.example/a/b', { 'tekton.dev/git-0': 'https://git.example' }, {}, true],
    ['http://git.example/a/b', { 'tekton.dev/git-0': 'https://git.example' }, {}, false],
    ['https://git.example:8443/a/b', { 'tekton.dev/git-0': 'https://git.example' }, {}, false],
    ['https://git.example.evil/a', { 'tekton.dev/git-0': 'https://git.example' }, {}, false],
    ['https://git.example@evil.example/a', { 'tekton.dev/git-0': 'git.example' }, {}, false],
    ['https://b.example/a', { 'tekton.dev/git-0': 'a.example', 'tekton.dev/git-1': 'b.example' }, {}, true],
    ['https://git.example/a', {}, { 'ns/one': ['git.example'] }, true],
    ['https://git.example/a', {}, { one: ['git.example'] }, true],
    ['https://git.example/a', {}, { 'other/one': ['git.example'] }, false],
  ])(
    'sends a Secret of the user to %s with annotations %j and hosts %j: %s',
    async (address, annotations, hosts, isSent) => {
      const manifest = {
        ...{ apiVersion: 'v1', kind: 'Secret', type: basic, stringData: { password: 's3cret' } },
        metadata: { name: 'one', namespace: 'ns', annotations },
      };
      const secrets = await readSecrets(await directoryWith({ 's.json': JSON.stringify(manifest) }));
      const request = { namespace: 'ns', name: 'one', address, hosts: new Map(Object.entries(hosts)) };
      for (const kind of ['git', 'http'] as const) {
        if (isSent)
          expect(getCredentials(secrets, { ...request, kind })).toMatchObject({ password: 's3cret' });
        else {
          const error = await failure(() => getCredentials(secrets, { ...request, kind }));
          expect(error).toMatchObject({ code: 'AUTH', message: expect.stringContaining('not bound to') });
        }
      }
    },
  );

  it('binds an ssh key to the host of a repository in the form of ssh', async () => {
    const manifest = {
      ...{
        apiVersion: 'v1',
        kind: 'Secret',
        type: 'kubernetes.io/ssh-auth',
        stringData: { 'ssh-privatekey': 'k' },
      },
      metadata: { name: 'one', annotations: { 'tekton.dev/git-0': 'github.com' } },
    };
    const secrets = await readSecrets(await directoryWith({ 's.json': JSON.stringify(manifest) }));
    const ask = (address: string) => () =>
      getCredentials(secrets, { namespace: '', name: 'one', kind: 'git', address });
    for (const address of ['git@github.com:a/b.git', 'ssh://git@github.com/a/b'])
      expect(ask(address)()).toMatchObject({ type: 'ssh' });
    for (const address of ['git@github.com.evil:a/b', 'ssh://git@evil.example/github.com'])
      expect(await failure(ask(address))).toMatchObject({ code: 'AUTH' });
  });

  it('refuses two of one name, and files that cannot be read, without what is in them', async () => {
    const one = secret('one', basic, { stringData: { password: 's3cret' } }, 'ns');
    const twice = await directoryWith({ 'a.yaml': one, 'b.yaml': one });
    const error = await failureOf(readSecrets(twice));
    expect(error.message).toBe(
      `${path.join(twice, 'b.yaml')}:1: Secret "ns/one": duplicate, first defined in ${path.join(twice, 'a.yaml')}:1`,
    );
    const broken = await directoryWith({ 'a.yaml': 'kind: Secret\npassword: [s3cret\n' });
    const fault = await failureOf(readSecrets(broken));
    expect(fault.message).toMatch(/a\.yaml:\d: yaml: did not find expected ',' or '\]'$/);
    const quoting = await directoryWith({ 'a.yaml': 'kind: Secret\npassword: *s3cret\n' });
    expect((await failureOf(readSecrets(quoting))).message).toBe(
      `${path.join(quoting, 'a.yaml')}:2: invalid manifest`,
    );
    expect(`${fault.message}${fault.hint ?? ''}`).not.toContain('s3cret');
    const doubled = await directoryWith({ 'a.yaml': `${one.trimEnd().slice(0, -1)}, type: ${ssh}}\n` });
    expect((await failureOf(readSecrets(doubled))).message).toMatch(
      /a\.yaml:1:\d+: type: duplicate key, first defined on line 1$/,
    );
    expect(await failureOf(readSecrets(path.join(broken, 'none')))).toMatchObject({ code: 'NOT_FOUND' });
  });
});

describe('source/secrets: a manifest without metadata', () => {
  it('is reported with all others that are wrong', async () => {
    const nameless = 'apiVersion: v1\nkind: Secret\n';
    const named = `${nameless}metadata: {name: one}\n`;
    const directory = await directoryWith({
      'a.yaml': nameless,
      'b.yaml': named,
      'c.yaml': named,
      'd.yaml': nameless,
    });
    await expect(readSecrets(directory)).rejects.toMatchObject({
      diagnostics: [
        { problem: 'Secret: metadata.name: missing', file: `${directory}/a.yaml`, line: 1 },
        { problem: `Secret "one": duplicate, first defined in ${directory}/b.yaml:1` },
        { problem: 'Secret: metadata.name: missing' },
      ],
    });
  });

  it('is refused with its place and what is missing', async () => {
    const directory = await directoryWith({ 'a.yaml': '# a\napiVersion: v1\nkind: Secret\n' });
    await expect(readSecrets(directory)).rejects.toMatchObject({
      message: `${directory}/a.yaml:2: Secret: metadata.name: missing`,
      line: 2,
      hint: expect.stringContaining('metadata') as string,
    });
  });
});
