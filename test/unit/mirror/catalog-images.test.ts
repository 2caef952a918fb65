import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Catalog, type CatalogImage, DirectoryCatalog } from '../../../src/catalog/catalog.js';
import type { OpmateError } from '../../../src/core/errors.js';
import { readCatalogImages } from '../../../src/mirror/catalog-images.js';
import { SqliteCatalog } from '../../../src/sqlite/read/catalog.js';
import { failureOf } from '../../support/connect.js';
import { smallIndex } from '../../support/small-index.js';
import { directoryWith } from '../../support/temporary.js';

async function imagesIn(catalog: Catalog): Promise<CatalogImage[]> {
  const images: CatalogImage[] = [];
  for await (const image of readCatalogImages(catalog)) images.push(image);
  return images;
}

async function catalogWith(...blobs: object[]): Promise<DirectoryCatalog> {
  const text = blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('');
  const catalog = new DirectoryCatalog(await directoryWith({ 'catalog.json': text }), 'catalog');
  onTestFinished(() => catalog.close());
  return catalog;
}

const bundle = { schema: 'olm.bundle', package: 'widget', name: 'widget.v1' };

describe('mirror/catalog-images', () => {
  it('finds the image of a bundle and those that it needs, each once', async () => {
    const catalog = await catalogWith({
      ...bundle,
      image: 'quay.io/acme/bundle:1',
      relatedImages: [
        { name: 'operator', image: 'quay.io/acme/widget:1' },
        { name: '', image: 'quay.io/acme/bundle:1' },
        { name: 'none', image: '' },
        { name: 'again', image: 'quay.io/acme/widget:1' },
        {},
      ],
    });
    const names = { package: 'widget', bundle: 'widget.v1' };
    expect(await imagesIn(catalog)).toEqual([
      { image: 'quay.io/acme/bundle:1', kind: 'bundle', ...names, field: 'image' },
      { image: 'quay.io/acme/widget:1', kind: 'related', ...names, field: 'relatedImages[0].image' },
    ]);
  });

  it('looks at blobs of any schema, and passes over what means something else there', async () => {
    const catalog = await catalogWith(
      { schema: 'acme.extra', package: 'widget', name: 'tools', image: 'quay.io/acme/tools:1' },
      { schema: 'acme.addon', relatedImages: [{ image: 'quay.io/acme/addon:1' }, 'x', { image: 3 }] },
      { schema: 'acme.other', image: { width: 3 }, relatedImages: 'none' },
      { schema: 'olm.package', name: 'widget', image: 'quay.io/acme/odd:1' },
    );
    expect(await imagesIn(catalog)).toEqual([
      { image: 'quay.io/acme/tools:1', kind: 'bundle', package: 'widget', bundle: 'tools', field: 'image' },
      {
        image: 'quay.io/acme/addon:1',
        kind: 'related',
        package: '',
        bundle: '',
        field: 'relatedImages[0].image',
      },
      { image: 'quay.io/acme/odd:1', kind: 'bundle', package: 'widget', bundle: 'widget', field: 'image' },
    ]);
  });

  it('reads fields in whatever case, as Go does', async () => {
    const catalog = await catalogWith({ ...bundle, Image: 'a:1', RELATEDIMAGES: [{ IMAGE: 'b:1' }] });
    expect((await imagesIn(catalog)).map(({ image }) => image)).toEqual(['a:1', 'b:1']);
  });

  it('names the bundle and the line where an image is not a text', async () => {
    const catalog = await catalogWith({ schema: 'x' }, { ...bundle, relatedImages: [{ image: 7 }] });
    const error = (await failureOf(imagesIn(catalog))) as OpmateError;
    expect(error.message).toContain('package "widget", bundle "widget.v1": relatedImages[0].image');
    expect([error.file, error.line]).toEqual([path.join('catalog', 'catalog.json'), 2]);
  });

  it('takes what a sqlite index stores, deprecated bundles and those without channel included', async () => {
    const database = await smallIndex({ widget: [{ minor: 1 }, { minor: 2, replaces: 1 }] });
    database.execute(`
      INSERT INTO operatorbundle (name, bundlepath) VALUES ('stray', 'quay.io/stray/bundle:1');
      INSERT INTO related_image VALUES ('quay.io/stray/bundle:1', 'stray'), ('quay.io/stray/app:1', 'stray'), ('', 'stray');
      INSERT INTO properties VALUES ('olm.deprecated', '{}', 'widget.v1.1.0', '1.1.0', 'quay.io/widget/bundle:1.1.0');`);
    const catalog = new SqliteCatalog(database, 'index.db', () => Promise.resolve());
    const images = await imagesIn(catalog);
    expect(images.filter((image) => image.bundle === 'stray')).toEqual([
      { image: 'quay.io/stray/bundle:1', kind: 'bundle', package: '', bundle: 'stray' },
      { image: 'quay.io/stray/app:1', kind: 'related', package: '', bundle: 'stray' },
    ]);
    expect(images.filter((image) => image.package === 'widget').map(({ image }) => image)).toEqual([
      'quay.io/widget/bundle:1.1.0',
      'quay.io/widget/operator:1.1.0',
      'quay.io/widget/bundle:1.2.0',
      'quay.io/widget/operator:1.2.0',
    ]);
  });
});
