import { tmpdir } from 'node:os';
import { loadAll } from 'js-yaml';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Catalog, DirectoryCatalog } from '../../../../src/catalog/catalog.js';
import type { LogLevel } from '../../../../src/core/log.js';
import { parseImageName } from '../../../../src/mirror/naming/image-name.js';
import { listCatalogImages } from '../../../../src/mirror/mapping/catalog-image-list.js';
import { encodeRegistryManifests, mapToRegistry } from '../../../../src/mirror/mapping/registry-images.js';
import { formatMappingLines } from '../../../../src/mirror/plan/mirror-plan.js';
import { openSqliteCatalog } from '../../../../src/sqlite/read/catalog.js';
import { failureOf } from '../../../support/connect.js';
import { indexFile } from '../../../support/index-file.js';
import { directoryWith } from '../../../support/temporary.js';

const digest = (digit: string): string => `sha256:${digit.repeat(64)}`;

async function catalogWith(...blobs: object[]): Promise<Catalog> {
  const text = blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('');
  return new DirectoryCatalog(await directoryWith({ 'catalog.json': text }), 'catalog');
}

async function indexWith(...statements: string[]): Promise<Catalog> {
  const catalog = await openSqliteCatalog(
    await indexFile(...statements),
    {
      temporaryDirectory: tmpdir(),
      now: () => new Date(0),
    },
    { name: 'index.db' },
  );
  onTestFinished(() => catalog.close());
  return catalog;
}

function bundleWith(spec: unknown, more: object = {}): object {
  const csv = { apiVersion: 'operators.coreos.com/v1alpha1', kind: 'ClusterServiceVersion', spec };
  const data = Buffer.from(JSON.stringify(csv)).toString('base64');
  return {
    schema: 'olm.bundle',
    package: 'widget',
    name: 'widget.v1',
    image: 'quay.io/acme/bundle:v1',
    properties: [
      {
        type: 'olm.bundle.object',
        value: { data: Buffer.from('ClusterServiceVersion {').toString('base64') },
      },
      { type: 'olm.bundle.object', value: { data } },
    ],
    ...more,
  };
}

const deployments = (...pods: unknown[]): object => ({
  install: { spec: { deployments: pods.map((pod) => ({ spec: { template: { spec: pod } } })) } },
});

