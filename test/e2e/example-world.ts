import { cp, mkdir, readFile, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, expect } from 'vitest';
import { useCommandInPath } from '../support/command-in-path.js';
import { projectRoot, readGrpcPort, readLogged, type Sandbox } from '../support/command-line.js';
import { graphText } from '../support/releases.js';
import { copyTree } from '../support/temporary.js';
import { createSelfSigned } from '../support/certificates.js';
import { pemPair } from '../support/sigstore.js';
import { makeBuiltIndex, storeImage } from './images.js';
import { smallBundle } from '../support/small-bundle.js';

/** Where OpenShift releases are; the world has a mirror of it. */
const releaseRepository = 'quay.io/openshift-release-dev/ocp-release';
const releases = ['4.17.9', '4.18.1', '4.18.2'];

/** What examples of help and docs find: files in a directory, a registry, public images, and `opmate` in PATH. */
export interface ExampleWorld {
  /** A line of an example with the registry of the world in place of those that it names. */
  localize(line: string): string;
  /** The environment of examples. */
  environment(): Record<string, string>;
  /** The address of a gRPC server of the catalog. */
  grpcAddress(): string;
  /** The URL of a server of several catalogs. */
  catalogsUrl(): string;
  /** A new copy of the directory. */
  copy(): Promise<string>;
  /** A new directory beside the copies. */
  emptyDirectory(): Promise<string>;
}

