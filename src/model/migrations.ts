import { OpmateError, UsageError } from '../core/errors.js';
import { decodeUtf8, encodeGoJson, parseGoJson, quoteGo, sortKeysDeep } from '../document/go-json.js';
import { findField } from '../document/go-json-fold.js';
import { type JsonValue, RawJson, isJsonObject } from '../document/json.js';
import { parseYaml } from '../document/yaml.js';
import { isCsv } from './csv.js';
import { buildCsvMetadata, csvFault } from './csv-metadata.js';
import { type BundleBlob, propertyTypes } from './declarative-config.js';

/** A step to a newer form of the catalog format. */
interface Migration {
  level: string;
  migrate(blob: BundleBlob, csvText: string | undefined): BundleBlob;
}

/** Migrations in order. */
const migrations: readonly Migration[] = [
  { level: 'none', migrate: (blob) => blob },
  { level: 'bundle-object-to-csv-metadata', migrate: replaceObjectsByCsvMetadata },
];

/** Migration levels; each includes those before it, `all` includes all. */
export const migrationLevels: readonly string[] = [...migrations.map(({ level }) => level), 'all'];

/** Returns the level of a flag; `none` if empty. Throws UsageError for an unknown one. */
export function resolveMigrationLevel(level: string): string {
  if (level === '') return 'none';
  if (migrationLevels.includes(level)) return level;
  throw new UsageError(`unknown migration level ${quoteGo(level)}`, {
    hint: `use one of ${migrationLevels.join(', ')}`,
  });
}

/**
 * Returns a bundle after all migrations up to and including `level`. `csvText` is its ClusterServiceVersion as JSON, by
 * default searched in its objects. Throws OpmateError INVALID for a ClusterServiceVersion with wrong types, UsageError
 * for an unknown level.
 */
export function migrateBundle(blob: BundleBlob, level: string, csvText?: string): BundleBlob {
  const resolved = resolveMigrationLevel(level);
  let migrated = blob;
  for (const migration of migrations) {
    migrated = migration.migrate(migrated, csvText);
    if (migration.level === resolved) break;
  }
  return migrated;
}

/** Replaces objects unless the bundle has no image, and nothing else could be installed. */
function replaceObjectsByCsvMetadata(blob: BundleBlob, csvText = findCsvText(blob)): BundleBlob {
  if (blob.image === '' || csvText === undefined || csvText === '') return blob;
  const csv = parseGoJson(csvText);
  if (!isJsonObject(csv)) return blob;
  // Kubernetes tools escape these characters, and free-form values keep their text.
  const escapeHtml = !/[<>&]/.test(csvText);
  let value;
  try {
    value = buildCsvMetadata(csv, { escapeHtml });
  } catch (error) {
    throw csvFault(blob.name, error);
  }
  if (blob.properties.some(({ type }) => type === propertyTypes.csvMetadata)) return blob;
  const kept = blob.properties.filter(({ type }) => type !== propertyTypes.bundleObject);
  return { ...blob, properties: [...kept, { type: propertyTypes.csvMetadata, value }] };
}

/** Returns the first ClusterServiceVersion among the objects of a bundle as JSON. */
export function findCsvText(blob: BundleBlob): string | undefined {
  for (const { type, value } of blob.properties) {
    if (type !== propertyTypes.bundleObject) continue;
    const decoded = value instanceof RawJson ? parseGoJson(value.text) : value;
    const data = isJsonObject(decoded) ? findField(decoded, 'data') : undefined;
    if (typeof data !== 'string') continue;
    const text = decodeUtf8(Buffer.from(data, 'base64'));
    if (!text.includes('ClusterServiceVersion')) continue;
    const isJson = /^\s*\{/.test(text);
    const manifest = tryParse(isJson ? () => parseGoJson(text) : () => parseYaml(text));
    if (manifest === undefined || !isCsv(manifest)) continue;
    return isJson ? text : encodeGoJson(sortKeysDeep(manifest), { escapeHtml: true });
  }
  return undefined;
}

/** Ignores syntax errors, which validation reports. */
function tryParse(parse: () => JsonValue): JsonValue | undefined {
  try {
    return parse();
  } catch (error) {
    if (error instanceof OpmateError) return undefined;
    throw error;
  }
}
