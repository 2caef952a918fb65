import { execFile } from 'node:child_process';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { loadAll } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltImage, buildImage, pushImageIndex } from '../../src/oci/image/image-builder.js';
import { getDestinationTag, parseImageName } from '../../src/mirror/naming/image-name.js';
import { saveDockerArchive } from '../../src/oci/image/docker-archive.js';
import { openLayout } from '../../src/oci/layout/layout.js';
import { layerOf } from '../../src/archive/tar-writer.js';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { type AppRegistry, packageArchive, startAppRegistry } from '../support/app-registry.js';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { asText, smallCsv, smallPackage } from '../support/manifest-trees.js';
import { smallBundle } from '../support/small-bundle.js';
import { makeCatalogImage, makeImage, storeImage } from './images.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
const run = promisify(execFile);
const hasSkopeo = await run('skopeo', ['--version']).then(
  () => true,
  () => false,
);

let apps: AppRegistry;
/** Stands for quay.io. */
let source: Registry;
/** The target, and another one for skopeo. */
let targets: { own: Registry; other: DockerRegistry | undefined; skopeo: Registry };
const hostOf = ({ url }: Registry): string => new URL(url).host;

/** The tag of `oc adm catalog mirror`. */
const tagOfName = (image: string): string => getDestinationTag(parseImageName(image));

/** Digests of what the operators need, by repository. */
let digests: { operator: string; etcd: [string, string] };

async function built(text: string, architecture = 'amd64'): Promise<BuiltImage> {
  const layers = [await layerOf([{ path: 'file', content: Buffer.from(text) }])];
  return buildImage({ layers, platform: { os: 'linux', architecture } });
}

function deployment(image: string, more: object = {}): object {
  const spec = { containers: [{ name: 'main', image, ...more }] };
  return {
    install: { strategy: 'deployment', spec: { deployments: [{ name: 'd', spec: { template: { spec } } }] } },
  };
}

beforeAll(async () => {
  const operator = await built('operator');
  const etcd = await built('etcd 3.1');
  await storeImage(at('quay'), 'coreos/etcd-operator:v1', operator);
  await storeImage(at('quay'), 'coreos/etcd:3.1', etcd);
  await storeImage(at('quay'), 'coreos/hidden:v1', await built('hidden'));
  await storeImage(
    at('quay'),
    'operator-framework/opm:v1.73.0',
    await makeImage({ files: { 'bin/opm': 'opm' } }),
  );
  const index = await pushImageIndex(await openLayout(at('quay')), 'coreos/etcd:3.2', [
    await built('etcd 3.2'),
    await built('etcd 3.2', 'arm64'),
  ]);
  digests = { operator: operator.descriptor.digest, etcd: [etcd.descriptor.digest, index.digest] };
  source = await startRegistry({ directory: at('quay') });
  targets = {
    own: await startRegistry({ directory: at('target') }),
    other: hasDockerRegistry ? await startDockerRegistry() : undefined,
    skopeo: await startRegistry({ directory: at('for-skopeo') }),
  };
  apps = await startAppRegistry();
  const [old, now] = digests.etcd.map((digest) => `quay.io/coreos/etcd@${digest}`);
  const csv = {
    ...deployment(`quay.io/coreos/etcd-operator@${digests.operator}`, {
      env: [{ name: 'RELATED_IMAGE_HIDDEN', value: 'quay.io/coreos/hidden:v1' }],
    }),
    relatedImages: [
      { name: 'old', image: old },
      { name: 'now', image: now },
    ],
  };
  apps.serve('community-operators', 'etcd', {
    '1.0.0': packageArchive(
      asText({
        'etcd-x1y2/etcd.package.yaml': smallPackage('etcd', { alpha: 'etcd.v1' }),
        'etcd-x1y2/1.0.0/csv.yaml': smallCsv({ name: 'etcd.v1', spec: csv }),
      }),
    ),
  });
});

afterAll(async () => {
  await apps.close();
  for (const registry of [source, targets.own, targets.skopeo]) await registry.close();
  await targets.other?.close();
});

/** Has `quay.io` and `disconnected-registry:5000` be registries of this machine. */
async function withNames(target: string): Promise<{ env: Record<string, string> }> {
  const names = { 'quay.io': hostOf(source), 'disconnected-registry:5000': target };
  const rules = Object.entries(names).map(
    ([prefix, location]) => `[[registry]]\nprefix = "${prefix}"\nlocation = "${location}"\ninsecure = true\n`,
  );
  await sandbox.write({ 'names.conf': rules.join('\n') });
  return { env: { CONTAINERS_REGISTRIES_CONF: at('names.conf') } };
}

