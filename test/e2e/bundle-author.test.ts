import { execFile, spawnSync } from 'node:child_process';
import { cp, mkdir, readFile, readdir, stat, symlink, utimes, chmod, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandResult, bundlesDirectory, useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { inDirectory, smallBundle } from '../support/small-bundle.js';

const sandbox = useSandbox();
const skupper = path.join(bundlesDirectory, 'skupper-operator/1.9.0');
const hasSkopeo = spawnSync('skopeo', ['--version']).status === 0;
const widget = ['-p', 'widget', '-c', 'alpha,stable', '-e', 'stable'];
const digestPattern = /@(sha256:[0-9a-f]{64})\n$/;

let number = 0;
/** A new working directory with these files. */
async function workWith(files: Record<string, string>): Promise<string> {
  const name = `work${number++}`;
  await sandbox.write(inDirectory(name, files));
  return path.join(sandbox.work, name);
}

/** Only the manifests of a small bundle. */
const manifestsOf = (files = smallBundle()): Record<string, string> =>
  Object.fromEntries(Object.entries(files).filter(([name]) => name.startsWith('manifests/')));

const run = (cwd: string, ...args: string[]): Promise<CommandResult> =>
  sandbox.run(['bundle', ...args], { cwd });

async function filesOf(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(directory, path.join(entry.parentPath, entry.name)))
    .sort();
}

describe('opmate bundle generate', () => {
  it('writes annotations next to the manifests, and a Dockerfile to the working directory', async () => {
    const cwd = await workWith(inDirectory('deploy', manifestsOf()));
    const { code, stdout } = await run(cwd, 'generate', '-d', 'deploy/manifests', ...widget);
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(await filesOf(cwd)).toEqual([
      'bundle.Dockerfile',
      'deploy/manifests/csv.yaml',
      'deploy/metadata/annotations.yaml',
    ]);
    const annotations = await readFile(path.join(cwd, 'deploy/metadata/annotations.yaml'), 'utf8');
    expect(annotations).toBe(
      [
        'annotations:',
        '  operators.operatorframework.io.bundle.channel.default.v1: stable',
        '  operators.operatorframework.io.bundle.channels.v1: alpha,stable',
        '  operators.operatorframework.io.bundle.manifests.v1: manifests/',
        '  operators.operatorframework.io.bundle.mediatype.v1: registry+v1',
        '  operators.operatorframework.io.bundle.metadata.v1: metadata/',
        '  operators.operatorframework.io.bundle.package.v1: widget',
        '',
      ].join('\n'),
    );
    const dockerfile = await readFile(path.join(cwd, 'bundle.Dockerfile'), 'utf8');
    expect(dockerfile).toContain(
      'LABEL operators.operatorframework.io.bundle.channel.default.v1=stable\n\n' +
        'COPY deploy/manifests /manifests/\nCOPY deploy/metadata /metadata/\n',
    );
  });

  it('replaces existing files, and copies manifests to an output directory under their names', async () => {
    const cwd = await workWith({
      ...manifestsOf(),
      'manifests/more/a.yaml': 'kind: A',
      'manifests/other/a.yaml': 'kind: B',
      'out/manifests/csv.yaml': 'older',
      'out/manifests/stale.yaml': 'stale',
      'bundle.Dockerfile': 'older',
    });
    const { code, stderr } = await run(cwd, 'generate', '-d', 'manifests', ...widget, '-u', 'out');
    expect(code).toBe(0);
    expect(stderr).toContain('out/manifests/stale.yaml: is not in "manifests", and stays');
    for (const name of ['csv.yaml', 'more/a.yaml', 'other/a.yaml']) {
      const texts = ['manifests', 'out/manifests'].map((at) => readFile(path.join(cwd, at, name), 'utf8'));
      const [from, to] = await Promise.all(texts);
      expect(to).toBe(from);
    }
    expect(await readFile(path.join(cwd, 'bundle.Dockerfile'), 'utf8')).toContain(
      'COPY out/manifests /manifests/',
    );
  });

  it('keeps the manifests if the output directory is theirs', async () => {
    const cwd = await workWith(manifestsOf());
    const { code } = await run(cwd, 'generate', '-d', 'manifests', ...widget, '-u', '.');
    expect(code).toBe(0);
    expect(await readFile(path.join(cwd, 'manifests/csv.yaml'), 'utf8')).toBe(
      manifestsOf()['manifests/csv.yaml'],
    );
  });

  it('writes nothing if one of the files cannot be written', async () => {
    const cwd = await workWith({ ...manifestsOf(), 'bundle.Dockerfile/in-the-way': '' });
    const { code, stderr } = await run(cwd, 'generate', '-d', 'manifests', ...widget);
    expect(code).toBe(1);
    expect(stderr).toContain('bundle.Dockerfile: is a directory');
    expect(await filesOf(cwd)).toEqual(['bundle.Dockerfile/in-the-way', 'manifests/csv.yaml']);
    expect(await readdir(cwd)).not.toContain('metadata');
  });

  it('refuses a name that would add a line to the Dockerfile', async () => {
    const cwd = await workWith(manifestsOf());
    const { code, stderr } = await run(cwd, 'generate', '-d', 'manifests', '-c', 'a', '-p', 'x\nRUN id');
    expect({ code, files: await filesOf(cwd) }).toEqual({ code: 1, files: ['manifests/csv.yaml'] });
    expect(stderr).toContain('unexpected line break in ');
  });
});

