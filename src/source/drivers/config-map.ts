import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { openInTemporaryDirectory } from '../../files/temporary-directory.js';
import { DirectoryCatalog } from '../../catalog/catalog.js';
import { digestOf } from '../../core/digest.js';
import { encodeGoJson, sortKeysDeep } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { holdsManifestData, loadConfigMap } from '../../sqlite/legacy/configmap.js';
import { writeConfigMap } from './config-map-files.js';
import type { CatalogOrigin, FoundOrigin, OriginOptions } from '../place.js';
import type { CatalogSource } from '../source.js';

type ConfigMapOrigin = Extract<CatalogOrigin, { type: 'ConfigMap' }>;

/** The data of a ConfigMap, which is at hand. */
export function lookAtConfigMap(origin: ConfigMapOrigin, options: OriginOptions): Promise<FoundOrigin> {
  const { name, data, binaryData = {} } = origin;
  const id = digestOf(encodeGoJson(sortKeysDeep({ data, binaryData })));
  const ref = `configmap/${name}@${id}`;
  const open = (): Promise<CatalogSource> =>
    holdsManifestData(data) ? openManifests(name, data, options) : openFiles(ref, data, binaryData, options);
  return Promise.resolve({ state: { id: ref, ref }, isImmutable: true, open });
}

/** Manifests of operators become an index, as OLM's own server of ConfigMaps makes one. */
async function openManifests(name: string, data: JsonObject, options: OriginOptions): Promise<CatalogSource> {
  return openInTemporaryDirectory(options, async (temporary) => {
    const file = path.join(temporary, 'configmap.json');
    const database = path.join(temporary, 'index.db');
    await writeFile(file, encodeGoJson({ kind: 'ConfigMap', data }), { mode: 0o600 });
    const { editDatabase } = await import('../../sqlite/schema/edit.js');
    const { openSqliteCatalog } = await import('../../sqlite/read/catalog.js');
    const { signal, logger } = options;
    const common = { label: `configmap/${name}`, signal, logger };
    await editDatabase(database, { create: true, signal }, (opened) => loadConfigMap(opened, file, common));
    const catalog = await openSqliteCatalog(database, { ...options, name: `configmap/${name}` });
    return { kind: 'catalog', catalog, close: () => catalog.close() };
  });
}

/** Each key is a file of the catalog. */
async function openFiles(
  ref: string,
  data: JsonObject,
  binaryData: JsonObject,
  options: OriginOptions,
): Promise<CatalogSource> {
  return openInTemporaryDirectory(options, async (temporary) => {
    const root = path.join(temporary, 'catalog');
    await writeConfigMap(root, ref, { data, binaryData }, options);
    const catalog = new DirectoryCatalog(root, ref);
    return { kind: 'catalog', catalog, close: () => catalog.close() };
  });
}
