import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { editDatabase } from '../../../../src/sqlite/schema/edit.js';
import {
  type LoadOptions,
  type LoadReport,
  loadPackageManifests,
} from '../../../../src/sqlite/legacy/manifest-loader.js';
import { asText, smallCsv, smallPackage, widgetTree } from '../../../support/manifest-trees.js';
import { directoryWith } from '../../../support/temporary.js';
import { readRows } from '../../../support/rows.js';

/** Loads a tree into `index.db` beside it. */
async function load(
  files: Record<string, string | object>,
  options: LoadOptions = {},
  database?: string,
): Promise<{ report: LoadReport; database: string }> {
  const directory = await directoryWith(asText(files));
  const file = database ?? path.join(await directoryWith(), 'index.db');
  const report = await editDatabase(file, { create: true }, (opened) =>
    loadPackageManifests(opened, directory, {}, { label: 'tree', ...options }),
  );
  return { report, database: file };
}

const messages = ({ problems }: LoadReport): string[] => problems.map(({ message }) => message);

describe('sqlite/package-manifests', () => {
  it('writes bundles without image, and packages with the graph from their heads', async () => {
    const { report, database } = await load(widgetTree());
    expect(report).toEqual({ bundles: ['widget.v1', 'widget.v2'], packages: ['widget'], problems: [] });
    expect(
      readRows(database, 'SELECT name, bundlepath, version, replaces, skips FROM operatorbundle'),
    ).toEqual([
      ['widget.v1', '', '1.0.0', '', ''],
      ['widget.v2', '', '2.0.0', 'widget.v1', 'widget.v1.5'],
    ]);
    expect(readRows(database, 'SELECT * FROM package')).toEqual([['widget', 'stable']]);
    expect(
      readRows(
        database,
        "SELECT operatorbundle_name, depth FROM channel_entry WHERE channel_name = 'stable'",
      ),
    ).toEqual([
      ['widget.v2', 0],
      ['widget.v1.5', 1],
      ['widget.v2', 1],
      ['widget.v1', 2],
    ]);
    // Once for each channel that leads through the bundle; no path, as there is no image.
    expect(
      readRows(
        database,
        `SELECT operatorbundle_name, type, count(*), operatorbundle_path FROM properties
           GROUP BY 1, 2 ORDER BY 1, 2`,
      ),
    ).toEqual([
      ['widget.v1', 'olm.gvk', 1, null],
      ['widget.v1', 'olm.package', 2, null],
      ['widget.v2', 'olm.gvk', 1, null],
      ['widget.v2', 'olm.package', 1, null],
    ]);
    expect(readRows(database, 'SELECT typeof(csv), typeof(bundle) FROM operatorbundle LIMIT 1')).toEqual([
      ['blob', 'blob'],
    ]);
  });

  const faulty = {
    ...widgetTree(),
    'gadget/gadget.package.yaml': smallPackage(
      'gadget',
      { stable: 'gadget.v1', beta: 'gadget.v2' },
      'stable',
    ),
    'gadget/csv.yaml': smallCsv({ name: 'gadget.v1' }),
    'other/other.package.yaml': smallPackage('other', { stable: 'other.v1' }),
    'other/csv.yaml': smallCsv({ name: 'other.v1', replaces: 'other.v0', owned: ['thing'] }),
    'widget/copy/csv.yaml': smallCsv({ name: 'widget.v1' }),
    'widget/substitute/csv.yaml': smallCsv({
      name: 'sub.v1',
      annotations: { 'olm.substitutesFor': 'widget.v1' },
    }),
    'none/none.package.yaml': smallPackage('none', {}),
    'bad.yaml': 'a: [',
  };

  it('keeps the valid part if permissive, and reports the rest', async () => {
    const { report, database } = await load(faulty, { permissive: true });
    expect(report.bundles).toEqual(['gadget.v1', 'other.v1', 'widget.v1', 'widget.v2']);
    expect(report.packages).toEqual(['widget']);
    expect(messages(report)).toEqual([
      expect.stringMatching(/^tree\/bad\.yaml:1: yaml: /),
      expect.stringMatching(
        /^tree\/other\/csv\.yaml: .*couldn't find example.com\/v1\/thing \(things\) in bundle/,
      ),
      'tree/widget/copy/csv.yaml: failed to add bundle "widget.v1": it is also in tree/widget/1.0.0/csv.yaml',
      'tree/widget/substitute/csv.yaml: SubstitutesFor is an alpha-only feature',
      expect.stringMatching(/^tree\/gadget\/gadget\.package\.yaml: .*"beta".*"gadget".*gadget\.v2/),
      expect.stringMatching(/^tree\/none\/none\.package\.yaml: .*no default channel specified for none/),
      expect.stringMatching(/^tree\/other\/other\.package\.yaml: .*replaces nonexistent bundle other\.v0/),
    ]);
    expect(readRows(database, 'SELECT name FROM package')).toEqual([['widget']]);
    expect(readRows(database, 'SELECT DISTINCT package_name FROM channel')).toEqual([['widget']]);
  });

  it('writes nothing if anything is invalid, and reports all problems', async () => {
    const { database } = await load({ 'a.yaml': smallCsv({ name: 'a' }) });
    const loading = load(faulty, {}, database);
    await expect(loading).rejects.toMatchObject({
      code: 'INVALID',
      message: 'error loading manifests from tree: 7 problems',
      problems: expect.objectContaining({ length: 7 }) as unknown,
    });
    expect(readRows(database, 'SELECT name FROM operatorbundle')).toEqual([['a']]);
  });

  it('reports a single problem directly', async () => {
    await expect(load({ 'a.yaml': 'packageName: [a]\n' })).rejects.toMatchObject({
      message: 'tree/a.yaml: packageName: expected a string, got a list',
      file: 'tree/a.yaml',
      line: 1,
    });
  });

  it('refuses what the database has already', async () => {
    const { database } = await load(widgetTree());
    await expect(load(widgetTree(), {}, database)).rejects.toMatchObject({
      message: 'error loading manifests from tree: 2 problems',
    });
  });

  it('writes a package anew that has a newer version', async () => {
    const { database } = await load(widgetTree());
    const newer = {
      'csv.yaml': smallCsv({ name: 'widget.v3', version: '3.0.0', replaces: 'widget.v2' }),
      'package.yaml': smallPackage('widget', { stable: 'widget.v3' }),
    };
    await load(newer, {}, database);
    expect(readRows(database, 'SELECT name, head_operatorbundle_name FROM channel')).toEqual([
      ['stable', 'widget.v3'],
    ]);
  });

  it('reports two different manifests of one package, and uses the last', async () => {
    const files = {
      'a.yaml': smallCsv({ name: 'a' }),
      'p/1.yaml': smallPackage('p', { one: 'a' }),
      'p/2.yaml': smallPackage('p', { two: 'a' }),
      'q/1.yaml': smallPackage('q', { one: 'a' }),
      'q/2.yaml': smallPackage('q', { one: 'a' }),
    };
    const { report, database } = await load(files, { permissive: true });
    expect(messages(report)).toEqual([
      'tree/p/2.yaml: package "p" is also in tree/p/1.yaml, with other content',
    ]);
    expect(readRows(database, 'SELECT package_name, name FROM channel ORDER BY 1')).toEqual([
      ['p', 'two'],
      ['q', 'one'],
    ]);
  });
});
