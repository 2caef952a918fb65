import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Session,
  listImages,
  openSession,
  parseNamedCatalog,
  readBundlePermissions,
  renderBundle,
  renderTemplate,
  resolveBundle,
  serveCatalog,
  validateBundle,
  writeObjects,
} from '../../../src/index.js';
import { catalogOf, widgetCatalog } from '../../e2e/catalogs.js';
import { bundlesDirectory } from '../../support/command-line.js';
import { directoryWith } from '../../support/temporary.js';

let session: Session;
beforeAll(async () => {
  session = await openSession();
});
afterAll(() => session.close());

const bundle = path.join(bundlesDirectory, 'skupper-operator', '1.9.0');

async function textOf(pieces: AsyncIterable<Buffer | string>): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += piece.toString();
  return text;
}

describe('verbs of bundles', () => {
  it('checks a bundle, renders its objects and reads its permissions', async () => {
    const { findings } = await validateBundle(bundle, session);
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect((await validateBundle(await directoryWith(), session)).findings).toHaveLength(2);
    const rendered = await renderBundle(bundle, session, { installNamespace: 'skupper' });
    expect(rendered.findings).toEqual([]);
    expect(await textOf(writeObjects(rendered.objects, 'yaml'))).toContain('kind: Deployment');
    const permissions = await readBundlePermissions(bundle, session, { installNamespace: 'skupper' });
    expect(permissions.name).toBe('skupper-operator');
    expect(permissions.rights.length).toBeGreaterThan(0);
  });

  it('resolves the bundle that OLM v1 installs', async () => {
    const catalog = await directoryWith({
      'all.json': catalogOf('widget', [{ name: 'widget.v0' }, { name: 'widget.v1', replaces: 'widget.v0' }]),
    });
    const request = {
      packageName: 'widget',
      versionRange: '',
      channels: [],
      policy: 'catalog-provided',
    } as const;
    const { resolution } = await resolveBundle(request, [parseNamedCatalog(catalog)], session);
    expect(resolution.chosen?.name).toBe('widget.v1');
  });
});

describe('verbs of catalogs as a whole', () => {
  it('renders a template', async () => {
    const template = `schema: olm.template.basic\nentries:\n- {schema: olm.package, name: widget, defaultChannel: stable}\n`;
    const directory = await directoryWith({ 'widget.yaml': template });
    const rendered = await renderTemplate(path.join(directory, 'widget.yaml'), session);
    expect(await textOf(rendered.write({}))).toContain('"name": "widget"');
    await rendered.close();
  });

  it('lists images, and serves over both APIs until it is closed', async () => {
    const catalog = await directoryWith({ 'all.json': widgetCatalog });
    expect((await listImages(catalog, session)).images.length).toBeGreaterThan(0);
    const served = await serveCatalog(catalog, session, {
      grpc: { host: '127.0.0.1', port: 0 },
      http: { port: 0 },
    });
    try {
      const response = await fetch(`${served.url}/api/v1/metas?schema=olm.package`);
      expect(await response.text()).toContain('"olm.package"');
      expect(served.grpcPort).toBeGreaterThan(0);
    } finally {
      await served.close();
    }
    await expect(fetch(`${served.url}/api/v1/metas`)).rejects.toThrow();
  });
});
