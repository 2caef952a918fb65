import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { cp, mkdir, readFile, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { layerOf } from '../../src/archive/tar-writer.js';
import { collectFacts } from '../../src/catalog/facts.js';
import { type Logger, silentLogger } from '../../src/core/log.js';
import { parseReference } from '../../src/core/reference.js';
import { readImageSetConfiguration } from '../../src/mirror/image-set/image-set-config.js';
import { openPinnedCatalog } from '../../src/mirror/image-set/select-catalogs.js';
import { leaveOut } from '../../src/catalog/selection/leave-out.js';
import { type RebuiltCatalog, rebuildCatalog } from '../../src/mirror/selection/rebuilt-catalog.js';
import { type CatalogSelection } from '../../src/catalog/selection/selection.js';
import { selectOperators } from '../../src/mirror/selection/select-operators.js';
import { imageLabels } from '../../src/model/image-labels.js';
import { type Connection, createConnection } from '../../src/oci/registry/connection.js';
import { copyImage } from '../../src/oci/image/copy.js';
import { buildImage, pushImageIndex } from '../../src/oci/image/image-builder.js';
import { openReference, openTarget } from '../../src/oci/image/open.js';
import { hashOpmTrees } from '../../src/catalog/content/opm-tree-hash.js';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { indexFile } from '../support/index-file.js';
import { catalogOf, widgetCatalog } from './catalogs.js';
import { makeImage, packLayout, storeImage } from './images.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
const hasSkopeo = spawnSync('skopeo', ['--version']).status === 0;
const hostPlatform = { os: 'linux', architecture: 'amd64' };

let source: DockerRegistry | undefined;
let target: Registry;
let connection: Connection;
const targetHost = (): string => target.url.replace('http://', '');

beforeAll(async () => {
  target = await startRegistry({ directory: at('target') });
  connection = createConnection({
    environment: {},
    homeDirectory: sandbox.home,
    systemDirectory: at('etc'),
    retryBaseDelayMs: 1,
    useHttp: true,
  });
  if (!hasDockerRegistry) return;
  source = await startDockerRegistry();
  // As `opm generate dockerfile` makes them, and one layer that takes a file of the catalog away.
  const files = (entries: Record<string, string>) =>
    layerOf(Object.entries(entries).map(([name, text]) => ({ path: name, content: Buffer.from(text) })));
  const layers = [
    await layerOf([
      { path: 'bin/opm', content: Buffer.from('#!/bin/sh\n'), mode: 0o755 },
      { path: 'tmp', type: 'directory', mode: 0o1777 },
    ]),
    await files({
      'configs/widget/catalog.json': widgetCatalog,
      'configs/gadget/catalog.json': catalogOf('gadget', [
        { name: 'gadget.v1.0.0' },
        { name: 'gadget.v1.1.0', replaces: 'gadget.v1.0.0' },
      ]),
      'configs/gone/catalog.json': catalogOf('gone', [{ name: 'gone.v1.0.0' }]),
    }),
    await files({ 'tmp/cache/digest': 'of all packages' }),
    await files({ 'configs/.wh.gone': '' }),
  ];
  const images = await Promise.all(
    ['amd64', 'arm64'].map((architecture) =>
      buildImage({
        layers,
        platform: { os: 'linux', architecture },
        labels: { [imageLabels.configs]: '/configs' },
        entrypoint: ['/bin/opm'],
        cmd: ['serve', '/configs', '--cache-dir=/tmp/cache'],
      }),
    ),
  );
  const opened = await openTarget(parseReference(`${source.host}/acme/index:v1`), {
    connect: () => connection,
  });
  await pushImageIndex(opened.repository, 'v1', images);
});
afterAll(async () => {
  connection.close();
  await target.close();
  await source?.close();
});

/** Selects of a catalog, rebuilds it, and hands both on for as long as `work` takes. */
async function rebuilding<T>(
  text: string,
  below: string,
  work: (rebuilt: RebuiltCatalog, selection: CatalogSelection) => Promise<T>,
  leftOut: string[] = [],
  onWarning: (message: string) => void = () => {},
): Promise<T> {
  const logger: Logger = {
    ...silentLogger,
    log: (level, message) => (level === 'warn' ? onWarning(message) : undefined),
  };
  const reference = parseReference(text);
  const temporaryDirectory = sandbox.temporary;
  const opened = await openPinnedCatalog(reference, {
    connect: () => connection,
    connectAnew: () => Promise.resolve(connection),
    environment: {},
    temporaryDirectory,
    now: () => new Date(),
    hostPlatform,
  });
  const head =
    'kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  operators:\n';
  // Only what it narrows matters here; archives cannot be named in one.
  const config = readImageSetConfiguration(`${head}  - catalog: quay.io/acme/index:v1\n${below}`, 'set.yaml');
  const base = await openReference(reference, { connect: () => connection, temporaryDirectory });
  try {
    const facts = await collectFacts(opened.catalog);
    const selected = selectOperators(
      facts,
      config.operators[0] as (typeof config.operators)[number],
      'set.yaml',
    );
    const { selection } = leaveOut(selected, new Set(leftOut), text);
    const { repository } = base;
    const rebuilt = await rebuildCatalog(
      opened.catalog,
      selection.facts,
      { repository, digest: opened.digest },
      { temporaryDirectory, logger },
    );
    try {
      return await work(rebuilt, selection);
    } finally {
      await rebuilt.close();
    }
  } finally {
    await base.close();
    await opened.close();
  }
}

/** Copies a rebuilt image into the target registry; returns its name there. */
async function push({ repository, digest }: RebuiltCatalog, name: string): Promise<string> {
  const reference = `${targetHost()}/mirror/${name}:v1`;
  const to = await openTarget(parseReference(reference), { connect: () => connection });
  const { descriptor } = await copyImage(repository, digest, to.repository, 'v1');
  expect(descriptor.digest).toBe(digest);
  return reference;
}

interface LayoutDocument {
  manifests: { digest: string }[];
  layers: { digest: string }[];
}

/**
 * Unpacks the layers of the image in a layout that skopeo wrote, with tar, by the rules of the OCI image
 * specification: what a layer takes away is of the layers below it alone.
 */
async function unpack(layout: string, destination: string): Promise<void> {
  const read = async (name: string) =>
    JSON.parse(await readFile(path.join(layout, name), 'utf8')) as LayoutDocument;
  const blob = (digest: string): string => path.join('blobs', digest.replace(':', '/'));
  const [manifest] = (await read('index.json')).manifests;
  await mkdir(destination, { recursive: true });
  for (const { digest } of (await read(blob(manifest?.digest ?? ''))).layers) {
    const archive = path.join(layout, blob(digest));
    const names = execFileSync('tar', ['-tzf', archive], { encoding: 'utf8' }).trim().split('\n');
    for (const name of names) {
      const folder = path.join(destination, path.dirname(name));
      const base = path.basename(name);
      if (base === '.wh..wh..opq') {
        for (const entry of await readdir(folder).catch(() => []))
          await rm(path.join(folder, entry), { recursive: true });
      } else if (base.startsWith('.wh.')) {
        await rm(path.join(folder, base.slice('.wh.'.length)), { recursive: true, force: true });
      }
    }
    execFileSync('tar', ['-xpzf', archive, '--exclude=.wh.*', '-C', destination]);
  }
}

/** The files below a directory; all have the modes that the hash supposes. */
async function treeOf(directory: string) {
  const names = await readdir(directory, { recursive: true });
  const files = [];
  for (const name of ['.', ...names]) {
    const file = path.join(directory, name);
    const found = await stat(file);
    expect((found.mode & 0o7777).toString(8)).toBe(found.isDirectory() ? '755' : '644');
    if (!found.isDirectory()) files.push({ path: name, file, size: found.size });
  }
  return files;
}

/** The command of the one image in a layout. */
async function commandOf(layout: string): Promise<unknown> {
  const read = async (digest: string) =>
    JSON.parse(await readFile(path.join(layout, 'blobs', digest.replace(':', '/')), 'utf8')) as {
      config: { digest: string; Cmd?: string[] };
    };
  const index = JSON.parse(await readFile(path.join(layout, 'index.json'), 'utf8')) as LayoutDocument;
  const manifest = await read(index.manifests[0]?.digest ?? '');
  return (await read(manifest.config.digest)).config.Cmd;
}

describe('rebuilt catalogs', () => {
  const packages = '    packages:\n    - name: widget\n      minVersion: 1.1.0\n      maxVersion: 1.2.0\n';

  it.skipIf(!hasDockerRegistry)('are valid images of valid catalogs in another registry', async () => {
    const reference = `${source?.host}/acme/index:v1`;
    const digests = new Set<string>();
    const pushed = await rebuilding(reference, packages, (rebuilt) => {
      digests.add(rebuilt.digest);
      return push(rebuilt, 'index');
    });
    const validated = await sandbox.run(['validate', pushed, '--use-http']);
    expect(validated).toMatchObject({ code: 0 });
    const list = await sandbox.run(['list', 'bundles', pushed, '--use-http']);
    expect(list.stdout).toContain('widget.v1.2.0');
    expect(list.stdout).not.toMatch(/gadget|gone|widget\.v1\.3\.0/);
    await rebuilding(reference, packages, async (rebuilt) => digests.add(rebuilt.digest));
    expect(digests.size).toBe(1);
  });

  it.skipIf(!hasDockerRegistry || !hasSkopeo)('are readable by other tools', async () => {
    const pushed = await rebuilding(`${source?.host}/acme/index:v1`, packages, (rebuilt) =>
      push(rebuilt, 'tools'),
    );
    // Not one that waits: the registry is in this process.
    await promisify(execFile)('skopeo', [
      ...['--override-arch', 'arm64', '--override-os', 'linux', 'copy', '--src-tls-verify=false'],
      ...[`docker://${pushed}`, `oci:${at('skopeo')}`],
    ]);
    await unpack(at('skopeo'), at('unpacked'));
    const names = await readdir(at('unpacked'), { recursive: true });
    expect(names.sort()).toEqual([
      'bin',
      'bin/opm',
      'configs',
      'configs/widget',
      'configs/widget/catalog.json',
      'tmp',
      'tmp/cache',
      'tmp/cache/cache',
      'tmp/cache/cache/packages.json',
      'tmp/cache/cache/widget_beta_widget.v1.1.0.json',
      'tmp/cache/cache/widget_beta_widget.v1.2.0.json',
      'tmp/cache/cache/widget_stable_widget.v1.1.0.json',
      'tmp/cache/cache/widget_stable_widget.v1.2.0.json',
      'tmp/cache/digest',
    ]);
    expect(((await stat(at('unpacked', 'tmp'))).mode & 0o7777).toString(8)).toBe('1777');
    // What opm checks before it starts: bytes, names and modes.
    const trees = await Promise.all([treeOf(at('unpacked/configs')), treeOf(at('unpacked/tmp/cache/cache'))]);
    expect(await readFile(at('unpacked/tmp/cache/digest'), 'utf8')).toBe(await hashOpmTrees(trees));
    expect(await commandOf(at('skopeo'))).toEqual(['serve', '/configs', '--cache-dir=/tmp/cache']);
    expect(await sandbox.run(['validate', 'unpacked/configs'])).toMatchObject({ code: 0 });
    // Written as `opmate render` writes it.
    const rendered = await sandbox.run(['render', 'unpacked/configs']);
    expect(await readFile(at('unpacked/configs/widget/catalog.json'), 'utf8')).toBe(rendered.stdout);
  });

  it.skipIf(!hasSkopeo)(
    'have no cache, and none in the command, where names cannot be those of files',
    async () => {
      const name = `gadget.v1.0.0-${'x'.repeat(250)}`;
      const entries = {
        'configs/catalog.json': catalogOf('gadget', [{ name }]),
        'c/digest': 'old',
        'bin/opm': 'opm',
      };
      const layer = Object.entries(entries).map(([file, text]) => ({
        path: file,
        content: Buffer.from(text),
      }));
      const image = await buildImage({
        layers: [await layerOf(layer)],
        platform: { os: 'linux', architecture: 'amd64' },
        labels: { [imageLabels.configs]: '/configs' },
        entrypoint: ['/bin/opm'],
        cmd: ['serve', '/configs', '--cache-dir=/c'],
      });
      await storeImage(at('long'), 'v1', image);
      const full = '    full: true\n';
      const warnings: string[] = [];
      const pushed = await rebuilding(
        `oci:${at('long')}:v1`,
        full,
        (rebuilt) => push(rebuilt, 'long'),
        [],
        (message) => warnings.push(message),
      );
      expect(warnings).toEqual([expect.stringContaining('has no cache')]);
      await promisify(execFile)('skopeo', [
        ...['copy', '--src-tls-verify=false', `docker://${pushed}`, `oci:${at('long-made')}`],
      ]);
      await unpack(at('long-made'), at('long-unpacked'));
      expect((await readdir(at('long-unpacked'))).sort()).toEqual(['bin', 'configs']);
      expect(await commandOf(at('long-made'))).toEqual(['serve', '/configs']);
    },
  );

  it('omit bundles and stay valid', async () => {
    const image = await makeImage({
      files: { 'configs/catalog.json': widgetCatalog, 'bin/opm': 'opm' },
      labels: { [imageLabels.configs]: '/configs' },
    });
    await storeImage(at('layout'), 'v1', image);
    const left = ['widget/widget.v1.1.0', 'widget/widget.v1.3.0'];
    const pushed = await rebuilding(
      `oci:${at('layout')}:v1`,
      '    full: true\n',
      (rebuilt) => push(rebuilt, 'left'),
      left,
    );
    expect(await sandbox.run(['validate', pushed, '--use-http'])).toMatchObject({ code: 0 });
    const { stdout } = await sandbox.run(['render', pushed, '--use-http']);
    expect(stdout).toMatch(
      /"name": "widget.v1.2.0",\s+"replaces": "widget.v1.0.0",\s+"skips": \[\s+"widget.v1.1.0"/,
    );
    expect(stdout).not.toMatch(/"name": "widget.v1.[13].0"/);
  });

  it('are built from a database in an archive', async () => {
    await cp(await indexFile(), at('index.db'));
    const image = await makeImage({
      files: { 'database/index.db': await readFile(at('index.db')), 'bin/opm': 'opm' },
      labels: { [imageLabels.database]: '/database/index.db' },
    });
    await storeImage(at('database'), 'v1', image);
    await sandbox.write({ 'database.tar': await packLayout(at('database')) });
    const pushed = await rebuilding(
      `oci-archive:${at('database.tar')}`,
      '    packages:\n    - name: widget\n      channels:\n      - name: stable\n        minVersion: 1.1.0\n',
      (rebuilt) => push(rebuilt, 'database'),
    );
    expect(await sandbox.run(['validate', pushed, '--use-http'])).toMatchObject({ code: 0 });
    const { stdout } = await sandbox.run(['list', 'bundles', pushed, '--use-http']);
    expect(stdout).toMatch(/widget\s+stable\s+widget.v1.1.0/);
    expect(stdout).toMatch(/widget\s+stable\s+widget.v1.2.0/);
    expect(await sandbox.leftovers()).toEqual([]);
  });
});
