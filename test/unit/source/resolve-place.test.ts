import { execFileSync } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ArchiveLimits } from '../../../src/archive/limits.js';
import { defaultArchiveLimits } from '../../../src/archive/limits.js';
import { openLayout } from '../../../src/oci/layout/layout.js';
import { buildImage, pushImage } from '../../../src/oci/image/image-builder.js';
import { layerOf } from '../../../src/archive/tar-writer.js';
import { imageLabels } from '../../../src/model/image-labels.js';
import { mediaTypes } from '../../../src/oci/image/types.js';
import { type CatalogPlace, isPinned } from '../../../src/source/place.js';
import { openResolved, resolvePlace } from '../../../src/source/resolve-place.js';
import { parsePlace } from '../../../src/source/parse-place.js';
import type { ResolvedPlace } from '../../../src/source/drivers/driver.js';
import type { SourceSession } from '../../../src/source/session.js';
import { type Workbench, failureOf, openWorkbench } from '../../support/connect.js';
import { type FaultRegistry, startFaultRegistry } from '../../support/fault-registry.js';
import { bytesOf, descriptorOf } from '../../support/images.js';
import { rawTar } from '../../support/tar.js';
import { directoryWith } from '../../support/temporary.js';

const blob = (name: string): string => `{"schema":"olm.package","name":"${name}"}\n`;
const archive = (name: string, file = 'configs/c.json'): Buffer =>
  gzipSync(rawTar([{ name: file, content: Buffer.from(blob(name)) }]));

let bench: Workbench;
let server: FaultRegistry;
let options: SourceSession;

beforeEach(async () => {
  bench = await openWorkbench();
  server = await startFaultRegistry();
  const connection = bench.connect({ useHttp: true, maxAttempts: 1 });
  options = {
    connect: () => connection,
    connectAnew: (changes) => Promise.resolve(bench.connect({ useHttp: true, maxAttempts: 1, ...changes })),
    temporaryDirectory: await directoryWith(),
    now: () => new Date('2026-01-01T00:00:00Z'),
    hostPlatform: { os: 'linux', architecture: 'amd64' },
    environment: { PATH: process.env['PATH'], HOME: bench.home },
  };
});

afterEach(async () => {
  await server.close();
  await bench.close();
});

/** Names of the packages in a state; everything is closed afterwards. */
async function packagesIn(found: ResolvedPlace): Promise<string[]> {
  const source = await openResolved(found);
  try {
    const names: string[] = [];
    for await (const { value } of source.catalog.metas()) names.push(String(value['name']));
    return names;
  } finally {
    await source.close();
  }
}

const look = (origin: CatalogPlace, known?: ResolvedPlace): Promise<ResolvedPlace> =>
  resolvePlace(origin, options, { known: known?.state });

describe('source/resolve-place of an archive at a URL', () => {
  const origin = (): CatalogPlace => ({ kind: 'http', url: `${server.origin}/c.tar.gz?token=s3cret` });

  it('asks nobody over plain HTTP unless that is allowed', async () => {
    const url = 'http://catalogs.example/c.tar.gz?token=s3cret';
    await expect(look({ kind: 'http', url })).rejects.toMatchObject({
      code: 'UNSAFE',
      message: 'http://catalogs.example/c.tar.gz: plain HTTP is insecure',
      hint: expect.stringContaining('insecure: true') as string,
    });
  });

  it('asks with what it knows, and takes 304 for an answer', async () => {
    const etag = '"one"';
    server.on({
      path: '/c.tar.gz',
      respond: (request) =>
        request.headers['if-none-match'] === etag
          ? { status: 304 }
          : { body: archive('widget'), headers: { etag } },
    });
    const first = await look(origin());
    expect(await packagesIn(first)).toEqual(['widget']);
    await first.close();
    expect(first.state).toMatchObject({ validator: etag });
    expect(first.state.ref).toMatch(/\/c\.tar\.gz@sha256:[0-9a-f]{64}$/);
    const second = await look(origin(), first);
    expect(second.state).toEqual(first.state);
    expect(server.requests).toHaveLength(2);
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });

  it('knows the same bytes again where the server has no validators', async () => {
    server.on({ path: '/c.tar.gz', respond: { body: archive('widget') } });
    const first = await look(origin());
    const second = await look(origin(), first);
    expect(second.state).toEqual(first.state);
    server.on({ path: '/c.tar.gz', respond: { body: archive('gadget') } });
    const third = await look(origin(), second);
    expect(third.state.id).not.toBe(first.state.id);
    for (const found of [first, second, third]) await found.close();
  });

  it('opens a directory in it, and tells of one that is not', async () => {
    server.on({ path: '/c.tar.gz', respond: { body: archive('widget') } });
    const found = await look({ ...origin(), directory: 'configs' } as CatalogPlace);
    expect(await packagesIn(found)).toEqual(['widget']);
    await found.close();
    const other = await look({ ...origin(), directory: 'other' } as CatalogPlace);
    expect(await failureOf(openResolved(other))).toMatchObject({ code: 'NOT_FOUND' });
    await other.close();
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });

  it.each([
    [401, 'AUTH'],
    [404, 'NOT_FOUND'],
    [500, 'NETWORK'],
  ])('refuses an answer %d, without what the query holds', async (status, code) => {
    server.on({ path: '/c.tar.gz', respond: { status } });
    const error = await failureOf(look(origin()));
    expect(error.message).not.toContain('s3cret');
    expect(error.message).toContain(String(status));
    expect([code, 'REGISTRY']).toContain(error.code);
  });

  it('refuses archives that leave their place or are too large, and leaves nothing behind', async () => {
    const evil = gzipSync(rawTar([{ name: '../../evil.json', content: Buffer.from('{}') }]));
    server.on({ path: '/c.tar.gz', respond: { body: evil } });
    const found = await look(origin());
    expect(await failureOf(openResolved(found))).toMatchObject({ code: 'UNSAFE' });
    await found.close();
    const limits: ArchiveLimits = { ...defaultArchiveLimits, maxUnpackedSize: 100 };
    server.on({ path: '/c.tar.gz', respond: { body: Buffer.alloc(1000) } });
    expect(await failureOf(resolvePlace(origin(), { ...options, limits }))).toMatchObject({
      code: 'LIMIT',
    });
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });
});