/** Reads an image and all its blobs from a registry; an index with its images. */
async function pull(host: string, repository: string, digest: string): Promise<void> {
  const answer = await fetch(`http://${host}/v2/${repository}/manifests/${digest}`, {
    headers: {
      accept: 'application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json',
    },
  });
  expect(`${repository}@${digest} ${answer.status}`).toBe(`${repository}@${digest} 200`);
  const manifest = (await answer.json()) as Record<'manifests' | 'layers', { digest: string }[]> & {
    config: { digest: string };
  };
  for (const child of manifest.manifests ?? []) await pull(host, repository, child.digest);
  for (const blob of manifest.config === undefined ? [] : [manifest.config, ...manifest.layers]) {
    const found = await fetch(`http://${host}/v2/${repository}/blobs/${blob.digest}`);
    expect(found.status).toBe(200);
    await found.arrayBuffer();
  }
}

async function pullAll(host: string): Promise<void> {
  await pull(host, 'community-operators/quay-io-coreos-etcd-operator', digests.operator);
  for (const digest of digests.etcd) await pull(host, 'community-operators/quay-io-coreos-etcd', digest);
}

const catalog = 'disconnected-registry:5000/openshift/community-operators-catalog:4.2.1';
const buildArguments = (): string[] => [
  ...['registry', 'build', '--appregistry-namespace=quay.io/community-operators', '--to', catalog],
  ...['--appregistry-endpoint', apps.endpoint],
];

