import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DirectoryCatalog } from '../../../src/catalog/catalog.js';
import { type CatalogView, openCatalogView } from '../../../src/view/catalog-view.js';
import { exportPage } from '../../../src/view/export-page.js';

const numbers = Array.from({ length: 40 }, (_, index) => index);
const blobs = [
  { schema: 'olm.package', name: 'p', defaultChannel: 'c' },
  {
    schema: 'olm.channel',
    package: 'p',
    name: 'c',
    entries: numbers.map((number) => ({
      name: `p.v0.0.${number}`,
      replaces: number === 0 ? '' : `p.v0.0.${number - 1}`,
      skipRange: `<0.0.${number}`,
    })),
  },
  ...numbers.map((number) => ({
    schema: 'olm.bundle',
    package: 'p',
    name: `p.v0.0.${number}`,
    image: `registry.test/p:v0.0.${number}`,
    properties: [{ type: 'olm.package', value: { packageName: 'p', version: `0.0.${number}` } }],
  })),
];
let root = '';
let catalog: DirectoryCatalog;
let view: CatalogView;

beforeAll(async () => {
  const text = blobs.map((blob) => JSON.stringify(blob)).join('\n');
  root = await mkdtemp(path.join(tmpdir(), 'opmate-export-'));
  await mkdir(path.join(root, 'catalog'));
  await writeFile(path.join(root, 'catalog/catalog.json'), text);
  catalog = new DirectoryCatalog(path.join(root, 'catalog'), 'shown');
  view = await openCatalogView({ name: 'shown', catalog });
});

afterAll(async () => {
  await catalog.close();
  await rm(root, { recursive: true, force: true });
});

describe('view/export-page', () => {
  it('names a bundle as often as its entry and its blob do, whatever the ranges cover', async () => {
    const directory = path.join(root, 'page');
    await exportPage(view, directory);
    const script = await readFile(path.join(directory, 'data/p0.js'), 'utf8');
    const uses = (name: string): number => script.match(new RegExp(`p\\.v${name}\\b`, 'g'))?.length ?? 0;
    expect(uses('0.0.1')).toBeGreaterThan(0);
    expect(uses('0.0.1')).toBe(uses('0.0.20'));
  });

  it('has a package and a bundle named like a method of iterators', async () => {
    const named = [
      { schema: 'olm.package', name: 'next', defaultChannel: 'c' },
      { schema: 'olm.channel', package: 'next', name: 'c', entries: [{ name: 'next' }] },
      { ...blobs.at(-1), package: 'next', name: 'next' },
    ];
    await mkdir(path.join(root, 'named'));
    const text = named.map((blob) => JSON.stringify(blob)).join('\n');
    await writeFile(path.join(root, 'named/catalog.json'), text);
    const namedCatalog = new DirectoryCatalog(path.join(root, 'named'), 'named');
    const directory = path.join(root, 'named-page');
    await exportPage(await openCatalogView({ name: 'named', catalog: namedCatalog }), directory);
    await namedCatalog.close();
    const read = (name: string): Promise<string> => readFile(path.join(directory, 'data', name), 'utf8');
    expect(await read('p0.js')).toContain('\\"bundles\\":{\\"next\\":{');
    expect(await read('catalog.js')).toContain('\\"files\\":{\\"next\\":{');
  });

  it('ends between two bundles when it is cancelled, and leaves nothing', async () => {
    const controller = new AbortController();
    const described: string[] = [];
    const describe = view.describeBundle.bind(view);
    view.describeBundle = (packageName, name) => {
      described.push(name);
      controller.abort();
      return describe(packageName, name);
    };
    const directory = path.join(root, 'cancelled');
    await expect(exportPage(view, directory, controller)).rejects.toMatchObject({ code: 'CANCELLED' });
    expect(described).toEqual(['p.v0.0.0']);
    expect((await readdir(root)).filter((name) => name.includes('cancelled'))).toEqual([]);
  });
});
