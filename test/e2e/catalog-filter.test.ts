import { readFile, readdir } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { indexFile } from '../support/index-file.js';

const sandbox = useSandbox();

function bundle(version: string, createdAt?: string): object {
  const properties: object[] = [{ type: 'olm.package', value: { packageName: 'widget', version } }];
  if (createdAt !== undefined) {
    properties.push({ type: 'olm.csv.metadata', value: { annotations: { createdAt } } });
  }
  return {
    schema: 'olm.bundle',
    package: 'widget',
    name: `widget.v${version}`,
    image: `registry.test/widget:v${version}`,
    properties,
  };
}

const entry = (version: string, replaces?: string) => ({
  name: `widget.v${version}`,
  ...(replaces === undefined ? {} : { replaces: `widget.v${replaces}` }),
});

const widget = [
  { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
  {
    schema: 'olm.channel',
    package: 'widget',
    name: 'stable',
    entries: [entry('1.0.0'), entry('1.1.0', '1.0.0'), entry('1.2.0', '1.1.0'), entry('1.3.0', '1.2.0')],
  },
  { schema: 'olm.channel', package: 'widget', name: 'old', entries: [entry('1.0.0')] },
  bundle('1.0.0', '2022-01-01T00:00:00Z'),
  bundle('1.1.0', '2023-01-01'),
  bundle('1.2.0', '2024-01-01'),
  bundle('1.3.0'),
  {
    schema: 'olm.deprecations',
    package: 'widget',
    entries: [
      { reference: { schema: 'olm.channel', name: 'old' }, message: 'use stable' },
      { reference: { schema: 'olm.bundle', name: 'widget.v1.2.0' }, message: 'use 1.3.0' },
    ],
  },
  { schema: 'example.custom', package: 'widget', name: 'note', text: 'kept' },
  { schema: 'example.global', text: 'kept too' },
];
const gadget = JSON.parse(JSON.stringify(widget.slice(0, 7)).replaceAll('widget', 'gadget')) as object[];

beforeAll(async () => {
  const text = (blobs: object[]): string =>
    blobs.map((blob) => `${JSON.stringify(blob, null, 2)}\n`).join('');
  await sandbox.write({ 'catalog/widget.json': text(widget), 'catalog/gadget.json': text(gadget) });
});

const filter = (...args: string[]) => sandbox.run(['catalog', 'filter', 'catalog', ...args]);
const read = (file: string): Promise<string> => readFile(`${sandbox.work}/${file}`, 'utf8');

describe('opmate catalog filter', () => {
  it('writes a valid catalog, and reports additionally kept bundles', async () => {
    const result = await filter(
      ...['-p', 'widget', '--versions', '=1.0.0 || =1.2.0', '-o', 'filtered', '--report', 'report.json'],
    );
    expect(result).toEqual({
      code: 0,
      stdout: '',
      stderr: [
        'info: package "widget", channel "stable": keeps "widget.v1.1.0", which is on the upgrade path from "widget.v1.0.0" to the head "widget.v1.2.0"',
        'info: package "widget", channel "stable": head is now "widget.v1.2.0"; "widget.v1.3.0" is omitted',
        'info: wrote 1 of 2 packages, 3 of 8 bundles to filtered',
        'info: next: opmate serve filtered',
        '',
      ].join('\n'),
    });
    expect(await readdir(`${sandbox.work}/filtered`, { recursive: true })).toEqual([
      'catalog.json',
      'widget',
      'widget/catalog.json',
    ]);
    expect((await sandbox.run(['validate', 'filtered'])).code).toBe(0);
    const text = await read('filtered/widget/catalog.json');
    expect(text).toContain('"text": "kept"');
    expect(text).toContain('"message": "use 1.3.0"');
    expect(text).not.toContain('1.3.0.json');
    expect(JSON.parse(await read('report.json'))).toMatchObject({
      catalog: 'catalog',
      packagesBefore: 2,
      packages: [
        {
          name: 'widget',
          bundles: 3,
          bundlesBefore: 4,
          channels: [
            {
              name: 'stable',
              head: 'widget.v1.2.0',
              entriesBefore: 4,
              entries: [
                { name: 'widget.v1.0.0' },
                {
                  name: 'widget.v1.1.0',
                  reason: expect.stringContaining('is on the upgrade path') as string,
                },
                { name: 'widget.v1.2.0' },
              ],
            },
            { name: 'old' },
          ],
        },
      ],
    });
  });

  it('is also called prune, and writes to stdout like render', async () => {
    const pruned = await sandbox.run([
      'catalog',
      'prune',
      'catalog',
      '--packages',
      'gadget,widget',
      '-o',
      '-',
    ]);
    const rendered = await sandbox.run(['render', 'catalog']);
    expect(pruned.stdout).toBe(rendered.stdout);
    const yaml = await filter('--output', 'yaml');
    expect(yaml.stdout).toBe((await sandbox.run(['render', 'catalog', '-o', 'yaml'])).stdout);
    const head = await filter('-o', '-', '-p', 'widget', '--heads-only', '--drop-channel', 'old');
    await sandbox.write({ 'head/catalog.json': head.stdout });
    const { stdout } = await sandbox.run(['list', 'bundles', 'head']);
    expect(stdout.trim().split('\n')).toHaveLength(2);
  });

  it('keeps recent bundles, and removes deprecated ones', async () => {
    const since = ['-p', 'widget', '--channels', 'stable', '--created-since', '2023-06-01', '--dry-run'];
    const kept = await filter(...since);
    expect(kept.stdout).toContain(
      '  stable: 2 of 4, head widget.v1.3.0\n    widget.v1.2.0\n    widget.v1.3.0\n',
    );
    expect(kept.stderr).toBe(
      'warn: package "widget": included bundles without a creation date: "widget.v1.3.0"\n',
    );
    const dated = await filter(...since, '--undated', 'drop');
    expect(dated.stdout).toContain('  stable: 1 of 4, head widget.v1.2.0\n');
    const dropped = await filter('-p', 'widget', '--drop-deprecated', '--dry-run');
    expect(dropped.stdout).toContain('\nwidget: 3 of 4 bundles, default channel stable\n  stable: 3 of 4');
    expect(dropped.stdout).toContain('"widget.v1.3.0" replaces "widget.v1.1.0" in place of "widget.v1.2.0"');
    expect(dropped.stdout).not.toContain('  old:');
  });

  it('reads a file, which flags extend', async () => {
    await sandbox.write({
      'filter.yaml': 'kind: CatalogFilter\npackages:\n  - name: widget\n    latest: 2\n',
    });
    const { stdout } = await filter(
      '-f',
      'filter.yaml',
      '--drop-bundle',
      'widget.v1.3.0',
      '--dry-run',
      '--output',
      'json',
    );
    expect(JSON.parse(stdout)).toMatchObject({
      packages: [
        { name: 'widget', channels: [{ head: 'widget.v1.2.0', entries: [{}, {}] }, { name: 'old' }] },
      ],
    });
    await sandbox.write({ 'wrong.yaml': 'kind: CatalogFilter\npackages: [wigdet, gadgte]\n' });
    expect(await filter('-f', 'wrong.yaml', '--dry-run')).toMatchObject({
      code: 1,
      stderr:
        'error: wrong.yaml:2:12: package "wigdet" not found in catalog (did you mean "widget"?)\n' +
        'error: wrong.yaml:2:20: package "gadgte" not found in catalog (did you mean "gadget"?)\n',
    });
  });

  it('reads sqlite indexes', async () => {
    const file = await indexFile();
    const result = await sandbox.run([
      'catalog',
      'filter',
      file,
      '--min-version',
      '1.1.0',
      '-o',
      'from-index',
    ]);
    expect(result).toMatchObject({ code: 0 });
    const { stdout } = await sandbox.run(['list', 'bundles', 'from-index']);
    expect(stdout.split('\n').map((line) => line.split(/ +/).slice(0, 3).join(' '))).toEqual([
      'PACKAGE CHANNEL BUNDLE',
      'widget beta widget.v1.2.0',
      'widget stable widget.v1.1.0',
      'widget stable widget.v1.2.0',
      '',
    ]);
    expect((await sandbox.run(['validate', 'from-index'])).code).toBe(0);
  });

  it('writes nothing on an error', async () => {
    const refused = async (code: number, message: string, ...args: string[]) => {
      const result = await filter(...args);
      expect(result).toMatchObject({ code, stdout: '' });
      expect(result.stderr).toContain(message);
    };
    await refused(2, '--to, --output or --dry-run: missing', '-p', 'widget');
    await refused(1, '--package: package "widgets" not found in catalog', '-p', 'widgets', '-o', 'refused');
    const versions = ['--versions', 'widget=>=2.0.0', '-o', 'refused'];
    await refused(1, '--version: package "widget" in catalog has no matching content', ...versions);
    const minimum = ['--package', 'widget', '--min-version', '9.0.0', '-o', 'refused'];
    await refused(1, '--min-version: package "widget" in catalog has no matching content', ...minimum);
    await refused(1, 'catalog: the filter selects nothing', '--min-version', '2.0.0', '-o', 'refused');
    await refused(1, 'catalog', '-p', 'widget', '-o', 'catalog');
    const report = ['--report', 'nowhere/report.json'];
    await refused(1, 'nowhere/report.json: no such file', '-p', 'widget', '-o', 'refused', ...report);
    // The catalog cannot appear: the report that was there stays.
    await sandbox.write({ 'before.json': 'before', 'in-the-way': '' });
    await refused(1, 'in-the-way', '-p', 'widget', '-o', 'in-the-way/out', '--report', 'before.json');
    expect(await read('before.json')).toBe('before');
    expect(await readdir(sandbox.work)).not.toContain('refused');
    expect(await sandbox.leftovers()).toEqual([]);
  });
});