/** Makes the world in a sandbox, before the tests of a file. */
export function useExampleWorld(sandbox: Sandbox): ExampleWorld {
  useCommandInPath(sandbox);
  let [host, grpcAddress, catalogsUrl] = ['', '', ''];
  const localize = (line: string): string =>
    line
      .replaceAll(/(?:registry|mirror)\.example\.com/g, host)
      .replaceAll('https://catalogs.example.com', catalogsUrl);

  async function opmate(...args: string[]): Promise<void> {
    const cwd = path.join(sandbox.work, 'world');
    const { code, stderr } = await sandbox.run(args.map(localize), { cwd });
    expect({ args, code, stderr: code === 0 ? '' : stderr }).toEqual({ args, code: 0, stderr: '' });
  }

  beforeAll(async () => {
    const server = sandbox.start(['oci', 'serve', 'registry', '--port', '0'], { timeoutMs: 900_000 });
    host = new URL(await server.firstLine()).host;
    await writeFile(
      path.join(path.dirname(sandbox.work), 'registries.conf'),
      `[[registry]]
location = "${host}"
insecure = true

[[registry]]
location = "${releaseRepository}"
[[registry.mirror]]
location = "${host}/mirror/ocp-release"
insecure = true
`,
    );
    const keys = pemPair();
    const tls = createSelfSigned('registry.example.com');
    const signed = [{ type: 'sigstoreSigned', keyPath: path.join(sandbox.work, 'world/cosign.pub') }];
    await sandbox.write({
      'world/cert.pem': tls.cert,
      'world/key.pem': tls.key,
      'world/certs/ca.crt': tls.cert,
      'world/cosign.key': keys.privateKey,
      'world/cosign.pub': keys.publicKey,
      'world/policy.json': { default: [{ type: 'reject' }], transports: { docker: { [host]: signed } } },
    });
    for (const name of ['docs', 'fixtures']) {
      await symlink(path.join(projectRoot, name), path.join(sandbox.work, 'world', name));
    }
    await mkdir(path.join(sandbox.home, '.config/fish/completions'), { recursive: true });
    const versions = ['1.0.0', '1.1.0', '1.2.0', '1.3.0'];
    for (const [at, version] of versions.entries()) {
      const replaces = at === 0 ? undefined : `demo.v${versions[at - 1]}`;
      const files = demoBundle(version, replaces, localize('registry.example.com/demo/bundle:v1.0.0'));
      await sandbox.write(
        Object.fromEntries(
          Object.entries(files).map(([name, text]) => [`world/bundles/${version}/${name}`, text]),
        ),
      );
      const image = `registry.example.com/demo/bundle:v${version}`;
      await opmate('bundle', 'push', `bundles/${version}`, image, '--sign-by', 'cosign.key');
    }
    for (const version of releases) {
      const image = `registry.example.com/mirror/ocp-release:${version}-x86_64`;
      await opmate('oci', 'copy', 'registry.example.com/demo/bundle:v1.0.0', image);
    }
    const graph = graphText(releases, [], { channels: 'stable-4.18,fast-4.18' });
    await sandbox.write({
      'world/graphs/amd64-stable-4.18.json': graph,
      'world/graphs/amd64-stable-4.19.json': graphText(['4.18.3', '4.19.1'], [['4.18.3', '4.19.1']]),
    });
    await cp(path.join(sandbox.work, 'world/bundles/1.0.0'), path.join(sandbox.work, 'world/bundle'), {
      recursive: true,
    });
    const entries = (count: number): object[] =>
      versions.slice(0, count).map((version, at) => ({
        name: `demo.v${version}`,
        ...(at > 0 && { replaces: `demo.v${versions[at - 1]}` }),
      }));
    for (const [directory, count] of [
      ['older-catalog', 2],
      ['catalog', 3],
    ] as const) {
      const blobs = [
        { schema: 'olm.package', name: 'demo', defaultChannel: 'stable' },
        ...['alpha', 'stable'].map((name) => ({
          schema: 'olm.channel',
          package: 'demo',
          name,
          entries: entries(count),
        })),
      ];
      if (directory === 'catalog') {
        const entries = [{ reference: { schema: 'olm.channel', name: 'alpha' }, message: 'Use stable.' }];
        blobs.push({ schema: 'olm.deprecations', package: 'demo', entries } as never);
      }
      const text = blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('');
      await sandbox.write({ [`world/${directory}/demo/index.json`]: text });
      for (const version of versions.slice(0, count)) {
        const { stdout } = await sandbox.run([
          'render',
          localize(`registry.example.com/demo/bundle:v${version}`),
        ]);
        await sandbox.write({ [`world/${directory}/demo/${version}.json`]: stdout });
      }
    }
    const catalogImage = 'registry.example.com/demo/catalog:v1';
    await opmate('catalog', 'build', 'catalog', '-t', catalogImage, '-i', 'scratch');
    const images = versions
      .slice(0, 3)
      .map((version) => `registry.example.com/demo/bundle:v${version}`)
      .join(',');
    await opmate('registry', 'add', '-d', 'index.db', '-b', images);
    await cp(path.join(sandbox.work, 'world/index.db'), path.join(sandbox.work, 'world/bundles.db'));
    await opmate('index', 'build', 'index.db', '-t', 'registry.example.com/demo/index:v1', '-i', 'scratch');
    await opmate('index', 'export', '-i', 'index.db', '-f', 'manifests');
    for (const [tag, count] of [
      ['v4.21', 2],
      ['v4.22', 3],
    ] as const) {
      const pinned = await Promise.all(
        versions.slice(0, count).map(async (version) => {
          const image = localize(`registry.example.com/demo/bundle:v${version}`);
          const { stdout } = await sandbox.run(['oci', 'inspect', image, '-o', 'json']);
          return image.replace(/:v[^:]*$/, `@${(JSON.parse(stdout) as { digest: string }).digest}`);
        }),
      );
      await opmate('registry', 'add', '-d', `built-${tag}.db`, '-b', pinned.join(','));
      const database = path.join(sandbox.work, `world/built-${tag}.db`);
      const rendered = await sandbox.run(['render', database]);
      await storeImage(
        path.join(sandbox.work, 'built'),
        tag,
        await makeBuiltIndex(database, rendered.stdout),
      );
      await opmate('oci', 'copy', `oci:../built:${tag}`, `registry.example.com/demo/built-index:${tag}`);
      await rm(database);
    }
    const template = await sandbox.run(['template', 'convert', 'basic', 'world/catalog', '-o', 'yaml']);
    await sandbox.write({
      'world/template.yaml': template.stdout,
      'world/operators/demo/catalog-templates/v4.18.yaml': template.stdout,
      'world/operators/demo/ci.yaml': {
        fbc: {
          enabled: true,
          catalog_mapping: [
            { template_name: 'v4.18.yaml', catalog_names: ['v4.18'], type: 'olm.template.basic' },
          ],
        },
      },
    });
    await opmate('repo', 'render');
    const bundleOfOperator = path.join(sandbox.work, 'world/operators/demo/1.0.0');
    await cp(path.join(sandbox.work, 'world/bundle'), bundleOfOperator, { recursive: true });
    await cp(path.join(sandbox.work, 'world/bundles/1.3.0'), path.join(bundleOfOperator, '../1.3.0'), {
      recursive: true,
    });
    const manifests = path.join(bundleOfOperator, '../1.3.0/manifests');
    for (const name of await readdir(manifests)) {
      const text = await readFile(path.join(manifests, name), 'utf8');
      if (!/kind: ?"?ClusterServiceVersion|"kind": ?"ClusterServiceVersion/.test(text)) continue;
      await rename(path.join(manifests, name), path.join(manifests, 'demo.clusterserviceversion.yaml'));
    }
    await sandbox.write({
      'world/operators/demo/1.3.0/release-config.yaml': {
        catalog_templates: [{ template_name: 'v4.18.yaml', channels: ['stable'], replaces: 'demo.v1.2.0' }],
      },
    });
    await opmate('oci', 'copy', 'registry.example.com/demo/bundle:v1.0.0', 'oci:layout:v1');
    const imageSet = (kind: string, chosen: object): object => ({
      kind,
      apiVersion: 'mirror.openshift.io/v2alpha1',
      [kind.startsWith('Delete') ? 'delete' : 'mirror']: {
        operators: [{ catalog: localize(catalogImage), packages: [chosen] }],
      },
    });
    await sandbox.write({
      'world/imageset.yaml': imageSet('ImageSetConfiguration', { name: 'demo' }),
      'world/older.yaml': imageSet('ImageSetConfiguration', { name: 'demo', maxVersion: '1.0.0' }),
      'world/delete.yaml': imageSet('DeleteImageSetConfiguration', { name: 'demo' }),
      'world/filter.yaml': 'kind: CatalogFilter\npackages:\n- name: demo\n',
      'world/lifecycle.json': {
        schema: 'io.openshift.operators.lifecycles.v1alpha1',
        package: 'demo',
        versions: ['1.0', '1.1', '1.2'].map((name) => ({
          name,
          phases: [{ name: 'Full support', startDate: '2026-01-01', endDate: '2026-12-31' }],
        })),
      },
      'world/deprecations.json': {
        schema: 'olm.deprecations',
        package: 'demo',
        entries: [
          { reference: { schema: 'olm.bundle', name: 'demo.v1.0.0' }, message: 'use a newer version' },
        ],
      },
      'world/README.md': 'A demo.\n',
      'world/icon.svg': '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"></svg>\n',
      'world/users.htpasswd': 'demo:$2b$04$abcdefghijklmnopqrstuuWsGz8GUPlHkqJn8BlRjHk0JSyYkU6Yq\n',
    });
    await opmate('mirror', '-c', 'imageset.yaml', 'file://archive');
    await opmate('mirror', '-c', 'older.yaml', 'file://older-archive');
    const mirrored = 'docker://registry.example.com/demo-mirror';
    await opmate('mirror', '--from', 'archive', mirrored);
    await opmate('mirror', 'inventory', mirrored, '--to', 'inventory.json');
    const objects = clusterObjects(localize(catalogImage));
    await sandbox.write({
      'world/subscription.yaml': demoSubscription,
      'world/plan.json': { namespaces: [] },
      'world/later.json': { namespaces: [] },
    });
    await cp(path.join(sandbox.work, 'world/catalog'), path.join(sandbox.work, 'world/newer'), {
      recursive: true,
    });
    await sandbox.write({ 'world/objects.yaml': objects, 'world/must-gather/cluster/objects.yaml': objects });
    const kubectl = path.join(sandbox.work, 'bin', 'kubectl');
    // A browser that opens everything.
    await writeFile(path.join(sandbox.work, 'bin', 'xdg-open'), '#!/bin/sh\n', { mode: 0o755 });
    // A cluster that has these objects, and takes manifests that exist.
    const script = `case "$1" in
get) cat '${path.join(sandbox.work, 'world/objects.yaml')}' ;;
apply) test -e "$3" ;;
esac
`;
    await writeFile(kubectl, `#!/bin/sh\n${script}`, { mode: 0o755 });
    await opmate('mirror', 'delete', '--generate', '-c', 'delete.yaml', mirrored);
    const list = path.join(sandbox.work, 'world/working-dir/delete/delete-images.yaml');
    await cp(list, path.join(sandbox.work, 'world/delete-images.yaml'));
    await sandbox.write({
      'world/manifests-of-catalogs/demo.yaml': {
        apiVersion: 'olm.operatorframework.io/v1',
        kind: 'ClusterCatalog',
        metadata: { name: 'demo' },
        spec: { source: { type: 'Image', image: { ref: localize(catalogImage) } } },
      },
      'world/deployment.yaml': {
        apiVersion: 'core.rukpak.io/v1alpha2',
        kind: 'BundleDeployment',
        metadata: { name: 'demo' },
        spec: {
          installNamespace: 'demo',
          format: 'registry-v1',
          sources: [{ kind: 'image', image: { ref: localize('registry.example.com/demo/bundle:v1.0.0') } }],
        },
      },
    });
    const { stdout } = await sandbox.run(['bundle', 'deployment', 'render', '-f', 'world/deployment.yaml']);
    await sandbox.write({ 'world/rendered.yaml': stdout, 'world/applied/all.yaml': stdout });
    const options = { cwd: path.join(sandbox.work, 'world'), timeoutMs: 900_000 };
    const grpc = sandbox.start(['serve', 'catalog', '--port', '0', '--http', '127.0.0.1:0'], options);
    const catalogs = ['serve', '--catalogs', 'manifests-of-catalogs', '--http', '127.0.0.1:0'];
    const several = sandbox.start(catalogs, options);
    grpcAddress = `127.0.0.1:${await readGrpcPort(grpc)}`;
    catalogsUrl = await readLogged(several, /serving catalogs.*?(http:\/\/[^\s"]+)/);
  }, 300_000);

  let copies = 0;
  return {
    localize,
    grpcAddress: () => grpcAddress,
    catalogsUrl: () => catalogsUrl,
    // Graphs of releases take the place of the public update service.
    environment: () => ({
      UPDATE_URL_OVERRIDE: pathToFileURL(path.join(sandbox.work, 'world/graphs')).href,
      PATH: `${path.join(sandbox.work, 'bin')}:${process.env['PATH']}`,
    }),
    copy: async () => {
      const directory = path.join(sandbox.work, `copy-${copies++}`);
      await copyTree(path.join(sandbox.work, 'world'), directory);
      return directory;
    },
    emptyDirectory: async () => {
      const directory = path.join(sandbox.work, `empty-${copies++}`);
      await mkdir(directory);
      return directory;
    },
  };
}

function demoBundle(
  version: string,
  replaces: string | undefined,
  containerImage: string,
): Record<string, string> {
  const container = { name: 'demo', image: containerImage };
  const deployment = {
    replicas: 1,
    selector: { matchLabels: { app: 'demo' } },
    template: {
      metadata: { labels: { app: 'demo' } },
      spec: { serviceAccountName: 'demo', containers: [container] },
    },
  };
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }];
  const spec = {
    displayName: 'Demo',
    description: 'A demo.',
    icon: [{ base64data: 'PHN2Zy8+', mediatype: 'image/svg+xml' }],
    provider: { name: 'Example' },
    maintainers: [{ name: 'Example', email: 'demo@example.com' }],
    links: [{ name: 'Demo', url: 'https://example.com' }],
    keywords: ['demo'],
    maturity: 'stable',
    minKubeVersion: '1.20.0',
    installModes: ['OwnNamespace', 'SingleNamespace', 'MultiNamespace', 'AllNamespaces'].map((type) => ({
      type,
      supported: type === 'AllNamespaces',
    })),
    install: {
      strategy: 'deployment',
      spec: {
        deployments: [{ name: 'demo', spec: deployment }],
        clusterPermissions: [{ serviceAccountName: 'demo', rules }],
      },
    },
  };
  const files = smallBundle({ packageName: 'demo', version, channels: 'stable,alpha', replaces, spec });
  const { annotations } = JSON.parse(files['metadata/annotations.yaml'] as string) as { annotations: object };
  const prefix = 'operators.operatorframework.io.bundle';
  const layout = {
    [`${prefix}.mediatype.v1`]: 'registry+v1',
    [`${prefix}.manifests.v1`]: 'manifests/',
    [`${prefix}.metadata.v1`]: 'metadata/',
  };
  return {
    ...files,
    'metadata/annotations.yaml': JSON.stringify({ annotations: { ...layout, ...annotations } }),
  };
}

const demoSubscription = {
  ...{ apiVersion: 'operators.coreos.com/v1alpha1', kind: 'Subscription' },
  metadata: { name: 'demo', namespace: 'operators' },
  spec: { name: 'demo', channel: 'stable', source: 'demo', sourceNamespace: 'operators' },
};

/** What a cluster says that has demo.v1.0.0 from a catalog. */
function clusterObjects(image: string): object {
  const apiVersion = 'operators.coreos.com/v1alpha1';
  const at = (name: string): object => ({ name, namespace: 'operators' });
  return {
    ...{ apiVersion: 'v1', kind: 'List' },
    items: [
      { apiVersion, kind: 'CatalogSource', metadata: at('demo'), spec: { sourceType: 'grpc', image } },
      {
        ...{ apiVersion, kind: 'Subscription', metadata: at('demo') },
        spec: { name: 'demo', channel: 'stable', source: 'demo', sourceNamespace: 'operators' },
        status: { installedCSV: 'demo.v1.0.0' },
      },
      { apiVersion, kind: 'ClusterServiceVersion', metadata: at('demo.v1.0.0'), spec: { version: '1.0.0' } },
      { apiVersion: 'operators.coreos.com/v1', kind: 'OperatorGroup', metadata: at('all'), spec: {} },
      {
        ...{ apiVersion: 'config.openshift.io/v1', kind: 'ClusterVersion', metadata: { name: 'version' } },
        status: { desired: { version: '4.18.3' } },
      },
    ],
  };
}
