import { spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildImage } from '../../src/oci/image/image-builder.js';
import { layerOf } from '../../src/archive/tar-writer.js';
import { openLayout } from '../../src/oci/layout/layout.js';
import { projectRoot, useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { streamOf } from '../support/images.js';
import { serveOperatorSet } from '../support/operator-set.js';

const sandbox = useSandbox();
const program = path.join(projectRoot, 'bin/opmate.cjs');
const hasNamespaces = spawnSync('unshare', ['-Urm', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;

beforeAll(async () => {
  const layers = await Promise.all(
    [1, 2, 3, 4, 5, 6].map((i) => layerOf([{ path: `file-${i}`, content: randomBytes(900_000) }])),
  );
  const image = await buildImage({ layers });
  const repository = await openLayout(path.join(sandbox.work, 'source'), { create: true });
  for (const { descriptor, bytes } of [
    ...image.layers,
    { descriptor: image.configDescriptor, bytes: image.config },
  ]) {
    await repository.putBlob(descriptor, () => streamOf(bytes));
  }
  await repository.putManifest('v1', image.manifest, image.descriptor.mediaType);
  spawnSync('tar', ['-cf', '../source.tar', '.'], { cwd: path.join(sandbox.work, 'source') });
});

/** Runs a command in a namespace in which the directory `disk` has room for `size` only. */
function onSmallDisk(size: string, ...args: string[]) {
  return runOnSmallDisk(size, `opmate ${args.map((word) => `'${word}'`).join(' ')}`);
}

/** Starts a script, which has the function `opmate` of `$node` and `$script`, where the directory `disk` has room for `size` only. */
function startOnSmallDisk(size: string, script: string) {
  mkdirSync(path.join(sandbox.work, 'disk'), { recursive: true });
  const lines = [`mount -t tmpfs -o size=${size} none disk`, 'opmate() { "$node" "$script" "$@"; }', script];
  const child = spawn('unshare', ['-Urm', 'sh', '-ec', lines.join('\n')], {
    cwd: sandbox.work,
    env: { ...process.env, HOME: sandbox.work, node: process.execPath, script: program },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]).then(([stdout, stderr, [status]]) => ({ status, stdout, stderr }));
  return { child, ended };
}

const runOnSmallDisk = (size: string, script: string) => startOnSmallDisk(size, script).ended;

describe.skipIf(!hasNamespaces)('oci copy to a full disk', () => {
  it.each(['oci:source:v1', 'oci-archive:source.tar:v1'])('says so, from %s', async (source) => {
    const { status, stdout, stderr } = await onSmallDisk('2m', 'oci', 'copy', source, 'oci:disk/out:v1');
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/disk\/out: .*no space left on device/);
    expect(stderr).not.toMatch(/aborted|internal error/);
  });
});

describe.skipIf(!hasNamespaces)('mirroring to a full disk', () => {
  let registry: FaultRegistry;
  let catalog = '';
  beforeAll(async () => {
    registry = await startFaultRegistry();
    ({ catalog } = await serveOperatorSet(registry));
    const set = `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  operators:\n  - catalog: ${catalog}\n`;
    await sandbox.write({ 'set.yaml': set });
  });
  afterAll(() => registry.close());

  it.each([
    ['catalog mirror', () => ['catalog', 'mirror', catalog, 'file:///index', '--dir', 'disk', '--insecure']],
    [
      'mirror of an image set',
      () => ['mirror', '-c', 'set.yaml', 'file://disk/out', '--workspace', 'file://ws', '--insecure'],
    ],
  ])('says so: %s', async (_, args) => {
    // Room for the layout and for some of the images.
    const { status, stderr } = await onSmallDisk('24k', ...args());
    expect(status).not.toBe(0);
    expect(stderr).toMatch(/no space left on device|not enough disk space: \S+ \S+ needed, \S+ \S+ free/);
    expect(stderr).not.toMatch(/aborted|internal error/);
  });
});

describe('mirror plan file://', () => {
  let registry: FaultRegistry;
  beforeAll(async () => {
    registry = await startFaultRegistry();
    const { catalog } = await serveOperatorSet(registry);
    const set = `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  operators:\n  - catalog: ${catalog}\n`;
    await sandbox.write({ 'plan.yaml': set });
  });
  afterAll(() => registry.close());
  const args = ['mirror', 'plan', '-c', 'plan.yaml', '--workspace', 'file://ws', '--insecure'];

  it('shows parts and space, as the run has them', async () => {
    const planned = await sandbox.run([...args, 'file://carried', '-o', 'json']);
    expect(planned).toMatchObject({ code: 0 });
    const { archive } = JSON.parse(planned.stdout) as { archive: Record<string, number> };
    expect(archive['neededBytes']).toBeGreaterThan(archive['bytes'] as number);
    expect(archive['freeBytes']).toBeGreaterThan(archive['neededBytes'] as number);
    const run = ['mirror', '-c', 'plan.yaml', '--insecure', 'file://carried', '-o', 'json'];
    const written = JSON.parse((await sandbox.run(run)).stdout) as { archive: Record<string, unknown> };
    expect(written.archive).toMatchObject({ bytes: archive['bytes'] });
    expect(written.archive['parts']).toHaveLength(archive['parts'] as number);
    // What is written needs no space.
    const again = await sandbox.run([...args, 'file://carried']);
    expect(again.stdout).toMatch(/^archive {2}1 part, \d+ KiB; 0 bytes needed, \S+ \S+ free$/m);
  });

  it.skipIf(!hasNamespaces)('fails if the disk is too small, and shows the plan', async () => {
    const { status, stdout, stderr } = await onSmallDisk('24k', ...args, 'file://disk/out');
    expect(status).toBe(1);
    expect(stderr).toMatch(/error: .*disk\/out: not enough disk space: \S+ KiB needed, \S+ KiB free/);
    expect(stderr).not.toContain('next:');
    expect(stdout).toMatch(/^archive {2}1 part, /m);
  });
});

/** A catalog of one bundle with incompressible content. */
const catalogOf = (version: string, size: number) =>
  [
    { schema: 'olm.package', name: 'foo', defaultChannel: 'stable' },
    { schema: 'olm.channel', package: 'foo', name: 'stable', entries: [{ name: `foo.v${version}` }] },
    {
      schema: 'olm.bundle',
      package: 'foo',
      name: `foo.v${version}`,
      image: `registry.test/foo:v${version}`,
      properties: [
        { type: 'olm.package', value: { packageName: 'foo', version } },
        { type: 'noise', value: randomBytes(size).toString('base64') },
      ],
    },
  ]
    .map((blob) => `${JSON.stringify(blob)}\n`)
    .join('');

describe.skipIf(!hasNamespaces)('catalog publish to a full disk', () => {
  it('keeps the previous publication complete when space runs out at any point', async () => {
    await sandbox.write({
      'old/catalog.json': catalogOf('1.0.0', 1_000),
      'new/catalog.json': catalogOf('2.0.0', 200_000),
    });
    // Of the next version some 900 kB are written: all blobs, those of the package, and the compressed forms.
    for (const size of ['150k', '400k', '600k', '800k']) {
      const { stdout, stderr } = await runOnSmallDisk(
        size,
        `opmate catalog publish old --name demo --to disk/public --quiet
        files() { (cd disk/public; find . -type f | sort | xargs sha256sum); }
        files > before
        opmate catalog publish new --name demo --to disk/public --update && echo published
        files | diff before - && echo unchanged
        opmate list bundles disk/public`,
      );
      expect(stderr, size).toMatch(/^error: disk\/public.*: no space left on device$/m);
      expect(stdout, size).toMatch(/^unchanged$/m);
      expect(stdout, size).toContain('foo.v1.0.0');
    }
  });
});

describe.skipIf(!hasNamespaces)('oci serve on a full disk', () => {
  it('says so to clients and to the operator, and goes on once there is room', async () => {
    const { child, ended } = startOnSmallDisk('1m', 'exec "$node" "$script" oci serve disk/layout --port 0');
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const uploads = `${String(line).trim()}/v2/a/blobs/uploads/`;
    const push = (bytes: Buffer) => {
      const digest = createHash('sha256').update(bytes).digest('hex');
      return fetch(`${uploads}?digest=sha256:${digest}`, { method: 'POST', body: bytes });
    };
    const refusal = { errors: [{ code: 'DENIED', message: 'no space left on device' }] };
    const upload = await fetch(uploads, { method: 'POST' });
    const location = new URL(upload.headers.get('location') as string, uploads);
    for (const send of [
      () => push(randomBytes(2_000_000)),
      () => fetch(location, { method: 'PATCH', body: randomBytes(2_000_000) }),
    ]) {
      const response = await send();
      expect([response.status, await response.json()]).toEqual([507, refusal]);
    }
    // Its content is gone, and the space is free again.
    expect((await fetch(location)).status).toBe(404);
    expect((await push(randomBytes(800_000))).status).toBe(201);
    child.kill();
    const { status, stderr } = await ended;
    const report = 'disk/layout: no space left on device (free disk space, or run opmate oci gc disk/layout)';
    expect([status, stderr.split(report).length]).toEqual([0, 3]);
    expect(stderr).not.toContain('ENOSPC');
  });
});

describe('oci copy from an archive', () => {
  it('names the damaged blob during concurrent reads', async () => {
    const file = path.join(sandbox.work, 'damaged.tar');
    await copyFile(path.join(sandbox.work, 'source.tar'), file);
    const bytes = await readFile(file);
    for (let at = 100_000; at < bytes.length - 100_000; at += 400_000) bytes[at] = (bytes[at] as number) ^ 1;
    await writeFile(file, bytes);
    for (let i = 0; i < 3; i++) {
      const result = await sandbox.run(['oci', 'copy', 'oci-archive:damaged.tar:v1', `oci:copy-${i}:v1`]);
      expect(result).toMatchObject({ code: 1, stdout: '' });
      expect(result.stderr).toMatch(/damaged\.tar: blob sha256:\w{64}: content has digest sha256:/);
    }
  });
});

describe.skipIf(!hasNamespaces)('serve --cache-only on a full disk', () => {
  it('says so, leaves nothing, and keeps an existing cache', async () => {
    await sandbox.write({
      'small/catalog.json': catalogOf('1.0.0', 1_000),
      'large/catalog.json': catalogOf('2.0.0', 400_000),
    });
    const { stdout, stderr } = await runOnSmallDisk(
      '300k',
      `list() { (cd disk; find . -type f | sort | xargs -r sha256sum); }
      opmate serve large --cache-dir disk/new --cache-only || echo failed
      list
      opmate serve small --cache-dir disk/cache --cache-only
      list > before
      opmate serve large --cache-dir disk/cache --cache-only || echo failed
      list | diff before - && echo unchanged`,
    );
    expect(stdout).toMatch(/^failed\nfailed\nunchanged\n$/);
    expect(stderr).toMatch(/^error: disk\/new: .*(?:no space left on device|the disk is full or failing)$/m);
    expect(stderr).toMatch(
      /^error: disk\/cache: .*(?:no space left on device|the disk is full or failing)$/m,
    );
  });
});
