import fc from 'fast-check';
import { dump } from 'js-yaml';
import { beforeAll, describe, expect, it } from 'vitest';
import { DirectoryCatalog } from '../../src/catalog/catalog.js';
import { type CatalogDiff, diffSnapshots, isSameCatalog } from '../../src/catalog/diff/diff.js';
import { takeSnapshot } from '../../src/catalog/diff/snapshot.js';
import { useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();

interface Entry {
  name: string;
  replaces?: string;
  skips?: string[];
  skipRange?: string;
}

function bundle(version: string, more: object = {}): object {
  return {
    schema: 'olm.bundle',
    package: 'widget',
    name: `widget.v${version}`,
    image: `registry.test/widget:v${version}`,
    properties: [{ type: 'olm.package', value: { packageName: 'widget', version } }],
    relatedImages: [{ name: '', image: `registry.test/operand:v${version}` }],
    ...more,
  };
}

function channel(name: string, entries: Entry[]): object {
  return { schema: 'olm.channel', package: 'widget', name, entries };
}

const widget = { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' };
const before = [
  widget,
  channel('stable', [{ name: 'widget.v1.0.0' }, { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' }]),
  channel('old', [{ name: 'widget.v1.0.0' }]),
  bundle('1.0.0'),
  bundle('1.1.0'),
  {
    schema: 'olm.deprecations',
    package: 'widget',
    entries: [{ reference: { schema: 'olm.channel', name: 'old' }, message: 'use stable' }],
  },
];
const after = [
  { ...widget, defaultChannel: 'fast', description: 'makes `<b>widgets</b>`' },
  channel('stable', [
    { name: 'widget.v1.1.0', skipRange: '<1.1.0', skips: ['widget.v1.0.1'] },
    { name: 'widget.v1.2.0', replaces: 'widget.v1.1.0' },
  ]),
  channel('fast', [{ name: 'widget.v1.2.0' }]),
  bundle('1.1.0', { image: 'registry.test/moved:v1.1.0' }),
  bundle('1.2.0'),
  { schema: 'example.custom', package: 'widget', name: 'note', text: 'hello' },
];

function text(blobs: readonly object[]): string {
  return blobs.map((blob) => `${JSON.stringify(blob, null, 2)}\n`).join('');
}

beforeAll(async () => {
  await sandbox.write({
    'before/catalog.json': text(before),
    'after/catalog.json': text(after),
    'reordered/b.yaml': [...before]
      .reverse()
      .map((blob) => `---\n${dump(blob, { sortKeys: true })}`)
      .join(''),
    'two/catalog.json': text([...before, { schema: 'olm.package', name: 'gadget', defaultChannel: 'a' }]),
  });
});

describe('opmate catalog diff', () => {
  it('ignores differences of files, order and syntax', async () => {
    const result = await sandbox.run(['catalog', 'diff', 'before', 'reordered']);
    expect(result).toEqual({ code: 0, stdout: 'no differences\n', stderr: '' });
  });

  it('reports every kind of difference, with exit code 3', async () => {
    const { code, stdout, stderr } = await sandbox.run(['catalog', 'diff', 'before', 'after']);
    expect({ code, stderr }).toEqual({ code: 3, stderr: '' });
    expect(stdout).toBe(`packages
~ widget
    default channel: stable -> fast
    description differs

channels
+ widget fast: 1 entry, head widget.v1.2.0
- widget old: 1 entry, head widget.v1.0.0
~ widget stable
    head: widget.v1.1.0 -> widget.v1.2.0
    entry + widget.v1.2.0
    entry - widget.v1.0.0
    widget.v1.1.0 replaces: widget.v1.0.0 -> none
    widget.v1.1.0 skips + widget.v1.0.1
    widget.v1.1.0 skipRange: none -> <1.1.0

bundles
+ widget widget.v1.2.0: registry.test/widget:v1.2.0
- widget widget.v1.0.0: registry.test/widget:v1.0.0
~ widget widget.v1.1.0
    image: registry.test/widget:v1.1.0 -> registry.test/moved:v1.1.0

images
+ registry.test/moved:v1.1.0
+ registry.test/operand:v1.2.0
+ registry.test/widget:v1.2.0
- registry.test/operand:v1.0.0
- registry.test/widget:v1.0.0
- registry.test/widget:v1.1.0

deprecations
- widget channel old: use stable

other blobs
+ widget example.custom note

1 package, 3 channels, 3 bundles, 6 images, 1 deprecation, 1 other blob
`);
  });

  it('writes JSON for programs and Markdown for a pull request', async () => {
    const json = await sandbox.run(['catalog', 'diff', 'before', 'after', '-o', 'json']);
    const diff = JSON.parse(json.stdout) as CatalogDiff;
    expect(diff.bundles.added).toEqual([
      {
        package: 'widget',
        bundle: 'widget.v1.2.0',
        version: '1.2.0',
        image: 'registry.test/widget:v1.2.0',
      },
    ]);
    expect(diff.channels.changed[0]?.head).toEqual({ from: 'widget.v1.1.0', to: 'widget.v1.2.0' });
    const markdown = await sandbox.run(['catalog', 'diff', 'before', 'after', '-o', 'markdown']);
    expect(markdown.stdout).toContain('| channels | 1 | 1 | 1 |');
    expect(markdown.stdout).toContain('- added `widget` `widget.v1.2.0`: `registry.test/widget:v1.2.0`');
  });

  it('compares selected packages, and reports unknown ones', async () => {
    const other = await sandbox.run(['catalog', 'diff', 'before', 'two', '--package', 'widget']);
    expect(other).toEqual({ code: 0, stdout: 'no differences\n', stderr: '' });
    const all = await sandbox.run(['catalog', 'diff', 'before', 'two']);
    expect(all.stdout).toBe('packages\n+ gadget\n\n1 package\n');
    const missing = await sandbox.run(['catalog', 'diff', 'before', 'two', '--package', 'wigdet']);
    expect(missing.code).toBe(1);
    expect(missing.stderr).toContain('package "wigdet" not found in either catalog');
  });

  it('names an unreadable catalog', async () => {
    const { code, stdout, stderr } = await sandbox.run(['catalog', 'diff', 'before', './nothing-there']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('./nothing-there');
  });
});

describe('diffCatalogs', () => {
  const entries = fc.uniqueArray(fc.constantFrom('1.0.0', '1.1.0', '1.2.0', '2.0.0'), { minLength: 1 });
  const catalogs = fc.dictionary(fc.constantFrom('stable', 'fast', 'old'), entries).map((channels) => [
    widget,
    ...Object.entries(channels).map(([name, versions]) =>
      channel(
        name,
        versions.map((version, at) => ({
          name: `widget.v${version}`,
          ...(at > 0 && { replaces: `widget.v${versions[at - 1]}` }),
        })),
      ),
    ),
    ...[...new Set(Object.values(channels).flat())].map((version) => bundle(version)),
  ]);

  it('is symmetric, and empty for equal catalogs', async () => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(catalogs, catalogs, async (first, second) => {
        const name = `random${run++}`;
        await sandbox.write({ [`${name}/a/c.json`]: text(first), [`${name}/b/c.json`]: text(second) });
        const opened: DirectoryCatalog[] = [];
        const at = (part: string): ReturnType<typeof takeSnapshot> => {
          const catalog = new DirectoryCatalog(`${sandbox.work}/${name}/${part}`);
          opened.push(catalog);
          return takeSnapshot(catalog);
        };
        const [a, b] = [await at('a'), await at('b')];
        const [forth, back] = [await diffSnapshots(a, b), await diffSnapshots(b, a)];
        for (const kind of ['packages', 'channels', 'bundles', 'images'] as const) {
          expect(forth[kind].added).toEqual(back[kind].removed);
          expect(forth[kind].removed).toEqual(back[kind].added);
        }
        expect(isSameCatalog(await diffSnapshots(a, await at('a')))).toBe(true);
        expect(isSameCatalog(forth)).toBe(isSameCatalog(back));
        for (const catalog of opened) await catalog.close();
      }),
      { numRuns: 60 },
    );
  });
});
