import { existsSync } from 'node:fs';
import { readdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { onboardOperator } from '../../../src/api/repo/onboard-operator.js';
import { promoteCatalog } from '../../../src/api/repo/promote-catalog.js';
import { releaseBundle } from '../../../src/api/repo/release-bundle.js';
import { renderRepository } from '../../../src/api/repo/render-repository.js';
import { readRepositoryStatus } from '../../../src/api/repo/repository-status.js';
import { failureOf } from '../../support/connect.js';
import { startFaultRegistry } from '../../support/fault-registry.js';
import {
  basicTemplate,
  bundleInCheckout,
  ciConfig,
  openRepositoryWorld,
  readIn,
  repositoryWith,
} from '../../support/operator-repository.js';

const operator = 'operators/widget';

/** Returns the files of a bundle to be released. */
function bundleFiles(version: string, releaseConfig: string): Record<string, string> {
  return {
    ...bundleInCheckout('widget', version),
    [`${operator}/${version}/release-config.yaml`]: releaseConfig,
  };
}

describe('release of a bundle', () => {
  it('keeps comments of the template, shows a diff, and writes template and catalogs together', async () => {
    const { session, serve } = await openRepositoryWorld();
    const [first, second] = [await serve('widget', '1.0.0'), await serve('widget', '1.1.0')];
    const template = `schema: olm.template.basic
entries:
  - schema: olm.package
    name: widget
    defaultChannel: stable # the only one
  # all versions
  - schema: olm.channel
    package: widget
    name: stable
    entries:
      - name: widget.v1.0.0
  - schema: olm.bundle
    image: ${first}
`;
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18'] }),
      [`${operator}/catalog-templates/a.yaml`]: template,
      ...bundleFiles(
        '1.1.0',
        'catalog_templates:\n- template_name: a.yaml\n  channels: [stable]\n  replaces: widget.v1.0.0\n',
      ),
    });
    const options = { operator: 'widget', version: '1.1.0', image: second };
    const planned = await releaseBundle(root, session, { ...options, dryRun: true });
    expect(planned.diff).toContain('+  - name: widget.v1.1.0');
    expect(existsSync(path.join(root, 'catalogs'))).toBe(false);
    await releaseBundle(root, session, options);
    const released = await readIn(root, operator, 'catalog-templates/a.yaml');
    expect(released).toMatch(/defaultChannel: stable +# the only one\n/);
    expect(released).toContain('  # all versions\n- schema: olm.channel\n');
    expect(released).toContain(`- schema: olm.bundle\n  image: ${second}\n`);
    expect(await readIn(root, 'catalogs/v4.18/widget/catalog.yaml')).toContain('name: widget.v1.1.0');
    expect(await releaseBundle(root, session, options)).toMatchObject({
      bundle: 'widget.v1.1.0',
      diff: '',
      unchanged: [`${operator}/catalog-templates/a.yaml`],
      catalogs: [{ state: 'unchanged' }],
    });
    expect(await readIn(root, operator, 'catalog-templates/a.yaml')).toBe(released);
  });

  it('reports a problem of several catalogs once, and those of other operators as theirs', async () => {
    const { session, serve } = await openRepositoryWorld();
    const image = await serve('widget', '1.0.0');
    const other = [
      { schema: 'olm.package', name: 'gadget', defaultChannel: 'stable' },
      { schema: 'olm.channel', package: 'gadget', name: 'stable', entries: [{ name: 'gadget.v1' }] },
    ];
    const gadget = other.map((blob) => JSON.stringify(blob)).join('\n');
    const config = 'catalog_templates:\n- {template_name: a.yaml, channels: [stable], replaces: none}\n';
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.17', 'v4.18', 'v4.19'] }),
      ...bundleFiles('1.0.0', config),
      'catalogs/v4.18/gadget/catalog.json': gadget,
      'catalogs/v4.19/gadget/catalog.json': gadget,
    });
    const failure = await failureOf(
      releaseBundle(root, session, { operator: 'widget', version: '1.0.0', image }),
    );
    const missing = 'package "gadget" channel "stable": entry "gadget.v1" has no olm.bundle blob';
    expect(failure.message).toBe(
      `${path.join(root, 'catalogs/v4.18')} and 1 more: the catalog is invalid already: ${missing}`,
    );
    expect(existsSync(path.join(root, 'catalogs/v4.17'))).toBe(false);
  });

  it('refuses the image of another bundle than that of the directory', async () => {
    const { session, serve } = await openRepositoryWorld();
    const image = await serve('widget', '1.0.0');
    const config = 'catalog_templates:\n- {template_name: a.yaml, channels: [stable]}\n';
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18'] }),
      ...bundleFiles('1.1.0', config),
    });
    const failure = await failureOf(
      releaseBundle(root, session, { operator: 'widget', version: '1.1.0', image }),
    );
    expect(failure.message).toBe(
      `${image}: has bundle "widget.v1.0.0", but the directory has "widget.v1.1.0"`,
    );
    expect(existsSync(path.join(root, operator, 'catalog-templates'))).toBe(false);
  });

  it('changes nothing if the catalog would be invalid or a template is not mapped', async () => {
    const { session, serve } = await openRepositoryWorld();
    const [first, second] = [await serve('widget', '1.0.0'), await serve('widget', '1.1.0')];
    const template = basicTemplate('widget', ['1.0.0'], [first]);
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18'] }),
      [`${operator}/catalog-templates/a.yaml`]: template,
      ...bundleFiles('1.1.0', 'catalog_templates:\n- template_name: a.yaml\n  channels: [stable]\n'),
      ...bundleFiles('1.2.0', 'catalog_templates:\n- template_name: b.yaml\n  channels: [stable]\n'),
    });
    const heads = await failureOf(
      releaseBundle(root, session, { operator: 'widget', version: '1.1.0', image: second }),
    );
    expect(heads.message).toContain('multiple channel heads');
    const unmapped = await failureOf(
      releaseBundle(root, session, { operator: 'widget', version: '1.2.0', image: second }),
    );
    expect(unmapped.message).toContain('release-config.yaml:2');
    expect(await readIn(root, operator, 'catalog-templates/a.yaml')).toBe(template);
    expect(existsSync(path.join(root, 'catalogs'))).toBe(false);
  });
});