describe('mirror/registry-images', () => {
  describe('listing', () => {
    it('has bundles, related images and containers, and tells what only deployments name otherwise', async () => {
      const spec = deployments(
        {
          initContainers: [
            {
              image: 'quay.io/acme/init:v1',
              env: [{ name: 'RELATED_IMAGE_DEEP', value: 'quay.io/acme/deep:v1' }],
            },
          ],
          containers: [
            {
              image: 'quay.io/acme/operator:v1',
              env: [
                { name: 'RELATED_IMAGE_APP', value: 'quay.io/acme/app:v1' },
                { name: 'RELATED_IMAGE_DB', value: 'quay.io/acme/db:v1' },
                { name: 'RELATED_IMAGE_NOTHING', value: '' },
                { name: 'RELATED_IMAGE_TEXT', value: 'no image at all' },
                { name: 'OTHER', value: 'quay.io/acme/other:v1' },
                { name: 'RELATED_IMAGE_FROM', valueFrom: {} },
              ],
            },
          ],
        },
        { containers: [{ image: 'quay.io/acme/second:v1' }] },
      );
      const related = [{ name: '', image: 'quay.io/acme/app:v1' }];
      expect(
        await listCatalogImages(await catalogWith(bundleWith(spec, { relatedImages: related })), {}),
      ).toEqual({
        images: [
          'quay.io/acme/app:v1',
          'quay.io/acme/bundle:v1',
          'quay.io/acme/operator:v1',
          'quay.io/acme/second:v1',
        ],
        undeclared: [
          { image: 'quay.io/acme/db:v1', where: 'variable RELATED_IMAGE_DB', bundle: 'widget.v1' },
          { image: 'quay.io/acme/deep:v1', where: 'variable RELATED_IMAGE_DEEP', bundle: 'widget.v1' },
          { image: 'quay.io/acme/init:v1', where: 'init container', bundle: 'widget.v1' },
        ],
        unexamined: 0,
        withoutChannel: [],
      });
    });

    it.each([
      [null],
      [{ install: [] }],
      [{ install: { spec: { deployments: {} } } }],
      [
        deployments(
          null,
          'x',
          { containers: 'x' },
          { containers: [1, { image: 3, env: [null, { name: 4 }] }] },
        ),
      ],
    ])('takes deployments of any shape (%#)', async (spec) => {
      expect(await listCatalogImages(await catalogWith(bundleWith(spec)), {})).toMatchObject({
        images: ['quay.io/acme/bundle:v1'],
        undeclared: [],
      });
    });

    it('counts bundles whose manifests are not there', async () => {
      const bundle = bundleWith({}, { properties: [{ type: 'olm.csv.metadata', value: {} }, 'x'] });
      expect((await listCatalogImages(await catalogWith(bundle), {})).unexamined).toBe(1);
    });

    it('refuses names that would make lines of their own', async () => {
      const catalog = await catalogWith(bundleWith({}, { image: 'quay.io/a:1\nquay.io/b:1' }));
      expect(await failureOf(listCatalogImages(catalog, {}))).toMatchObject({
        code: 'INVALID',
        message: 'catalog: image "quay.io/a:1\\nquay.io/b:1": has control characters',
      });
    });

    it('reads an index with its deprecated bundles, and those of a channel', async () => {
      const catalog = await indexWith(
        "INSERT INTO properties VALUES ('olm.deprecated', '{}', 'widget.v1.1.0', '1.1.0', '')",
      );
      const whole = await listCatalogImages(catalog, {});
      expect(whole.images).toEqual([
        'quay.io/widget/bundle:1.1.0',
        'quay.io/widget/bundle:1.2.0',
        'quay.io/widget/operand:1.0.0',
        'quay.io/widget/operand:1.1.0',
        'quay.io/widget/operand:1.2.0',
      ]);
      expect(whole.unexamined).toBe(1);
      expect((await listCatalogImages(catalog, { channels: ['stable'] })).images).toEqual(whole.images);
      expect((await listCatalogImages(catalog, { channels: ['beta'] })).images).toEqual([
        'quay.io/widget/bundle:1.2.0',
        'quay.io/widget/operand:1.2.0',
      ]);
      expect((await listCatalogImages(catalog, { bundles: ['widget.v1.1.0'] })).images).toEqual([
        'quay.io/widget/bundle:1.1.0',
        'quay.io/widget/operand:1.1.0',
      ]);
      // Stands in the channel, but is not in the index.
      expect(await failureOf(listCatalogImages(catalog, { bundles: ['widget.v1.1.1'] }))).toMatchObject({
        code: 'NOT_FOUND',
        message: 'index.db: bundle "widget.v1.1.1" not found',
      });
    });

    it('lists an index of which manifests cannot be read, and says so', async () => {
      const catalog = await indexWith("UPDATE operatorbundle SET bundle = '{' WHERE name = 'widget.v1.2.0'");
      const logged: string[] = [];
      const log = (level: LogLevel, message: string): void => void logged.push(`${level}: ${message}`);
      const logger = { log, progress: () => undefined };
      expect((await listCatalogImages(catalog, {}, { logger })).images).toHaveLength(5);
      expect(logged.join('\n')).toContain('widget.v1.2.0');
    });

    it('says what is there where nothing is near', async () => {
      const blobs = [
        { schema: 'olm.package', name: 'widget' },
        { schema: 'olm.channel', package: 'widget', name: 'stable', entries: [{ name: 'widget.v1' }] },
        bundleWith({}),
      ];
      const catalog = await catalogWith(...blobs);
      expect(await failureOf(listCatalogImages(catalog, { packages: ['zzz'] }))).toMatchObject({
        hint: 'use a known package: "widget"',
      });
      expect(await failureOf(listCatalogImages(catalog, { bundles: ['widget.v7'] }))).toMatchObject({
        hint: 'use a known bundle: "widget.v1"',
      });
      expect(await failureOf(listCatalogImages(await catalogWith(), { channels: ['a'] }))).toMatchObject({
        hint: 'check the catalog: it has no channels',
      });
    });
  });

  describe('mapping', () => {
    const map = (images: string[], to = 'reg.example:5000/olm/sub', tagDigests = false) =>
      mapToRegistry(images, { destination: parseImageName(to, { isPrefix: true }), tagDigests });
    const lines = (...args: Parameters<typeof map>): string[] => formatMappingLines(map(...args));

    it('puts the whole name with its registry into one, without a tag', () => {
      const images = [
        `quay.io/coreos/etcd@${digest('a')}`,
        `quay.io/coreos/etcd:v3@${digest('a')}`,
        'reg.example.com:8443/a/b/c_d.e:v1',
        'ns/name',
      ];
      expect(lines(images)).toEqual([
        'docker.io/ns/name:latest=reg.example:5000/olm/sub/docker-io-ns-name',
        `quay.io/coreos/etcd@${digest('a')}=reg.example:5000/olm/sub/quay-io-coreos-etcd`,
        'reg.example.com:8443/a/b/c_d.e:v1=reg.example:5000/olm/sub/reg-example-com-8443-a-b-c_d-e',
      ]);
      expect(lines(['quay.io/a/b:1'], 'localhost:5000')).toEqual([
        'quay.io/a/b:1=localhost:5000/quay-io-a-b',
      ]);
    });

    it('gives several digests of a repository a tag each, as oc image mirror takes a target once', () => {
      const images = ['a', 'b'].map((digit) => `quay.io/coreos/etcd@${digest(digit)}`);
      const [only, both] = [lines(images.slice(0, 1), 'r.io/x'), lines(images, 'r.io/x')];
      expect(only).toEqual([`${images[0]}=r.io/x/quay-io-coreos-etcd`]);
      expect(both).toEqual(lines(images, 'r.io/x', true));
      expect(new Set(both.map((line) => line.split('=')[1])).size).toBe(2);
    });

    it('gives digests the tags of oc adm catalog mirror when it is asked to', () => {
      const image =
        'docker.io/my/image@sha256:154d7e0295a94fb3d2a97309d711186a98a7308da37a5cd3d50360c6b2ba57de';
      expect(lines([image, 'docker.io/my/image:v1'], 'r.io/x', true)).toEqual([
        'docker.io/my/image:v1=r.io/x/docker-io-my-image',
        `${image}=r.io/x/docker-io-my-image:a1d77056`,
      ]);
    });

    it('tags each digest of a repository that repeats, whatever else is in it', () => {
      const pinned = `quay.io/coreos/etcd@${digest('a')}`;
      expect(lines([pinned, 'quay.io/coreos/etcd:v3'], 'r.io/x')).toEqual([
        'quay.io/coreos/etcd:v3=r.io/x/quay-io-coreos-etcd',
        ...lines([pinned], 'r.io/x', true),
      ]);
    });

    it('lets repositories share a target, and names them', () => {
      const { images, warnings } = map([
        `quay.io/a-b/c@${digest('a')}`,
        `quay.io/a/b-c@${digest('a')}`,
        'quay.io/a/b-c:1',
      ]);
      expect(new Set(images.map(({ destination }) => destination)).size).toBe(3);
      expect(warnings).toEqual([
        'reg.example:5000/olm/sub/quay-io-a-b-c: shared by quay.io/a-b/c, quay.io/a/b-c',
      ]);
    });

    it('names both of what one tag would mean, every such pair', () => {
      expect(() => map(['quay.io/a-b/c:1', 'quay.io/a/b-c:1'])).toThrow(
        'reg.example:5000/olm/sub/quay-io-a-b-c:1: same target for quay.io/a-b/c:1 and quay.io/a/b-c:1',
      );
      expect(() =>
        map(['quay.io/a-b/c:1', 'quay.io/a/b-c:1', 'q.io/x/y:1', 'q-io.io/y:1', 'q.io/io/y:1']),
      ).toThrow('2 tags collide');
      const pinned = `quay.io/a/b@${digest('a')}`;
      const tag = lines([pinned], 'r.io', true)[0]?.split(':').at(-1);
      expect(() => map([`quay.io/a/b:${tag}`, pinned], 'r.io', true)).toThrow(
        `r.io/quay-io-a-b:${tag}: same target for quay.io/a/b:${tag} and ${pinned}`,
      );
    });

    it('takes the names of Docker Hub for one', () => {
      expect(lines(['busybox:1', 'index.docker.io/library/busybox:2', 'docker.io/busybox:3'])).toHaveLength(
        3,
      );
    });

    it('reports what is no image, and what would be no name there', () => {
      const long = `quay.io/${'a'.repeat(200)}/${'b'.repeat(40)}:v1`;
      const { images, faults } = map(['Not An Image', long, 'quay.io/a/b:1']);
      expect(images).toHaveLength(1);
      expect(faults.map(({ error }) => error.message)).toEqual([
        expect.stringContaining('"Not An Image"'),
        expect.stringContaining('must not be more than 255 characters'),
      ]);
    });
  });

  describe('manifests', () => {
    const { images } = mapToRegistry(
      [
        `quay.io/b/x@${digest('b')}`,
        `quay.io/b/x@${digest('c')}`,
        `quay.io/a/x@${digest('a')}`,
        'quay.io/t/x:v1',
      ],
      { destination: parseImageName('reg.example/olm', { isPrefix: true }) },
    );

    it('speak of repositories that are asked for by digest, sorted', () => {
      const files = encodeRegistryManifests(images, {
        name: 'a/My_Index.v1',
        catalogImage: 'reg.example/olm/index:v1',
        mirrorSet: 'ImageContentSourcePolicy',
      });
      expect(files.get('imagedigestmirrorset.yaml')).toBeUndefined();
      const [policy] = loadAll(files.get('imagecontentsourcepolicy.yaml') ?? '') as object[];
      expect(policy).toMatchObject({
        metadata: { name: 'a-my-index.v1-0' },
        spec: {
          repositoryDigestMirrors: [
            { source: 'quay.io/a/x', mirrors: ['reg.example/olm/quay-io-a-x'] },
            { source: 'quay.io/b/x', mirrors: ['reg.example/olm/quay-io-b-x'] },
          ],
        },
      });
      const [source] = loadAll(files.get('catalogsource.yaml') ?? '') as object[];
      expect(source).toMatchObject({
        metadata: { name: 'a-my-index-v1' },
        spec: { sourceType: 'grpc', image: 'reg.example/olm/index:v1' },
      });
    });

    it('redirect tags too where ImageDigestMirrorSet is asked for', () => {
      const files = encodeRegistryManifests(images, {
        name: 'index',
        catalogImage: undefined,
        mirrorSet: 'ImageDigestMirrorSet',
      });
      expect([...files].flatMap(([name, text]) => (text === undefined ? [] : [name]))).toEqual([
        'imagedigestmirrorset.yaml',
        'imagetagmirrorset.yaml',
      ]);
      expect(loadAll(files.get('imagetagmirrorset.yaml') ?? '')).toMatchObject([
        {
          kind: 'ImageTagMirrorSet',
          spec: {
            imageTagMirrors: [{ source: 'quay.io/t/x', mirrors: ['reg.example/olm/quay-io-t-x'] }],
          },
        },
      ]);
    });

    it.each([
      ['4.18', 'cs-4-18'],
      ['x'.repeat(80), 'x'.repeat(63)],
      ['_', 'catalog'],
    ])('call a CatalogSource of %s what a service can be called', (name, expected) => {
      const mirrorSet = 'ImageContentSourcePolicy';
      const files = encodeRegistryManifests([], {
        ...{ name, catalogImage: 'a.b/c:1', mirrorSet, pollInterval: '30m' },
      });
      const text = files.get('catalogsource.yaml') ?? '';
      expect(loadAll(text)).toMatchObject([{ metadata: { name: expected } }]);
    });

    it('are left out where they would say nothing', () => {
      for (const mirrorSet of ['ImageContentSourcePolicy', 'ImageDigestMirrorSet'] as const) {
        const files = encodeRegistryManifests([], { name: 'x', catalogImage: undefined, mirrorSet });
        expect([...files.values()]).toEqual([undefined, undefined, undefined, undefined]);
      }
    });
  });
});
