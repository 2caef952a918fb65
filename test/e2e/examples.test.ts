import { execFile } from 'node:child_process';
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Command } from 'commander';
import { createCommandLine } from '../../src/cli/program.js';
import { commandFile, useSandbox } from '../support/command-line.js';
import { graphText } from '../support/releases.js';
import { pemPair } from '../support/sigstore.js';
import { smallBundle } from '../support/small-bundle.js';
import { createWorld } from '../unit/cli/world.js';

const sandbox = useSandbox();
const commandLine = createCommandLine(createWorld(), 'opmate', {
  run: () => Promise.resolve(),
  onCommand: () => undefined,
  print: () => undefined,
});
await commandLine.loadBelow(commandLine.program, { deeply: true });

interface RunnableExample {
  command: string;
  line: string;
}

/** The examples of all commands. */
function examplesOf(command: Command, words: readonly string[] = []): RunnableExample[] {
  const own = commandLine.declarationOf(command)?.examples ?? [];
  return [
    ...own.map(([, line]) => ({ command: words.join(' '), line })),
    ...command.commands.flatMap((sub) => examplesOf(sub, [...words, sub.name()])),
  ];
}

/** Examples that need what a test cannot have here, each with where their command is tested. */
const elsewhere: Readonly<Record<string, string>> = {
  probe: 'probe.test.ts, with servers',
  'catalogs status': 'serve-catalogs.test.ts, with a server of catalogs',
  'catalogs wait': 'the same',
  'catalogs packages': 'the same',
  'bundle deployment render': 'bundle-deployment.test.ts, with documents',
  'bundle deployment diff': 'bundle-deployment.test.ts, with documents',
  'bundle deployment apply': 'bundle-deployment-apply.test.ts, with a cluster',
  'bundle deployment history': 'bundle-deployment-apply.test.ts, with a cluster',
  'bundle deployment rollback': 'bundle-deployment-apply.test.ts, with a cluster',
};

/** Examples that end with another code than 0, because they find something. */
const codes: Readonly<Record<string, number>> = { 'catalog diff': 3, 'mirror diff': 3 };

/** Commands that go on until they are stopped; the first line that they print is waited for. */
const servers: ReadonlySet<string> = new Set(['oci serve', 'view', 'serve', 'registry serve']);

/** Where OpenShift releases are; the sandbox has a mirror of it. */
const releaseRepository = 'quay.io/openshift-release-dev/ocp-release';
const releases = ['4.17.9', '4.18.1', '4.18.2'];

let host = '';
const atHost = (line: string): string => line.replaceAll('registry.example.com', host);

/** Servers listen on ports that are free, as several tests run at once. */
function atFreePorts(command: string, line: string): string {
  if (command !== 'serve' && command !== 'registry serve') return line;
  const lineAtFree = line.replaceAll('127.0.0.1:8080', '127.0.0.1:0');
  return lineAtFree.includes('--port') ? lineAtFree : `${lineAtFree} --port 0`;
}

/** Graphs of releases take the place of the public update service. */
const environment = (): Record<string, string> => ({
  UPDATE_URL_OVERRIDE: pathToFileURL(path.join(sandbox.work, 'world/graphs')).href,
});

/** The words of a line without expansions. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g)].map(([word]) => word.replace(/["']/g, ''));
}

/** Runs a line in a copy of the world, as bash does. */
function runLine(
  line: string,
  directory: string,
  isServer: boolean,
): Promise<{ code: number; stdout: string; stderr: string }> {
  // A server is told to stop once it has begun to serve.
  const script = isServer
    ? `${line} > out 2> err & pid=$!
       until [ -s out ] || grep -qs 'serving registry' err || ! kill -0 $pid; do sleep 0.1; done
       kill $pid; wait $pid; code=$?; cat err >&2; exit $code`
    : line;
  return new Promise((resolve) => {
    const env = sandbox.environment({
      ...environment(),
      PATH: `${path.join(sandbox.work, 'bin')}:${process.env['PATH']}`,
    });
    const options = { cwd: directory, env: env as NodeJS.ProcessEnv, timeout: 60_000 };
    execFile('bash', ['-o', 'pipefail', '-c', script], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr });
    });
  });
}

async function opmate(...args: string[]): Promise<void> {
  const { code, stderr } = await sandbox.run(args.map(atHost), { cwd: path.join(sandbox.work, 'world') });
  expect({ args, code, stderr: code === 0 ? '' : stderr }).toEqual({ args, code: 0, stderr: '' });
}

