import { mkdir, symlink, cp, readFile, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundlesDirectory, useSandbox } from '../support/command-line.js';
import { type FaultRegistry, sha256, startFaultRegistry } from '../support/fault-registry.js';
import { type GitRepository, gitRepository, startGitServer } from '../support/git-server.js';
import { rawTar } from '../support/tar.js';

const bundle = path.join(bundlesDirectory, 'skupper-operator', '1.9.0');
const here = ['--install-namespace', 'here'];
const csvName = 'manifests/skupper-operator.v1.9.0.clusterserviceversion.yaml';

describe('sources of opmate bundle', () => {
  const sandbox = useSandbox();
  let server: FaultRegistry;
  let repository: GitRepository;
  let expected: string | undefined;
  let archive: Buffer;

  beforeEach(async () => {
    server = await startFaultRegistry();
    const names = [csvName, 'metadata/annotations.yaml'];
    const files = await Promise.all(
      names.map(async (name) => [name, await readFile(path.join(bundle, name), 'utf8')] as const),
    );
    archive = gzipSync(rawTar(files.map(([name, content]) => ({ name, content }))));
    server.on({ path: '/bundle.tgz', respond: { body: archive } });
    repository = await gitRepository(
      Object.fromEntries(files.map(([name, text]) => [`deploy/${name}`, text])),
    );
    expected ??= (await sandbox.run(['bundle', 'render', bundle, ...here])).stdout;
  });

  afterEach(async () => {
    await server.close();
    expect(await sandbox.leftovers()).toEqual([]);
  });

  const render = (source: string, ...more: string[]) =>
    sandbox.run(['bundle', 'render', source, ...here, ...more]);

  it('renders the same from git, from a URL, from an archive and from ConfigMaps', async () => {
    await sandbox.write({ 'bundle.tgz': archive });
    const extract = ['bundle', 'extract', bundle, '--configmapname', 'x', '--output-file', 'map.json'];
    expect((await sandbox.run(extract)).code).toBe(0);
    const commit = repository.git('rev-parse', 'HEAD');
    for (const source of [
      `git+${repository.url}#${commit}:deploy`,
      `${server.origin}/bundle.tgz#${sha256(archive)}`,
      'bundle.tgz',
      'map.json',
    ]) {
      expect(await render(source, '--require-digest')).toEqual({ code: 0, stdout: expected, stderr: '' });
    }
    const followed = await render(`git+${repository.url}#main:deploy`);
    expect(followed).toMatchObject({ code: 0, stdout: expected });
    expect(followed.stderr).toBe(
      `info: git+${repository.url}#main:deploy: is git+${repository.url}#${commit}:deploy\n`,
    );
    const refused = await render(`git+${repository.url}#main:deploy`, '--require-digest');
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('git source is not pinned by commit');
  });

  it('uses one lock for commands that read different parts of a pinned source', async () => {
    const names = [csvName, 'metadata/annotations.yaml'];
    const parts = await Promise.all(
      names.map(async (name) => ({ name, content: await readFile(path.join(bundle, name), 'utf8') })),
    );
    const more = gzipSync(rawTar([...parts, { name: 'tests/config.yaml', content: 'kind: Test' }]));
    server.on({ path: '/more.tgz', respond: { body: more } });
    const source = `${server.origin}/more.tgz#${sha256(more)}`;
    const lock = ['--lock', 'parts.lock'];
    expect((await sandbox.run(['bundle', 'show', source, ...lock])).code).toBe(0);
    const env = { OPMATE_CACHE_DIR: path.join(sandbox.work, 'cache') };
    for (const out of ['first', 'again']) {
      const unpacked = await sandbox.run(['bundle', 'unpack', source, ...lock, '-o', out], { env });
      expect(unpacked).toMatchObject({ code: 0, stdout: '' });
      expect(unpacked.stderr).toBe(`info: unpacked ${source} to ${out}\n`);
      expect((await readdir(path.join(sandbox.work, out))).sort()).toEqual([
        'manifests',
        'metadata',
        'tests',
      ]);
    }
    await cp(bundle, path.join(sandbox.work, 'own'), { recursive: true });
    const local = ['--lock', 'local.lock'];
    expect((await sandbox.run(['bundle', 'show', 'own', ...local])).code).toBe(0);
    const refused = await sandbox.run(['bundle', 'unpack', 'own', ...local, '-o', 'no']);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/^error: own: lock entry covers only manifests, metadata, expected/);
    // An archive of one's own has a checksum, too.
    await sandbox.write({ 'more.tgz': more });
    const checked = ['--lock', 'archive.lock'];
    expect((await sandbox.run(['bundle', 'show', 'more.tgz', ...checked])).code).toBe(0);
    await sandbox.write({ 'more.tgz': archive });
    const changed = await sandbox.run(['bundle', 'unpack', 'more.tgz', ...checked, '-o', 'no']);
    expect(changed.code).toBe(1);
    expect(changed.stderr).toMatch(/^error: more\.tgz: locked as archive@sha256:/);
    expect(await readdir(sandbox.work)).not.toContain('no');
  });

  it('names files of a directory as the user wrote it', async () => {
    await sandbox.write({ 'mine/metadata/annotations.yaml': '' });
    await symlink('/etc/passwd', path.join(sandbox.work, 'mine/metadata/linked.yaml'));
    await mkdir(path.join(sandbox.work, 'mine/manifests'));
    for (const verb of ['show', 'unpack', 'render', 'permissions']) {
      const refused = await sandbox.run([
        ...['bundle', verb, './mine', ...(verb === 'unpack' ? ['--to', 'out'] : [])],
        ...(['render', 'permissions'].includes(verb) ? here : []),
      ]);
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(refused.stderr).toMatch(/^error: \.\/mine\/metadata\/linked\.yaml: links to /);
    }
  });

  it('writes a lock, uses it, and reports changes', async () => {
    const source = `git+${repository.url}#main:deploy`;
    const lock = ['--lock', 'bundle.lock'];
    const file = path.join(sandbox.work, 'bundle.lock');
    expect(await render(source, ...lock)).toEqual({ code: 0, stdout: expected, stderr: '' });
    const text = await readFile(file, 'utf8');
    const csv = await readFile(path.join(bundle, csvName), 'utf8');
    await repository.commit({ [`deploy/${csvName}`]: csv.replaceAll('1.9.0', '1.9.1') });
    // The branch has moved; the lock has not.
    expect(await render(source, ...lock, '--require-digest')).toEqual({
      code: 0,
      stdout: expected,
      stderr: '',
    });
    expect(await readFile(file, 'utf8')).toBe(text);
    // Older locks have the commit after the repository.
    const older = text.replace(/"git\+(.*)#([0-9a-f]{40}):deploy"/, '"$1@$2"');
    expect(older).not.toBe(text);
    await sandbox.write({ 'older.lock': older });
    expect(await render(source, '--lock', 'older.lock')).toMatchObject({ code: 0, stdout: expected });
    const whole = await sandbox.run(['bundle', 'unpack', source, '--lock', 'older.lock', '-o', 'out']);
    expect(whole.code).toBe(0);
    const updated = await render(source, ...lock, '--update-lock');
    expect(updated.code).toBe(0);
    expect(updated.stdout).not.toBe(expected);
    expect(await readFile(file, 'utf8')).not.toBe(text);
    const other = await render('bundle.tgz', ...lock);
    expect(other.code).toBe(1);
    await cp(bundle, path.join(sandbox.work, 'copy'), { recursive: true });
    await render('copy', '--lock', 'copy.lock');
    await writeFile(path.join(sandbox.work, 'copy/metadata/more.yaml'), '');
    const refused = await render('copy', '--lock', 'none.lock', '--watch-namespace', 'No Name');
    expect(refused.code).toBe(3);
    expect(await readdir(sandbox.work)).not.toContain('none.lock');
    const drift = await render('copy', '--lock', 'copy.lock');
    expect(drift).toMatchObject({ code: 1, stdout: '' });
    expect(drift.stderr).toMatch(
      /^error: copy: locked as sha256:[0-9a-f]{64}, got sha256:[0-9a-f]{64}\nhint: .*--update-lock/,
    );
    expect(await render('copy', '--update-lock')).toMatchObject({ code: 2 });
  });

  it('reads only what its argument names, whatever a lock of somebody else says', async () => {
    const source = `git+${repository.url}#main:deploy`;
    await render(source, '--lock', 'own.lock');
    const own = JSON.parse(await readFile(path.join(sandbox.work, 'own.lock'), 'utf8')) as {
      sources: [Record<string, string>];
    };
    const [entry] = own.sources;
    const commit = repository.git('rev-parse', 'HEAD');
    const secret = await gitRepository({ 'deploy/manifests/secret.yaml': 'password: hidden' });
    const elsewhere = secret.git('rev-parse', 'HEAD');
    await cp(bundle, path.join(sandbox.work, 'local'), { recursive: true });
    const forged: Record<string, string>[] = [
      { type: 'directory', source: 'directory', ref: path.join(sandbox.work, 'local') },
      { type: 'image', source: 'image oci:layout:v1', ref: `oci:layout@${sha256('x')}` },
      {
        source: `git ${secret.url} branch main directory deploy`,
        ref: `git+${secret.url}#${elsewhere}:deploy`,
      },
      // Only the commit of a reference is used, and it must be one of the repository of the argument.
      { ref: `git+${secret.url}#${elsewhere}:deploy` },
      { ref: `git+${repository.url}#${commit.slice(0, 12)}:deploy` },
    ];
    for (const change of forged) {
      const lock = { ...own, sources: [{ ...entry, ...change }] };
      await sandbox.write({ 'theirs.lock': JSON.stringify(lock) });
      const refused = await render(source, '--lock', 'theirs.lock');
      expect([change, refused.code, refused.stdout]).toEqual([change, 1, '']);
      expect(refused.stderr).not.toContain('hidden');
    }
    const moved = { ...own, sources: [{ ...entry, ref: `git+${secret.url}#${commit}:deploy` }] };
    await sandbox.write({ 'moved.lock': JSON.stringify(moved) });
    expect(await render(source, '--lock', 'moved.lock')).toMatchObject({ code: 0, stdout: expected });
  });

  it('reads passwords from Secrets without showing them', async () => {
    const served = await startGitServer({
      root: path.dirname(repository.directory),
      credentials: 'me:s3cret',
    });
    server.requireBasic('me', 's3cret');
    const secret = (name: string, type: string, stringData: object) =>
      JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, type, stringData });
    await sandbox.write({
      'secrets/git.yaml': secret('git', 'kubernetes.io/basic-auth', { username: 'me', password: 's3cret' }),
      'secrets/wrong.yaml': secret('wrong', 'kubernetes.io/basic-auth', {
        username: 'me',
        password: 'wr0ng',
      }),
      'secrets/key.yaml': secret('key', 'kubernetes.io/ssh-auth', { 'ssh-privatekey': 's3cret' }),
    });
    const secrets = ['--secrets', 'secrets', '--secret'];
    const git = `git+${served.origin}/repo.git#main:deploy`;
    const url = `${server.origin}/bundle.tgz`;
    try {
      for (const source of [git, url]) {
        expect(await render(source, ...secrets, 'git')).toMatchObject({ code: 0, stdout: expected });
        for (const name of source === git ? ['wrong', 'key', 'none'] : ['wrong']) {
          const { code, stdout, stderr } = await render(source, ...secrets, name, '--debug');
          expect([code, stdout]).toEqual([1, '']);
          expect(stderr).not.toMatch(/s3cret|wr0ng|d3Iwbmc|czNjcmV0/);
        }
      }
      expect((await render(`git+http://me:s3cret@localhost:1/x`)).stderr).not.toContain('s3cret');
    } finally {
      await served.close();
    }
  });

  it('combines several sources, and refuses duplicate files', async () => {
    const map = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n';
    await sandbox.write({ 'extra/extra.yaml': map });
    const both = await render(bundle, '--add', 'manifests=extra');
    expect(both).toMatchObject({ code: 0, stderr: '' });
    expect(both.stdout).toContain('name: extra\n');
    const twice = await render(bundle, '--add', 'manifests=extra', '--add', `manifests=./extra`);
    expect(twice).toMatchObject({ code: 1, stdout: '' });
    expect(twice.stderr).toContain('manifests/extra.yaml: duplicate file in extra and ./extra\n');
    expect((await render(bundle, '--add', '../x=extra')).code).toBe(1);
  });

  it('stores content in the cache, and reads locked content without a server', async () => {
    const env = { OPMATE_CACHE_DIR: path.join(sandbox.home, 'cache') };
    const args = ['bundle', 'render', `${server.origin}/bundle.tgz`, ...here, '--lock', 'cached.lock'];
    expect(await sandbox.run(args, { env })).toMatchObject({ code: 0, stdout: expected });
    const before = server.requests.length;
    expect(await sandbox.run(args, { env })).toMatchObject({ code: 0, stdout: expected });
    expect(server.requests.length).toBe(before);
    const names = await readdir(path.join(env.OPMATE_CACHE_DIR, 'content'));
    expect(names).toEqual([expect.stringMatching(/^sha256-/), 'tmp']);
  });
});
