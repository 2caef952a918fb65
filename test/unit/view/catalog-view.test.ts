import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DirectoryCatalog } from '../../../src/catalog/catalog.js';
import { type CatalogView, openCatalogView } from '../../../src/view/catalog-view.js';

function bundle(version: string): object {
  return {
    schema: 'olm.bundle',
    package: 'widget',
    name: `widget.v${version}`,
    image: `registry.test/widget:v${version}`,
    properties: [{ type: 'olm.package', value: { packageName: 'widget', version } }],
  };
}

const blobs = [
  {
    schema: 'olm.package',
    name: 'widget',
    defaultChannel: 'stable',
    description: '# Widgets\n\nMakes *them*.',
  },
  {
    schema: 'olm.channel',
    package: 'widget',
    name: 'stable',
    entries: [
      { name: 'widget.v1.0.0', replaces: 'widget.v0.9.0' },
      { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' },
      { name: 'widget.v1.2.0', skips: ['widget.v1.1.0', 'widget.v1.1.1'], skipRange: '<1.2.0' },
    ],
  },
  { schema: 'olm.channel', package: 'widget', name: 'stable-10', entries: [{ name: 'widget.v1.0.0' }] },
  { schema: 'olm.channel', package: 'widget', name: 'stable-9', entries: [{ name: 'widget.v1.0.0' }] },
  ...['1.0.0', '1.1.0', '1.2.0'].map(bundle),
];

const opened: DirectoryCatalog[] = [];
let directory = '';

async function viewOf(files: Record<string, string>): Promise<CatalogView> {
  const root = await mkdtemp(path.join(directory, 'catalog-'));
  for (const [name, content] of Object.entries(files)) await writeFile(path.join(root, name), content);
  const catalog = new DirectoryCatalog(root, 'shown');
  opened.push(catalog);
  return openCatalogView({ name: 'shown', catalog });
}

function text(list: readonly object[]): string {
  return list.map((blob) => JSON.stringify(blob)).join('\n');
}

beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'opmate-view-'));
});

afterAll(async () => {
  for (const catalog of opened) await catalog.close();
  await rm(directory, { recursive: true, force: true });
});

