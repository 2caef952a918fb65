import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Session,
  addToCatalog,
  deprecateInCatalog,
  diagnoseCatalog,
  diffCatalogs,
  filterCatalog,
  openSession,
  removeFromCatalog,
  validate,
} from '../../../src/index.js';
import { catalogOf, widgetCatalog } from '../../e2e/catalogs.js';
import { bundlesDirectory } from '../../support/command-line.js';
import { directoryWith } from '../../support/temporary.js';

let session: Session;
beforeAll(async () => {
  session = await openSession();
});
afterAll(() => session.close());

describe('verbs of catalogs', () => {
  it('filters a catalog into pieces and into a directory', async () => {
    const catalog = await directoryWith({ 'all.json': widgetCatalog });
    const filtered = await filterCatalog(catalog, session, { latest: ['1'] });
    const target = path.join(await directoryWith(), 'part');
    let text = '';
    for await (const piece of filtered.write()) text += piece.toString();
    await filtered.writeDirectory(target);
    expect(filtered.selection.facts.bundles.length).toBeLessThan(filtered.before.bundles.length);
    await filtered.close();
    expect(text).toContain('"schema": "olm.package"');
    expect((await validate(target, session)).passed).toBe(true);
    const { diff, isSame } = await diffCatalogs(catalog, target, session);
    expect(diff.bundles.removed.length).toBeGreaterThan(0);
    expect(isSame).toBe(false);
    expect(await diffCatalogs(target, target, session)).toMatchObject({ isSame: true });
    await expect(diffCatalogs(target, target, session, { packages: ['none'] })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });

  it('adds bundles to an empty catalog, and changes nothing where one cannot be read', async () => {
    const add = {
      mode: 'semver',
      channels: ['stable'],
      imageTemplate: 'example.com/m:v{{.Version}}',
    } as const;
    const references = ['0.2.1', '0.3.0'].map((version) => path.join(bundlesDirectory, 'microcks', version));
    const catalog = await directoryWith();
    await expect(addToCatalog(catalog, [...references, 'nowhere'], session, add)).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    expect(await readdir(catalog)).toEqual([]);
    const { changes, files } = await addToCatalog(catalog, references, session, add);
    expect(changes.length).toBeGreaterThan(0);
    expect(files.map(({ kind }) => kind)).toEqual(['create']);
    expect((await validate(catalog, session)).passed).toBe(true);
  });

  it('returns deprecations and removals as a diff, and findings by severity', async () => {
    const catalog = await directoryWith({ 'all.json': catalogOf('widget', [{ name: 'widget.v0' }]) });
    const edit = { package: 'widget', dryRun: true };
    const deprecated = await deprecateInCatalog(catalog, session, { ...edit, message: 'use gadget' });
    expect(deprecated.diff).toContain('olm.deprecations');
    const removed = await removeFromCatalog(catalog, session, { ...edit, force: true });
    expect(removed.edit?.files).toEqual([{ name: 'all.json', kind: 'remove' }]);
    expect((await validate(catalog, session)).passed).toBe(true);
    expect(await diagnoseCatalog(catalog, session, { severity: 'error' })).toEqual([]);
  });
});
