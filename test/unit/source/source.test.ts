import { copyFile, readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { imageLabels } from '../../../src/model/image-labels.js';
import type { BuiltImage } from '../../../src/oci/image/image-builder.js';
import { platformOfMachine } from '../../../src/source/machine.js';
import { openSourceSession } from '../../../src/source/session.js';
import { render } from '../../../src/api/render-catalog.js';
import { localStateReader, openSource } from '../../../src/source/source.js';
import { widgetCatalog } from '../../e2e/catalogs.js';
import { makeBundleImage, makeCatalogImage, makeImage, storeImage } from '../../e2e/images.js';
import { bundlesDirectory } from '../../support/command-line.js';
import { failureOf } from '../../support/connect.js';
import { indexFile } from '../../support/index-file.js';
import { rawTar } from '../../support/tar.js';
import { directoryWith } from '../../support/temporary.js';
import { sessionOptions } from './session-options.js';

const bundle = path.join(bundlesDirectory, 'microcks/0.3.0');

/** An image that has both labels, as tools have made them for a while. */
async function makeIndexImage(file: string): Promise<BuiltImage> {
  return makeImage({
    files: { 'database/index.db': await readFile(file), 'configs/x.json': '{}' },
    labels: { [imageLabels.database]: '/database/index.db', [imageLabels.configs]: '/configs' },
  });
}

describe('source/source', () => {
  it('tells bundles from catalogs, in directories and images', async () => {
    const session = await openSourceSession(await sessionOptions());
    const directory = await directoryWith({ 'all.json': widgetCatalog });
    const layout = path.join(directory, 'layout');
    await storeImage(layout, 'catalog', await makeCatalogImage({ 'all.json': widgetCatalog }));
    await storeImage(layout, 'bundle', await makeBundleImage('microcks/0.3.0'));
    const index = await indexFile();
    await storeImage(layout, 'index', await makeIndexImage(index));
    const found = [];
    for (const reference of [
      bundle,
      directory,
      index,
      ...['catalog', 'bundle', 'index'].map((tag) => `oci:${layout}:${tag}`),
    ]) {
      const source = await openSource(reference, session);
      found.push(source.kind);
      await source.close();
    }
    expect(found).toEqual(['bundle', 'catalog', 'catalog', 'catalog', 'bundle', 'catalog']);
    await session.close();
  });

  it('opens relative paths in the working directory of the session', async () => {
    const directory = await directoryWith({ 'catalog/all.json': widgetCatalog });
    await storeImage(
      path.join(directory, 'layout'),
      'v1',
      await makeCatalogImage({ 'all.json': widgetCatalog }),
    );
    const index = await indexFile();
    await copyFile(index, path.join(directory, 'index.db'));
    const session = await openSourceSession(await sessionOptions({ workingDirectory: directory }));
    for (const reference of ['catalog', 'index.db', 'oci:layout:v1']) {
      const source = await openSource(reference, session);
      expect(source.kind).toBe('catalog');
      await source.close();
      const readState = await localStateReader(reference, session);
      expect(await readState?.()).not.toBe('');
    }
    const pieces = [];
    for await (const piece of render(['catalog'], session)) pieces.push(piece);
    expect(pieces).not.toEqual([]);
    await session.close();
  });

  it('opens tar archives and files of ConfigMaps as catalogs and bundles', async () => {
    const session = await openSourceSession(await sessionOptions());
    const csv = {
      apiVersion: 'operators.coreos.com/v1alpha1',
      kind: 'ClusterServiceVersion',
      metadata: { name: 'w' },
    };
    const configMap = (name: string, data: Record<string, string>): string =>
      JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data, immutable: true });
    const annotations = 'annotations:\n  operators.operatorframework.io.bundle.package.v1: w\n';
    const directory = await directoryWith({
      'catalog.tar': rawTar([{ name: 'all.json', content: widgetCatalog }]),
      'bundle.tgz': gzipSync(
        rawTar([
          { name: 'manifests/csv.json', content: JSON.stringify(csv) },
          { name: 'metadata/annotations.yaml', content: annotations },
        ]),
      ),
      'catalog.json': configMap('c', { 'all.json': widgetCatalog }),
      'bundle.json': configMap('b', { 'csv.json': JSON.stringify(csv), 'annotations.yaml': annotations }),
    });
    const kindOf = async (name: string): Promise<string> => {
      const source = await openSource(name, session);
      await source.close();
      return source.kind;
    };
    expect(await kindOf(path.join(directory, 'catalog.tar'))).toBe('catalog');
    expect(await kindOf(path.join(directory, 'bundle.tgz'))).toBe('bundle');
    expect(await kindOf(path.join(directory, 'catalog.json'))).toBe('catalog');
    expect(await kindOf(`configmap:${directory}/catalog.json#c`)).toBe('catalog');
    expect(await kindOf(path.join(directory, 'bundle.json'))).toBe('bundle');
    await session.close();
  });

  it('refuses image archives without their transport, which it names', async () => {
    const session = await openSourceSession(await sessionOptions());
    const directory = await directoryWith({
      'oci.tar': rawTar([{ name: 'oci-layout', content: '{}' }]),
      'docker.tar': rawTar([
        { name: 'manifest.json', content: '[]' },
        { name: 'repositories', content: '{}' },
      ]),
    });
    for (const transport of ['oci', 'docker']) {
      const file = path.join(directory, `${transport}.tar`);
      expect(await failureOf(openSource(file, session))).toMatchObject({
        problem: 'contains an image, not its files',
        hint: `use ${transport}-archive:${file}`,
      });
    }
    await session.close();
  });

  it('gives a bundle no image where a cluster could not pull it, unless a template makes one', async () => {
    const session = await openSourceSession(await sessionOptions());
    const layout = path.join(await directoryWith(), 'layout');
    await storeImage(layout, 'bundle', await makeBundleImage('microcks/0.3.0'));
    const imageOf = async (imageTemplate?: string): Promise<unknown> => {
      let text = '';
      for await (const piece of render([`oci:${layout}:bundle`], session, { imageTemplate }))
        text += String(piece);
      return (JSON.parse(text) as { image: string }).image;
    };
    expect(await imageOf()).toBe('');
    expect(await imageOf('quay.io/x/{{.Package}}:v{{.Version}}')).toBe('quay.io/x/microcks:v0.3.0');
    await session.close();
  });

  it('refuses what the command does not take before it reads any of it', async () => {
    const session = await openSourceSession(await sessionOptions());
    const directory = await directoryWith({ 'all.json': widgetCatalog });
    const layout = path.join(directory, 'layout');
    await storeImage(layout, 'catalog', await makeCatalogImage({ 'all.json': widgetCatalog }));
    await storeImage(layout, 'bundle', await makeBundleImage('microcks/0.3.0'));
    const index = await indexFile();
    await storeImage(layout, 'index', await makeIndexImage(index));
    const noBundles = { bundles: false, catalogs: true };
    const noCatalogs = { bundles: true, catalogs: false };
    for (const [reference, allowed] of [
      [bundle, noBundles],
      [`oci:${layout}:bundle`, noBundles],
      [directory, noCatalogs],
      [`oci:${layout}:catalog`, noCatalogs],
      [index, noCatalogs],
      [`oci:${layout}:index`, noCatalogs],
    ] as const) {
      const error = await failureOf(openSource(reference, session, allowed));
      expect(error).toMatchObject({ code: 'UNSUPPORTED' });
      expect(error.message).toMatch(/not allowed$/);
    }
    await session.close();
  });

  it.each(['../..', '/a/../../b', '/configs\0x'])('refuses the label %j as unsafe', async (label) => {
    const options = await sessionOptions();
    const session = await openSourceSession(options);
    const layout = path.join(await directoryWith(), 'layout');
    const labels = { [imageLabels.configs]: label };
    await storeImage(layout, 'v1', await makeImage({ files: { 'configs/all.json': widgetCatalog }, labels }));
    expect(await failureOf(openSource(`oci:${layout}:v1`, session))).toMatchObject({ code: 'UNSAFE' });
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
    await session.close();
  });

  it('takes the platform of the machine where none is asked for', async () => {
    expect(platformOfMachine('x64')).toEqual({ os: 'linux', architecture: 'amd64' });
    expect(platformOfMachine('arm64')).toEqual({ os: 'linux', architecture: 'arm64' });
    expect(platformOfMachine('s390x')).toEqual({ os: 'linux', architecture: 's390x' });
  });
});