describe('opmate bundle build', () => {
  it('builds the same digest from the same files regardless of times and modes, in every format', async () => {
    const one = await workWith(manifestsOf());
    const two = await workWith({ 'elsewhere/x': '', ...manifestsOf() });
    await chmod(path.join(two, 'manifests/csv.yaml'), 0o600);
    await utimes(path.join(two, 'manifests/csv.yaml'), 1e9, 1e9);
    const results = [
      await run(one, 'build', '-d', 'manifests', ...widget, '-t', 'r.test/w/b:v1', '--save', 'oci:layout'),
      await run(two, 'build', '-d', 'manifests', ...widget, '--save', 'oci-archive:image.tar:v1'),
      await run(two, 'build', '-d', '.', '-b', 'podman', '-o', ...widget, '--save', 'oci:again:x'),
      await run(two, 'build', '-d', '.', '-t', 'r.test/w/b:v1', '--save', 'docker-archive:saved.tar'),
      await run(two, 'build', '-d', '.', '-o', '--save', 'oci:anew:x'),
    ];
    expect(results.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0]);
    const digests = results.map(({ stdout }) => digestPattern.exec(stdout)?.[1]);
    expect(digests[0]).toMatch(/^sha256:/);
    expect(new Set(digests).size).toBe(1);
    expect(results[0]?.stdout.startsWith('oci:')).toBe(true);
    expect(await filesOf(path.join(two, 'metadata'))).toEqual(['annotations.yaml']);
    const written = await filesOf(one);
    expect(written.filter((name) => !name.startsWith('layout/'))).toEqual(['manifests/csv.yaml']);
  });

  it('builds an image that render reads like the directory', async () => {
    const cwd = await workWith({});
    await mkdir(cwd, { recursive: true });
    await cp(skupper, path.join(cwd, 'bundle'), { recursive: true });
    const built = await run(cwd, 'build', '-d', 'bundle', '--save', 'oci:layout:v1');
    expect(built.code).toBe(0);
    const fromImage = await sandbox.run(['render', 'oci:layout:v1'], { cwd });
    const fromDirectory = await sandbox.run(['render', skupper]);
    expect(fromImage).toEqual(fromDirectory);
    expect(fromImage.stdout).toContain('skupper-operator.v1.9.0');
  });

  it('reads base image, labels and further directories from an existing Dockerfile', async () => {
    const cwd = await workWith({
      ...smallBundle(),
      'tests/scorecard/config.yaml': 'kind: Configuration',
      LICENSE: 'free',
      'bundle.Dockerfile': [
        'FROM scratch',
        '# core labels',
        'LABEL operators.operatorframework.io.bundle.package.v1=another',
        'LABEL com.example.note="two words" \\',
        '  # a comment inside',
        "      com.example.other='x'",
        'COPY manifests /manifests/',
        'COPY metadata /metadata/',
        'COPY tests/scorecard /tests/scorecard/',
        'COPY ["LICENSE", "/licenses/"]',
      ].join('\n'),
    });
    await writeAnnotations(cwd);
    const { code, stderr } = await run(cwd, 'build', '-d', 'manifests', '--save', 'oci:layout:v1');
    expect({ code }).toEqual({ code: 0 });
    expect(stderr).toContain('bundle.Dockerfile:3: LABEL');
    const { config, layers } = await imageIn(path.join(cwd, 'layout'));
    expect(config.config.Labels).toMatchObject({
      'operators.operatorframework.io.bundle.package.v1': 'widget',
      'com.example.note': 'two words',
      'com.example.other': 'x',
    });
    expect(layers).toBe(4);
    const shown = await sandbox.run(['oci', 'inspect', 'oci:layout:v1'], { cwd });
    expect(shown.code).toBe(0);
  });

  it.each([
    [
      'no ClusterServiceVersion',
      { 'manifests/csv.yaml': 'kind: ConfigMap\n' },
      /^error: manifests: no ClusterServiceVersion$/m,
    ],
    ['a file that does not parse', { 'manifests/b.yaml': 'a: 1\nb: [' }, /^error: manifests\/b\.yaml:\d+: /m],
    [
      'an object that is there twice',
      {
        'manifests/a.yaml': 'kind: A\nmetadata: {name: x}',
        'manifests/b.yaml': 'kind: A\nmetadata: {name: x}',
      },
      /^error: manifests\/b\.yaml: A "x": is in manifests\/a\.yaml too$/m,
    ],
    [
      'a second document',
      { 'manifests/b.yaml': 'kind: A\n---\nkind: B\n' },
      /^error: manifests\/b\.yaml:3: a second document/m,
    ],
    [
      'two versions',
      { 'manifests/b.yaml': '{"kind":"ClusterServiceVersion","metadata":{"name":"b"}}' },
      /a second ClusterServiceVersion beside manifests\/b\.yaml/,
    ],
    [
      'annotations of another package',
      { 'metadata/annotations.yaml': annotationsText('gadget') },
      /^error: metadata\/annotations\.yaml:6:\d+: Expect field ".*package\.v1" to have value "widget" instead of "gadget"$/m,
    ],
    [
      'an annotation that is missing',
      { 'metadata/annotations.yaml': 'annotations: {a: b}\n' },
      /^error: metadata\/annotations\.yaml: Missing field: .*channels\.v1$/m,
    ],
    [
      'a Dockerfile that needs an engine',
      { 'bundle.Dockerfile': 'FROM scratch\nRUN id\n' },
      /^error: bundle\.Dockerfile:2: RUN: needs an engine$/m,
    ],
    [
      'a Dockerfile of another bundle',
      { 'bundle.Dockerfile': 'FROM scratch\nCOPY other /manifests/\nCOPY metadata /metadata/\n' },
      /^error: bundle\.Dockerfile:2: copies other to \/manifests\/, not manifests$/m,
    ],
    [
      'a Dockerfile that leaves the directory',
      {
        'bundle.Dockerfile':
          'FROM scratch\nCOPY manifests /manifests/\nCOPY metadata /metadata/\nCOPY ../.. /x/\n',
      },
      /^error: bundle\.Dockerfile:4: COPY \.\.\/\.\.: leads out of the working directory$/m,
    ],
  ] as [string, Record<string, string>, RegExp][])(
    'refuses %s, and writes nothing',
    async (_what, files, expected) => {
      const cwd = await workWith({ ...manifestsOf(), ...files });
      const before = await filesOf(cwd);
      const { code, stdout, stderr } = await run(
        cwd,
        'build',
        '-d',
        'manifests',
        ...widget,
        '--save',
        'oci:layout',
      );
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
      expect(stderr).toMatch(expected);
      expect(await filesOf(cwd)).toEqual(before);
    },
  );

  it('reports all links out of the bundle and special files together', async () => {
    const cwd = await workWith({ ...manifestsOf(), 'secret.txt': 'key' });
    await symlink('../secret.txt', path.join(cwd, 'manifests/link.txt'));
    await symlink('csv.yaml', path.join(cwd, 'manifests/within.txt'));
    await symlink('..', path.join(cwd, 'manifests/up'));
    const { code, stderr } = await run(cwd, 'build', '-d', 'manifests', ...widget, '--save', 'oci:layout');
    expect(code).toBe(3);
    expect(stderr).toMatch(
      /^error: manifests\/link\.txt: a link to ".*secret\.txt", outside of the directory$/m,
    );
    expect(stderr).toMatch(/^error: manifests\/up: a link to /m);
    expect(stderr).not.toContain('within.txt');
    expect(await readdir(cwd)).not.toContain('layout');
  });

  it('reports missing arguments', async () => {
    const cwd = await workWith(manifestsOf());
    const results = await Promise.all([
      run(cwd, 'build', '-d', 'manifests', ...widget),
      run(cwd, 'build', '-d', 'manifests', ...widget, '--push'),
      run(cwd, 'build', '--save', 'oci:x'),
      run(cwd, 'build', '-d', 'manifests', '-t', 'oci:x:v1', '--push'),
      run(cwd, 'build', '-d', 'manifests', '--save', 'x.tar'),
      sandbox.run(['alpha', 'bundle', 'build', '-d', 'manifests', ...widget], { cwd }),
    ]);
    expect(results.map(({ code }) => code)).toEqual([2, 2, 2, 2, 2, 1]);
    expect(results[0]?.stderr).toContain('add --tag REFERENCE or --save DESTINATION');
    expect(results[2]?.stderr).toContain('--directory: missing\nhint: add --directory DIRECTORY');
    expect(await filesOf(cwd)).toEqual(['manifests/csv.yaml']);
  });

  it('builds plain manifests if the annotations declare them', async () => {
    const cwd = await workWith({
      'manifests/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n',
    });
    expect((await run(cwd, 'generate', '-d', 'manifests', ...widget)).code).toBe(0);
    const { code, stdout } = await run(cwd, 'build', '-d', 'manifests', '--save', 'oci:layout');
    expect(code).toBe(0);
    expect(stdout).toMatch(digestPattern);
  });
});