describe('the example of the enhancement', () => {
  it.each([['own'], ['other']] as const)('runs as it is written, against the registry %s', async (kind) => {
    const registry = targets[kind];
    if (registry === undefined) return;
    const host = 'host' in registry ? registry.host : hostOf(registry);
    const world = await withNames(host);
    const build = await sandbox.run(buildArguments(), world);
    expect(build.stderr.split('\n')).toEqual([
      expect.stringMatching(/^info: built an index of \d+ bundles?, 1 package$/),
      expect.stringContaining(`info: pushed ${catalog}: 1 image, `),
      `info: next: opmate serve ${catalog}`,
      '',
    ]);
    expect(build.stdout).toMatch(
      /^disconnected-registry:5000\/openshift\/community-operators-catalog@sha256:[0-9a-f]{64}\n$/,
    );
    expect(build.code).toBe(0);
    const images = await sandbox.run(
      [
        ...['registry', 'images', `--from=${catalog}`, '--to=disconnected-registry:5000/community-operators'],
        '--manifests=./mirror-manifests',
      ],
      world,
    );
    const target = 'disconnected-registry:5000/community-operators/quay-io-coreos-etcd';
    const lines = [
      `quay.io/coreos/etcd-operator@${digests.operator}=${target}-operator`,
      ...[...digests.etcd].sort().map((digest) => {
        const source = `quay.io/coreos/etcd@${digest}`;
        return `${source}=${target}:${tagOfName(source)}`;
      }),
    ];
    expect(images.stdout.trimEnd().split('\n')).toEqual(lines);
    expect(images.stderr).toBe(
      'warn: quay.io/coreos/hidden:v1: only in the variable RELATED_IMAGE_HIDDEN of bundle etcd.v1: ' +
        'not listed; --include-undeclared adds it\n' +
        `info: ${lines.length} images to mirror; wrote 2 manifests to ./mirror-manifests\n` +
        'info: next: opmate mirror -f MAPPING && kubectl apply -f ./mirror-manifests\n',
    );
    expect((await readdir(at('mirror-manifests'))).sort()).toEqual([
      'catalogsource.yaml',
      'imagecontentsourcepolicy.yaml',
    ]);
    const mirrored = await sandbox.run(['mirror', '-f', '-'], { ...world, stdin: images.stdout });
    expect(`${mirrored.code} ${mirrored.stderr}`).toMatch(/^0 /);
    expect(mirrored.stdout.trimEnd().split('\n')).toHaveLength(3);
    await pullAll(host);
    // As xargs hands them on.
    const again = await sandbox.run(['mirror', ...lines], world);
    expect(again).toMatchObject({ code: 0, stdout: mirrored.stdout });
    const list = await sandbox.run(
      ['registry', 'images', `--from=${catalog}`, '--include-undeclared'],
      world,
    );
    expect(list.stdout.split('\n')).toEqual([
      `quay.io/coreos/etcd-operator@${digests.operator}`,
      ...[...digests.etcd].sort().map((digest) => `quay.io/coreos/etcd@${digest}`),
      'quay.io/coreos/hidden:v1',
      '',
    ]);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it.runIf(hasSkopeo)('prints lines for skopeo in a loop', async () => {
    const world = await withNames(hostOf(targets.own));
    expect((await sandbox.run(buildArguments(), world)).code).toBe(0);
    const to = `${hostOf(targets.skopeo)}/community-operators`;
    const { stdout } = await sandbox.run(
      ['registry', 'images', '--from', catalog, '--to', to, '--manifests', 'm'],
      world,
    );
    await sandbox.write({ lines: stdout });
    await run(
      'sh',
      [
        '-ec',
        `while IFS= read -r line; do
           skopeo --insecure-policy --registries-conf names.conf copy -q --all --preserve-digests --dest-tls-verify=false \\
             "docker://\${line%%=*}" "docker://\${line#*=}"
         done < lines`,
      ],
      { cwd: sandbox.work, env: { PATH: process.env['PATH'], HOME: sandbox.home } },
    );
    await pullAll(hostOf(targets.skopeo));
  });
});

describe('registry images', () => {
  /** A catalog of two packages with references that need no registry. */
  const hex = (digit: string): string => `sha256:${digit.repeat(64)}`;
  const blobs = (related = ['quay.io/acme/app:v1', `quay.io/acme/app@${hex('a')}`]): string =>
    [
      { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
      { schema: 'olm.channel', package: 'widget', name: 'stable', entries: [{ name: 'widget.v1' }] },
      { schema: 'olm.channel', package: 'widget', name: 'beta', entries: [{ name: 'widget.v2' }] },
      {
        schema: 'olm.bundle',
        package: 'widget',
        name: 'widget.v1',
        image: 'quay.io/acme/widget-bundle:v1',
        relatedImages: related.map((image) => ({ name: '', image })),
        properties: [{ type: 'olm.package', value: { packageName: 'widget', version: '1.0.0' } }],
      },
      {
        schema: 'olm.bundle',
        package: 'widget',
        name: 'widget.v2',
        image: 'quay.io/acme/widget-bundle:v2',
        relatedImages: [],
        properties: [{ type: 'olm.package', value: { packageName: 'widget', version: '2.0.0' } }],
      },
      { schema: 'olm.package', name: 'gadget', defaultChannel: 'stable' },
      { schema: 'olm.channel', package: 'gadget', name: 'stable', entries: [{ name: 'gadget.v1' }] },
      {
        schema: 'olm.bundle',
        package: 'gadget',
        name: 'gadget.v1',
        image: 'busybox',
        relatedImages: [],
        properties: [{ type: 'olm.package', value: { packageName: 'gadget', version: '1.0.0' } }],
      },
    ]
      .map((blob) => JSON.stringify(blob))
      .join('\n');
  const list = async (...args: string[]): Promise<string[]> => {
    const { code, stdout, stderr } = await sandbox.run(['registry', 'images', ...args]);
    expect(`${code} ${stderr}`).toMatch(/^0 (?:info: .*\n)*$/);
    return stdout.split('\n').slice(0, -1);
  };

  it('lists images of file-based catalogs in directories, layouts and archives, and of parts', async () => {
    await sandbox.write({ 'catalog/c.json': blobs() });
    await storeImage(at('layout'), 'v1', await makeCatalogImage({ 'c.json': blobs() }));
    await run('tar', ['-C', at('layout'), '-cf', at('layout.tar'), 'oci-layout', 'index.json', 'blobs']);
    await run('gzip', ['-k', at('layout.tar')]);
    const all = [
      'busybox',
      'quay.io/acme/app:v1',
      `quay.io/acme/app@${hex('a')}`,
      'quay.io/acme/widget-bundle:v1',
      'quay.io/acme/widget-bundle:v2',
    ];
    for (const from of ['catalog', 'layout', 'oci:layout:v1'])
      expect(await list('--from', from)).toEqual(all);
    for (const file of ['layout', 'layout.tar', 'layout.tar.gz', 'oci-archive:layout.tar'])
      expect(await list('--from-archive', file)).toEqual(all);
    expect(await list('--from', 'catalog', '--packages', 'gadget')).toEqual(['busybox']);
    expect(await list('--from', 'catalog', '--channels', 'beta')).toEqual(['quay.io/acme/widget-bundle:v2']);
    expect(await list('--from', 'catalog', '--channels', 'stable', '--packages', 'widget')).toEqual(
      all.slice(1, 4),
    );
    expect(await list('--from', 'catalog', '--bundle', 'widget.v2,gadget.v1')).toEqual([
      'busybox',
      'quay.io/acme/widget-bundle:v2',
    ]);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('reports all unknown names together, with the nearest ones', async () => {
    await sandbox.write({ 'catalog/c.json': blobs() });
    const { code, stdout, stderr } = await sandbox.run(
      'registry images --from catalog --packages wigdet,gadget --channels stabel --bundle widget.v1'.split(
        ' ',
      ),
    );
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('package "wigdet" not found; did you mean "widget"?');
    expect(stderr).toContain('channel "stabel" not found; did you mean "stable"?');
    const without = await sandbox.run(
      'registry images --from catalog --packages widget,gadget --channels beta'.split(' '),
    );
    expect(without.stderr).toContain('warn: package gadget: has none of the requested channels');
  });

  it('maps references in any form to one name, and writes manifests', async () => {
    await sandbox.write({ 'catalog/c.json': blobs() });
    const to = [
      '--to',
      'mirror:5000/olm',
      '--catalog-image',
      'mirror:5000/olm/my_Catalog.x:v1'.toLowerCase(),
    ];
    expect(await list('--from', 'catalog', ...to, '--manifests', 'out/m')).toEqual([
      'docker.io/library/busybox:latest=mirror:5000/olm/docker-io-library-busybox',
      'quay.io/acme/app:v1=mirror:5000/olm/quay-io-acme-app',
      `quay.io/acme/app@${hex('a')}=mirror:5000/olm/quay-io-acme-app:${tagOfName(`quay.io/acme/app@${hex('a')}`)}`,
      'quay.io/acme/widget-bundle:v1=mirror:5000/olm/quay-io-acme-widget-bundle',
      'quay.io/acme/widget-bundle:v2=mirror:5000/olm/quay-io-acme-widget-bundle',
    ]);
    const documents = async (name: string): Promise<unknown[]> =>
      loadAll(await readFile(at('out/m', name), 'utf8')) as unknown[];
    expect(await documents('catalogsource.yaml')).toEqual([
      {
        apiVersion: 'operators.coreos.com/v1alpha1',
        kind: 'CatalogSource',
        metadata: { name: 'my-catalog-x', namespace: 'openshift-marketplace' },
        spec: { image: 'mirror:5000/olm/my_catalog.x:v1', sourceType: 'grpc' },
      },
    ]);
    expect(await documents('imagecontentsourcepolicy.yaml')).toMatchObject([
      {
        kind: 'ImageContentSourcePolicy',
        spec: {
          repositoryDigestMirrors: [
            { source: 'quay.io/acme/app', mirrors: ['mirror:5000/olm/quay-io-acme-app'] },
          ],
        },
      },
    ]);
    expect((await readdir(at('out/m'))).sort()).toEqual([
      'catalogsource.yaml',
      'imagecontentsourcepolicy.yaml',
    ]);
    await list('--from', 'catalog', ...to, '--manifests', 'out/m', '--idms');
    expect((await readdir(at('out/m'))).sort()).toEqual([
      'catalogsource.yaml',
      'imagedigestmirrorset.yaml',
      'imagetagmirrorset.yaml',
    ]);
    expect(await documents('imagedigestmirrorset.yaml')).toMatchObject([{ kind: 'ImageDigestMirrorSet' }]);
    const tagged = await list('--from', 'catalog', ...to, '--tag-digests', '--packages', 'widget');
    expect(tagged[1]).toMatch(
      /^quay\.io\/acme\/app@sha256:a+=mirror:5000\/olm\/quay-io-acme-app:[0-9a-f]{1,8}$/,
    );
  });

  it('tags each digest of a repository to keep targets unique', async () => {
    const related = ['a', 'b'].map((digit) => `quay.io/acme/app@${hex(digit)}`);
    await sandbox.write({ 'digests/c.json': blobs([...related, 'quay.io/acme/app:v1']) });
    const to = ['--to', 'mirror:5000/olm', '--manifests', 'digests-m', '--catalog-image', 'mirror:5000/c:1'];
    const target = 'mirror:5000/olm/quay-io-acme-app';
    expect((await list('--from', 'digests', ...to)).slice(1, 4)).toEqual([
      `quay.io/acme/app:v1=${target}`,
      ...related.map((image) => `${image}=${target}:${tagOfName(image)}`),
    ]);
  });

  it('names the catalog after its archive, and warns about one outside the target', async () => {
    const reference = 'mirror:5000/olm/catalog:v4';
    const image = await makeCatalogImage({ 'c.json': blobs() });
    await saveDockerArchive(image, at('named.tar'), { name: reference, directory: at('named') });
    const images = (...args: string[]) =>
      sandbox.run(
        ['registry', 'images', '--from-archive', 'named.tar', '--manifests', 'named-m'].concat(args),
      );
    const result = await images('--to', 'mirror:5000/olm');
    expect(result).toMatchObject({ code: 0, stderr: expect.not.stringContaining('warn') });
    const source = async () => loadAll(await readFile(at('named-m', 'catalogsource.yaml'), 'utf8'));
    expect(await source()).toMatchObject([{ metadata: { name: 'catalog' }, spec: { image: reference } }]);
    const elsewhere = await images('--to', 'other.io/olm');
    expect(elsewhere.stderr).toContain(
      `warn: catalogsource.yaml: the catalog ${reference} is not in other.io: mirror it, and name the copy with --catalog-image`,
    );
    const told = await images('--to', 'other.io/olm', '--catalog-image', 'other.io/olm/catalog:v4');
    expect(told.stderr).not.toContain('warn');
  });

  it('suggests the command for the images of a bundle', async () => {
    const bundle = 'one-bundle';
    const files = Object.entries(smallBundle({})).map(([name, content]) => [`${bundle}/${name}`, content]);
    await sandbox.write(Object.fromEntries(files) as Record<string, string>);
    const { code, stderr } = await sandbox.run(['registry', 'images', '--from', bundle]);
    expect(code).toBe(1);
    expect(stderr).toContain(
      `${bundle}: is a bundle, not a catalog\nhint: run opmate bundle show ${bundle} to list the images`,
    );
  });

  it.each(['--packages', '--channels', '--bundle'])('refuses %s without a name', async (flag) => {
    await sandbox.write({ 'catalog/c.json': blobs() });
    for (const value of ['', ' , ']) {
      const result = await sandbox.run(['registry', 'images', '--from', 'catalog', flag, value]);
      expect(result).toMatchObject({ code: 2, stdout: '' });
      expect(result.stderr).toContain('expected at least one item');
    }
  });

  it('suggests no empty name', async () => {
    await sandbox.write({ 'unnamed/c.json': '{"schema":"olm.package","name":""}' });
    const { stderr } = await sandbox.run(['registry', 'images', '--from', 'unnamed', '--packages', 'a']);
    expect(stderr).toContain('package "a" not found');
    expect(stderr).not.toContain('""');
  });

  it('refuses a tag for two images, and prints nothing', async () => {
    await sandbox.write({ 'folded/c.json': blobs(['quay.io/acme-app/x:v1', 'quay.io/acme/app-x:v1']) });
    const { code, stdout, stderr } = await sandbox.run(
      'registry images --from folded --to mirror.io/a --manifests folded-m'.split(' '),
    );
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(
      'mirror.io/a/quay-io-acme-app-x:v1: same target for quay.io/acme-app/x:v1 and quay.io/acme/app-x:v1',
    );
    expect(await readdir(sandbox.work)).not.toContain('folded-m');
  });

  it('reports invalid references, and lists the others', async () => {
    await sandbox.write({ 'bad/c.json': blobs(['Quay.io/UPPER/x:v1']) });
    const { code, stdout, stderr } = await sandbox.run(
      'registry images --from bad --to mirror.io/a --manifests bad-m --catalog-image a.b/c:1'.split(' '),
    );
    expect(code).toBe(4);
    expect(stderr).toContain('UPPER');
    expect(stdout.split('\n')).toHaveLength(4);
  });

  it.each([
    ['', '--from, --from-archive or --from-db: missing'],
    ['--from a:1 --from-db b', '--from and --from-db cannot be used together'],
    ['--from a:1 --tag-digests', '--tag-digests: needs --to'],
    ['--from a:1 --to mirror.io/ns:v1', '--to "mirror.io/ns:v1": has a tag or digest'],
    ['--from a:1 --to b.c --catalog-image a.b/C:1', '--catalog-image "a.b/C:1": invalid reference'],
    ['--from a:1 --to ns', '--to "ns": missing registry'],
    ['--from a:1 --to file://x', '--to "file://x": not a registry'],
  ])('refuses %s', async (args, message) => {
    const { code, stderr } = await sandbox.run(`registry images ${args}`.trim().split(' '));
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});
