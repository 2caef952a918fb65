import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type Registry,
  type Session,
  buildBundle,
  openSession,
  parseReference,
  pushBundle,
  startRegistry,
} from '../../../src/index.js';
import { pullImage } from '../../../src/api/images/pull-image.js';
import { makeImage, storeImage } from '../../e2e/images.js';
import { smallBundle } from '../../support/small-bundle.js';
import { bundlesDirectory } from '../../support/command-line.js';
import { directoryWith } from '../../support/temporary.js';

const bundle = path.join(bundlesDirectory, 'skupper-operator', '1.9.0');
let work: string;
let registry: Registry;
let session: Session;
const imageOf = (name: string): string => `${new URL(registry.url).host}/ns/${name}`;

beforeEach(async () => {
  work = await directoryWith({});
  registry = await startRegistry({ directory: path.join(work, 'registry') });
  session = await openSession({ registry: { useHttp: true }, workingDirectory: work });
});
afterEach(async () => {
  await session.close();
  await registry.close();
});

describe('buildBundle', () => {
  it('pushes and saves the image of a directory, the same each time', async () => {
    const outputs = [
      { to: parseReference(imageOf('widget:v1')) },
      { to: parseReference(`oci-archive:${path.join(work, 'widget.tar')}:v1`) },
    ];
    const built = await buildBundle({ directory: bundle }, outputs, session);
    expect(built.findings).toEqual([]);
    const digests = built.images.map(({ name }) => name.slice(name.indexOf('@')));
    expect(digests[0]).toMatch(/^@sha256:/);
    expect(digests).toEqual([digests[0], digests[0]]);
    const { image } = await pullImage(imageOf('widget:v1'), session);
    expect(image.labels['operators.operatorframework.io.bundle.package.v1']).toBe('skupper-operator');
  });

  it('returns the findings of an invalid bundle, and writes nothing', async () => {
    const files = smallBundle({ version: '1.0.0' });
    const broken = Object.fromEntries(
      Object.entries(files).map(([name, text]) => [name, name.includes('manifests/') ? '{' : text]),
    );
    const directory = await directoryWith(broken);
    const outputs = [{ to: parseReference(imageOf('broken:v1')) }];
    const { findings, images } = await buildBundle({ directory }, outputs, session);
    expect(findings.length).toBeGreaterThan(0);
    expect(images).toEqual([]);
    await expect(pullImage(imageOf('broken:v1'), session)).rejects.toThrow();
  });
});

describe('pushBundle', () => {
  it('pushes a directory, and a saved image byte for byte', async () => {
    const first = await pushBundle(bundle, imageOf('widget:v1'), session);
    expect(first).toMatchObject({ findings: [], name: expect.stringMatching(/@sha256:/) as string });
    const saved = { to: parseReference(`oci:${path.join(work, 'layout')}:v1`) };
    await buildBundle({ directory: bundle }, [saved], session);
    const second = await pushBundle(`oci:${path.join(work, 'layout')}:v1`, imageOf('widget:v2'), session);
    expect(second.name).toBe(first.name);
    expect(second.built).toBeUndefined();
  });

  it('refuses the image of something else', async () => {
    await storeImage(path.join(work, 'layout'), 'v1', await makeImage({ files: { 'a.txt': 'a' } }));
    const pushed = pushBundle(`oci:${path.join(work, 'layout')}:v1`, imageOf('other:v1'), session);
    await expect(pushed).rejects.toThrow('not the image of a bundle');
    expect(await readdir(path.join(work, 'registry'))).not.toContain('other');
  });
});