function annotationsText(packageName: string): string {
  const key = 'operators.operatorframework.io.bundle';
  return [
    'annotations:',
    `  ${key}.channels.v1: alpha,stable`,
    `  ${key}.channel.default.v1: stable`,
    `  ${key}.manifests.v1: manifests/`,
    `  ${key}.metadata.v1: metadata/`,
    `  ${key}.package.v1: ${packageName}`,
    `  ${key}.mediatype.v1: registry+v1`,
    '',
  ].join('\n');
}

const writeAnnotations = (cwd: string): Promise<void> =>
  writeFile(path.join(cwd, 'metadata/annotations.yaml'), annotationsText('widget'));

interface Config {
  config: { Labels: Record<string, string> };
}

/** Configuration and number of layers of the only image in a layout. */
async function imageIn(layout: string): Promise<{ config: Config; layers: number }> {
  const read = async (name: string): Promise<unknown> =>
    JSON.parse(await readFile(path.join(layout, name), 'utf8')) as unknown;
  const blob = (digest: string): Promise<unknown> => read(`blobs/${digest.replace(':', '/')}`);
  const { manifests } = (await read('index.json')) as { manifests: [{ digest: string }] };
  const manifest = (await blob(manifests[0].digest)) as { config: { digest: string }; layers: unknown[] };
  return { config: (await blob(manifest.config.digest)) as Config, layers: manifest.layers.length };
}

