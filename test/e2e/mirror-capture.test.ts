import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { load } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRegistry } from '../../src/serve/registry/registry.js';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { type OperatorSet, serveOperatorSet } from '../support/operator-set.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
let source: FaultRegistry;
let operators: OperatorSet;

beforeAll(async () => {
  source = await startFaultRegistry();
  operators = await serveOperatorSet(source);
});
afterAll(() => source.close());

interface Named {
  name: string;
  namespace?: string;
}
const object = (apiVersion: string, kind: string, { name, namespace }: Named, rest: object) => ({
  ...{ apiVersion, kind, metadata: { name, ...(namespace && { namespace }), resourceVersion: '7' } },
  ...rest,
});
const olm = 'operators.coreos.com/v1alpha1';
const olmV1 = 'olm.operatorframework.io/v1';
const subscription = (name: string, spec: object, status: object = {}, namespace = 'operators') =>
  object(olm, 'Subscription', { name, namespace }, { spec: { sourceNamespace: 'olm', ...spec }, status });
const csv = (name: string, version: string, namespace = 'operators', labels: object = {}) => {
  const made = object(olm, 'ClusterServiceVersion', { name, namespace }, { spec: { version } });
  return { ...made, metadata: { ...made.metadata, labels } };
};
const catalogSource = (name: string, spec: object) =>
  object(olm, 'CatalogSource', { name, namespace: 'olm' }, { spec: { sourceType: 'grpc', ...spec } });
const clusterCatalog = (name: string, ref: string, spec: object = {}) =>
  object(olmV1, 'ClusterCatalog', { name }, { spec: { source: { type: 'Image', image: { ref } }, ...spec } });
const extension = (name: string, catalog: object, bundle?: object) =>
  object(
    olmV1,
    'ClusterExtension',
    { name },
    {
      spec: { source: { sourceType: 'Catalog', catalog } },
      ...(bundle && { status: { install: { bundle } } }),
    },
  );
const listOf = (...items: object[]): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'List', items, metadata: { resourceVersion: '' } });
const capture = (...args: string[]) => sandbox.run(['mirror', 'capture', ...args]);

