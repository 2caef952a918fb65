import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { computeDigest } from '../../core/digest.js';
import { logDiagnostic, silentLogger } from '../../core/log.js';
import { OpmateError } from '../../core/errors.js';
import { encodeGoJson, sortKeysDeep } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { openInTemporaryDirectory } from '../../files/temporary-directory.js';
import { holdsManifestData, loadConfigMap } from '../../sqlite/legacy/configmap.js';
import { type ConfigMapPlace, type ConfigMapsPlace, formatPlace } from '../place.js';
import type { CatalogSource } from '../source-types.js';
import type { SourceSession } from '../session.js';
import { fetchConfigMaps, writeConfigMap } from './config-map-files.js';
import type { ResolvedPlace } from './driver.js';
import { openDatabaseCatalog, toSource, toUnpackedPlace } from './local.js';

/** Resolves a ConfigMap with its data: each key is a file of the catalog, or operator manifests. */
export function resolveConfigMap(
  { name, data, binaryData = {} }: ConfigMapPlace,
  session: SourceSession,
): ResolvedPlace {
  const ref = `configmap/${name}@${computeDigest(encodeGoJson(sortKeysDeep({ data, binaryData })))}`;
  const place = toUnpackedPlace({ id: ref, ref }, session, {}, async (destination) => {
    await writeConfigMap(destination, ref, { data, binaryData }, session);
    return undefined;
  });
  if (!holdsManifestData(data)) return place;
  return {
    ...place,
    unpack: undefined,
    open: (allowed) => {
      if (allowed.catalogs) return openManifests(name, data, session);
      throw new OpmateError('UNSUPPORTED', `configmap/${name}: is a catalog, not a bundle`);
    },
  };
}

/** Opens operator manifests as a sqlite index. (Source: configmap-server of operator-registry.) */
function openManifests(name: string, data: JsonObject, session: SourceSession): Promise<CatalogSource> {
  return openInTemporaryDirectory(session, async (temporary) => {
    const file = path.join(temporary, 'configmap.json');
    const database = path.join(temporary, 'index.db');
    await writeFile(file, encodeGoJson({ kind: 'ConfigMap', data }), { mode: 0o600 });
    const { editDatabase } = await import('../../sqlite/schema/edit.js');
    const label = `configmap/${name}`;
    await editDatabase(database, { create: true, signal: session.signal }, (opened) =>
      loadConfigMap(opened, file, session, { label }),
    );
    return toSource(await openDatabaseCatalog(database, label, session));
  });
}

/** Resolves the ConfigMaps in a manifest file; their only state is their content. */
export function resolveConfigMaps(place: ConfigMapsPlace, session: SourceSession): ResolvedPlace {
  const ref = formatPlace(place);
  const resolved = toUnpackedPlace({ id: ref, ref }, session, {}, async (destination) => {
    for (const warning of await fetchConfigMaps(place, destination, session))
      logDiagnostic(session.logger ?? silentLogger, { ...warning, file: place.file });
    return undefined;
  });
  return { ...resolved, isImmutable: false };
}