describe('promotion and onboarding', () => {
  it('copies catalogs by the strategy of each operator, and maps them', async () => {
    const { session } = await openRepositoryWorld();
    const strategy = (value: string): string =>
      `# kept\nfbc:\n  enabled: true\n  version_promotion_strategy: ${value}\n  catalog_mapping:\n  - template_name: a.yaml\n    catalog_names: [v4.22]\n    type: olm.template.basic\n`;
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: strategy('always'),
      'operators/gadget/ci.yaml': strategy('never'),
      'catalogs/v4.22/widget/catalog.yaml': 'schema: olm.package\nname: widget\n',
      'catalogs/v4.22/gadget/catalog.yaml': 'schema: olm.package\nname: gadget\n',
    });
    const { operators } = await promoteCatalog(root, session, { from: 'v4.22', to: 'v5.0' });
    expect(operators.map(({ operator: name, promotion }) => `${name} ${promotion}`)).toEqual([
      'gadget never',
      'widget always',
    ]);
    expect(await readIn(root, 'catalogs/v5.0/widget/catalog.yaml')).toContain('name: widget');
    expect(existsSync(path.join(root, 'catalogs/v5.0/gadget'))).toBe(false);
    expect(await readIn(root, operator, 'ci.yaml')).toContain('catalog_names: [v4.22, v5.0]');
    expect(await readIn(root, operator, 'ci.yaml')).toContain('# kept');
  });

  it('keeps the form of ci.yaml', async () => {
    const { session } = await openRepositoryWorld();
    const before = `fbc: # catalogs
    enabled: true
    catalog_mapping:
        - catalog_names:
              - 'v4.21'
              - 'v4.22' # newest
          template_name: "a.yaml"
          type: olm.template.basic\r
`;
    const flow =
      'fbc: {catalog_mapping: [{catalog_names: ["v4.21",\n "v4.22" ], template_name: a, type: olm.semver}]}';
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: before,
      'operators/gadget/ci.yaml': flow,
      'catalogs/v4.22/widget/catalog.yaml': 'schema: olm.package\nname: widget\n',
      'catalogs/v4.22/gadget/catalog.yaml': 'schema: olm.package\nname: gadget\n',
    });
    await promoteCatalog(root, session, { from: 'v4.22', to: 'v5.0' });
    expect(await readIn(root, operator, 'ci.yaml')).toBe(
      before.replace('# newest\n', "# newest\n              - 'v5.0'\n"),
    );
    expect(await readIn(root, 'operators/gadget/ci.yaml')).toBe(flow.replace('"v4.22"', '"v4.22", "v5.0"'));
    const again = await promoteCatalog(root, session, { from: 'v4.22', to: 'v5.0' });
    expect(again.operators.map(({ copiesCatalog, config }) => copiesCatalog || config)).toEqual([
      undefined,
      undefined,
    ]);
    for (const names of [
      { from: 'v4.22', to: '5.0' },
      { from: '4.22', to: 'v5.0' },
    ]) {
      expect(await failureOf(promoteCatalog(root, session, names))).toMatchObject({
        code: 'USAGE',
        hint: expect.stringMatching(/^use v\d/) as string,
      });
    }
    expect(await failureOf(promoteCatalog(root, session, { from: 'v4.2', to: 'v5.0' }))).toMatchObject({
      hint: 'use one of v4.22, v5.0',
    });
  });

  it('renders the new catalog together with its mapping, or changes nothing', async () => {
    const { session, serve } = await openRepositoryWorld();
    const image = await serve('widget', '1.0.0');
    const template = basicTemplate('widget', ['1.0.0'], [image]);
    const config = ciConfig({ 'a.yaml': ['v4.16'] });
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: config,
      [`${operator}/catalog-templates/a.yaml`]: template.replace(image, `${image}-missing`),
      'catalogs/v4.16/widget/catalog.yaml': 'schema: olm.package\nname: widget\n',
    });
    const options = { from: 'v4.16', to: 'v4.17', rerender: true };
    await failureOf(promoteCatalog(root, session, options));
    expect(await readdir(path.join(root, 'catalogs'))).toEqual(['v4.16']);
    expect(await readIn(root, operator, 'ci.yaml')).toBe(config);
    await writeFile(path.join(root, operator, 'catalog-templates/a.yaml'), template);
    expect(await promoteCatalog(root, session, { ...options, dryRun: true })).toMatchObject({
      rendered: ['widget'],
    });
    expect(await readdir(path.join(root, 'catalogs'))).toEqual(['v4.16']);
    // A copied catalog is rendered as well.
    await promoteCatalog(root, session, { from: 'v4.16', to: 'v4.17' });
    expect(await promoteCatalog(root, session, options)).toMatchObject({ diff: '', rendered: ['widget'] });
    expect(await readIn(root, 'catalogs/v4.17/widget/catalog.yaml')).toContain('olm.csv.metadata');
    expect(await promoteCatalog(root, session, options)).toMatchObject({ diff: '', rendered: [] });
    const { catalogs } = await renderRepository(root, session, { catalogs: ['v4.17'], check: true });
    expect(catalogs.map(({ state }) => state)).toEqual(['unchanged']);
  });

  it('copies the target of a link to a file, and no directory that a link leads to', async () => {
    const { session } = await openRepositoryWorld();
    const root = await repositoryWith({
      [`${operator}/README.md`]: 'read me',
      'catalogs/v4.22/widget/catalog.yaml': 'schema: olm.package\nname: widget\n',
    });
    const link = (target: string, name: string) =>
      symlink(`../../../${target}`, path.join(root, 'catalogs/v4.22/widget', name));
    await link(`${operator}/README.md`, 'README.md');
    await link('operators', 'more');
    await promoteCatalog(root, session, { from: 'v4.22', to: 'v5.0' });
    expect((await readdir(path.join(root, 'catalogs/v5.0/widget'))).sort()).toEqual([
      'README.md',
      'catalog.yaml',
    ]);
    expect(await readIn(root, 'catalogs/v5.0/widget/README.md')).toBe('read me');
  });

  it('creates templates from indexes, and reports what is out of date', async () => {
    const { session, serve } = await openRepositoryWorld();
    const image = await serve('widget', '1.0.0');
    const index = {
      'index/a.yaml': basicTemplate('widget', ['1.0.0'], [image]),
      'index/catalog.json': [
        { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
        { schema: 'olm.channel', package: 'widget', name: 'stable', entries: [{ name: 'widget.v1.0.0' }] },
        { schema: 'olm.bundle', package: 'widget', name: 'widget.v1.0.0', image, properties: [] },
      ]
        .map((blob) => JSON.stringify(blob))
        .join('\n'),
    };
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: 'updateGraph: semver-mode\nreviewers: [someone]\n',
      ...bundleFiles('1.0.0', ''),
      ...bundleFiles('1.1.0', ''),
      'index/catalog.json': index['index/catalog.json'],
    });
    const indexes = { 'v4.18': path.join(root, 'index') };
    await onboardOperator(root, session, { operator: 'widget', indexes });
    const config = await readIn(root, operator, 'ci.yaml');
    expect(config).toContain('reviewers: [someone]');
    expect(config).not.toContain('updateGraph');
    await renderRepository(root, session);
    expect(await readRepositoryStatus(root, session)).toEqual({
      parts: [{ operator: 'widget', path: 'operators/widget/1.1.0', reason: 'in no catalog' }],
      errors: [],
    });
  });

  it('shows the status of operators whose registry responds, and errors of the others', async () => {
    const { session, serve } = await openRepositoryWorld();
    const image = await serve('widget', '1.0.0');
    const gone = await startFaultRegistry();
    await gone.close();
    const root = await repositoryWith({
      'operators/broken/ci.yaml': 'fbc: {catalog_mapping: 5}\n',
      'operators/gadget/ci.yaml': ciConfig({ 'basic.yaml': ['v4.18'] }),
      'operators/gadget/catalog-templates/basic.yaml': basicTemplate(
        'gadget',
        ['1.0.0'],
        [`${gone.host}/ns/gadget:v1`],
      ),
      'operators/widget/ci.yaml': ciConfig({ 'basic.yaml': ['v4.18'] }),
      'operators/widget/catalog-templates/basic.yaml': basicTemplate('widget', ['1.0.0'], [image]),
    });
    const { parts, errors } = await readRepositoryStatus(root, session, { retryTimeoutMs: 0 });
    expect(parts).toEqual([
      { operator: 'widget', path: 'catalogs/v4.18/widget', reason: 'not rendered yet' },
    ]);
    expect(errors.map(({ message }) => message).join('\n')).toMatch(/broken.*ci\.yaml[^]*gadget/);
  });
});
