import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  CancelledError,
  type ProgressEvent,
  type Reference,
  type Session,
  addToIndex,
  addToIndexImage,
  buildCatalogImage,
  buildIndex,
  buildIndexImage,
  editIndexImage,
  exportIndex,
  loadCatalog,
  loadManifests,
  openIndex,
  openSession,
  parseReference,
  type Registry,
  startRegistry,
} from '../../../src/index.js';
import { parseAppRegistryNamespace } from '../../../src/source/app-registry.js';
import type { LoadReport } from '../../../src/sqlite/legacy/manifest-loader.js';
import { makeImage, storeImage } from '../../e2e/images.js';
import { widgetCatalog } from '../../e2e/catalogs.js';
import { packageArchive, startAppRegistry } from '../../support/app-registry.js';
import { widgetTree } from '../../support/manifest-trees.js';
import { readRows } from '../../support/rows.js';
import { inDirectory, smallBundle } from '../../support/small-bundle.js';
import { directoryWith } from '../../support/temporary.js';

let work: string;
let registry: Registry;
let session: Session;
let progress: ProgressEvent[];
const at = (...names: string[]): string => path.join(work, ...names);
const imageOf = (name: string): string => `${new URL(registry.url).host}/ns/${name}`;
const toImage = (name: string): { to: Reference } => ({ to: parseReference(imageOf(name)) });

beforeEach(async () => {
  work = await directoryWith({
    ...inDirectory('w1', smallBundle({ version: '1.0.0' })),
    ...inDirectory('w2', smallBundle({ version: '2.0.0', replaces: 'widget.v1.0.0' })),
    ...inDirectory('gadget', smallBundle({ packageName: 'gadget' })),
  });
  registry = await startRegistry({ directory: at('registry') });
  progress = [];
  session = await openSession({
    registry: { useHttp: true },
    logger: { log: () => undefined, progress: (event) => progress.push(event) },
  });
  for (const version of ['1.0.0', '2.0.0']) {
    const replaces = version === '2.0.0' ? 'widget.v1.0.0' : undefined;
    const image = await makeImage({ files: smallBundle({ version, replaces }) });
    await storeImage(at('registry'), `ns/bundle:v${version}`, image);
  }
});
afterEach(async () => {
  await session.close();
  await registry.close();
});

/** Names of the bundles of an index, a file or an image. */
async function bundlesOf(reference: string): Promise<string[]> {
  const catalog = await loadCatalog(reference, session);
  try {
    const { bundles } = await catalog.facts();
    return [...bundles].map(({ name }) => name).sort();
  } finally {
    await catalog.close();
  }
}

/** Pushes an index of both widget images and the gadget directory as `index:v1`. */
async function pushIndex(): Promise<string> {
  const references = [imageOf('bundle:v1.0.0'), imageOf('bundle:v2.0.0'), at('gadget')];
  await addToIndexImage(references, session, { output: toImage('index:v1'), binaryImage: 'scratch' });
  return imageOf('index:v1');
}

describe('addToIndex', () => {
  it('adds bundles to a new database, then to a copy of it', async () => {
    const { added } = await addToIndex(at('index.db'), [at('w1')], session);
    expect(added).toEqual(new Map([['widget', ['widget.v1.0.0']]]));
    await addToIndex(at('index.db'), [at('w2')], session, { outputFile: at('new.db') });
    expect(await bundlesOf(at('index.db'))).toEqual(['widget.v1.0.0']);
    expect(await bundlesOf(at('new.db'))).toEqual(['widget.v1.0.0', 'widget.v2.0.0']);
  });

  it('adds all bundles or none, unless the rest may be left out', async () => {
    const references = [at('w1'), at('none')];
    await expect(addToIndex(at('index.db'), references, session)).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    expect(await readdir(work)).not.toContain('index.db');
    const { added, failures } = await addToIndex(at('index.db'), references, session, { permissive: true });
    expect([...added.keys()]).toEqual(['widget']);
    expect(failures.map(({ message }) => message)).toEqual([expect.stringContaining(at('none'))]);
  });

  it('ends when it is cancelled, and leaves nothing', async () => {
    const cancel = new AbortController();
    cancel.abort();
    const cancelled = { ...session, signal: cancel.signal };
    await expect(addToIndex(at('index.db'), [at('w1')], cancelled)).rejects.toThrow(CancelledError);
    expect(await readdir(work)).not.toContain('index.db');
  });
});

