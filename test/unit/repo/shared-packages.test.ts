import { cp, rm } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkRepository } from '../../../src/api/repo/check-repository.js';
import { renderRepository } from '../../../src/api/repo/render-repository.js';
import { readRepositoryStatus } from '../../../src/api/repo/repository-status.js';
import { failureOf } from '../../support/connect.js';
import {
  basicTemplate,
  ciConfig,
  openRepositoryWorld,
  repositoryWith,
} from '../../support/operator-repository.js';

const shared = 'of operator copy is also in operator widget, both in catalog v4.18';

describe('a package of two operators', () => {
  it('is reported by the rendering of one, by the status and by the checks', async () => {
    const { session, serve } = await openRepositoryWorld();
    const template = basicTemplate('widget', ['1.0.0'], [await serve('widget', '1.0.0')]);
    const root = await repositoryWith({
      'operators/widget/ci.yaml': ciConfig({ 'a.yaml': ['v4.17', 'v4.18'] }),
      'operators/widget/catalog-templates/a.yaml': template,
    });
    await renderRepository(root, session);
    const copied = await repositoryWith({
      'operators/copy/ci.yaml': ciConfig({ 'a.yaml': ['v4.18', 'v4.19'] }),
      'operators/copy/catalog-templates/a.yaml': template,
      'catalogs/v4.18/copy/catalog.yaml': 'schema: other\n---\nschema: olm.package\nname: widget\n',
    });
    await renderRepository(copied, session);
    await cp(copied, root, { recursive: true });
    const rendered = await failureOf(renderRepository(root, session, { operators: ['copy'] }));
    expect(rendered.message).toContain(shared);
    for (const operators of [['copy'], undefined]) {
      const { parts, errors } = await readRepositoryStatus(root, session, { operators });
      expect(parts).toEqual([]);
      expect(errors).toHaveLength(1);
      expect(errors[0]?.message).toMatch(/package "widget" of operator \w+ is also in operator \w+/);
    }
    const findings = await checkRepository(root, session, { names: ['copy'] });
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([
      expect.objectContaining({
        code: 'check_package_unique_in_catalog',
        problem: 'package "widget" is also in operator widget of catalog v4.18',
        file: path.join(root, 'catalogs/v4.18/copy/catalog.yaml'),
        line: 1,
        hint: 'keep a package in one operator',
      }),
    ]);
  });

  it('is accepted in different catalogs, and where the other operator is rendered without it', async () => {
    const { session, serve } = await openRepositoryWorld();
    const image = await serve('widget', '1.0.0');
    const root = await repositoryWith({
      'operators/widget/ci.yaml': ciConfig({ 'a.yaml': ['v4.18'] }),
      'operators/widget/catalog-templates/a.yaml': basicTemplate('widget', ['1.0.0'], [image]),
      'operators/old/ci.yaml': ciConfig({ 'a.yaml': ['v4.18'] }),
      'operators/old/catalog-templates/a.yaml': basicTemplate(
        'old',
        ['1.0.0'],
        [await serve('old', '1.0.0')],
      ),
      'catalogs/v4.18/old/catalog.yaml': 'schema: olm.package\nname: widget\n',
      'catalogs/v4.17/old/catalog.yaml': 'schema: olm.package\nname: widget\n',
    });
    const alone = await failureOf(renderRepository(root, session, { operators: ['widget'] }));
    expect(alone.message).toContain('is also in operator old');
    await renderRepository(root, session);
    await rm(path.join(root, 'catalogs/v4.17'), { recursive: true, force: true });
    expect(await readRepositoryStatus(root, session)).toEqual({ parts: [], errors: [] });
  });
});