describe.each([
  ['opmate oci serve', true],
  ['docker-registry', hasDockerRegistry],
])('opmate bundle push to %s', (kind, isThere) => {
  let host = '';
  let stop: () => Promise<unknown>;

  beforeAll(async () => {
    if (kind === 'docker-registry') {
      if (!isThere) return;
      const registry: DockerRegistry = await startDockerRegistry();
      host = registry.host;
      stop = () => registry.close();
    } else {
      const server = sandbox.start(['oci', 'serve', 'registry', '--port', '0']);
      host = /127\.0\.0\.1:\d+|localhost:\d+/.exec(await server.firstLine())?.[0] ?? '';
      stop = () => server.stop();
    }
  });
  afterAll(() => stop?.());

  it.skipIf(!isThere)(
    'pushes what was built, saved, or stands in a directory: all the same image',
    async () => {
      const cwd = await workWith(smallBundle());
      await writeAnnotations(cwd);
      const http = '--use-http';
      const built = await run(cwd, 'build', '-d', 'manifests', '-t', `${host}/w/built:v1`, '--push', http);
      expect(built).toMatchObject({ code: 0 });
      const digest = digestPattern.exec(built.stdout)?.[1] as string;
      expect(built.stdout).toBe(`${host}/w/built@${digest}\n`);
      await run(cwd, 'build', '-d', 'manifests', '--save', 'oci-archive:saved.tar');
      await run(
        cwd,
        'build',
        '-d',
        'manifests',
        '-t',
        'r.test/w/b:v1',
        '--save',
        'docker-archive:docker.tar',
      );
      for (const [source, name] of [
        ['.', 'directory'],
        ['oci-archive:saved.tar', 'saved'],
        ['docker-archive:docker.tar', 'docker'],
      ]) {
        const pushed = await run(cwd, 'push', source as string, `${host}/w/${name}:v1`, http);
        expect(pushed).toMatchObject({ code: 0 });
        expect(await run(cwd, 'show', source as string)).toMatchObject({ code: 0 });
        // An archive of docker save has no manifest that one has to keep.
        if (name !== 'docker') expect(pushed.stdout).toBe(`${host}/w/${name}@${digest}\n`);
      }
      const rendered = await sandbox.run(['render', http, `${host}/w/docker:v1`], { cwd });
      expect(rendered).toMatchObject({ code: 0 });
      expect(rendered.stdout).toContain('"name": "widget.v1.0.0"');
      expect(rendered.stdout).toContain(`"image": "${host}/w/docker:v1"`);
    },
  );

  it.skipIf(!isThere || !hasSkopeo)('pushes an image that skopeo reads and copies', async () => {
    const cwd = await workWith(smallBundle());
    await writeAnnotations(cwd);
    const { stdout } = await run(cwd, 'push', '.', `${host}/w/skopeo:v1`, '--use-http');
    const digest = digestPattern.exec(stdout)?.[1];
    await writeFile(path.join(cwd, 'policy.json'), '{"default":[{"type":"insecureAcceptAnything"}]}');
    const skopeo = async (...args: string[]): Promise<string> =>
      (await promisify(execFile)('skopeo', ['--policy', 'policy.json', ...args], { cwd })).stdout;
    const shown = JSON.parse(
      await skopeo('inspect', '--tls-verify=false', `docker://${host}/w/skopeo:v1`),
    ) as {
      Digest: string;
      Labels: Record<string, string>;
      Layers: string[];
    };
    expect(shown.Digest).toBe(digest);
    expect(shown.Layers.length).toBe(2);
    expect(shown.Labels['operators.operatorframework.io.bundle.channels.v1']).toBe('alpha,stable');
    await skopeo('copy', '--src-tls-verify=false', `docker://${host}/w/skopeo:v1`, 'oci:copied:v1');
    const rendered = await sandbox.run(['render', 'oci:copied:v1'], { cwd });
    expect(rendered).toMatchObject({ code: 0 });
  });
});

describe('opmate bundle push', () => {
  it('refuses an image that is not a bundle, and an invalid destination', async () => {
    const cwd = await workWith({ ...smallBundle(), 'file.tar': 'x' });
    const results = await Promise.all([
      run(cwd, 'push', 'file.tar', 'r.test/a:v1'),
      run(cwd, 'push', 'r.test/b:v1', 'r.test/a:v1'),
      run(cwd, 'push', '.', 'r.test/a'),
      run(cwd, 'push', '.', 'oci:x:v1'),
      run(cwd, 'push', 'oci:nowhere', 'r.test/a:v1'),
    ]);
    expect(results.map(({ code }) => code)).toEqual([2, 2, 2, 2, 1]);
    expect(results[0]?.stderr).toContain('oci-archive:file.tar');
    await expect(stat(path.join(cwd, 'x'))).rejects.toThrow('ENOENT');
  });
});
