import { execFileSync, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cp, mkdir, readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { loadAll } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasKubectl, startApiServer } from '../support/api-server.js';
import { bundlesDirectory, useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();
const commits: Record<string, string> = {};

/** A repository below the working directory, of the files in it. */
function commitAll(name: string): void {
  const directory = path.join(sandbox.work, name);
  const git = (...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
      cwd: directory,
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], GIT_CONFIG_GLOBAL: '/dev/null', HOME: sandbox.home },
    });
  git('init', '-q', '-b', 'main');
  git('add', '.');
  git('commit', '-q', '-m', 'all');
  git('tag', 'v1');
  commits[name] = git('rev-parse', 'HEAD').trim();
}

const map = (name: string, value: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n  x: "${value}"\n`;

/** An image whose digests differ in their last digit only. */
const imageOf = (digit: string): string =>
  `registry.example.com/${'namespace/'.repeat(20)}operator@sha256:${'0'.repeat(63)}${digit}`;

const document = (name: string, spec: string): string =>
  `apiVersion: core.rukpak.io/v1alpha2\nkind: BundleDeployment\nmetadata:\n  name: ${name}\nspec:\n${spec}`;

const gitSource = (repository: string, ref: string, more = ''): string =>
  `  - kind: git\n    git: {repository: "file://${sandbox.work}/${repository}", ref: ${ref}}\n${more}`;

const render = (...args: string[]) =>
  sandbox.run(['bundle', 'deployment', 'render', '--allow-local', ...args]);

describe('opmate bundle deployment', () => {
  let server: ReturnType<typeof createServer>;
  let url = '';
  beforeAll(async () => {
    await mkdir(path.join(sandbox.work, 'operator'));
    await cp(path.join(bundlesDirectory, 'skupper-operator/1.9.0'), path.join(sandbox.work, 'operator'), {
      recursive: true,
    });
    await sandbox.write({
      'one/a.yaml': map('a', '1'),
      'two/b.yaml': map('b', '1'),
      'both/a.yaml': map('a', '2'),
      'images/a.yaml': map('a', imageOf('b')),
      'archive/manifests/c.yaml': map('c', '1'),
    });
    for (const name of ['operator', 'one', 'two', 'both', 'images']) commitAll(name);
    execFileSync('tar', ['-czf', 'c.tgz', '-C', 'archive', 'manifests'], { cwd: sandbox.work });
    const archive = await readFile(path.join(sandbox.work, 'c.tgz'));
    server = createServer((request, response) => {
      const isKnown = request.headers.authorization === `Basic ${Buffer.from('me:pa55').toString('base64')}`;
      response.writeHead(isKnown ? 200 : 401).end(isKnown ? archive : '');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/c.tgz`;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  it('renders several documents of different formats reproducibly', async () => {
    const plain = document(
      'b-plain',
      `  format: plain\n  installNamespace: here\n  sources:\n${gitSource('one', '{tag: v1}')}`,
    );
    const operator = document(
      'a-operator',
      `  format: registry-v1\n  sources:\n${gitSource('operator', commits['operator'] ?? '')}`,
    );
    await sandbox.write({ 'all.yaml': `${plain}---\n${operator}` });
    const { code, stdout, stderr } = await render('-f', 'all.yaml');
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const objects = loadAll(stdout) as { kind: string; metadata: { name: string; namespace?: string } }[];
    const keys = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''} ${metadata.name}`);
    expect(keys).toEqual([...keys].sort());
    expect(keys).toContain('ConfigMap here a');
    expect(keys).toContain('Deployment skupper-operator-system skupper-site-controller');
    expect(stderr).toContain(`git+file://${sandbox.work}/operator#${commits['operator']}`);
    expect(stderr).toMatch(/a-operator: rendered namespace=skupper-operator-system hash=sha256:[0-9a-f]{64}/);
    const again = await sandbox.run(['bundle', 'deployment', 'render', '--allow-local', '-f', '-'], {
      stdin: `${operator}---\n${plain}`,
    });
    expect(again.stdout).toBe(stdout);
    const json = await render('-f', 'all.yaml', '-o', 'json');
    expect((JSON.parse(json.stdout) as { items: unknown[] }).items).toEqual(objects);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it.skipIf(!hasKubectl)('renders objects that kubectl accepts, in all formats (needs kubectl)', async () => {
    const spec = `  format: registry-v1\n  sources:\n${gitSource('operator', 'v1')}`;
    await sandbox.write({ 'taken.yaml': document('taken', spec) });
    const yaml = await render('-f', 'taken.yaml');
    await sandbox.write({
      'taken.out': yaml.stdout,
      'taken.json': (await render('-f', 'taken.yaml', '-o', 'json')).stdout,
    });
    expect((await render('-f', 'taken.yaml', '--to', 'taken')).code).toBe(0);
    const names = (loadAll(yaml.stdout) as { kind: string; metadata: { name: string } }[]).map(
      ({ kind, metadata }) => `${kind.toLowerCase()}/${metadata.name}`,
    );
    expect(names.length).toBeGreaterThan(3);
    // Even so, kubectl asks a cluster which kinds there are.
    const cluster = await startApiServer();
    await sandbox.write({ 'taken.config': cluster.kubeconfig });
    const taken = async (place: string): Promise<string[]> => {
      const child = spawn(
        'kubectl',
        [
          '--kubeconfig=taken.config',
          'apply',
          '--dry-run=client',
          '--validate=false',
          '-o',
          'name',
          '-f',
          place,
        ],
        { cwd: sandbox.work, env: { PATH: process.env['PATH'], HOME: sandbox.home } },
      );
      let output = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => {
          output += chunk.toString();
        });
      const code = await new Promise((resolve) => child.once('close', resolve));
      expect({ code, output }).toMatchObject({ code: 0 });
      return output
        .trim()
        .split('\n')
        .map((line) => line.replace(/^(\w+)[.\w]*/, '$1'));
    };
    try {
      for (const place of ['taken.out', 'taken.json', 'taken'])
        expect((await taken(place)).sort()).toEqual([...names].sort());
    } finally {
      await cluster.close();
    }
  });

  it('reports all unreadable sources of all documents together with other problems', async () => {
    const two = `  format: plain\n  sources:\n${gitSource('absent', 'v1')}${gitSource('one', 'no-such-tag', '    destination: b\n')}`;
    await sandbox.write({
      'unread.yaml': `${document('a', two)}---\n${document('b', `  format: plain\n  sources:\n${gitSource('gone', 'v1')}`)}---\n${document('c', '  format: plain\n  sources: [{kind: zip}]\n')}`,
    });
    const { code, stdout, stderr } = await render('-f', 'unread.yaml');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    const lines = stderr.split('\n');
    for (const said of [
      /^error: unread\.yaml:2:1: BundleDeployment "a": .*\/absent/,
      /^error: unread\.yaml:2:1: BundleDeployment "a": .*no-such-tag/,
      /^error: unread\.yaml:\d+:\d+: BundleDeployment "b": .*\/gone/,
      /^error: unread\.yaml:\d+:\d+: BundleDeployment "c": .*kind: unsupported value "zip"/,
    ]) {
      expect(lines.filter((line) => said.test(line))).toHaveLength(1);
    }
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('combines sources at their destinations, and names both sources of a duplicate file', async () => {
    const two = (destination: string): string =>
      document(
        'both',
        `  format: plain\n  sources:\n${gitSource('one', 'v1', '    destination: manifests\n')}${gitSource('both', 'v1', `    destination: ${destination}\n`)}`,
      );
    await sandbox.write({ 'clash.yaml': two('manifests'), 'fine.yaml': two('else') });
    const fine = await render('-f', 'fine.yaml');
    expect(fine.code).toBe(0);
    expect(loadAll(fine.stdout)).toMatchObject([{ metadata: { name: 'a' }, data: { x: '1' } }]);
    const clash = await render('-f', 'clash.yaml');
    expect({ code: clash.code, stdout: clash.stdout }).toEqual({ code: 3, stdout: '' });
    expect(clash.stderr).toMatch(/manifests\/a\.yaml.*spec\.sources\[0\].*spec\.sources\[1\]/);
  });

  it('reads Secrets and ConfigMaps from directories, and warns about other namespaces', async () => {
    const secret = (namespace: string): object => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'creds', namespace, annotations: { 'tekton.dev/git-0': new URL(url).origin } },
      type: 'kubernetes.io/basic-auth',
      stringData: { username: 'me', password: 'pa55' },
    });
    const http = (namespace: string): string =>
      document(
        'http',
        `  format: plain\n  installNamespace: here\n  sources:\n  - kind: http\n    http: {url: "${url}", auth: {secret: {namespace: ${namespace}, name: creds}}}\n`,
      );
    const maps = document(
      'maps',
      '  format: plain\n  source: {type: configMaps, configMaps: [{configMap: {name: content}, path: manifests}]}\n',
    );
    await sandbox.write({
      'secrets/a.yaml': secret('here'),
      'secrets/b.yaml': secret('there'),
      'maps/content.json': {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'content' },
        immutable: true,
        data: { 'd.yaml': map('d', '1') },
      },
      'own.yaml': http('here'),
      'foreign.yaml': http('there'),
      'missing.yaml': http('nowhere'),
      'maps.yaml': maps,
    });
    const flags = ['--secrets', 'secrets', '--use-http'];
    const own = await render('-f', 'own.yaml', ...flags);
    expect(own).toMatchObject({ code: 0 });
    expect(own.stderr).not.toContain('foreign');
    const refused = await render('-f', 'foreign.yaml', ...flags);
    expect(refused).toMatchObject({ code: 3, stdout: '' });
    expect(refused.stderr).toContain('Secret "creds" is in another namespace: "there"');
    const foreign = await render('-f', 'foreign.yaml', ...flags, '--allow-foreign-secrets');
    expect(foreign).toMatchObject({ code: 0, stdout: own.stdout });
    expect(foreign.stderr).toMatch(/foreign\.yaml:\d+:\d+: .*in another namespace: "there"/);
    const missing = await render('-f', 'missing.yaml', ...flags);
    expect(missing).toMatchObject({ code: 3, stdout: '' });
    expect(missing.stderr).toContain('use here/creds or there/creds');
    const among = `${http('here')}---\n${JSON.stringify(secret('here'))}\n`;
    await sandbox.write({ 'among.yaml': among });
    expect(await render('-f', 'among.yaml', '--use-http')).toMatchObject({ code: 0, stdout: own.stdout });
    const unread = await render('-f', 'own.yaml', '--use-http');
    expect(unread).toMatchObject({ code: 1, stdout: '' });
    expect(unread.stderr).toMatch(/Secret "here\/creds" of .* is not read, so your own credentials are used/);
    for (const { stderr } of [own, foreign, missing, unread]) expect(stderr).not.toContain('pa55');
    const withMaps = await render('-f', 'maps.yaml', '--config-maps', 'maps');
    expect(withMaps).toMatchObject({ code: 0 });
    expect(loadAll(withMaps.stdout)).toMatchObject([{ metadata: { name: 'd' } }]);
    const inline = `${maps}---\n${await readFile(path.join(sandbox.work, 'maps/content.json'), 'utf8')}\n`;
    const piped = await sandbox.run(['bundle', 'deployment', 'render', '-f', '-'], { stdin: inline });
    expect(piped).toMatchObject({ code: 0, stdout: withMaps.stdout });
    const without = await render('-f', 'maps.yaml');
    expect(without).toMatchObject({ code: 3, stdout: '' });
    expect(without.stderr).toContain('ConfigMap "content" not found');
  });

  it('reports problems of all documents together, and refuses unpinned sources', async () => {
    await sandbox.write({
      'bad.yaml': `${document('a', '  format: plain\n  sorces: []\n')}---\n${document('b', '  format: plain\n  sources: [{kind: zip}]\n')}`,
      'tag.yaml': document('a', `  format: plain\n  sources:\n${gitSource('one', 'v1')}`),
    });
    const bad = await render('-f', 'bad.yaml', '--to', 'never');
    expect(bad).toMatchObject({ code: 3, stdout: '' });
    expect(bad.stderr.split('\n').filter((line) => line.startsWith('error: bad.yaml:'))).toEqual([
      'error: bad.yaml:5:1: BundleDeployment "a": spec.sources: missing',
      'error: bad.yaml:7:3: BundleDeployment "a": spec.sorces: unknown field',
      'error: bad.yaml:15:14: BundleDeployment "b": spec.sources[0].kind: unsupported value "zip"',
    ]);
    await expect(readdir(path.join(sandbox.work, 'never'))).rejects.toThrow('ENOENT');
    const formats = ['kustom', '[plain]'].map((format) =>
      document('a', `  format: ${format}\n  sources:\n${gitSource('absent', 'v1')}`),
    );
    await sandbox.write({ 'unknown.yaml': formats[0] ?? '', 'list.yaml': formats[1] ?? '' });
    expect(await render('-f', 'unknown.yaml')).toEqual({
      code: 3,
      stdout: '',
      stderr:
        'error: unknown.yaml:6:3: BundleDeployment "a": spec.format: unknown format "kustom"\n' +
        '  hint: use registry-v1, plain or helm, or add an executable opmate-format-kustom to PATH\n',
    });
    expect((await render('-f', 'list.yaml')).stderr).toBe(
      'error: list.yaml:6:3: BundleDeployment "a": spec.format: expected a string, got a list\n',
    );
    const loose = await render('-f', 'tag.yaml', '--require-digest');
    expect(loose).toMatchObject({ code: 3, stdout: '' });
    const locked = await render('-f', 'tag.yaml', '--lock', 'lock.json');
    expect(locked.code).toBe(0);
    expect(await readFile(path.join(sandbox.work, 'lock.json'), 'utf8')).toContain(commits['one']);
    expect(await render('-f', 'tag.yaml', '--lock', 'lock.json', '--require-digest')).toMatchObject({
      code: 0,
      stdout: locked.stdout,
    });
  });

  it('shows changes since a render, from a file and from a directory', async () => {
    const of = (repository: string, ref = 'v1'): string =>
      document('a', `  format: plain\n  installNamespace: here\n  sources:\n${gitSource(repository, ref)}`);
    await sandbox.write({ 'old.yaml': of('one'), 'new.yaml': of('both'), 'other.yaml': of('two') });
    const old = await render('-f', 'old.yaml');
    await sandbox.write({ 'rendered.yaml': old.stdout });
    expect((await render('-f', 'old.yaml', '--to', 'rendered')).code).toBe(0);
    const diff = (file: string, against: string, ...args: string[]) =>
      sandbox.run([
        ...['bundle', 'deployment', 'diff', '-f', file, '--against', against, '--allow-local'],
        ...args,
      ]);
    for (const against of ['rendered', 'rendered.yaml']) {
      expect(await diff('old.yaml', against)).toMatchObject({ code: 0, stdout: '' });
      expect(await diff('new.yaml', against)).toMatchObject({
        code: 3,
        stdout: [
          '--- ConfigMap here/a',
          '+++ ConfigMap here/a',
          '@@ -1,6 +1,6 @@',
          ' apiVersion: v1',
          ' data:',
          '-  x: "1"',
          '+  x: "2"',
          ' kind: ConfigMap',
          ' metadata:',
          '   name: a',
          '',
        ].join('\n'),
      });
    }
    expect(await diff('other.yaml', 'rendered', '-o', 'text')).toMatchObject({
      code: 3,
      stdout: '- ConfigMap here/a\n+ ConfigMap here/b\n',
    });
    await sandbox.write({
      'images.yaml': of('images'),
      'earlier.yaml': old.stdout.replace('x: "1"', `x: ${imageOf('a')}`),
    });
    expect((await diff('images.yaml', 'earlier.yaml', '-o', 'text')).stdout).toMatch(
      /^~ ConfigMap here\/a\n {4}data\.x: …0+a" -> …0+b"\n$/,
    );
    const json = await diff('new.yaml', 'rendered', '-o', 'json');
    expect(JSON.parse(json.stdout)).toMatchObject({
      changes: [{ action: 'changed', name: 'a', fields: [{ path: 'data.x', old: '1', new: '2' }] }],
    });
    expect(await diff('new.yaml', 'nowhere')).toMatchObject({ code: 1, stdout: '' });
  });

  it.each([
    [['render'], '--file or <package>: missing'],
    [['render', '-f', 'a', '-f', 'a'], 'named twice'],
    [['diff', '-f', 'a'], '--against: missing'],
    [['render', '-f', 'a', '--update-lock'], 'needs --lock'],
    [['render', '-f', 'a', '--install-namespace=../x'], '--install-namespace "../x": not a DNS-1123 label'],
    [['render', '-f', 'a', '--install-namespace='], '--install-namespace "": '],
  ])('refuses wrong usage: %j', async (args, said) => {
    const { code, stdout, stderr } = await sandbox.run(['bundle', 'deployment', ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(said);
  });
});
