import { existsSync } from 'node:fs';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { renderRepository } from '../../../src/api/repo/render-repository.js';
import { openSourceSession } from '../../../src/source/session.js';
import { failureOf } from '../../support/connect.js';
import { directoryWith } from '../../support/temporary.js';
import { sessionOptions } from '../source/session-options.js';
import {
  basicTemplate,
  ciConfig,
  openRepositoryWorld,
  readIn,
  repositoryWith,
} from '../../support/operator-repository.js';

const operator = 'operators/widget';

describe('repository rendering', () => {
  it('renders each template in the form of its catalogs, and pulls each bundle once', async () => {
    const { registry, session, serve } = await openRepositoryWorld();
    const image = await serve('widget', '1.0.0');
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.16', 'v4.18'], 'b.yaml': ['v5.0', 'latest'] }),
      [`${operator}/catalog-templates/a.yaml`]: basicTemplate('widget', ['1.0.0'], [image]),
      [`${operator}/catalog-templates/b.yaml`]: basicTemplate('widget', ['1.0.0'], [image]),
    });
    const { catalogs, images } = await renderRepository(root, session);
    expect(catalogs.map(({ catalog, state }) => `${catalog} ${state}`).sort()).toEqual([
      'latest created',
      'v4.16 created',
      'v4.18 created',
      'v5.0 created',
    ]);
    expect(images).toBe(1);
    const manifests = registry.requests.filter(
      ({ method, path }) => method === 'GET' && path.includes('/manifests/'),
    );
    expect(manifests).toHaveLength(1);
    const read = (catalog: string) => readIn(root, 'catalogs', catalog, 'widget', 'catalog.yaml');
    expect(await read('v4.16')).toContain('olm.bundle.object');
    expect(await read('latest')).toBe(await read('v4.16'));
    expect(await read('v4.18')).toContain('olm.csv.metadata');
    expect(await read('v5.0')).toBe(await read('v4.18'));
  });

  it('leaves equal catalogs untouched, and reports differences without writing', async () => {
    const { session, serve } = await openRepositoryWorld();
    const image = await serve('widget', '1.0.0');
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18', 'v4.19'] }),
      [`${operator}/catalog-templates/a.yaml`]: basicTemplate('widget', ['1.0.0'], [image]),
    });
    await renderRepository(root, session);
    const file = path.join(root, 'catalogs/v4.19/widget/catalog.yaml');
    const before = await stat(file);
    await writeFile(path.join(root, 'catalogs/v4.18/widget/extra.yaml'), '');
    const checked = await renderRepository(root, session, { check: true });
    expect(checked.catalogs.map(({ state }) => state)).toEqual(['changed', 'unchanged']);
    expect(existsSync(path.join(root, 'catalogs/v4.18/widget/extra.yaml'))).toBe(true);
    await renderRepository(root, session);
    expect(existsSync(path.join(root, 'catalogs/v4.18/widget/extra.yaml'))).toBe(false);
    expect((await stat(file)).ino).toBe(before.ino);
  });

  it('removes catalogs that are no longer mapped, unless other catalogs are selected', async () => {
    const { session, serve } = await openRepositoryWorld();
    const image = await serve('widget', '1.0.0');
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18'] }),
      [`${operator}/catalog-templates/a.yaml`]: basicTemplate('widget', ['1.0.0'], [image]),
      'catalogs/v4.11/widget/catalog.yaml': 'old',
      'catalogs/v4.11/other/catalog.yaml': 'kept',
    });
    await renderRepository(root, session, { operators: ['widget'], catalogs: ['v4.18'] });
    expect(existsSync(path.join(root, 'catalogs/v4.11/widget'))).toBe(true);
    await renderRepository(root, session, { operators: ['widget'] });
    expect(existsSync(path.join(root, 'catalogs/v4.11/widget'))).toBe(false);
    expect(await readIn(root, 'catalogs/v4.11/other/catalog.yaml')).toBe('kept');
  });

  it('reports all faults of all operators in one run, and writes nothing', async () => {
    const { session, serve } = await openRepositoryWorld();
    const image = await serve('widget', '1.0.0');
    const missing = image.replace('1.0.0', '9.9.9');
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18'], 'typo.yaml': ['v4.19'] }),
      [`${operator}/catalog-templates/a.yaml`]: basicTemplate('widget', ['1.0.0'], [image]),
      [`${operator}/catalog-templates/typos.yaml`]: '',
      'operators/broken/ci.yaml':
        'fbc:\n  enabled: true\n  catalog_mapping:\n  - template_name: a.yaml\n    catalogs_names: [v4.18]\n    type: olm.template.basic\n',
      'operators/gadget/ci.yaml': ciConfig({ 'a.yaml': ['v4.20'] }),
      'operators/gadget/catalog-templates/a.yaml': basicTemplate('gadget', ['9.9.9'], [missing]),
    });
    const { message } = await failureOf(renderRepository(root, session));
    expect(message).toContain('template "typo.yaml" not found');
    expect(message).toContain('did you mean "typos.yaml"?');
    expect(message).toContain('rename it to catalog_names');
    expect(message).toContain('9.9.9');
    expect(existsSync(path.join(root, 'catalogs'))).toBe(false);
  });

  it('continues where a registry went away: what was pulled is not pulled again', async () => {
    const { registry, serve } = await openRepositoryWorld();
    const catalogCacheDirectory = await directoryWith();
    const openOwn = async () => {
      const session = await openSourceSession({ ...(await sessionOptions()), catalogCacheDirectory });
      onTestFinished(() => session.close());
      return session;
    };
    const session = await openOwn();
    const images = [await serve('widget', '1.0.0'), await serve('gadget', '1.0.0')] as const;
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18'] }),
      [`${operator}/catalog-templates/a.yaml`]: basicTemplate('widget', ['1.0.0'], [images[0]]),
      'operators/gadget/ci.yaml': ciConfig({ 'a.yaml': ['v4.18'] }),
      'operators/gadget/catalog-templates/a.yaml': basicTemplate('gadget', ['1.0.0'], [images[1]]),
    });
    const isLayer = ({ method, path: place }: { method: string; path: string }): boolean =>
      method === 'GET' && place.includes('/blobs/');
    await renderRepository(root, session, { operators: ['widget'], check: true });
    const pulled = registry.requests.filter(isLayer).map((request) => request.path);
    let isAway = true;
    registry.gate((request) => (isAway && request.path.includes('gadget') ? { reset: true } : undefined));
    const { message } = await failureOf(renderRepository(root, session));
    expect(message).toContain('gadget-1.0.0');
    expect(existsSync(path.join(root, 'catalogs'))).toBe(false);
    isAway = false;
    const before = registry.requests.length;
    await renderRepository(root, await openOwn());
    const again = registry.requests.slice(before).filter(isLayer);
    expect(pulled.length).toBeGreaterThan(0);
    expect(again.filter((request) => pulled.includes(request.path))).toEqual([]);
    expect(existsSync(path.join(root, 'catalogs/v4.18/gadget/catalog.yaml'))).toBe(true);
  });

  it('refuses a package that two operators render to one catalog', async () => {
    const { session, serve } = await openRepositoryWorld();
    const image = await serve('widget', '1.0.0');
    const template = basicTemplate('widget', ['1.0.0'], [image]);
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18'] }),
      [`${operator}/catalog-templates/a.yaml`]: template,
      'operators/copy/ci.yaml': ciConfig({ 'a.yaml': ['v4.18'] }),
      'operators/copy/catalog-templates/a.yaml': template,
    });
    const { message } = await failureOf(renderRepository(root, session));
    expect(message).toContain('package "widget" of operator widget is also in operator copy');
  });

  it('names the nearest operator for an unknown one', async () => {
    const { session } = await openRepositoryWorld();
    const root = await repositoryWith({ [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18'] }) });
    expect(await failureOf(renderRepository(root, session, { operators: ['widgt'] }))).toMatchObject({
      code: 'NOT_FOUND',
      hint: 'did you mean "widget"?',
    });
    const empty = path.join(root, 'none');
    await mkdir(empty);
    expect(await failureOf(renderRepository(empty, session))).toMatchObject({ code: 'NOT_FOUND' });
  });
});
