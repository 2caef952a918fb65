import { existsSync } from 'node:fs';
import { mkdir, readdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkRepository } from '../../../src/api/repo/check-repository.js';
import { onboardOperator } from '../../../src/api/repo/onboard-operator.js';
import { promoteCatalog } from '../../../src/api/repo/promote-catalog.js';
import { releaseBundle } from '../../../src/api/repo/release-bundle.js';
import { renderRepository } from '../../../src/api/repo/render-repository.js';
import { failureOf } from '../../support/connect.js';
import {
  basicTemplate,
  ciConfig,
  openRepositoryWorld,
  readIn,
  repositoryWith,
} from '../../support/operator-repository.js';
import { directoryWith } from '../../support/temporary.js';

const operator = 'operators/widget';
const secret = 'password: s3cret-value\n';

describe('a hostile or broken repository', () => {
  it('reads no file that a link leads out of the checkout', async () => {
    const { session } = await openRepositoryWorld();
    const outside = await directoryWith({
      'ci.yaml': secret,
      't.yaml': secret,
      'release-config.yaml': secret,
    });
    const csv = 'manifests/widget.clusterserviceversion.yaml';
    const root = await repositoryWith({
      'operators/linked/catalog-templates/t.yaml': '',
      [`${operator}/ci.yaml`]: ciConfig({ 't.yaml': ['v4.18'] }),
      [`${operator}/catalog-templates/other.yaml`]: '',
      [`${operator}/1.0.0/${csv}`]: 'metadata: {name: widget.v1.0.0}\n',
      [`${operator}/1.0.0/metadata/other.yaml`]: '',
    });
    await symlink(path.join(outside, 'ci.yaml'), path.join(root, 'operators/linked/ci.yaml'));
    await symlink(path.join(outside, 't.yaml'), path.join(root, operator, 'catalog-templates/t.yaml'));
    await symlink(path.join(outside, 't.yaml'), path.join(root, operator, '1.0.0/metadata/annotations.yaml'));
    const rendered = (await failureOf(renderRepository(root, session))).message;
    expect(rendered).toContain('linked/ci.yaml');
    expect(rendered).toContain('catalog-templates/t.yaml');
    expect(rendered.match(/outside of the directory/g)).toHaveLength(2);
    const checked = await checkRepository(root, session, {});
    expect(JSON.stringify(checked)).toContain('outside of the directory');
    await symlink(
      path.join(outside, 'release-config.yaml'),
      path.join(root, operator, '1.0.0/release-config.yaml'),
    );
    const image = 'registry.example.com/widget@sha256:'.padEnd(99, '0');
    const released = await failureOf(
      releaseBundle(root, session, { operator: 'widget', version: '1.0.0', image }),
    );
    expect(released.message).toContain('outside of the directory');
    for (const text of [rendered, JSON.stringify(checked), released.message])
      expect(text).not.toContain('s3cret');
  });

  it('writes nothing through a link of the checkout', async () => {
    const { session, serve } = await openRepositoryWorld();
    const outside = await directoryWith({});
    const image = await serve('widget', '1.0.0');
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18', 'v4.19'] }),
      [`${operator}/catalog-templates/a.yaml`]: basicTemplate('widget', ['1.0.0'], [image]),
    });
    await mkdir(path.join(root, 'catalogs'));
    await symlink(outside, path.join(root, 'catalogs/v4.18'));
    await failureOf(renderRepository(root, session));
    expect(await readdir(outside)).toEqual([]);
    expect(existsSync(path.join(root, 'catalogs/v4.19'))).toBe(false);
    await renderRepository(root, session, { catalogs: ['v4.19'] });
    await failureOf(promoteCatalog(root, session, { from: 'v4.19', to: 'v4.18' }));
    expect(await readdir(outside)).toEqual([]);
  });

  it('reports the unreadable files of all operators as findings of checks', async () => {
    const { session } = await openRepositoryWorld();
    const root = await repositoryWith({
      'operators/cycle/ci.yaml': 'a: &a [*a]\n',
      'operators/typo/ci.yaml': 'fbc:\n  enabled: "yes"\n  catalog_mapping:\n  - {catalogs_names: [v4.18]}\n',
    });
    const findings = await checkRepository(root, session, {});
    const files = findings.map(({ package: name }) => name);
    for (const name of ['cycle', 'typo']) expect(files).toContain(name);
    expect(findings.find((finding) => finding.package === 'cycle')).toMatchObject({
      code: 'check_schema_operator_ci_config',
      severity: 'error',
      line: 1,
    });
  });

  it('warns of a catalog that nothing reads, and refuses names that leave their directory', async () => {
    const { session } = await openRepositoryWorld();
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ '../../t.yaml': ['v4.18'], 'a.yaml': ['../evil', ''] }),
      [`${operator}/1.0.0/manifests/csv.yaml`]: '',
      [`${operator}/1.0.0/metadata/annotations.yaml`]: '',
    });
    const { message } = await failureOf(renderRepository(root, session));
    for (const part of ['../../t.yaml', '../evil', 'catalog_names[1]: missing'])
      expect(message).toContain(part);
    const indexes = { '../v4.18': root };
    expect(
      (await failureOf(onboardOperator(root, session, { operator: 'widget', indexes }))).message,
    ).toContain('../v4.18');
    expect(await readdir(root)).toEqual(['config.yaml', 'operators']);
    expect(await readIn(root, 'config.yaml')).toBe('organization: test\n');
  });

  it('reports operators that cannot be examined together with the problems of others', async () => {
    const { session } = await openRepositoryWorld();
    const root = await repositoryWith({
      'operators/directory/ci.yaml/file': '',
      'operators/loop/other.yaml': '',
      'operators/typed/ci.yaml': `fbc:
  catalog_mapping:
  - {template_name: t.yaml, catalog_names: v4.18, type: basic}
`,
      'operators/folder/ci.yaml': ciConfig({ 't.yaml': ['v4.18'] }),
      'operators/folder/catalog-templates/t.yaml/file': '',
    });
    await symlink('ci.yaml', path.join(root, 'operators/loop/ci.yaml'));
    const { message } = await failureOf(renderRepository(root, session));
    for (const part of [
      'directory/ci.yaml',
      'loop/ci.yaml',
      'catalog_names: expected a list',
      'value "basic"',
    ])
      expect(message).toContain(part);
    expect(message).toContain('template "t.yaml" is not a regular file');
    const findings = await checkRepository(root, session, {});
    const unreadable = findings.filter(({ severity }) => severity === 'error').map((item) => item.package);
    expect(unreadable).toEqual(expect.arrayContaining(['directory', 'loop', 'typed']));
  });

  it('promotes no catalog whose file a link leads out of the checkout, without a file, nor to a file', async () => {
    const { session } = await openRepositoryWorld();
    const outside = await directoryWith({ 'catalog.yaml': secret });
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18'] }),
      'operators/other/ci.yaml': ciConfig({ 'a.yaml': ['v4.17'] }),
      'catalogs/v4.18/widget/README.md': '',
      'catalogs/v4.17/other/catalog.yaml': '',
      'catalogs/v4.16/other/catalog.yaml/file': '',
      'catalogs/v4.20': '',
    });
    await symlink(path.join(outside, 'catalog.yaml'), path.join(root, 'catalogs/v4.18/widget/catalog.yaml'));
    for (const dryRun of [true, false]) {
      const linked = await failureOf(promoteCatalog(root, session, { from: 'v4.18', to: 'v4.19', dryRun }));
      expect(linked.message).toContain('outside of the directory');
      const taken = await failureOf(promoteCatalog(root, session, { from: 'v4.17', to: 'v4.20', dryRun }));
      expect(taken.message).toContain('catalogs/v4.20: is a file, not a directory');
      const empty = await failureOf(promoteCatalog(root, session, { from: 'v4.16', to: 'v4.19', dryRun }));
      expect(empty.message).toContain('catalogs/v4.16/other: the operator has no catalog file');
    }
    expect((await readdir(path.join(root, 'catalogs'))).sort()).toEqual(['v4.16', 'v4.17', 'v4.18', 'v4.20']);
    expect(await readIn(root, operator, 'ci.yaml')).toBe(ciConfig({ 'a.yaml': ['v4.18'] }));
  });
});