describe('source/resolve-place of a git repository', () => {
  async function repository(): Promise<{
    url: string;
    git: (...args: string[]) => string;
    directory: string;
  }> {
    const directory = await directoryWith({
      'catalog/c.json': blob('widget'),
      'README.md': '# not a catalog',
    });
    const git = (...args: string[]): string =>
      execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], {
        cwd: directory,
        env: { PATH: process.env['PATH'], HOME: bench.home, GIT_CONFIG_NOSYSTEM: '1' },
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim();
    git('init', '-q', '-b', 'main');
    git('add', '.');
    git('commit', '-qm', 'first');
    return { url: `file://${directory}`, git, directory };
  }

  it('follows a branch, and reads what a commit has in a directory', async () => {
    const { url, git, directory } = await repository();
    const origin: CatalogPlace = { kind: 'git', repository: url, branch: 'main', directory: 'catalog' };
    const first = await look(origin);
    expect(first.state.ref).toBe(`git+${url}#${git('rev-parse', 'HEAD')}:catalog`);
    expect(await parsePlace(first.state.ref, { purpose: 'catalog' })).toEqual({
      kind: 'git',
      repository: url,
      commit: git('rev-parse', 'HEAD'),
      directory: 'catalog',
    });
    expect(await packagesIn(first)).toEqual(['widget']);
    expect((await look(origin, first)).state).toEqual(first.state);
    await writeFile(path.join(directory, 'catalog/c.json'), blob('gadget'));
    git('commit', '-qam', 'second');
    const second = await look(origin, first);
    expect(second.state.id).not.toBe(first.state.id);
    expect(await packagesIn(second)).toEqual(['gadget']);
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });

  it('reads tags, also those that are objects, the default branch, and commits without asking', async () => {
    const { url, git } = await repository();
    const commit = git('rev-parse', 'HEAD');
    git('tag', 'plain');
    git('tag', '-am', 'message', 'object');
    for (const which of [{ tag: 'plain' }, { tag: 'object' }, {}, { commit }]) {
      const found = await look({ kind: 'git', repository: url, directory: 'catalog', ...which });
      expect(found.state.ref).toBe(`git+${url}#${commit}:catalog`);
      expect(await packagesIn(found)).toEqual(['widget']);
    }
    expect(isPinned({ kind: 'git', repository: url, commit })).toBe(true);
  });

  it('runs no hook and no program that the repository names', async () => {
    const { url, directory } = await repository();
    const trace = path.join(await directoryWith(), 'ran');
    await mkdir(path.join(directory, '.git/hooks'), { recursive: true });
    for (const hook of ['post-checkout', 'pre-upload', 'reference-transaction']) {
      await writeFile(path.join(directory, '.git/hooks', hook), `#!/bin/sh\ntouch ${trace}\n`, {
        mode: 0o755,
      });
    }
    const found = await look({ kind: 'git', repository: url, directory: 'catalog' });
    expect(await packagesIn(found)).toEqual(['widget']);
    expect(await failureOf(readdir(trace))).toMatchObject({ code: 'ENOENT' });
  });

  it.each([
    [{ branch: 'none' }, 'branch none not found'],
    [{ tag: 'none' }, 'tag none not found'],
  ])('tells what is not there: %o', async (which, problem) => {
    const { url } = await repository();
    const error = await failureOf(look({ kind: 'git', repository: url, ...which }));
    expect(error).toMatchObject({ code: 'NOT_FOUND', message: `${url}: ${problem}` });
  });

  it('tells of a repository that is not there, and of git that is not', async () => {
    const error = await failureOf(look({ kind: 'git', repository: 'file:///no/such/repository' }));
    expect(error.message).toContain('file:///no/such/repository: git ls-remote: ');
    const without = { ...options, environment: { PATH: await directoryWith() } };
    const missing = await failureOf(resolvePlace({ kind: 'git', repository: 'file:///x' }, without));
    expect(missing).toMatchObject({ code: 'UNSUPPORTED', message: 'git: not installed' });
  });

  it('ends git when it is cancelled', async () => {
    const { url } = await repository();
    const signal = AbortSignal.abort();
    expect(
      await failureOf(resolvePlace({ kind: 'git', repository: url }, { ...options, signal })),
    ).toMatchObject({ code: 'CANCELLED' });
  });
});