describe('index images', () => {
  it('pushes the same image for the same bundles, and tells how far it is', async () => {
    const options = { output: toImage('index:v1'), binaryImage: 'scratch' };
    const first = await addToIndexImage([imageOf('bundle:v1.0.0')], session, options);
    const again = await addToIndexImage([imageOf('bundle:v1.0.0')], session, options);
    expect(first.image).toMatchObject({
      name: expect.stringMatching(/\/ns\/index@sha256:[0-9a-f]{64}$/) as string,
      platforms: ['linux/amd64'],
    });
    expect(first.image?.layerBytes).toBeGreaterThan(0);
    expect(again.image).toEqual({ ...first.image, isUnchanged: true });
    expect(first.result.added.get('widget')).toEqual(['widget.v1.0.0']);
    const tasks = progress.filter(({ state }) => state === 'done').map(({ task }) => task);
    expect(tasks).toContain(`pull ${imageOf('bundle:v1.0.0')}`);
    expect(tasks).toContain(`push ${imageOf('index:v1')}`);
  });

  const everyBundle = ['gadget.v1.0.0', 'widget.v1.0.0', 'widget.v2.0.0'];
  it.each<[Parameters<typeof editIndexImage>[0], string[]]>([
    [{ kind: 'remove', packages: ['widget'] }, ['gadget.v1.0.0']],
    [{ kind: 'prune', packages: ['gadget'] }, ['gadget.v1.0.0']],
    [{ kind: 'prune-stranded' }, everyBundle],
    [{ kind: 'delete', bundle: 'widget.v1.0.0' }, ['gadget.v1.0.0', 'widget.v2.0.0']],
    [{ kind: 'delete-latest', package: 'widget' }, ['gadget.v1.0.0', 'widget.v1.0.0']],
    // Catalogs of an index leave deprecated bundles out.
    [{ kind: 'deprecate', bundles: ['bundle:v1.0.0'] }, ['gadget.v1.0.0', 'widget.v2.0.0']],
  ])('changes an index by $0.kind, and leaves the old image', async (request, left) => {
    const change =
      request.kind === 'deprecate' ? { ...request, bundles: [imageOf('bundle:v1.0.0')] } : request;
    const fromIndex = await pushIndex();
    const edited: string[] = [];
    const { image } = await editIndexImage(change, session, {
      ...{ fromIndex, output: toImage('index:v2'), binaryImage: 'scratch' },
      onEdited: (_result, name) => edited.push(name),
    });
    expect(edited).toEqual([fromIndex]);
    expect(await bundlesOf(imageOf('index:v2'))).toEqual(left);
    expect(await bundlesOf(image?.name as string)).toEqual(left);
    expect(await bundlesOf(fromIndex)).toHaveLength(3);
  });

  it('pushes nothing when the change fails', async () => {
    const options = { output: toImage('index:v2'), binaryImage: 'scratch' };
    await expect(
      editIndexImage({ kind: 'remove', packages: ['none'] }, session, options),
    ).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(bundlesOf(imageOf('index:v2'))).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('refuses outputs that cannot be written to before it pulls anything', async () => {
    for (const to of ['oci:layout', imageOf('index'), `oci-archive:${at('none', 'x.tar')}`]) {
      const output = { to: parseReference(to) };
      await expect(addToIndexImage([at('w1')], session, { output })).rejects.toThrow(
        /missing tag|its directory/,
      );
    }
    expect(progress).toEqual([]);
  });

  it('writes a Dockerfile in place of an image', async () => {
    const before = process.cwd();
    process.chdir(work);
    try {
      const output = { dockerfile: 'index.Dockerfile' };
      const { image, files } = await addToIndexImage([at('w1')], session, { output, binaryImage: 'scratch' });
      expect({ image, files }).toEqual({
        image: undefined,
        files: ['database/index.db', 'index.Dockerfile'],
      });
      expect(await readFile('index.Dockerfile', 'utf8')).toMatch(/^FROM scratch\n/);
      expect(await bundlesOf(path.join(work, 'database/index.db'))).toEqual(['widget.v1.0.0']);
    } finally {
      process.chdir(before);
    }
  });

  it('makes the image of a database, which stays as it is, and exports packages of both', async () => {
    await addToIndex(at('index.db'), [at('w1'), at('gadget')], session);
    const bytes = await readFile(at('index.db'));
    const output = { to: parseReference(`oci:${at('layout')}:v1`) };
    const { image } = await buildIndexImage(at('index.db'), session, { output, binaryImage: 'scratch' });
    expect(image?.to).toEqual(output.to);
    expect((await readFile(at('index.db'))).equals(bytes)).toBe(true);
    for (const index of [at('index.db'), output.to.text]) {
      const report = await exportIndex(index, at('exported'), session, { packages: ['widget'] }).catch(
        (error: unknown) => error,
      );
      if (index === at('index.db')) expect(report).toEqual({ packages: ['widget'], bundles: 1 });
      else expect(report).toMatchObject({ code: 'IO' });
    }
    expect(await readdir(at('exported', 'widget'))).toEqual(['1.0.0', 'package.yaml']);
    const all = await exportIndex(output.to.text, at('all'), session);
    expect(all).toEqual({ packages: ['gadget', 'widget'], bundles: 2 });
    await expect(exportIndex(at('all'), at('none'), session)).rejects.toMatchObject({
      message: `${at('all')}: is a directory, neither an index image nor a database`,
    });
    const opened = await openIndex(output.to.text, session);
    expect(opened.getImagesForBundle('widget.v1.0.0')).toEqual([]);
    await opened.close();
  });
});

describe('indexes of a source', () => {
  it('loads package manifests into a database', async () => {
    const tree = await directoryWith(widgetTree());
    const report = await loadManifests(at('index.db'), { kind: 'manifests', directory: tree }, session);
    expect(report).toMatchObject({ packages: ['widget'], problems: [] });
    expect(readRows(at('index.db'), 'SELECT name FROM package')).toEqual([['widget']]);
  });

  it('builds the same index of a directory, of archives and of a server', async () => {
    const apps = await startAppRegistry();
    try {
      apps.serve('ns', 'widget', { '1.0.0': packageArchive(widgetTree()) });
      const tree = await directoryWith({
        ...inDirectory('tree', widgetTree()),
        'archives/widget.tar.gz': packageArchive(widgetTree()),
      });
      const { endpoint } = apps;
      const { label } = parseAppRegistryNamespace('ns', { endpoint });
      const names = new Set<string>();
      const loaded: LoadReport[] = [];
      for (const source of [
        { kind: 'manifests', directory: path.join(tree, 'tree') },
        { kind: 'archives', directory: path.join(tree, 'archives') },
        { kind: 'namespace', namespace: 'ns', endpoint },
      ] as const) {
        const { images } = await buildIndex(source, session, {
          ...{ output: [toImage('apps:v1')], baseImage: 'scratch' },
          onLoaded: (report) => loaded.push(report),
        });
        for (const { name } of images) names.add(name);
      }
      expect(names.size).toBe(1);
      expect(loaded.map(({ packages }) => packages)).toEqual([['widget'], ['widget'], ['widget']]);
      expect(progress.map(({ task }) => task)).toContain(`pull ${label}/widget`);
    } finally {
      await apps.close();
    }
  });

  it('builds an index of bundles, as its database, and reports what it leaves out', async () => {
    const source = { kind: 'bundles', references: [at('w1'), at('none')] } as const;
    const output = { databaseDirectory: at('made') };
    await expect(buildIndex(source, session, { output })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await readdir(work)).not.toContain('made');
    const built = await buildIndex(source, session, { output, permissive: true });
    expect(built).toMatchObject({ database: at('made', 'bundles.db'), packages: ['widget'], images: [] });
    expect(built.problems.map(({ message }) => message)).toEqual([expect.stringContaining(at('none'))]);
    expect(await bundlesOf(at('made', 'bundles.db'))).toEqual(['widget.v1.0.0']);
  });
});

describe('buildCatalogImage', () => {
  it('pushes and saves the image of a catalog, with an SBOM', async () => {
    const catalog = await directoryWith({ 'all.json': widgetCatalog });
    const saved = { to: parseReference(`oci-archive:${at('catalog.tar')}`) };
    const platforms = ['linux/amd64', 'linux/s390x'];
    const { images, files, findings } = await buildCatalogImage(catalog, session, {
      outputs: [toImage('catalog:v1'), saved],
      ...{ baseImage: 'scratch', platforms, sbom: true },
    });
    expect({ files, findings }).toEqual({ files: 1, findings: [] });
    expect(images.map(({ to }) => to)).toEqual([toImage('catalog:v1').to, saved.to]);
    expect(new Set(images.map(({ name }) => name.split('@')[1])).size).toBe(1);
    expect(images[0]?.platforms).toEqual(platforms);
    expect(await bundlesOf(imageOf('catalog:v1'))).toEqual(await bundlesOf(catalog));
  });

  it('builds nothing of a catalog that is invalid, unless it need not be valid', async () => {
    const catalog = await directoryWith({
      'all.json': '{"schema":"olm.package","name":"a","defaultChannel":"x"}',
    });
    const options = { outputs: [toImage('catalog:v1')], baseImage: 'scratch' };
    const messages: (string | undefined)[] = [];
    const refused = await buildCatalogImage(catalog, session, {
      ...options,
      onChecked: ({ message }, isRefused) => void messages.push(isRefused ? message : undefined),
    });
    expect(refused).toEqual({ images: [], files: 1, findings: [] });
    expect(messages).toEqual([expect.stringContaining('package "a"')]);
    const { images } = await buildCatalogImage(catalog, session, { ...options, skipValidation: true });
    expect(images).toHaveLength(1);
  });
});
