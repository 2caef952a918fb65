import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { renderRepository } from '../../../src/api/repo/render-repository.js';
import { failureOf } from '../../support/connect.js';
import {
  basicTemplate,
  bundleInCheckout,
  ciConfig,
  openRepositoryWorld,
  readIn,
  repositoryWith,
} from '../../support/operator-repository.js';

const operator = 'operators/widget';
const digest = `sha256:${'0'.repeat(64)}`;

/** A basic template whose bundle has a name. */
function namedTemplate(image: string, name: string): string {
  return basicTemplate('widget', ['1.0.0'], [image]).replace('"image"', `"name":"${name}","image"`);
}

describe('repository rendering from the checkout', () => {
  it('reads bundles in place of the images that committed catalogs name', async () => {
    const { registry, session, serve } = await openRepositoryWorld();
    const image = await serve('widget', '1.0.0');
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.16', 'v4.18'] }),
      [`${operator}/catalog-templates/a.yaml`]: basicTemplate('widget', ['1.0.0'], [image]),
      ...bundleInCheckout('widget', '1.0.0'),
    });
    await renderRepository(root, session);
    registry.on({ path: /./, respond: { status: 500 } });
    const requests = registry.requests.length;
    const options = { fromCheckout: true, check: true };
    const { catalogs } = await renderRepository(root, session, options);
    expect(catalogs.map(({ state }) => state)).toEqual(['unchanged', 'unchanged']);
    expect(registry.requests.length).toBe(requests);
    const csv = path.join(root, operator, '1.0.0/manifests/widget.clusterserviceversion.yaml');
    await writeFile(csv, (await readIn(csv)).replace('"spec":{', '"spec":{"displayName":"Changed",'));
    const changed = await renderRepository(root, session, options);
    expect(changed.catalogs.map(({ state }) => state)).toEqual(['changed', 'changed']);
  });

  it('renders bundles that no catalog has yet with the bytes of their images', async () => {
    const { registry, session, serve } = await openRepositoryWorld();
    const image = await serve('widget', '1.0.0');
    const files = {
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.16', 'v4.18'] }),
      [`${operator}/catalog-templates/a.yaml`]: namedTemplate(image, 'widget.v1.0.0'),
      ...bundleInCheckout('widget', '1.0.0'),
    };
    const pulled = await repositoryWith(files);
    await renderRepository(pulled, session);
    const requests = registry.requests.length;
    const root = await repositoryWith(files);
    await renderRepository(root, session, { fromCheckout: true });
    expect(registry.requests.length).toBe(requests);
    for (const catalog of ['v4.16', 'v4.18']) {
      const place = ['catalogs', catalog, 'widget', 'catalog.yaml'];
      expect(await readIn(root, ...place)).toBe(await readIn(pulled, ...place));
    }
  });

  it('reads OPERATOR/VERSION for an image OPERATOR:VERSION, in templates of both types', async () => {
    const { registry, session } = await openRepositoryWorld();
    const image = `${registry.host}/ns/widget:1.0.0`;
    const semver = { schema: 'olm.semver', generateMajorChannels: true, stable: { bundles: [{ image }] } };
    const basic = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18'] }),
      [`${operator}/catalog-templates/a.yaml`]: basicTemplate('widget', ['1.0.0'], [image]),
      ...bundleInCheckout('widget', '1.0.0'),
    });
    const generated = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18'] }, 'olm.semver'),
      [`${operator}/catalog-templates/a.yaml`]: JSON.stringify(semver),
      ...bundleInCheckout('widget', '1.0.0'),
    });
    for (const root of [basic, generated]) {
      await renderRepository(root, session, { fromCheckout: true });
      const catalog = await readIn(root, 'catalogs/v4.18/widget/catalog.yaml');
      expect(catalog).toContain(`image: ${image}`);
      expect(catalog).toContain('name: widget.v1.0.0');
    }
    expect(registry.requests).toEqual([]);
  });

  it.each([
    [
      'a digest without a name',
      (host: string) => basicTemplate('widget', ['1.0.0'], [`${host}/ns/widget@${digest}`]),
    ],
    [
      'a digest besides the tag',
      (host: string) => basicTemplate('widget', ['1.0.0'], [`${host}/ns/widget:1.0.0@${digest}`]),
    ],
    [
      'a tag of another repository',
      (host: string) => basicTemplate('widget', ['1.0.0'], [`${host}/ns/gadget:1.0.0`]),
    ],
    [
      'a tag of another form',
      (host: string) => basicTemplate('widget', ['1.0.0'], [`${host}/ns/widget:v1.0.0`]),
    ],
    [
      'a name that the checkout lacks',
      (host: string) => namedTemplate(`${host}/ns/widget:1.0.0`, 'widget.v2.0.0'),
    ],
  ])('does not guess the bundle of %s', async (_case, template) => {
    const { registry, session } = await openRepositoryWorld();
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18'] }),
      [`${operator}/catalog-templates/a.yaml`]: template(registry.host),
      ...bundleInCheckout('widget', '1.0.0'),
    });
    expect(await failureOf(renderRepository(root, session, { fromCheckout: true }))).toMatchObject({
      code: 'NOT_FOUND',
      hint: 'add name: NAME.vVERSION to its entry in a basic template to read the checkout',
    });
  });

  it('does not guess which of two names in templates an image has', async () => {
    const { registry, session } = await openRepositoryWorld();
    const image = `${registry.host}/ns/widget@${digest}`;
    const root = await repositoryWith({
      [`${operator}/ci.yaml`]: ciConfig({ 'a.yaml': ['v4.18'], 'b.yaml': ['v4.19'] }),
      [`${operator}/catalog-templates/a.yaml`]: namedTemplate(image, 'widget.v1.0.0'),
      [`${operator}/catalog-templates/b.yaml`]: namedTemplate(image, 'widget.v1.1.0'),
      ...bundleInCheckout('widget', '1.0.0'),
      ...bundleInCheckout('widget', '1.1.0'),
    });
    const { code } = await failureOf(renderRepository(root, session, { fromCheckout: true }));
    expect(code).toBe('NOT_FOUND');
  });
});
