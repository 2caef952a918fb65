import { OpmateError } from '../../core/errors.js';
import type { ApiKey } from '../../model/csv.js';
import type { BundleManifests, BundleRecord } from './bundle-record.js';
import type { Database } from './database.js';
import { isDeprecated, readBundle } from './package-state.js';

/** Property of a bundle whose older versions were truncated. */
export const deprecatedProperty = { type: 'olm.deprecated', value: '{}' } as const;

/**
 * Inserts the rows of one bundle: itself, its APIs, dependencies, properties and images; no channel. Without
 * `manifests` it has none until `writeManifests`. Throws OpmateError INVALID for an existing name.
 */
export function insertBundle(
  database: Database,
  record: BundleRecord,
  manifests: BundleManifests | undefined,
): void {
  const { name, version, image } = record;
  if (readBundle(database, name) !== undefined) {
    throw new OpmateError('INVALID', `failed to add bundle "${name}": a bundle of that name is in the index`);
  }
  database.run(
    `INSERT INTO operatorbundle
       (name, csv, bundle, bundlepath, version, skiprange, replaces, skips, substitutesfor)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    name,
    manifests?.csv ?? null,
    manifests?.objects ?? null,
    image,
    version,
    record.skipRange,
    record.replaces,
    record.skips.join(','),
    record.substitutesFor,
  );
  for (const related of record.relatedImages) {
    database.run('INSERT INTO related_image (image, operatorbundle_name) VALUES (?, ?)', related, name);
  }
  for (const { type, value } of record.dependencies)
    insertFact(database, 'dependencies', record, type, Buffer.from(value));
  const isKnown = record.properties.some(
    ({ type, value }) => type === deprecatedProperty.type && value === deprecatedProperty.value,
  );
  const deprecated = !isKnown && isDeprecated(database, name) ? [deprecatedProperty] : [];
  for (const { type, value } of [...record.properties, ...deprecated])
    insertFact(database, 'properties', record, type, value);
  for (const api of record.providedApis) insertApi(database, 'api_provider', api, record);
  for (const api of record.requiredApis) insertApi(database, 'api_requirer', api, record);
}

/** Writes the manifests of an existing bundle. */
export function writeManifests(database: Database, bundle: string, { csv, objects }: BundleManifests): void {
  database.run('UPDATE operatorbundle SET csv = ?, bundle = ? WHERE name = ?', csv, objects, bundle);
}

type BundleKey = Pick<BundleRecord, 'name' | 'version' | 'image'>;

/** Inserts one dependency or property of a bundle. */
export function insertFact(
  database: Database,
  table: 'dependencies' | 'properties',
  bundle: BundleKey,
  type: string,
  value: string | Buffer,
): void {
  database.run(
    `INSERT INTO ${table}
       (type, value, operatorbundle_name, operatorbundle_version, operatorbundle_path)
     VALUES (?, ?, ?, ?, ?)`,
    type,
    value,
    ...toKey(bundle),
  );
}

function insertApi(
  database: Database,
  table: 'api_provider' | 'api_requirer',
  { group, version, kind, plural }: ApiKey,
  bundle: BundleKey,
): void {
  database.run(
    'INSERT OR IGNORE INTO api (group_name, version, kind, plural) VALUES (?, ?, ?, ?)',
    group,
    version,
    kind,
    plural,
  );
  database.run(
    `INSERT INTO ${table}
       (group_name, version, kind, operatorbundle_name, operatorbundle_version, operatorbundle_path)
     VALUES (?, ?, ?, ?, ?, ?)`,
    group,
    version,
    kind,
    ...toKey(bundle),
  );
}

/** Returns the columns that refer to a bundle: null for an empty version or image. */
function toKey({ name, version, image }: BundleKey): (string | null)[] {
  return [name, version || null, image || null];
}