describe('CatalogView', () => {
  it('summarizes packages and totals', async () => {
    const view = await viewOf({ 'a.json': text(blobs) });
    expect(view.overview()).toMatchObject({
      name: 'shown',
      bundles: 3,
      channels: 3,
      packages: [{ name: 'widget', summary: 'Makes them.', head: 'widget.v1.2.0', version: '1.2.0' }],
    });
    const { channels } = await view.package('widget');
    expect(channels.map(({ name }) => name)).toEqual(['stable', 'stable-9', 'stable-10']);
  });

  it('lists the upgrades of an installed bundle, without skipped ones', async () => {
    const view = await viewOf({ 'a.json': text(blobs) });
    const first = (await view.bundle('widget', 'widget.v1.0.0')).places[0];
    expect(first).toMatchObject({
      channel: 'stable',
      isDefault: true,
      updatesTo: ['widget.v1.2.0'],
      updatesFrom: [],
      absent: ['widget.v0.9.0'],
    });
    expect((await view.bundle('widget', 'widget.v1.2.0')).places[0]).toMatchObject({
      updatesTo: [],
      covered: ['widget.v1.0.0', 'widget.v1.1.0'],
      updatesFrom: ['widget.v1.1.0', 'widget.v1.0.0'],
      absent: ['widget.v1.1.1'],
    });
  });

  it('finds the path from an installed version that the catalog may lack, in several channels', async () => {
    const view = await viewOf({ 'a.json': text(blobs) });
    expect(view.graph('widget').path(['stable'], '0.9.5', '1.2.0')).toEqual({
      from: '0.9.5',
      to: 'widget.v1.2.0',
      steps: [
        {
          ...{ from: '0.9.5', to: 'widget.v1.2.0', version: '1.2.0', channel: 'stable' },
          ...{ kind: 'skipRange', range: '<1.2.0' },
        },
      ],
      longest: 1,
    });
    expect(view.graph('widget').path(['stable-9', 'stable'], 'widget.v1.0.0', '1.1.0').steps).toMatchObject([
      { from: 'widget.v1.0.0', to: 'widget.v1.1.0', channel: 'stable', kind: 'replaces' },
    ]);
    expect(view.graph('widget').path(['stable-9'], 'widget.v1.0.0', '1.2.0')).not.toHaveProperty('steps');
    expect(() => view.graph('widget').path(['stable'], 'old', '1.2.0')).toThrow(
      'expected a bundle or version',
    );
    expect(() => view.graph('widget').path(['stable'], '1.0.0', '7.0.0')).toThrow('not found');
    const joined = await view.graph('widget').channel(['stable', 'stable-9']);
    expect(joined.rows.map(({ name, channels }) => [name, channels])).toEqual([
      ['widget.v1.2.0', [0]],
      ['widget.v1.1.0', [0]],
      ['widget.v1.0.0', [0, 1]],
    ]);
  });

  it('finds bundles that match all words, and none for an empty search', async () => {
    const view = await viewOf({ 'a.json': text(blobs) });
    expect(view.search('V1.1 widget').bundles.map((one) => one.bundle)).toEqual(['widget.v1.1.0']);
    expect(view.search('registry.test')).toMatchObject({ total: 3 });
    expect(view.search('  ')).toEqual({ packages: [], bundles: [], total: 0 });
  });

  it('finds packages and bundles by API, category, keyword, description and image, and names the field', async () => {
    const metadata = {
      displayName: 'Gadgets',
      provider: { name: 'Example Inc' },
      keywords: ['turbine'],
      annotations: {
        categories: 'Storage, Big Data',
        'com.redhat.openshift.versions': 'v4.12',
      },
      minKubeVersion: '1.26.0',
    };
    const gadget = {
      schema: 'olm.bundle',
      package: 'gadget',
      name: 'gadget.v2.0.0',
      image: 'registry.test/gadget:v2',
      properties: [
        { type: 'olm.package', value: { packageName: 'gadget', version: '2.0.0' } },
        { type: 'olm.gvk', value: { group: 'spin.test', version: 'v1', kind: 'Rotor' } },
        { type: 'olm.csv.metadata', value: metadata },
        { type: 'olm.maxOpenShiftVersion', value: '4.16' },
      ],
      relatedImages: [
        { name: '', image: 'registry.test/gadget:v2' },
        { name: 'operand', image: 'quay.test/Deep/operand@sha256:abc' },
      ],
    };
    const view = await viewOf({
      'a.json': text(blobs),
      'b.json': text([
        {
          schema: 'olm.package',
          name: 'gadget',
          defaultChannel: 'a',
          description: `${'Long. '.repeat(40)}Spins quickly.`,
        },
        { schema: 'olm.channel', package: 'gadget', name: 'a', entries: [{ name: 'gadget.v2.0.0' }] },
        gadget,
      ]),
    });
    const matches = (query: string): unknown => view.search(query).packages;
    const by = (field: string, shown: unknown): unknown => [
      { package: 'gadget', matches: [{ field, text: shown }] },
    ];
    expect(matches('rotor')).toEqual(by('API', 'spin.test/v1/Rotor'));
    expect(matches('gadg ROTOR')).toEqual(by('API', 'spin.test/v1/Rotor'));
    expect(matches('storage')).toEqual(by('category', 'Storage'));
    expect(matches('turbine')).toEqual(by('keyword', 'turbine'));
    expect(matches('example inc')).toEqual(by('provider', 'Example Inc'));
    expect(matches('quickly')).toEqual(by('description', expect.stringMatching(/^….*Spins quickly\.$/)));
    expect(matches('gadget')).toEqual([{ package: 'gadget', matches: [] }]);
    expect(matches('rotor storage widget')).toEqual([]);
    const { bundles, total } = view.search('deep/operand');
    expect([total, bundles]).toEqual([
      1,
      [
        {
          ...{ package: 'gadget', channel: 'a', bundle: 'gadget.v2.0.0', version: '2.0.0' },
          image: 'registry.test/gadget:v2',
          match: { field: 'related image', text: 'quay.test/Deep/operand@sha256:abc' },
        },
      ],
    ]);
    // A name comes before an image.
    expect(view.search('v2').bundles[0]).not.toHaveProperty('match');
    expect(view.overview().packages.find(({ name }) => name === 'gadget')).toMatchObject({
      categories: ['Storage', 'Big Data'],
      // The label allows 4.12, the version of Kubernetes 4.13 and later.
      openshift: { min: '4.13', max: '4.16' },
    });
  });

  it('shows the readable parts of the lifecycle of a package', async () => {
    const lifecycle = {
      schema: 'io.openshift.operators.lifecycles.v1alpha1',
      package: 'widget',
      versions: [
        { name: '1.2', phases: [{ name: 'Full Support', startDate: '2026-01-01', endDate: '2026-12-31' }] },
        {
          name: '1.10',
          phases: [{ name: 'GA', startDate: 'soon' }, 7],
          platformCompatibility: [{ name: 'OpenShift', versions: ['4.18', 4.19] }],
        },
        { name: 'all', phases: [] },
      ],
    };
    const view = await viewOf({ 'a.json': text([...blobs, lifecycle]) });
    expect((await view.package('widget')).lifecycle).toEqual([
      { version: '1.10', phases: [{ name: 'GA' }], platforms: [{ name: 'OpenShift', versions: ['4.18'] }] },
      {
        version: '1.2',
        phases: [{ name: 'Full Support', startDate: '2026-01-01', endDate: '2026-12-31' }],
        platforms: [],
      },
    ]);
    expect((await (await viewOf({ 'a.json': text(blobs) })).package('widget')).lifecycle).toEqual([]);
  });

  it('shows the readable part of a catalog and reports the faults', async () => {
    const view = await viewOf({ 'a.json': text(blobs), 'b.json': '{"schema": 1}\n' });
    expect(view.overview()).toMatchObject({ bundles: 3, errors: 1 });
    const { problems, total } = await view.problems({ from: 0, package: '', severity: '', check: '' });
    expect(total).toBe(1);
    expect(problems[0]).toMatchObject({ severity: 'error', file: 'shown/b.json', line: 1 });
  });

  it('shows blobs of a missing package', async () => {
    const view = await viewOf({ 'a.json': text(blobs.slice(1)) });
    const widget = await view.package('widget');
    expect(widget).toMatchObject({ isDefined: false, hasIcon: false, bundles: 3 });
    expect((await view.graph('widget').channel(['stable'])).rows.length).toBe(3);
  });

  it('adds the findings of the doctor, most severe first', async () => {
    const view = await viewOf({ 'a.json': text(blobs) });
    view.startChecks();
    expect(view.isChecking()).toBe(true);
    await view.endChecks();
    expect(view.isChecking()).toBe(false);
    const { problems } = await view.problems({ from: 0, package: 'widget', severity: '', check: '' });
    expect(problems.map(({ check }) => check)).toContain('bundle-image-tag');
    const ranks = problems.map(({ severity }) => ['error', 'warning', 'notice'].indexOf(severity));
    expect(ranks).toEqual([...ranks].sort());
  });

  it.each<[string, (view: CatalogView) => unknown]>([
    ['package', (view) => view.package('nothing')],
    ['channel', async (view) => view.graph('widget').channel(['nothing'])],
    ['bundle', (view) => view.bundle('widget', 'nothing')],
    ['icon', (view) => view.icon('widget')],
    ['other catalog', async (view) => view.compare()],
  ])('has an error for a %s that is not there', async (_what, ask) => {
    const view = await viewOf({ 'a.json': text(blobs) });
    await expect(ask(view)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});