function demoBundle(version: string, replaces: string | undefined): Record<string, string> {
  const container = { name: 'demo', image: atHost('registry.example.com/demo/bundle:v1.0.0') };
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
    ],
  };
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
  const signed = [{ type: 'sigstoreSigned', keyPath: path.join(sandbox.work, 'world/cosign.pub') }];
  await sandbox.write({
    'world/cosign.key': keys.privateKey,
    'world/cosign.pub': keys.publicKey,
    'world/policy.json': { default: [{ type: 'reject' }], transports: { docker: { [host]: signed } } },
  });
  await mkdir(path.join(sandbox.work, 'bin'));
  await mkdir(path.join(sandbox.home, '.config/fish/completions'), { recursive: true });
  await symlink(commandFile, path.join(sandbox.work, 'bin', 'opmate'));
  const versions = ['1.0.0', '1.1.0', '1.2.0', '1.3.0'];
  for (const [at, version] of versions.entries()) {
    const replaces = at === 0 ? undefined : `demo.v${versions[at - 1]}`;
    const files = demoBundle(version, replaces);
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
  await sandbox.write({ 'world/graphs/amd64-stable-4.18.json': graph });
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
        atHost(`registry.example.com/demo/bundle:v${version}`),
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
  const template = await sandbox.run(['template', 'convert', 'basic', 'world/catalog', '-o', 'yaml']);
  await sandbox.write({ 'world/template.yaml': template.stdout });
  await opmate('oci', 'copy', 'registry.example.com/demo/bundle:v1.0.0', 'oci:layout:v1');
  const imageSet = (kind: string, chosen: object): object => ({
    kind,
    apiVersion: 'mirror.openshift.io/v2alpha1',
    [kind.startsWith('Delete') ? 'delete' : 'mirror']: {
      operators: [{ catalog: atHost(catalogImage), packages: [chosen] }],
    },
  });
  await sandbox.write({
    'world/imageset.yaml': imageSet('ImageSetConfiguration', { name: 'demo' }),
    'world/older.yaml': imageSet('ImageSetConfiguration', { name: 'demo', maxVersion: '1.0.0' }),
    'world/delete.yaml': imageSet('DeleteImageSetConfiguration', { name: 'demo' }),
    'world/filter.yaml': 'kind: CatalogFilter\npackages:\n- name: demo\n',
    'world/README.md': 'A demo.\n',
    'world/icon.svg': '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"></svg>\n',
    'world/users.htpasswd': 'demo:$2b$04$abcdefghijklmnopqrstuuWsGz8GUPlHkqJn8BlRjHk0JSyYkU6Yq\n',
  });
  await opmate('mirror', '-c', 'imageset.yaml', 'file://archive');
  await opmate('mirror', '-c', 'older.yaml', 'file://older-archive');
  const mirrored = 'docker://registry.example.com/demo-mirror';
  await opmate('mirror', '--from', 'archive', mirrored);
  await opmate('mirror', 'inventory', mirrored, '--to', 'inventory.json');
  const objects = clusterObjects(atHost(catalogImage));
  await sandbox.write({ 'world/objects.yaml': objects, 'world/must-gather/cluster/objects.yaml': objects });
  const kubectl = path.join(sandbox.work, 'bin', 'kubectl');
  await writeFile(kubectl, '#!/bin/sh\ncat objects.yaml\n', { mode: 0o755 });
  await opmate('mirror', 'delete', '--generate', '-c', 'delete.yaml', mirrored);
  const list = path.join(sandbox.work, 'world/working-dir/delete/delete-images.yaml');
  await cp(list, path.join(sandbox.work, 'world/delete-images.yaml'));
}, 300_000);

describe('examples of --help', () => {
  // Commands below alpha have the files of others.
  const examples = examplesOf(commandLine.program).filter(({ command }) => !command.startsWith('alpha '));

  it('has two to four for every command', () => {
    const counts = new Map<string, number>();
    for (const { command } of examples) counts.set(command, (counts.get(command) ?? 0) + 1);
    expect([...counts].filter(([, count]) => count < 2 || count > 4)).toEqual([]);
  });

  it.each(examples.filter(({ command }) => elsewhere[command] === undefined))(
    '$line',
    async ({ command, line }) => {
      const directory = path.join(sandbox.work, `copy-${Math.random().toString(36).slice(2)}`);
      await cp(path.join(sandbox.work, 'world'), directory, { recursive: true });
      const local = atFreePorts(command, atHost(line));
      const isServer = servers.has(command);
      // A shell only where the line needs one.
      const needsShell = isServer || /[<>|&;$]/.test(line.replace(/"[^"]*"|'[^']*'/g, ''));
      const { code, stderr } = needsShell
        ? await runLine(local, directory, isServer)
        : await sandbox.run(wordsOf(local).slice(1), { cwd: directory, env: environment() });
      expect({ line, code, stderr: code === (codes[command] ?? 0) ? '' : stderr }).toEqual({
        line,
        code: codes[command] ?? 0,
        stderr: '',
      });
    },
  );
});
