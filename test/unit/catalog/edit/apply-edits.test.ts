import { chmod, mkdir, readFile, readdir, readlink, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { applyEdits, requireValidInput } from '../../../../src/catalog/edit/apply-edits.js';
import type { BlobEdit } from '../../../../src/catalog/edit/blob-edits.js';
import { readEditableCatalog } from '../../../../src/catalog/edit/editable-catalog.js';
import { planDeprecate } from '../../../../src/catalog/edit/plan-deprecate.js';
import { type PackageBlob, schemas } from '../../../../src/model/declarative-config.js';
import { directoryWith } from '../../../support/temporary.js';

function blobsOf(name: string): string {
  const bundle = {
    schema: 'olm.bundle',
    package: name,
    name: `${name}.v1.0.0`,
    image: `registry.test/${name}:v1`,
  };
  const value = { packageName: name, version: '1.0.0' };
  return [
    { schema: 'olm.package', name, defaultChannel: 'stable' },
    { schema: 'olm.channel', package: name, name: 'stable', entries: [{ name: bundle.name }] },
    { ...bundle, properties: [{ type: 'olm.package', value }] },
  ]
    .map((blob) => `${JSON.stringify(blob, null, 4)}\n`)
    .join('');
}

/** What makes a package of one bundle, in order. */
function insertions(name: string): BlobEdit[] {
  const blob: PackageBlob = {
    schema: schemas.package,
    name,
    defaultChannel: 'stable',
    description: '',
    properties: [],
  };
  const entries = [{ name: `${name}.v1.0.0`, replaces: '', skips: [], skipRange: '' }];
  const properties = [{ type: 'olm.package', value: { packageName: name, version: '1.0.0' } }];
  const image = `registry.test/${name}:v1`;
  return [
    { kind: 'insert', package: name, item: { kind: 'package', blob } },
    {
      kind: 'insert',
      package: name,
      item: {
        kind: 'channel',
        blob: { schema: schemas.channel, name: 'stable', package: name, entries, properties: [] },
      },
    },
    {
      kind: 'insert',
      package: name,
      item: {
        kind: 'bundle',
        blob: {
          schema: schemas.bundle,
          name: `${name}.v1.0.0`,
          package: name,
          image,
          properties,
          relatedImages: [],
        },
      },
    },
  ];
}

const deprecation = { package: 'widget', message: 'use gadget' };

describe('applyEdits', () => {
  it('puts a new package at the end of the one file that has all of several packages', async () => {
    const root = await directoryWith({ 'catalog/all.json': blobsOf('gadget') + blobsOf('widget') });
    const catalog = await readEditableCatalog(path.join(root, 'catalog'));
    const { files } = await applyEdits(catalog, insertions('zebra'), { temporaryDirectory: root });
    await catalog.catalog.close();
    expect(files).toEqual([{ name: 'all.json', kind: 'change' }]);
    const expected = blobsOf('gadget') + blobsOf('widget') + blobsOf('zebra');
    const text = await readFile(path.join(root, 'catalog/all.json'), 'utf8');
    expect(text.length).toBe(expected.length);
    expect(text.startsWith(blobsOf('gadget') + blobsOf('widget'))).toBe(true);
  });

  it('takes all files back when one cannot be put into its place', async () => {
    const top = await directoryWith();
    // So deep that the path of the new file, and of no other, is longer than the system takes.
    let root = top;
    while (root.length < 4025)
      root = path.join(root, 'd'.repeat(Math.min(200, Math.max(1, 4024 - root.length))));
    await mkdir(path.join(root, 'widget'), { recursive: true });
    const file = path.join(root, 'widget/catalog.json');
    await writeFile(file, blobsOf('widget'));
    const { ino } = await stat(file);
    const catalog = await readEditableCatalog(root);
    requireValidInput(catalog);
    const edits = [...planDeprecate(catalog, deprecation).edits, ...insertions('g'.repeat(63))];
    await expect(applyEdits(catalog, edits, { temporaryDirectory: top })).rejects.toMatchObject({
      code: 'IO',
      message: expect.stringContaining('write ') as string,
    });
    await catalog.catalog.close();
    expect(await readFile(file, 'utf8')).toBe(blobsOf('widget'));
    expect((await stat(file)).ino).toBe(ino);
    expect(await readdir(root)).toEqual(['widget']);
    expect(await readdir(path.dirname(root))).toEqual([path.basename(root)]);
  });

  it('writes nothing when a file of the catalog has changed, come or gone meanwhile', async () => {
    const root = await directoryWith({ 'catalog/widget/a.json': blobsOf('widget') });
    const directory = path.join(root, 'catalog');
    for (const [file, text] of [
      ['widget/a.json', `${blobsOf('widget')}\n`],
      ['gadget/b.json', blobsOf('gadget')],
    ] as const) {
      const catalog = await readEditableCatalog(directory);
      await mkdir(path.dirname(path.join(directory, file)), { recursive: true });
      await writeFile(path.join(directory, file), text);
      const { edits } = planDeprecate(catalog, deprecation);
      const done = applyEdits(catalog, edits, { temporaryDirectory: root });
      await expect(done).rejects.toMatchObject({
        code: 'IO',
        message: expect.stringMatching(/changed/) as string,
      });
      await catalog.catalog.close();
      expect(await readFile(path.join(directory, 'widget/a.json'), 'utf8')).not.toContain('olm.deprecations');
      expect(await readdir(root)).toEqual(['catalog']);
    }
  });

  it('keeps the mode of a file', async () => {
    const root = await directoryWith({ 'catalog/a.json': blobsOf('widget') });
    const file = path.join(root, 'catalog/a.json');
    await chmod(file, 0o640);
    const catalog = await readEditableCatalog(path.join(root, 'catalog'));
    await applyEdits(catalog, planDeprecate(catalog, deprecation).edits, { temporaryDirectory: root });
    await catalog.catalog.close();
    expect((await stat(file)).mode & 0o777).toBe(0o640);
    expect(await readFile(file, 'utf8')).toContain('olm.deprecations');
  });
});

describe('line ends', () => {
  it.each(['json', 'yaml'])('are those of the file, in %s', async (format) => {
    const dos = (text: string): string => text.replaceAll('\n', '\r\n');
    const yaml = `schema: olm.package
name: widget # it
defaultChannel: stable
---
schema: olm.channel
package: widget
name: stable
entries:
- name: widget.v1.0.0 # first
---
schema: olm.bundle
package: widget
name: widget.v1.0.0
image: registry.test/widget:v1
properties:
- type: olm.package
  value: {packageName: widget, version: 1.0.0}
`;
    const file = `catalog/widget.${format}`;
    const root = await directoryWith({ [file]: dos(format === 'json' ? blobsOf('widget') : yaml) });
    const catalog = await readEditableCatalog(path.join(root, 'catalog'));
    const { edits } = planDeprecate(catalog, deprecation);
    await applyEdits(catalog, edits, { temporaryDirectory: root });
    await catalog.catalog.close();
    const text = await readFile(path.join(root, file), 'utf8');
    expect(text).toContain('use gadget');
    expect(text).not.toMatch(/(?<!\r)\n/);
  });
});

describe('readEditableCatalog', () => {
  it.runIf(process.platform === 'linux')('leaves no file open where a blob cannot be loaded', async () => {
    const broken = '{"schema":"olm.channel","package":"widget","name":"stable","entries":[1]}';
    const root = await directoryWith({ 'catalog/a.json': blobsOf('widget'), 'catalog/b.json': broken });
    await expect(readEditableCatalog(path.join(root, 'catalog'))).rejects.toThrow('cannot unmarshal number');
    const open = await readdir('/proc/self/fd');
    const files = await Promise.all(open.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')));
    expect(files.filter((file) => file.startsWith(root))).toEqual([]);
  });
});
