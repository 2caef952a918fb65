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
  it('tells what the first view shows', async () => {
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

  it('knows where an installed bundle may go, past those that are skipped', async () => {
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

  it('finds bundles by all words of a search, and nothing by none', async () => {
    const view = await viewOf({ 'a.json': text(blobs) });
    expect(view.search('V1.1 widget').bundles.map((one) => one.bundle)).toEqual(['widget.v1.1.0']);
    expect(view.search('registry.test')).toMatchObject({ total: 3 });
    expect(view.search('  ')).toEqual({ bundles: [], total: 0 });
  });

  it('shows the rest of a catalog of which a part cannot be read, and says what that is', async () => {
    const view = await viewOf({ 'a.json': text(blobs), 'b.json': '{"schema": 1}\n' });
    expect(view.overview()).toMatchObject({ bundles: 3, errors: 1 });
    const { problems, total } = await view.problems(0, '', '');
    expect(total).toBe(1);
    expect(problems[0]).toMatchObject({ severity: 'error', file: 'shown/b.json', line: 1 });
  });

  it('shows blobs of a package that is not there', async () => {
    const view = await viewOf({ 'a.json': text(blobs.slice(1)) });
    const widget = await view.package('widget');
    expect(widget).toMatchObject({ isDefined: false, hasIcon: false, bundles: 3 });
    expect((await view.channel('widget', 'stable')).rows.length).toBe(3);
  });

  it('adds what the doctor finds, the worst first', async () => {
    const view = await viewOf({ 'a.json': text(blobs) });
    view.startChecks();
    expect(view.isChecking).toBe(true);
    await view.endChecks();
    expect(view.isChecking).toBe(false);
    const { problems } = await view.problems(0, 'widget', '');
    expect(problems.map(({ check }) => check)).toContain('bundle-image-tag');
    const ranks = problems.map(({ severity }) => ['error', 'warning', 'notice'].indexOf(severity));
    expect(ranks).toEqual([...ranks].sort());
  });

  it.each<[string, (view: CatalogView) => unknown]>([
    ['package', (view) => view.package('nothing')],
    ['channel', async (view) => view.channel('widget', 'nothing')],
    ['bundle', (view) => view.bundle('widget', 'nothing')],
    ['icon', (view) => view.icon('widget')],
    ['other catalog', async (view) => view.compare()],
  ])('has an error for a %s that is not there', async (_what, ask) => {
    const view = await viewOf({ 'a.json': text(blobs) });
    await expect(ask(view)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});
