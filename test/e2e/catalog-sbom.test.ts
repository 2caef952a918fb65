import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readBlob } from '../../src/oci/image/image.js';
import { pushImageIndex } from '../../src/oci/image/image-builder.js';
import { type Descriptor, type ImageManifest, mediaTypes } from '../../src/oci/image/types.js';
import { openLayout } from '../../src/oci/layout/layout.js';
import { type Connection, createConnection } from '../../src/oci/registry/connection.js';
import { createRegistryRepository } from '../../src/oci/registry/registry-client.js';
import type { Repository } from '../../src/oci/registry/repository.js';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { pemPair } from '../support/sigstore.js';
import { makeImage } from './images.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
const hex = (digit: string): string => digit.repeat(64);
const spdxType = 'application/spdx+json';
const createdAnnotation = 'org.opencontainers.image.created';

const bundle = (name: string, version: string, image: string, related: string[]) => ({
  ...{ schema: 'olm.bundle', package: 'widget', name, image },
  properties: [{ type: 'olm.package', value: { packageName: 'widget', version } }],
  relatedImages: [image, ...related].map((one, i) => ({ name: `i${i}`, image: one })),
});
const operand = `quay.io/demo/operand@sha256:${hex('b')}`;
const catalog = [
  { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
  {
    ...{ schema: 'olm.channel', package: 'widget', name: 'stable' },
    entries: [{ name: 'widget.v1.0.0' }, { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' }],
  },
  bundle('widget.v1.0.0', '1.0.0', 'quay.io/demo/widget:v1', [operand]),
  bundle('widget.v1.1.0', '1.1.0', `quay.io/demo/widget@sha256:${hex('a')}`, [operand, 'busybox:1']),
];

interface Spdx {
  [field: string]: unknown;
  documentNamespace: string;
  packages: {
    SPDXID: string;
    name: string;
    versionInfo?: string;
    sourceInfo?: string;
    externalRefs?: { referenceLocator: string }[];
  }[];
  relationships: { spdxElementId: string; relationshipType: string; relatedSpdxElement: string }[];
}

const opmate = (...args: string[]) => sandbox.run([...args, '--use-http']);

/** Builds with an SBOM; returns the digest of the image. */
async function build(...args: string[]): Promise<string> {
  const result = await opmate('catalog', 'build', 'catalog', '--sbom', ...args);
  expect(result).toMatchObject({ code: 0 });
  return result.stdout.trim().split('@')[1] as string;
}

/** The one SBOM that refers to an image, its manifest and its text. */
async function readSbom(repository: Repository, digest: string) {
  const referrers = await repository.listReferrers(digest, { artifactType: spdxType });
  expect(referrers).toMatchObject([{ artifactType: spdxType }]);
  const [{ digest: own }] = referrers as [Descriptor];
  const { bytes } = await repository.getManifest(own);
  const manifest = JSON.parse(bytes.toString()) as ImageManifest;
  const [layer] = manifest.layers as [Descriptor];
  const text = (await readBlob(repository, layer, 1 << 20, {})).toString();
  return { manifest, text, spdx: JSON.parse(text) as Spdx };
}

/** Names in place of identifiers, as `A TYPE B`. */
function edgesOf({ packages, relationships }: Spdx): string[] {
  const names = new Map(
    packages.map(({ SPDXID, name, versionInfo = '' }) => [SPDXID, `${name} ${versionInfo}`]),
  );
  expect(names.size).toBe(packages.length);
  const nameOf = (id: string): string =>
    id === 'SPDXRef-DOCUMENT' ? 'document' : (names.get(id)?.trim() ?? `no ${id}`);
  return relationships.map(
    (one) => `${nameOf(one.spdxElementId)} ${one.relationshipType} ${nameOf(one.relatedSpdxElement)}`,
  );
}

beforeAll(() =>
  sandbox.write({
    'catalog/catalog.json': catalog.map((one) => JSON.stringify(one)).join('\n'),
    'own.key': pemPair().privateKey,
  }),
);

describe('catalog build --sbom', () => {
  it('attaches the contents of the catalog to the image as SPDX', async () => {
    const digest = await build(
      '-i',
      'scratch',
      '--save',
      'oci:one:v1',
      '-t',
      'registry.example.com:5000/demo/all:v1',
    );
    const { manifest, spdx } = await readSbom(await openLayout(at('one')), digest);
    expect(manifest).toMatchObject({
      ...{
        artifactType: spdxType,
        subject: { digest },
        annotations: { [createdAnnotation]: '1970-01-01T00:00:00Z' },
      },
      ...{
        config: { mediaType: 'application/vnd.oci.empty.v1+json', size: 2 },
        layers: [{ mediaType: spdxType }],
      },
    });
    const name = 'registry.example.com:5000/demo/all:v1';
    expect(spdx).toMatchObject({
      ...{ spdxVersion: 'SPDX-2.3', dataLicense: 'CC0-1.0', SPDXID: 'SPDXRef-DOCUMENT', name },
      creationInfo: {
        created: '1970-01-01T00:00:00Z',
        creators: [expect.stringMatching(/^Tool: opmate-\d+\.\d+\.\d+/)],
      },
      documentNamespace: `https://spdx.org/spdxdocs/${encodeURIComponent(name)}-${digest.replace(':', '-')}`,
    });
    for (const one of spdx.packages) {
      expect(one).toMatchObject({ downloadLocation: 'NOASSERTION', filesAnalyzed: false });
      expect(one.SPDXID).toMatch(/^SPDXRef-[A-Za-z0-9.-]+$/);
    }
    const pinned = `quay.io/demo/operand sha256:${hex('b')}`;
    expect(edgesOf(spdx)).toEqual([
      `document DESCRIBES ${name} ${digest}`,
      `${name} ${digest} CONTAINS widget`,
      'widget CONTAINS widget.v1.0.0 1.0.0',
      `widget.v1.0.0 1.0.0 DEPENDS_ON ${pinned}`,
      'widget CONTAINS widget.v1.1.0 1.1.0',
      `widget.v1.1.0 1.1.0 DEPENDS_ON ${pinned}`,
      'widget.v1.1.0 1.1.0 DEPENDS_ON docker.io/library/busybox 1',
    ]);
    const purls = spdx.packages.flatMap((one) =>
      (one.externalRefs ?? []).map(({ referenceLocator }) => `${one.name} ${referenceLocator}`),
    );
    expect(purls).toEqual([
      `${name} pkg:oci/all@${encodeURIComponent(digest)}?repository_url=registry.example.com:5000/demo/all&tag=v1`,
      `quay.io/demo/operand pkg:oci/operand@sha256%3A${hex('b')}?repository_url=quay.io/demo/operand`,
      `widget.v1.1.0 pkg:oci/widget@sha256%3A${hex('a')}?repository_url=quay.io/demo/widget`,
    ]);
    expect(spdx.packages.find((one) => one.versionInfo === '1.0.0')?.sourceInfo).toBe(
      'image quay.io/demo/widget:v1',
    );
  });

  it('has the creation time of the image', async () => {
    const created = '2026-02-03T04:05:06.7+01:00';
    const digest = await build('-i', 'scratch', '--save', 'oci:timed:v1', '--created', created);
    const { manifest, spdx } = await readSbom(await openLayout(at('timed')), digest);
    expect(manifest.annotations).toEqual({ [createdAnnotation]: created });
    expect(spdx).toMatchObject({ name: 'catalog', creationInfo: { created: '2026-02-03T03:05:06Z' } });
  });

  it('has the same bytes for any location of the catalog and its base', async () => {
    const bases = await Promise.all(
      ['amd64', 'arm64'].map((architecture) => makeImage({ platform: { os: 'linux', architecture } })),
    );
    await pushImageIndex(await openLayout(at('base'), { create: true }), 'v1', bases);
    await pushImageIndex(await openLayout(at('moved/base'), { create: true }), 'v1', bases);
    const digest = await build('-i', 'oci:base:v1', '--save', 'oci:here:v1');
    expect(await build('-i', 'oci:moved/base:v1', '--save', 'oci-archive:there.tar:v1')).toBe(digest);
    const here = await readSbom(await openLayout(at('here')), digest);
    await sandbox.write({ 'unpacked/.keep': '' });
    execFileSync('tar', ['-xf', at('there.tar'), '-C', at('unpacked')]);
    const there = await readSbom(await openLayout(at('unpacked')), digest);
    expect(there.text).toBe(here.text);
    expect(edgesOf(here.spdx).slice(1, 3)).toEqual(
      bases.map(({ descriptor }) => `catalog ${digest} DESCENDANT_OF base image ${descriptor.digest}`),
    );
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('writes nothing if the destination has no place for an SBOM, or the catalog is unreadable', async () => {
    const args = ['catalog', 'build', 'catalog', '-i', 'scratch', '--sbom', '--platform', 'linux/amd64'];
    const refused = await opmate(...args, '--save', 'docker-archive:image.tar');
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('--sbom: a docker-archive cannot hold an SBOM');
    await sandbox.write({
      'broken/catalog.json': '{"schema":"olm.bundle","package":"a","name":"b","image":7}',
    });
    const broken = ['build', 'broken', '-i', 'scratch', '--skip-validation', '--save', 'oci:broken-out:v1'];
    const result = await opmate('catalog', ...broken, '--sbom');
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain('broken/catalog.json:1');
    expect(existsSync(at('broken-out'))).toBe(false);
    expect(existsSync(at('image.tar'))).toBe(false);
  });
});

describe.skipIf(!hasDockerRegistry)('catalog build --sbom, with a registry without referrers API', () => {
  let registry: DockerRegistry;
  let connection: Connection;
  const repositoryAt = (repository: string) =>
    createRegistryRepository({ connection, registry: registry.host, repository });
  beforeAll(async () => {
    registry = await startDockerRegistry();
    connection = createConnection({
      environment: {},
      homeDirectory: sandbox.home,
      systemDirectory: at('etc'),
      useHttp: true,
    });
  });
  afterAll(async () => {
    connection?.close();
    await registry?.close();
  });

  it('lists the SBOM once under the referrers tag, next to the signature', async () => {
    const { host } = registry;
    const base = await makeImage({ platform: { os: 'linux', architecture: 'amd64' } });
    await pushImageIndex(repositoryAt('demo/base'), 'v1', [base]);
    const args = ['-i', `${host}/demo/base:v1`, '-t', `${host}/demo/catalog:v1`, '--sign-by', 'own.key'];
    const digest = await build(...args);
    expect(await build(...args)).toBe(digest);
    const tag = digest.replace(':', '-');
    const answer = await fetch(`http://${host}/v2/demo/catalog/manifests/${tag}`, {
      headers: { accept: mediaTypes.ociIndex },
    });
    expect(await answer.json()).toMatchObject({ manifests: [{ artifactType: spdxType }] });
    const { spdx } = await readSbom(repositoryAt('demo/catalog'), digest);
    expect(edgesOf(spdx)[1]).toBe(
      `${host}/demo/catalog:v1 ${digest} DESCENDANT_OF ${host}/demo/base ${base.descriptor.digest}`,
    );
    expect(await repositoryAt('demo/catalog').listTags()).toEqual([tag, `${tag}.sig`, 'v1']);
    // A tool that is not ours still takes the image for what it is.
    const image = `docker://${host}/demo/catalog:v1`;
    execFileSync('skopeo', ['inspect', '--tls-verify=false', image], { stdio: 'pipe' });
  });

  it('is copied with the image and its referrers', async () => {
    const digest = await build('-i', 'scratch', '--save', 'oci:carried:v1');
    const to = `${registry.host}/far/catalog:v1`;
    expect(await opmate('oci', 'copy', 'oci:carried:v1', to, '--referrers')).toMatchObject({ code: 0 });
    const near = await readSbom(await openLayout(at('carried')), digest);
    expect((await readSbom(repositoryAt('far/catalog'), digest)).text).toBe(near.text);
  });
});