describe('source/resolve-place of images, artifacts, directories and ConfigMaps', () => {
  it('pins the image of a layout', async () => {
    const directory = path.join(await directoryWith(), 'layout');
    const image = await buildImage({
      layers: [await layerOf([{ path: 'configs/c.json', content: Buffer.from(blob('widget')) }])],
      labels: { [imageLabels.configs]: '/configs' },
    });
    await pushImage(await openLayout(directory, { create: true }), 'v1', image);
    const found = await look({ kind: 'image', ref: `oci:${directory}:v1` });
    expect(found.state.ref).toMatch(/^oci:.*layout@sha256:[0-9a-f]{64}$/);
    expect(await packagesIn(found)).toEqual(['widget']);
  });

  it('reads an artifact of files and archives', async () => {
    const file = Buffer.from(blob('file'));
    const packed = archive('packed', 'sub/c.json');
    const layers = [
      {
        ...descriptorOf(file, 'application/json'),
        annotations: { 'org.opencontainers.image.title': 'a/catalog.json' },
      },
      descriptorOf(packed, 'application/vnd.example.catalog.tar+gzip'),
    ];
    const manifest = bytesOf({
      schemaVersion: 2,
      mediaType: mediaTypes.ociManifest,
      artifactType: 'application/vnd.example.catalog',
      config: descriptorOf('{}', 'application/vnd.oci.empty.v1+json'),
      layers,
    });
    server.serveBlob('ns/artifact', file);
    server.serveBlob('ns/artifact', packed);
    const digest = server.serveManifest('ns/artifact', 'v1', manifest);
    const found = await look({ kind: 'artifact', ref: `${server.host}/ns/artifact:v1` });
    expect(found.state.ref).toBe(`${server.host}/ns/artifact@${digest}`);
    expect(await packagesIn(found)).toEqual(['file', 'packed']);
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });

  it('refuses a file of an artifact that would leave its place', async () => {
    const file = Buffer.from(blob('file'));
    const title = { 'org.opencontainers.image.title': '../../evil.json' };
    const manifest = bytesOf({
      schemaVersion: 2,
      mediaType: mediaTypes.ociManifest,
      config: descriptorOf('{}', 'application/vnd.oci.empty.v1+json'),
      layers: [{ ...descriptorOf(file, 'application/json'), annotations: title }],
    });
    server.serveBlob('ns/artifact', file);
    server.serveManifest('ns/artifact', 'v1', manifest);
    const found = await look({ kind: 'artifact', ref: `${server.host}/ns/artifact:v1` });
    expect(await failureOf(openResolved(found))).toMatchObject({ code: 'UNSAFE' });
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });

  it('sees that a directory has changed, also while it is read', async () => {
    const directory = await directoryWith({ 'c.json': blob('widget') });
    const first = await look({ kind: 'directory', path: directory });
    expect((await look({ kind: 'directory', path: directory }, first)).state).toEqual(first.state);
    expect(await first.confirm?.()).toBe(true);
    await writeFile(path.join(directory, 'c.json'), blob('gadget'));
    expect(await first.confirm?.()).toBe(false);
    expect((await look({ kind: 'directory', path: directory }, first)).state.id).not.toBe(first.state.id);
    const gone = path.join(directory, 'gone');
    expect(await failureOf(look({ kind: 'directory', path: gone }))).toMatchObject({ code: 'NOT_FOUND' });
  });

  it('reads the files of a ConfigMap, and refuses keys that are none', async () => {
    const data = { 'a.yaml': 'schema: olm.package\nname: widget\n' };
    const binaryData = { 'b.json': Buffer.from(blob('gadget')).toString('base64') };
    const found = await look({ kind: 'configMap', name: 'c', data, binaryData });
    expect(await packagesIn(found)).toEqual(['widget', 'gadget']);
    const evil = await look({ kind: 'configMap', name: 'c', data: { '../evil': 'x' } });
    expect(await failureOf(openResolved(evil))).toMatchObject({ code: 'INVALID' });
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });

  it('reads the manifests of a ConfigMap as OLM does', async () => {
    const csv = `
- apiVersion: operators.coreos.com/v1alpha1
  kind: ClusterServiceVersion
  metadata: {name: widget.v1.0.0}
  spec: {version: 1.0.0, install: {strategy: deployment}}
`;
    const packages = '- packageName: widget\n  channels: [{name: stable, currentCSV: widget.v1.0.0}]\n';
    const data = { clusterServiceVersions: csv, customResourceDefinitions: '', packages };
    const found = await look({ kind: 'configMap', name: 'c', data });
    expect(await packagesIn(found)).toEqual(['widget', 'stable', 'widget.v1.0.0']);
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });
});
