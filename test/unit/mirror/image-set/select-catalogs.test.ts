import { describe, expect, it, onTestFinished } from 'vitest';
import { type Catalog, DirectoryCatalog } from '../../../../src/catalog/catalog.js';
import { ErrorList } from '../../../../src/core/diagnostics-error.js';
import { OpmateError } from '../../../../src/core/errors.js';
import { readImageSetConfiguration } from '../../../../src/mirror/image-set/image-set-config.js';
import { type OpenedCatalog, selectCatalogs } from '../../../../src/mirror/image-set/select-catalogs.js';
import { failureOf } from '../../../support/connect.js';
import { directoryWith } from '../../../support/temporary.js';

const config = readImageSetConfiguration(
  JSON.stringify({
    apiVersion: 'mirror.openshift.io/v2alpha1',
    kind: 'ImageSetConfiguration',
    mirror: {
      operators: ['one', 'two', 'three'].map((name) => ({
        catalog: `registry.test/catalogs/${name}:v1`,
        packages: [{ name: 'widget' }],
      })),
    },
  }),
  'imageset.yaml',
);

async function openDirectory(packageName = 'widget'): Promise<DirectoryCatalog> {
  const name = `${packageName}.v1.0.0`;
  const blobs = [
    { schema: 'olm.package', name: packageName, defaultChannel: 'stable' },
    { schema: 'olm.channel', package: packageName, name: 'stable', entries: [{ name }] },
    {
      ...{ schema: 'olm.bundle', package: packageName, name, image: 'registry.test/widget:v1' },
      properties: [{ type: 'olm.package', value: { packageName, version: '1.0.0' } }],
    },
  ];
  const text = blobs.map((blob) => JSON.stringify(blob)).join('\n');
  const catalog = new DirectoryCatalog(await directoryWith({ 'catalog.json': text }), packageName);
  onTestFinished(() => catalog.close());
  return catalog;
}

/** The catalog, whose blobs can be read when `gate` is open. */
function afterGate(catalog: Catalog, gate: Promise<void>): Catalog {
  return {
    ...{ name: catalog.name, close: () => catalog.close(), read: (origin) => catalog.read(origin) },
    readText: (origin) => catalog.readText(origin),
    lineOf: (origin, path) => catalog.lineOf(origin, path),
    async *metas(options) {
      await gate;
      yield* catalog.metas(options);
    },
  };
}

const digest = `sha256:${'0'.repeat(64)}`;
const openedOf = (catalog: Catalog): OpenedCatalog => ({ catalog, digest, close: () => catalog.close() });

describe('mirror/select-catalogs', () => {
  it('selects of a catalog while the next is opened, never of two', async () => {
    let open = (): void => undefined;
    let gate = new Promise<void>((resolve) => (open = resolve));
    const names: string[] = [];
    const opened: OpenedCatalog[] = [];
    const openCatalog = async ({ text }: { text: string }): Promise<OpenedCatalog> => {
      names.push(text);
      // The catalog before this one waits for this.
      open();
      gate = new Promise<void>((resolve) => (open = resolve));
      const catalog = openedOf(afterGate(await openDirectory(), gate));
      if (names.length === 3) open();
      return catalog;
    };
    const selected = await selectCatalogs(config, { openCatalog }, opened, new ErrorList());
    expect(names).toEqual(config.operators.map(({ catalog }) => catalog));
    expect(selected.map(({ operator }) => operator.catalog)).toEqual(names);
    expect(selected.map(({ catalog }) => catalog)).toEqual(opened.map(({ catalog }) => catalog));
    expect(selected.map(({ selection }) => selection.facts.bundles.length)).toEqual([1, 1, 1]);
  });

  it('names the faults of all catalogs in their order', async () => {
    const opened: OpenedCatalog[] = [];
    const openCatalog = async ({ text }: { text: string }): Promise<OpenedCatalog> => {
      if (text.includes('two')) throw new OpmateError('NOT_FOUND', 'not found', { subject: text });
      return openedOf(await openDirectory(text.includes('one') ? 'gadget' : 'widget'));
    };
    const errors = new ErrorList();
    const selected = await selectCatalogs(config, { openCatalog }, opened, errors);
    expect(selected.map(({ operator }) => operator.catalog)).toEqual([config.operators[2]?.catalog]);
    const { message } = await failureOf(Promise.resolve().then(() => errors.throwIfAny()));
    expect(message).toMatch(/package "widget" not found in .*one:v1.*two:v1: not found/s);
    expect(message).not.toContain('three');
    expect(opened).toHaveLength(2);
  });

  it('ends what it selects before it fails', async () => {
    let isRead = false;
    const opened: OpenedCatalog[] = [];
    const openCatalog = async ({ text }: { text: string }): Promise<OpenedCatalog> => {
      if (text.includes('two')) throw new OpmateError('IO', 'disk full', { subject: text });
      const catalog = await openDirectory();
      const gate = new Promise<void>((resolve) => setImmediate(resolve)).then(() => void (isRead = true));
      return openedOf(afterGate(catalog, gate));
    };
    expect(await failureOf(selectCatalogs(config, { openCatalog }, opened, new ErrorList()))).toMatchObject({
      code: 'IO',
    });
    expect(isRead).toBe(true);
    expect(opened).toHaveLength(1);
  });
});