describe('opmate mirror capture', () => {
  it('writes a configuration that keeps a cluster upgradable, accepted by mirror plan', async () => {
    const objects = listOf(
      catalogSource('acme', { image: operators.catalog }),
      subscription(
        'widget',
        { name: 'widget', source: 'acme', channel: 'stable' },
        { installedCSV: 'widget.v1.1.0' },
      ),
      csv('widget.v1.1.0', '1.1.0'),
      csv('widget.v1.1.0', '1.1.0', 'other', { 'olm.copiedFrom': 'operators' }),
      csv('packageserver', '0.30.0', 'olm'),
      // Neither is about operators.
      object('messaging.knative.dev/v1', 'Subscription', { name: 'events', namespace: 'a' }, { spec: {} }),
      object(
        'apps.open-cluster-management.io/v1',
        'Subscription',
        { name: 'app', namespace: 'a' },
        { spec: {} },
      ),
    );
    const result = await sandbox.run(['mirror', 'capture'], { stdin: objects });
    expect(result).toEqual({
      code: 0,
      stderr: '',
      stdout: `# Written by opmate from 1 Subscription and 0 ClusterExtensions: what keeps this cluster installable and upgradable.
kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  # CatalogSource olm/acme
  - catalog: ${operators.catalog}
    packages:
    # Subscription operators/widget: installed widget.v1.1.0, channel stable
    - name: widget
      defaultChannel: stable
      channels:
      - name: stable
        minVersion: 1.1.0
`,
    });
    await sandbox.write({ 'objects.yaml': objects });
    expect(await capture('objects.yaml', '--to', 'set.yaml')).toEqual({
      code: 0,
      stdout: '',
      stderr:
        'info: wrote the image set to set.yaml\ninfo: next: opmate mirror plan -c set.yaml docker://REGISTRY\n',
    });
    const plan = await sandbox.run([
      'mirror',
      'plan',
      '-c',
      'set.yaml',
      'file://carry',
      '--use-http',
      '-o',
      'json',
      '--workspace',
      'file://planned',
    ]);
    expect(plan).toMatchObject({ code: 0 });
    // Bundles and operands of 1.1.0 and 1.2.0, what they share, and the catalog.
    expect(JSON.parse(plan.stdout)).toMatchObject({ images: 6, packages: [{ name: 'widget', images: 5 }] });
    // The catalog says that the default channel is among the channels.
    const checked = await capture('objects.yaml', '--catalog', operators.catalog, '--use-http');
    expect(checked).toEqual({
      code: 0,
      stderr: '',
      stdout: result.stdout.replace('      defaultChannel: stable\n', ''),
    });
  });

  it('merges the needs of several objects, finds the sources of mirrors, and includes pending installs', async () => {
    await sandbox.write({
      'many.yaml': listOf(
        catalogSource('mirrored', { image: 'mirror.example:5000/olm/acme/index:v1' }),
        catalogSource('plain', { image: 'registry.example/plain/index:v2' }),
        clusterCatalog('acme', 'mirror.example:5000/olm/acme/index:v1'),
        object(
          'config.openshift.io/v1',
          'ImageTagMirrorSet',
          { name: 'itms' },
          {
            spec: {
              imageTagMirrors: [
                { source: 'registry.example', mirrors: ['mirror.example:5000'] },
                { source: 'registry.example/acme', mirrors: ['mirror.example:5000/olm/acme'] },
              ],
            },
          },
        ),
        subscription(
          'a',
          { name: 'widget', source: 'mirrored', channel: 'stable' },
          { installedCSV: 'widget.v1.10.0' },
          'one',
        ),
        subscription(
          'b',
          { name: 'widget', source: 'mirrored', channel: 'stable' },
          { installedCSV: 'widget.v1.9.0' },
          'two',
        ),
        subscription(
          'c',
          { name: 'widget', source: 'mirrored', channel: 'fast' },
          { installedCSV: 'widget.v2.0.0' },
          'three',
        ),
        csv('widget.v1.10.0', '1.10.0', 'one'),
        csv('widget.v1.9.0', '1.9.0', 'two'),
        csv('widget.v2.0.0', '2.0.0', 'three'),
        subscription('d', { name: 'gadget', source: 'plain' }, { currentCSV: 'gadget.v3.0.0' }),
        subscription('e', { name: 'later', source: 'plain', startingCSV: 'later.v0.2.0', channel: 'x' }),
        extension(
          'ext',
          { packageName: 'engine', version: '1.x', channels: ['stable-v1', 'stable-v2'] },
          { name: 'engine.v1.4.0', version: '1.4.0' },
        ),
      ),
    });
    const result = await capture('many.yaml');
    expect(result).toMatchObject({ code: 0 });
    expect(result.stderr).toContain(
      'ClusterServiceVersion "later.v0.2.0" not found: version 0.2.0 taken from its name',
    );
    expect(load(result.stdout)).toEqual({
      kind: 'ImageSetConfiguration',
      apiVersion: 'mirror.openshift.io/v2alpha1',
      mirror: {
        operators: [
          {
            catalog: 'registry.example/acme/index:v1',
            packages: [
              {
                name: 'engine',
                defaultChannel: 'stable-v1',
                channels: [
                  { name: 'stable-v1', minVersion: '1.4.0' },
                  { name: 'stable-v2', minVersion: '1.4.0' },
                ],
              },
              {
                name: 'widget',
                defaultChannel: 'fast',
                channels: [
                  { name: 'fast', minVersion: '2.0.0' },
                  { name: 'stable', minVersion: '1.9.0' },
                ],
              },
            ],
          },
          {
            catalog: 'registry.example/plain/index:v2',
            packages: [
              { name: 'gadget' },
              { name: 'later', defaultChannel: 'x', channels: [{ name: 'x', minVersion: '0.2.0' }] },
            ],
          },
        ],
      },
    });
    expect(result.stdout).toContain(
      '# ClusterCatalog acme, a mirror at mirror.example:5000/olm/acme/index:v1\n',
    );
    expect(result.stdout).toContain(
      '# ClusterExtension ext: installed engine.v1.4.0, channels stable-v1, stable-v2, version 1.x\n',
    );
  });

  it('maps a mirrored catalog to its source by annotation, lock or reference, and else warns of the mirror', async () => {
    const target = await startRegistry({ directory: at('target') });
    const host = new URL(target.url).host;
    const config = `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  operators:\n  - catalog: ${operators.catalog}\n`;
    await sandbox.write({ 'isc.yaml': config });
    const common = ['-c', 'isc.yaml', '--workspace', 'file://mirrored', '--use-http'];
    const mirrored = await sandbox
      .run(['mirror', ...common, `docker://${host}/olm`])
      .finally(() => target.close());
    expect(mirrored).toMatchObject({ code: 0 });
    const resources = path.join('mirrored', 'working-dir', 'cluster-resources');
    const text = await readFile(at(resources, 'cs-index-v1.yaml'), 'utf8');
    expect(await readFile(at(resources, 'cc-index-v1.yaml'), 'utf8')).toContain(
      `mirroredFrom: ${operators.catalog}`,
    );
    const write = async (name: string, written: string): Promise<string> => {
      const objects = [
        load(written) as object,
        subscription('w', { ...bySource, name: 'widget', channel: 'stable' }),
      ];
      await sandbox.write({ [name]: listOf(...objects) });
      return name;
    };
    const bySource = { source: 'cs-index-v1', sourceNamespace: 'openshift-marketplace' };
    const catalogsOf = (stdout: string): string[] =>
      (load(stdout) as { mirror: { operators: { catalog: string }[] } }).mirror.operators.map(
        ({ catalog }) => catalog,
      );
    const annotated = await capture(await write('annotated.json', text));
    expect(annotated).toMatchObject({ code: 0, stderr: '' });
    expect(catalogsOf(annotated.stdout)).toEqual([operators.catalog]);

    // Objects of other tools, and of earlier releases, have no such annotation.
    const bare = await write('bare.json', text.replace(/ +mirroredFrom: .*\n/, ''));
    const lock = path.join('mirrored', 'working-dir', 'opmate.lock.json');
    for (const file of [lock, 'mirrored']) {
      const locked = await capture(bare, '--lock', file);
      expect(locked).toMatchObject({ code: 0, stderr: '' });
      expect(catalogsOf(locked.stdout)).toEqual([operators.catalog]);
    }
    const image = `${host}/olm/acme/index:v1`;
    const named = await capture(bare, '--catalog', `${image}=${operators.catalog}`, '--use-http');
    expect(named).toMatchObject({ code: 0 });
    expect(catalogsOf(named.stdout)).toEqual([operators.catalog]);
    expect(named.stdout).toContain(`a mirror at ${image}`);
    const unknown = await capture(bare);
    expect(unknown.stderr).toContain(
      `${image} is a mirror, and its source is unknown (specify the lock of the mirror run`,
    );
    expect(catalogsOf(unknown.stdout)).toEqual([image]);

    // Without any annotation, the mirror sets of the cluster tell that their host is a mirror.
    const mirrorSet = object(
      'config.openshift.io/v1',
      'ImageDigestMirrorSet',
      { name: 'idms' },
      { spec: { imageDigestMirrors: [{ source: 'quay.io/other', mirrors: [`${host}/other`] }] } },
    );
    const source = {
      ...(load(text) as object),
      metadata: { name: 'cs-index-v1', namespace: 'openshift-marketplace' },
    };
    await sandbox.write({
      'sets.json': listOf(source, mirrorSet, subscription('w', { ...bySource, name: 'widget' })),
    });
    expect((await capture('sets.json')).stderr).toContain('is a mirror, and its source is unknown');
    expect((await capture('sets.json', '--lock', lock)).stderr).toBe('');
  });

  it('checks against local catalogs, and finds the catalog of an extension in them', async () => {
    const blobs = (name: string, versions: string[]) =>
      [
        { schema: 'olm.package', name, defaultChannel: 'stable' },
        {
          ...{ schema: 'olm.channel', package: name, name: 'stable' },
          entries: versions.map((version, i) => ({
            name: `${name}.v${version}`,
            ...(i > 0 && { replaces: `${name}.v${versions[i - 1]}` }),
          })),
        },
        ...versions.map((version) => ({
          ...{
            schema: 'olm.bundle',
            name: `${name}.v${version}`,
            package: name,
            image: `a.example/${name}:${version}`,
          },
          properties: [{ type: 'olm.package', value: { packageName: name, version } }],
        })),
      ]
        .map((blob) => JSON.stringify(blob))
        .join('\n');
    await sandbox.write({
      'first/catalog.json': `${blobs('engine', ['1.0.0', '1.1.0'])}\n${blobs('pump', ['2.0.0'])}`,
      'second/catalog.json': blobs('valve', ['0.1.0']),
      'checked.yaml': listOf(
        clusterCatalog('one', 'registry.example/one:v1', { priority: 5 }),
        clusterCatalog('two', 'registry.example/two:v1'),
        clusterCatalog('off', 'registry.example/off:v1', { availabilityMode: 'Unavailable' }),
        extension('engine', { packageName: 'engine' }, { name: 'engine.v1.0.0', version: '1.0.0' }),
        extension(
          'pump',
          { packageName: 'pump', channels: ['gone'] },
          { name: 'pump.v3.0.0', version: '3.0.0' },
        ),
        extension('valve', {
          packageName: 'valve',
          selector: { matchLabels: { 'olm.operatorframework.io/metadata.name': 'two' } },
        }),
        extension('lost', { packageName: 'lost' }, { name: 'lost.v1.0.0', version: '1.0.0' }),
      ),
    });
    const blind = await capture('checked.yaml');
    expect(blind).toMatchObject({ code: 0 });
    expect(blind.stderr).toContain(
      'ClusterExtension engine: not mapped: may be from any of ClusterCatalog one, ClusterCatalog two (specify the catalogs with --catalog IMAGE or --catalog IMAGE=DIRECTORY)',
    );
    expect(load(blind.stdout)).toMatchObject({
      mirror: { operators: [{ catalog: 'registry.example/two:v1', packages: [{ name: 'valve' }] }] },
    });
    const catalogs = [
      '--catalog',
      'registry.example/one:v1=first',
      '--catalog',
      'registry.example/two:v1=second',
    ];
    const result = await capture('checked.yaml', ...catalogs);
    expect(result).toMatchObject({ code: 0 });
    for (const problem of [
      'ClusterExtension lost: not mapped: package "lost" is in none of ClusterCatalog one, ClusterCatalog two',
      'ClusterExtension pump: registry.example/one:v1 has no channel "gone" (use another channel, such as stable)',
      'ClusterExtension pump: registry.example/one:v1 has no upgrade from pump.v3.0.0 in channel stable',
      'ClusterExtension pump: registry.example/one:v1 has only bundles before 3.0.0: no minVersion',
    ])
      expect(result.stderr).toContain(problem);
    expect(result.stderr.match(/^warning|warn/gim)).toHaveLength(4);
    const logged = (await capture('checked.yaml', ...catalogs, '--log-format', 'json')).stderr;
    expect(
      logged
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
    ).toContainEqual({
      time: expect.any(String) as string,
      level: 'warn',
      code: 'needs-review',
      message: 'ClusterExtension pump: registry.example/one:v1 has no channel "gone"',
      hint: 'use another channel, such as stable',
      diagnostics: [
        {
          severity: 'warning',
          code: 'needs-review',
          subject: 'ClusterExtension pump',
          problem: 'registry.example/one:v1 has no channel "gone"',
          message: 'ClusterExtension pump: registry.example/one:v1 has no channel "gone"',
          hint: 'use another channel, such as stable',
        },
      ],
    });
    expect(load(result.stdout)).toMatchObject({
      mirror: {
        operators: [
          {
            catalog: 'registry.example/one:v1',
            packages: [
              { name: 'engine', channels: [{ name: 'stable', minVersion: '1.0.0' }] },
              { name: 'pump', channels: [{ name: 'stable' }] },
            ],
          },
          { catalog: 'registry.example/two:v1', packages: [{ name: 'valve' }] },
        ],
      },
    });
    const other = await capture('checked.yaml', '--catalog', 'first');
    expect(other).toMatchObject({ code: 1, stdout: '' });
    expect(other.stderr).toContain('hint: use registry.example/one:v1=first');
  });

  it('reads must-gather directories, and warns about objects that cannot be mapped', async () => {
    const folder = 'gather/quay-io-must-gather-sha256-1/namespaces';
    await mkdir(at(folder, 'operators', 'pods'), { recursive: true });
    const file = (value: object): string => `---\n${JSON.stringify(value)}\n`;
    await sandbox.write({
      [`${folder}/operators/operators.coreos.com/subscriptions/widget.yaml`]: file(
        subscription(
          'widget',
          { name: 'widget', source: 'acme', channel: 'stable' },
          { installedCSV: 'widget.v1.0.0' },
        ),
      ),
      [`${folder}/operators/operators.coreos.com/subscriptions/far.yaml`]: file(
        subscription('far', { name: 'far', source: 'gone' }),
      ),
      [`${folder}/operators/operators.coreos.com/subscriptions/served.yaml`]: file(
        subscription('served', { name: 'served', source: 'address' }),
      ),
      [`${folder}/operators/operators.coreos.com/subscriptions/odd.yaml`]: file(
        subscription('odd', { name: 'a\n- name: evil', source: 'acme' }),
      ),
      [`${folder}/operators/operators.coreos.com/clusterserviceversions/widget.yaml`]: file(
        csv('widget.v1.0.0', '1.0.0'),
      ),
      [`${folder}/operators/operators.coreos.com/clusterserviceversions/own.yaml`]: file(
        csv('own.v1.0.0', '1.0.0'),
      ),
      [`${folder}/olm/operators.coreos.com/catalogsources/acme.yaml`]: file(
        catalogSource('acme', { image: operators.catalog }),
      ),
      [`${folder}/olm/operators.coreos.com/catalogsources/address.yaml`]: file(
        catalogSource('address', { address: 'a.example:50051' }),
      ),
      [`${folder}/olm/core/broken.yaml`]: 'kind: Subscription\n: [',
      [`${folder}/olm/core/pods.log`]: 'Subscription',
    });
    const result = await capture('gather');
    expect(result).toMatchObject({ code: 0 });
    for (const problem of [
      'Subscription operators/far: not mapped: CatalogSource olm/gone is not among the objects',
      'Subscription operators/served: not mapped: CatalogSource olm/address is not made of an image (set the image of this catalog in the configuration)',
      'Subscription operators/odd: not mapped: "a\\n- name: evil" is not a name',
      'ClusterServiceVersion operators/own.v1.0.0: not mapped: no Subscription installs it',
      'broken.yaml',
    ])
      expect(result.stderr).toContain(problem);
    expect(load(result.stdout)).toMatchObject({
      mirror: { operators: [{ catalog: operators.catalog, packages: [{ name: 'widget' }] }] },
    });
    expect(result.stdout).not.toContain('evil');
  });

  it('reports all unreadable documents of named files, as the image set would lack what they have', async () => {
    await sandbox.write({
      'broken.yaml':
        'kind: Subscription\n: [\n---\nkind: Subscription\napiVersion: a/v1\nspec: {name: a,\n  name: b}\n',
    });
    const other = listOf(subscription('widget', { name: 'widget', source: 'acme' }));
    expect(await sandbox.run(['mirror', 'capture', 'broken.yaml', '-'], { stdin: other })).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^error: broken\.yaml:2: yaml: .*\nerror: broken\.yaml:7:3: spec\.name: duplicate key, first defined on line 6 \(keep one of them\)\n$/,
      ) as string,
    });
  });

  it.each([
    [
      'nothing installed',
      '{}',
      'no Subscription or ClusterExtension found\nhint: use the output of kubectl get',
    ],
    [
      'nothing that can be mapped',
      listOf(subscription('far', { name: 'far', source: 'gone' })),
      'nothing installed could be mapped to a catalog\nhint: check Subscription operators/far: not mapped',
    ],
  ])('is an error for %s', async (_what, text, problem) => {
    await sandbox.write({ 'none.json': text });
    const result = await capture('none.json');
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain(problem);
  });

  it('refuses an invalid catalog, a missing file, and a directory without objects', async () => {
    await mkdir(at('empty'), { recursive: true });
    expect(await capture('none.json', '--catalog', '=x')).toMatchObject({ code: 2 });
    expect((await capture('nowhere')).stderr).toContain('nowhere: no such file or directory');
    expect((await capture('empty')).stderr).toContain('empty: no .yaml, .yml or .json file');
  });
});
