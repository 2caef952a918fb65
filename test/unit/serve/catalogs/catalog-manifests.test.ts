import { readFileSync, readdirSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { OpmateError } from '../../../../src/core/errors.js';
import type { LogLevel } from '../../../../src/core/log.js';
import type { CatalogManifest } from '../../../../src/serve/catalogs/catalog-manifest.js';
import { readCatalogManifests } from '../../../../src/serve/catalogs/catalog-manifests.js';
import { messagesIn } from '../../../support/diagnostics.js';
import { projectRoot } from '../../../support/command-line.js';
import { directoryWith } from '../../../support/temporary.js';

const digest = `sha256:${'a'.repeat(64)}`;

async function read(files: Record<string, string>, warnings: string[] = []): Promise<CatalogManifest[]> {
  const log = (level: LogLevel, message: string): void => void warnings.push(`${level}: ${message}`);
  const found = await readCatalogManifests(await directoryWith(files), { log, progress: () => undefined });
  const errors = found.refused.map(({ error }) => error);
  if (errors.length > 1) throw new Error('several', { cause: new AggregateError(errors) });
  for (const error of errors) throw error;
  return found.manifests;
}

/** What is wrong, a line each, without the directory. */
async function faultsOf(files: Record<string, string>): Promise<string[]> {
  const error = await read(files).then(
    () => undefined,
    (thrown: unknown) => thrown as OpmateError,
  );
  if (error === undefined) return [];
  const errors = error.cause instanceof AggregateError ? (error.cause.errors as Error[]) : [error];
  return errors
    .flatMap((one) => messagesIn(one, { hints: true }))
    .map((text) => text.replaceAll(/\/[^\s:]*opmate-test-[^\s/:]*\//g, ''));
}

const cluster = (spec: string, apiVersion = 'olm.operatorframework.io/v1', kind = 'ClusterCatalog'): string =>
  `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: c\nspec:\n${spec.replace(/^/gm, '  ')}\n`;
const image = (ref: string, more = ''): string =>
  cluster(`source:\n  type: Image\n  image:\n    ref: ${ref}\n${more.replace(/^(?=.)/gm, '    ')}`);

describe('serve/catalogs/catalog-manifests', () => {
  it('allows plain HTTP for a source only with insecure: true', async () => {
    const http = (more: string): string =>
      cluster(`source:\n  type: HTTP\n  http:\n    url: http://catalogs.example/c.tar.gz\n${more}`);
    const originOf = async (more: string): Promise<unknown> =>
      (await read({ 'a.yaml': http(more) }))[0]?.origin;
    const url = 'http://catalogs.example/c.tar.gz';
    expect(await originOf('')).toEqual({ kind: 'http', url });
    expect(await originOf('    insecure: false\n')).toEqual({ kind: 'http', url });
    expect(await originOf('    insecure: true\n')).toEqual({ kind: 'http', url, insecure: true });
    expect(await faultsOf({ 'a.yaml': http('    insecure: "yes"\n') })).toEqual([
      'a.yaml:10:7: spec.source.http.insecure: expected true or false, got a string',
    ]);
  });

  it('row 18: reads ClusterCatalog as pasted from a cluster', async () => {
    const [found] = await read({
      'a.yaml': `
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata:
  annotations: {note: kept}
  creationTimestamp: "2026-01-01T00:00:00Z"
  finalizers: [olm.operatorframework.io/delete-server-cache]
  generation: 3
  labels: {olm.operatorframework.io/metadata.name: operatorhubio, tier: gold}
  managedFields: [{manager: kubectl, operation: Update}]
  name: operatorhubio
  resourceVersion: "1234"
  uid: 4a
spec:
  availabilityMode: Available
  priority: -100
  source:
    type: Image
    image: {ref: "quay.io/operatorhubio/catalog:latest", pollIntervalMinutes: 15}
status:
  conditions: [{type: Serving, status: "True"}]
`,
    });
    expect(found).toMatchObject({
      name: 'operatorhubio',
      kind: 'ClusterCatalog',
      priority: -100,
      isAvailable: true,
      pollMs: 15 * 60_000,
      origin: { kind: 'image', ref: 'quay.io/operatorhubio/catalog:latest' },
      labels: { tier: 'gold', 'olm.operatorframework.io/metadata.name': 'operatorhubio' },
      line: 11,
    });
  });

  it.each([
    ['olm.operatorframework.io/v1alpha1', 'ClusterCatalog', 'Image'],
    ['catalogd.operatorframework.io/v1alpha1', 'ClusterCatalog', 'image'],
    ['catalogd.operatorframework.io/v1alpha1', 'Catalog', 'image'],
    ['core.rukpak.io/v1alpha1', 'Catalog', 'image'],
  ])('row 21: takes what it was called before: %s %s', async (apiVersion, kind, type) => {
    const spec = `source:\n  type: ${type}\n  image:\n    ref: quay.io/a/b:v1\n    pollInterval: 1h30m`;
    const [found] = await read({ 'a.yml': cluster(spec, apiVersion, kind) });
    expect(found).toMatchObject({
      kind,
      origin: { kind: 'image', ref: 'quay.io/a/b:v1' },
      pollMs: 90 * 60_000,
    });
  });

  it.each<[string, string, string, number, string]>([
    [
      'operators.coreos.com/v1alpha1',
      'CatalogSource',
      'sourceType: grpc\npoll: {interval: 10m}',
      10,
      'poll is updateStrategy.registryPoll.interval today',
    ],
    [
      'operators.coreos.com/v1alpha1',
      'CatalogSource',
      'sourceType: grpc\npoll: 10m',
      10,
      'poll is updateStrategy.registryPoll.interval today',
    ],
    [
      'operators.coreos.com/v1alpha1',
      'CatalogSource',
      'sourceType: grpc\npoll: true',
      15,
      'poll is updateStrategy.registryPoll.interval today',
    ],
    [
      'operators.coreos.com/v1alpha1',
      'CatalogSource',
      'sourceType: grpc\npollTimer: 20m',
      20,
      'pollTimer is updateStrategy.registryPoll.interval today',
    ],
    [
      'operators.coreos.com/v1',
      'OperatorCatalog',
      'sourceType: grpc\nupdateStrategy: {registryPoll: {interval: 20m}}',
      20,
      'kind OperatorCatalog is CatalogSource today',
    ],
    [
      'catalogd.operatorframework.io/v1beta1',
      'CatalogSource',
      'pollingInterval: 45m',
      45,
      'kind "CatalogSource" with spec.image is ClusterCatalog with spec.source today',
    ],
    [
      'core.rukpak.io/v1alpha1',
      'Catalog',
      'pollingInterval: 24h',
      1440,
      'kind "Catalog" with spec.image is ClusterCatalog with spec.source today',
    ],
    [
      'catalogd.operatorframework.io/v1beta1',
      'OperatorCatalog',
      'pollingInterval: 1h',
      60,
      'kind "OperatorCatalog" with spec.image is ClusterCatalog with spec.source today',
    ],
  ])('reads the proposed form %s %s with %j', async (apiVersion, kind, spec, minutes, notice) => {
    const notices: string[] = [];
    const [found] = await read(
      { 'a.yml': cluster(`image: quay.io/a/b:v1\n${spec}`, apiVersion, kind) },
      notices,
    );
    expect(found).toMatchObject({
      kind,
      origin: { kind: 'image', ref: 'quay.io/a/b:v1' },
      pollMs: minutes * 60_000,
    });
    expect(notices.map((text) => text.replace(/^(info): .*a\.yml:\d+: /, '$1: '))).toEqual([
      `info: ${notice}`,
    ]);
  });

  it('reads the names of pull Secrets in the namespace of the manifest', async () => {
    const source = `apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: c, namespace: olm}\nspec: {sourceType: grpc, image: "quay.io/a/b:v1", secrets: [one, two]}\n`;
    const [found] = await read({ 'a.yml': source });
    expect(found?.pullSecrets).toEqual([
      { namespace: 'olm', name: 'one' },
      { namespace: 'olm', name: 'two' },
    ]);
    const former = cluster(
      'source: {type: image, image: {ref: "quay.io/a/b:v1", pullSecret: one}}',
      'catalogd.operatorframework.io/v1alpha1',
    );
    expect((await read({ 'a.yml': former }))[0]?.pullSecrets).toEqual([{ namespace: '', name: 'one' }]);
  });

  it('reads CatalogSource, its interval and its ConfigMap, also from a List', async () => {
    const found = await read({
      'list.json': JSON.stringify({
        apiVersion: 'v1',
        kind: 'List',
        items: [
          {
            apiVersion: 'operators.coreos.com/v1alpha1',
            kind: 'CatalogSource',
            metadata: { name: 'community', namespace: 'olm' },
            spec: {
              sourceType: 'grpc',
              image: 'quay.io/a/b:latest',
              displayName: 'Community',
              publisher: 'us',
              priority: 5,
              secrets: ['pull'],
              grpcPodConfig: { securityContextConfig: 'restricted' },
              updateStrategy: { registryPoll: { interval: '45m' } },
            },
          },
          {
            apiVersion: 'operators.coreos.com/v1alpha1',
            kind: 'CatalogSource',
            metadata: { name: 'local', namespace: 'olm' },
            spec: { sourceType: 'internal', configMap: 'files' },
          },
          {
            apiVersion: 'v1',
            kind: 'ConfigMap',
            metadata: { name: 'files', namespace: 'olm' },
            data: { a: 'x' },
          },
        ],
      }),
    });
    expect(found.map(({ name, pollMs, priority }) => [name, pollMs, priority])).toEqual([
      ['community', 45 * 60_000, 5],
      ['local', undefined, 0],
    ]);
    expect(found[1]?.origin).toEqual({ kind: 'configMap', name: 'files', data: { a: 'x' } });
  });

  it('refuses manifests behind links out of the directory, unless links are followed', async () => {
    const manifest = cluster('source:\n  type: Image\n  image: {ref: "quay.io/a/b:v1"}');
    const other = { log: () => undefined, progress: () => undefined };
    const root = await directoryWith({
      'elsewhere/a.yaml': manifest,
      'elsewhere/b.yaml': manifest.replace('name: c', 'name: d').replace('Image', 'canary'),
      'served/..data/c.yaml': manifest.replace('name: c', 'name: e'),
    });
    const directory = path.join(root, 'served');
    for (const name of ['a.yaml', 'b.yaml']) {
      await symlink(`../elsewhere/${name}`, path.join(directory, name));
    }
    // As the files of a mounted ConfigMap.
    await symlink('..data/c.yaml', path.join(directory, 'c.yaml'));
    const refused = await readCatalogManifests(directory, other);
    expect(refused.manifests.map(({ name }) => name)).toEqual(['e']);
    expect(refused.refused.map(({ error }) => error.message)).toEqual(
      ['a.yaml', 'b.yaml'].map(
        (name) => `${directory}/${name}: links to "${root}/elsewhere/${name}", outside of the directory`,
      ),
    );
    const followed = await readCatalogManifests(directory, other, { followLinks: true });
    expect(followed.manifests.map(({ name }) => name)).toEqual(['c', 'e']);
    expect(followed.refused.map(({ error }) => error.message)).toEqual([
      `${directory}/b.yaml: not a manifest of a catalog`,
    ]);
  });

  it('row 30: reads every member of the union of sources', async () => {
    const sources = [
      'type: Git\ngit: {repository: "https://github.com/a/b", ref: {branch: main}, directory: x/catalog}',
      'type: Git\ngit: {repository: "git@github.com:a/b.git", ref: {tag: v1}}',
      'type: HTTP\nhttp: {url: "https://example.com/c.tar.gz", pollIntervalMinutes: 5, directory: /configs/}',
      'type: HTTP\nhttp: {url: "https://example.com/c.tar.gz#sha256:' + 'a'.repeat(64) + '"}',
      'type: Served\nserved: {url: "https://example.com/catalogs/a/api/v1/all", pollIntervalMinutes: 5}',
      'type: Served\nserved: {url: "http://example.com/catalogs/a/", insecure: true}',
      'type: Directory\ndirectory: {path: catalogs/a}',
      'type: Artifact\nartifact: {ref: "quay.io/a/b:v1"}',
      'type: Image\nimage: {ref: "oci:layouts/a:v1"}',
    ];
    const directory: string[] = [];
    for (const source of sources) {
      const files = { 'a.yaml': cluster(`source:\n${source.replace(/^/gm, '  ')}`) };
      const [found] = await read(files);
      const base = path.dirname(found?.file ?? '');
      directory.push(JSON.stringify(found?.origin).replaceAll(base, 'DIR'));
    }
    expect(directory.map((text) => JSON.parse(text) as unknown)).toEqual([
      { kind: 'git', repository: 'https://github.com/a/b', branch: 'main', directory: 'x/catalog' },
      { kind: 'git', repository: 'git@github.com:a/b.git', tag: 'v1' },
      { kind: 'http', url: 'https://example.com/c.tar.gz', directory: 'configs' },
      { kind: 'http', url: 'https://example.com/c.tar.gz', checksum: `sha256:${'a'.repeat(64)}` },
      { kind: 'served', url: 'https://example.com/catalogs/a' },
      { kind: 'served', url: 'http://example.com/catalogs/a', insecure: true },
      { kind: 'directory', path: 'DIR/catalogs/a' },
      { kind: 'artifact', ref: 'quay.io/a/b:v1' },
      { kind: 'image', ref: 'oci:DIR/layouts/a:v1' },
    ]);
  });

  it.each([
    ['HTTP', 'url: ftp://example.com/c.tar.gz', 'ftp://example.com/c.tar.gz: not an http or https URL'],
    ['HTTP', 'url: nowhere', 'nowhere: not a URL'],
    ['Served', 'url: file:///etc', 'file:///etc: not an http or https URL'],
    [
      'Served',
      'url: "https://a:hunter2@example.com/x"',
      'https://example.com/x: URL must not contain credentials',
    ],
    ['Served', 'url: "https://example.com/x#y"', 'https://example.com/x: unexpected "#y"'],
    ['Served', 'url: "https://example.com/x"\ndirectory: x', 'directory: unknown field'],
  ])('refuses a source of type %s with %s', async (type, fields, problem) => {
    const member = `${type.toLowerCase()}:\n${fields.replace(/^/gm, '  ')}`;
    const source = `type: ${type}\n${member}`.replace(/^/gm, '  ');
    const faults = await faultsOf({ 'a.yaml': cluster(`source:\n${source}`) });
    expect(faults.join()).toContain(problem);
    expect(faults.join()).not.toContain('hunter2');
  });

  it('row 18: reports every unknown field of every file, with place and nearest name', async () => {
    const faults = await faultsOf({
      'a.yaml': `${image('quay.io/a/b:v1', 'polIntervalMinutes: 5\n').replace('spec:', 'spec:\n  prioritty: 5')}`,
      'b.yaml': `# a comment\n---\n${cluster('source:\n  type: image\n  image: {ref: "quay.io/a/b:v1"}').replace('name: c', 'name: d')}`,
      'c.json':
        '{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",\n "metadata": {"name": "e"},\n "spec": {"sourcetype": "grpc", "image": "quay.io/a/b:v1"}}',
    });
    expect(faults).toEqual([
      'a.yaml:6:3: spec.prioritty: unknown field (use "priority")',
      'a.yaml:11:7: spec.source.image.polIntervalMinutes: unknown field (use "pollIntervalMinutes")',
      'b.yaml:9:5: spec.source.type: unsupported value "image" (use "Image")',
      'c.json:3:2: spec.sourceType: missing',
      'c.json:3:11: spec.sourcetype: unknown field (use "sourceType")',
    ]);
  });

  it.each([
    ['b:v1', 'has no registry (use docker.io/b:v1 for Docker Hub)'],
    ['ns/b:v1', 'has no registry (use docker.io/ns/b:v1 for Docker Hub)'],
    ['quay.io/a/b', 'has neither tag nor digest (add a tag, e.g. quay.io/a/b:latest)'],
    ['quay.io/a/b@sha256:12', 'image reference "quay.io/a/b@sha256:12": invalid reference format'],
    [`quay.io/a/b:${'x'.repeat(129)}`, '": invalid reference format'],
    ['https://quay.io/a/b:v1', 'image reference "https://quay.io/a/b:v1": '],
  ])('refuses the image %s', async (ref, problem) => {
    const [fault] = await faultsOf({ 'a.yaml': image(JSON.stringify(ref)) });
    expect(fault).toContain('a.yaml:9:7: spec.source.image.ref: ');
    expect(fault).toContain(problem);
  });

  it('shows no password of a reference', async () => {
    const faults = await faultsOf({ 'a.yaml': image('"user:hunter2@quay.io/a/b:v1"') });
    expect(faults).toHaveLength(1);
    expect(faults.join()).not.toContain('hunter2');
  });

  it.each([
    ['pollIntervalMinutes: 0', 'expected an integer from 1 to 43200, got 0'],
    ['pollIntervalMinutes: "5"', 'expected an integer from 1 to 43200, got a string'],
    ['pollIntervalMinutes: 1.5', 'expected an integer from 1 to 43200, got 1.5'],
  ])('refuses %s', async (line, problem) => {
    const faults = await faultsOf({ 'a.yaml': image('quay.io/a/b:v1', line) });
    expect(faults).toEqual([`a.yaml:10:7: spec.source.image.pollIntervalMinutes: ${problem}`]);
  });

  it('refuses to poll a digest', async () => {
    expect(await faultsOf({ 'a.yaml': image(`quay.io/a/b@${digest}`, 'pollIntervalMinutes: 5') })).toEqual([
      'a.yaml:10:7: spec.source.image.pollIntervalMinutes: an image named by digest never changes (remove it, or use a tag)',
    ]);
    expect(await faultsOf({ 'a.yaml': image(`quay.io/a/b@${digest}`) })).toEqual([]);
  });

  it.each([
    ['repository: "ext::sh -c id"', 'invalid git repository URL'],
    ['repository: "--upload-pack=id"', 'invalid git repository URL'],
    ['repository: "ssh://-oProxyCommand=id/x"', 'invalid git repository URL'],
    ['repository: "https://user:secret@example.com/x"', 'URL must not contain credentials'],
    [
      'repository: "https://a.example/b"\nref: {branch: "--help"}',
      'spec.source.git.ref.branch: expected a git branch, got "--help"',
    ],
    [
      'repository: "https://a.example/b"\nref: {branch: "a..b"}',
      'spec.source.git.ref.branch: expected a git branch, got "a..b"',
    ],
    [
      'repository: "https://a.example/b"\nref: {commit: abc}',
      'spec.source.git.ref.commit: expected a git commit, got "abc"',
    ],
    [
      'repository: "https://a.example/b"\nref: {branch: a, tag: b}',
      'spec.source.git.ref.tag: cannot be combined with branch',
    ],
    [
      'repository: "https://a.example/b"\ndirectory: ../../etc',
      'expected a path inside the source, got "../../etc"',
    ],
  ])('refuses the git source %s', async (lines, problem) => {
    const spec = `source:\n  type: Git\n  git:\n${lines.replace(/^/gm, '    ')}`;
    const faults = await faultsOf({ 'a.yaml': cluster(spec) });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(problem);
    expect(faults[0]).not.toContain('secret');
  });

  it.each([
    [
      'a name that is none',
      cluster('source: {type: Image, image: {ref: "quay.io/a/b:v1"}}').replace('name: c', 'name: ../x'),
      'must be a DNS-1123 subdomain',
    ],
    [
      'no spec',
      'apiVersion: olm.operatorframework.io/v1\nkind: ClusterCatalog\nmetadata: {name: a}\n',
      'a.yaml:1:1: spec: missing',
    ],
    [
      'two members',
      cluster(
        'source: {type: Image, image: {ref: "quay.io/a/b:v1"}, git: {repository: "https://a.example/b"}}',
      ),
      'spec.source.git: cannot be combined with type Image',
    ],
    [
      'a member of another type',
      cluster('source: {type: Git, image: {ref: "quay.io/a/b:v1"}}'),
      'spec.source.git: missing (add it, or change type: Git)',
    ],
    [
      'a kind misspelt',
      cluster('source: {}').replace('ClusterCatalog', 'ClusterCatlog'),
      'kind: unsupported value "ClusterCatlog" (use "ClusterCatalog")',
    ],
    [
      'an address',
      'apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: a}\nspec: {sourceType: grpc, address: "a:50051"}\n',
      'unsupported: the catalog of another server',
    ],
    [
      'a ConfigMap that is not there',
      'apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: a}\nspec: {sourceType: configmap, configMap: x}\n',
      'spec.configMap: ConfigMap "x" not found',
    ],
    [
      'an interval that is none',
      'apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: a}\nspec: {sourceType: grpc, image: "quay.io/a/b:v1", updateStrategy: {registryPoll: {interval: soon}}}\n',
      'interval: expected a duration from one second to 30 days, got "soon"',
    ],
    [
      'a key twice',
      `${cluster('source: {type: Image, image: {ref: "quay.io/a/b:v1"}}')}  priority: 1\n  priority: 2\n`,
      'a.yaml:8:3: spec.priority: duplicate key, first defined on line 7',
    ],
    ['no YAML', 'a: [1, 2\n', 'a.yaml:'],
    ['an empty file', ' \n', 'a.yaml:1: empty (remove the file)'],
    ['a list', '- a\n', 'expected an object, got a list'],
    ['null', '---\n# a catalog\n---\nnull\n', 'a.yaml:4:1: expected an object, got null'],
  ])('refuses %s', async (_what, text, problem) => {
    const faults = await faultsOf({ 'a.yaml': text });
    expect(faults.join('\n')).toContain(problem);
  });

  it('refuses only the catalog with a duplicate key', async () => {
    const broken = image('quay.io/a/b:v1', 'ref: quay.io/a/b:v2').replace('name: c', 'name: broken');
    const directory = await directoryWith({ 'a.yaml': `${image('quay.io/a/b:v1')}---\n${broken}` });
    const log = { log: () => undefined, progress: () => undefined };
    const { manifests, refused } = await readCatalogManifests(directory, log, { name: 't' });
    expect(manifests.map(({ name, file }) => `${file}: ${name}`)).toEqual(['t/a.yaml: c']);
    expect(refused).toMatchObject([{ name: 'broken', file: 't/a.yaml', error: { code: 'INVALID' } }]);
    expect(refused[0]?.error.message).toMatch(/^t\/a\.yaml:\d+:7: spec\.source\.image\.ref: duplicate key/);
  });

  it('names the line of a file that is not UTF-8', async () => {
    const text = Buffer.from(`# a\n# \xff\n${image('quay.io/a/b:v1')}`, 'latin1');
    const directory = await directoryWith({ 'a.yaml': text });
    const log = { log: () => undefined, progress: () => undefined };
    const { refused } = await readCatalogManifests(directory, log);
    expect(refused).toMatchObject([{ line: 2, error: { problem: 'invalid UTF-8' } }]);
  });

  it('rows 6 and 14: refuses two catalogs of one name, also across namespaces and kinds', async () => {
    const source =
      'apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: c, namespace: x}\nspec: {sourceType: grpc, image: "quay.io/a/b:v1"}\n';
    const [fault, ...more] = await faultsOf({ 'a.yaml': image('quay.io/a/b:v1'), 'b.yaml': source });
    expect(fault).toContain('b.yaml:3: CatalogSource "c": duplicate, first defined in a.yaml:4');
    expect(more).toEqual([]);
  });

  it('skips other kinds and files with a warning', async () => {
    const warnings: string[] = [];
    const files = {
      'namespace.yaml': 'apiVersion: v1\nkind: Namespace\nmetadata: {name: olm}\n',
      'README.md': '# no manifest',
      '.hidden.yaml': 'neither: [',
      'further/down.yaml': 'nor: [',
      'a.yaml': image('quay.io/a/b:v1'),
    };
    expect(await read(files, warnings)).toHaveLength(1);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/namespace\.yaml:2: kind "Namespace" is not a catalog, skipped/);
  });

  it('reads the examples of the documentation', async () => {
    const directory = path.join(projectRoot, 'docs/examples/catalogs');
    const files = Object.fromEntries(
      readdirSync(directory).map((name) => [name, readFileSync(path.join(directory, name), 'utf8')]),
    );
    const found = await read(files);
    expect(found.length).toBeGreaterThanOrEqual(6);
  });
});
