import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  CancelledError,
  type Registry,
  type Session,
  findMirrorLock,
  mirrorCatalog,
  mirrorImageSet,
  mirrorMappings,
  openSession,
  parseReference,
  readMappings,
  readMirrorStatus,
  startRegistry,
} from '../../../src/index.js';
import { readNamedLock } from '../../../src/api/mirror/find-lock.js';
import { openReference } from '../../../src/oci/image/open.js';
import { catalogOf } from '../../e2e/catalogs.js';
import { makeCatalogImage, makeImage, storeImage } from '../../e2e/images.js';
import { directoryWith } from '../../support/temporary.js';

let work: string;
let source: Registry;
let target: Registry;
let session: Session;
const at = (...names: string[]): string => path.join(work, ...names);
const hostOf = ({ url }: Registry): string => new URL(url).host;

beforeEach(async () => {
  work = await directoryWith({});
  source = await startRegistry({ directory: at('source') });
  target = await startRegistry({ directory: at('target') });
  session = await openSession({ registry: { useHttp: true }, workingDirectory: work });
  const catalog = catalogOf('widget', [{ name: 'widget.v1' }]).replaceAll('quay.io', hostOf(source));
  await storeImage(at('source'), 'ns/catalog:v1', await makeCatalogImage({ 'all.json': catalog }));
  await storeImage(at('source'), 'example/widget:v0', await makeImage({ files: { 'a.txt': 'a' } }));
});
afterEach(async () => {
  await session.close();
  await target.close();
  await source.close();
});

async function listTags(reference: string): Promise<string[]> {
  const opened = await openReference(parseReference(reference), session);
  try {
    return await opened.repository.listTags(session);
  } finally {
    await opened.close();
  }
}

describe('mirrorCatalog', () => {
  it('copies a catalog and its images, and writes what a cluster needs', async () => {
    const planned: number[] = [];
    const { plan, report, directory } = await mirrorCatalog(
      `${hostOf(source)}/ns/catalog:v1`,
      `${hostOf(target)}/mirror`,
      session,
      { manifests: 'out', itms: true, onPlanned: ({ images }) => planned.push(images.length) },
    );
    expect(planned).toEqual([2]);
    expect(plan.faults).toEqual([]);
    expect(report?.done).toHaveLength(2);
    expect(directory).toBe(at('out'));
    expect(await readFile(at('out', 'catalogSource.yaml'), 'utf8')).toContain(`${hostOf(target)}/mirror`);
    expect(await readFile(at('out', 'imageTagMirrorSet.yaml'), 'utf8')).toContain('ImageTagMirrorSet');
    expect(await listTags(`${hostOf(target)}/mirror/ns-catalog:v1`)).toEqual(['v1']);
  });

  it('writes only manifests where nothing is to be copied', async () => {
    const image = `${hostOf(source)}/ns/catalog:v1`;
    const options = { manifests: 'out', manifestsOnly: true };
    const { report } = await mirrorCatalog(image, `${hostOf(target)}/mirror`, session, options);
    expect(report).toBeUndefined();
    expect((await readdir(at('out'))).sort()).toEqual([
      'catalogSource.yaml',
      'imageContentSourcePolicy.yaml',
      'imageDigestMirrorSet.yaml',
      'mapping.txt',
    ]);
    expect(await readdir(at('target'))).not.toContain('mirror');
  });

  it('writes nothing once it is cancelled', async () => {
    const cancel = new AbortController();
    const stopped = await openSession({
      ...{ registry: { useHttp: true }, workingDirectory: work, signal: cancel.signal },
    });
    try {
      const mirrored = mirrorCatalog(`${hostOf(source)}/ns/catalog:v1`, `${hostOf(target)}/mirror`, stopped, {
        manifests: 'out',
        onPlanned: () => cancel.abort(),
      });
      await expect(mirrored).rejects.toThrow(CancelledError);
      expect(await readdir(work)).not.toContain('out');
    } finally {
      await stopped.close();
    }
  });

  it('refuses a destination with a tag', async () => {
    const mirrored = mirrorCatalog(`${hostOf(source)}/ns/catalog:v1`, `${hostOf(target)}/mirror:v1`, session);
    await expect(mirrored).rejects.toThrow('a destination has neither tag nor digest');
  });
});

describe('mirrorMappings', () => {
  it('copies what the lines of a mapping state, tags by pattern', async () => {
    await storeImage(at('source'), 'example/widget:v1', await makeImage({ files: { 'b.txt': 'b' } }));
    const line = `${hostOf(source)}/example/widget:v*=${hostOf(target)}/copy/widget`;
    const resolved: number[] = [];
    const onResolved = (images: number): void => void resolved.push(images);
    const report = await mirrorMappings(
      readMappings([], { text: line, file: 'mapping.txt' }).mappings,
      session,
      { onResolved },
    );
    expect(resolved).toEqual([2]);
    expect(report.done).toHaveLength(2);
    expect(await listTags(`${hostOf(target)}/copy/widget:v0`)).toEqual(['v0', 'v1']);
  });

  it('lists an image that is missing', async () => {
    const line = `${hostOf(source)}/example/none:v1=${hostOf(target)}/copy/none:v1`;
    const mappings = readMappings([], { text: line, file: 'mapping.txt' }).mappings;
    const report = await mirrorMappings(mappings, session, { continueOnError: true, skipMissing: true });
    expect(report.missing).toHaveLength(1);
    await expect(mirrorMappings(mappings, session)).rejects.toThrow('not found');
  });
});

describe('readMirrorStatus', () => {
  it('compares a lock, found by its workspace, with a registry', async () => {
    const image = `${hostOf(source)}/example/widget:v0`;
    const configuration = {
      kind: 'ImageSetConfiguration',
      apiVersion: 'mirror.openshift.io/v2alpha1',
      mirror: { additionalImages: [{ name: image }] },
    };
    const config = path.join(await directoryWith({ 'set.yaml': JSON.stringify(configuration) }), 'set.yaml');
    const destination = `docker://${hostOf(target)}/set`;
    await mirrorImageSet(config, destination, session, { workspace: 'carry' });
    const { lock, name } = await findMirrorLock(destination, session, { workspace: 'carry' });
    expect(name).toBe(path.join('carry', 'working-dir', 'opmate.lock.json'));
    expect(await readNamedLock('carry', session)).toEqual(lock);
    expect((await findMirrorLock(destination, session, { lock: 'carry' })).lock).toEqual(lock);
    expect(await readMirrorStatus(lock, destination, session)).toMatchObject({
      isComplete: true,
      images: { total: 1, complete: 1 },
    });
    const elsewhere = await readMirrorStatus(lock, `docker://${hostOf(target)}/other`, session);
    expect(elsewhere.isComplete).toBe(false);
    await expect(findMirrorLock(destination, session)).rejects.toThrow('lock not found');
  });
});
