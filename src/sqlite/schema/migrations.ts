import { OpmateError } from '../../core/errors.js';
import { parseGoJson } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { getObject, getText } from '../../document/json-fields.js';
import { sortedByBytes } from '../../core/order.js';
import {
  type ApiKey,
  csvApiServices,
  csvCustomResources,
  csvDeploymentImages,
  csvRelatedImages,
  csvSpec,
  csvVersion,
  readCsvMetadata,
} from '../../model/csv.js';
import { type ColumnValue, type Database, getColumnText, getNullableText } from './database.js';
import {
  apiTable,
  bundleApiTable,
  bundleFactTable,
  bundleKeyIndex,
  channelEntryTable,
  channelTable,
  deprecatedTable,
  entryApiTable,
  operatorbundleTable,
  packageTable,
  relatedImageTable,
  triggers,
} from './migration-tables.js';

/**
 * Migrations between schema versions: index N migrates from version N-1 to N. They run with enforced foreign keys in
 * one transaction. Where opm's migrations lose or invent rows, these do what was meant; docs/compatibility.md lists
 * the differences.
 */
export const migrations: readonly ((database: Database) => void)[] = [
  createFirstTables,
  addRelatedImages,
  addBundlePath,
  addRequiredApis,
  cascadeDeletion,
  addVersionAndSkipRange,
  keyApisByBundle,
  addReplacesAndSkips,
  addDependencies,
  addProperties,
  completePropertyPaths,
  addSubstitutesFor,
  addDeprecated,
  removeTruncatedDeprecations,
];

/** Version 0. Adopts tables from before schema versions. */
function createFirstTables(database: Database): void {
  for (const table of [
    operatorbundleTable.first,
    packageTable(''),
    channelTable(''),
    channelEntryTable(''),
    apiTable,
    entryApiTable('api_provider', ''),
  ])
    database.execute(table);
}

/** Version 1. */
function addRelatedImages(database: Database): void {
  database.execute(relatedImageTable(''));
  for (const name of bundleNames(database)) {
    const spec = getSpec(readCsv(database, name));
    const images = new Set([
      ...readable(() => csvDeploymentImages(spec), []),
      ...readable(() => csvRelatedImages(spec), []).map(({ image }) => image),
    ]);
    for (const image of sortedByBytes(images))
      database.run('INSERT INTO related_image (image, operatorbundle_name) VALUES (?, ?)', image, name);
  }
}

/** Version 2. Older bundles have no image: an empty path, as NULL would hide them. */
function addBundlePath(database: Database): void {
  database.execute('ALTER TABLE operatorbundle ADD COLUMN bundlepath TEXT');
  database.run("UPDATE operatorbundle SET bundlepath = ''");
}

/** Version 3. */
function addRequiredApis(database: Database): void {
  database.execute(entryApiTable('api_requirer', ''));
  const required = new Map<string, ApiKey[]>();
  for (const name of bundleNames(database)) {
    const spec = getSpec(readCsv(database, name));
    const apis = [
      ...readable(() => csvCustomResources(spec, 'required'), []),
      ...readable(() => csvApiServices(spec, 'required'), []),
    ];
    if (apis.length > 0) required.set(name, apis);
  }
  const entries = database.all<{ id: number; name: ColumnValue }>(
    `SELECT entry_id AS id, operatorbundle_name AS name FROM channel_entry
     WHERE operatorbundle_name IN (SELECT name FROM operatorbundle) ORDER BY entry_id`,
  );
  for (const { id, name } of entries) {
    for (const { group, version, kind, plural } of required.get(getColumnText(name)) ?? []) {
      database.run(
        `INSERT INTO api (group_name, version, kind, plural) VALUES (?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET plural = excluded.plural`,
        group,
        version,
        kind,
        plural,
      );
      database.run(
        'INSERT INTO api_requirer (group_name, version, kind, channel_entry_id) VALUES (?, ?, ?, ?)',
        group,
        version,
        kind,
        id,
      );
    }
  }
}

/**
 * Version 4: deleting a row deletes dependent rows. Changing a foreign key requires a new table. Renaming keeps
 * references, so old tables refer to old ones and new ones to new ones; rows are copied parents first and tables
 * dropped children first, as keys are enforced.
 */
function cascadeDeletion(database: Database): void {
  const tables: [name: string, definition: string, columns: string][] = [
    ['operatorbundle', operatorbundleTable.fourth, 'name, csv, bundle, bundlepath'],
    ['channel', channelTable(' ON DELETE CASCADE'), 'name, package_name, head_operatorbundle_name'],
    ['package', packageTable(' ON DELETE CASCADE'), 'name, default_channel'],
    [
      'channel_entry',
      channelEntryTable(' ON DELETE CASCADE'),
      'entry_id, channel_name, package_name, operatorbundle_name, depth',
    ],
    [
      'api_provider',
      entryApiTable('api_provider', ' ON DELETE CASCADE'),
      'group_name, version, kind, channel_entry_id',
    ],
    [
      'api_requirer',
      entryApiTable('api_requirer', ' ON DELETE CASCADE'),
      'group_name, version, kind, channel_entry_id',
    ],
    ['related_image', relatedImageTable(' ON DELETE CASCADE'), 'image, operatorbundle_name'],
  ];
  for (const [name] of tables) database.execute(`ALTER TABLE ${name} RENAME TO ${name}_old`);
  for (const [, definition] of tables) database.execute(definition);
  for (const [name, , columns] of tables) {
    // Both API tables have a key now, which removes duplicates.
    const insert = name.startsWith('api_') ? 'INSERT OR IGNORE' : 'INSERT';
    database.run(`${insert} INTO ${name} (${columns}) SELECT ${columns} FROM ${name}_old ORDER BY rowid`);
  }
  // Deleting an entry searches for entries that replace it.
  database.execute('CREATE INDEX channel_entry_replaces ON channel_entry_old (replaces)');
  // Afterwards: while an entry waits for the one that it replaces, every insert would search for such entries.
  database.run(
    'UPDATE channel_entry SET replaces = (SELECT replaces FROM channel_entry_old old WHERE old.entry_id = channel_entry.entry_id)',
  );
  // Packages and channels refer to each other.
  database.run('UPDATE package_old SET default_channel = NULL');
  for (const name of [
    'related_image',
    'api_requirer',
    'api_provider',
    'channel_entry',
    'channel',
    'package',
    'operatorbundle',
  ])
    database.execute(`DROP TABLE ${name}_old`);
}

/** Version 5. */
function addVersionAndSkipRange(database: Database): void {
  database.execute('ALTER TABLE operatorbundle ADD COLUMN skiprange TEXT');
  database.execute('ALTER TABLE operatorbundle ADD COLUMN version TEXT');
  completeBundles(database);
}

/**
 * Sets the version, skip range and path of every bundle, empty if missing: a bundle with NULL is not listed. Deletes
 * rows without a name, which opm creates instead when it migrates to version 5.
 */
export function completeBundles(database: Database): void {
  database.run('DELETE FROM operatorbundle WHERE name IS NULL');
  database.run("UPDATE operatorbundle SET bundlepath = '' WHERE bundlepath IS NULL");
  for (const name of bundleNames(database, 'version IS NULL OR skiprange IS NULL')) {
    const csv = readCsv(database, name);
    const version = readable(() => csvVersion(getSpec(csv)), '');
    const skipRange = readable(() => readCsvMetadata(csv).annotations['olm.skipRange'], '');
    database.run(
      `UPDATE operatorbundle SET version = coalesce(version, ?), skiprange = coalesce(skiprange, ?)
       WHERE name = ?`,
      version,
      getText(skipRange),
      name,
    );
  }
}

/** Version 6: APIs refer to bundles instead of channel entries. */
function keyApisByBundle(database: Database): void {
  database.execute(bundleKeyIndex);
  for (const name of ['api_provider', 'api_requirer']) {
    database.execute(bundleApiTable(`${name}_new`));
    database.run(
      `INSERT INTO ${name}_new
       SELECT DISTINCT api.group_name, api.version, api.kind, bundle.name, bundle.version, bundle.bundlepath
       FROM ${name} api
       JOIN channel_entry entry ON entry.entry_id = api.channel_entry_id
       JOIN operatorbundle bundle ON bundle.name = entry.operatorbundle_name
       WHERE api.group_name IS NOT NULL AND api.version IS NOT NULL AND api.kind IS NOT NULL
       ORDER BY bundle.name, api.group_name, api.version, api.kind`,
    );
    database.execute(`DROP TABLE ${name}`);
    database.execute(`ALTER TABLE ${name}_new RENAME TO ${name}`);
  }
}

/**
 * Version 7. Derives what a bundle replaces and skips from its entries: names by the first entry that has them, then
 * by depth; the first is replaced, the others are skipped.
 */
function addReplacesAndSkips(database: Database): void {
  database.execute('ALTER TABLE operatorbundle ADD COLUMN replaces TEXT');
  database.execute('ALTER TABLE operatorbundle ADD COLUMN skips TEXT');
  for (const trigger of triggers.values()) database.execute(trigger);
  const replaced = new Map<string, Map<string | null, number>>();
  for (const row of database.iterate<{ name: ColumnValue; target: ColumnValue; depth: ColumnValue }>(
    `SELECT entry.operatorbundle_name AS name, target.operatorbundle_name AS target, entry.depth AS depth
     FROM channel_entry entry LEFT JOIN channel_entry target ON target.entry_id = entry.replaces
     WHERE entry.operatorbundle_name IS NOT NULL ORDER BY entry.entry_id`,
  )) {
    const name = getColumnText(row.name);
    const depths = replaced.get(name) ?? new Map<string | null, number>();
    const target = getNullableText(row.target);
    if (!depths.has(target)) depths.set(target, Number(row.depth ?? -1));
    replaced.set(name, depths);
  }
  for (const name of bundleNames(database)) {
    const depths = [...(replaced.get(name) ?? [])].sort(([, a], [, b]) => a - b);
    const [first = null, ...rest] = depths.map(([target]) => target);
    const skips = rest.filter((target) => target !== null).join(',');
    database.run(
      'UPDATE operatorbundle SET replaces = ?, skips = ? WHERE name = ?',
      first ?? '',
      skips,
      name,
    );
  }
}

/**
 * Returns SQL that encodes an object as Go does, stored as bytes. Within JSON these characters occur in strings only.
 */
function goJson(members: Readonly<Record<string, string>>): string {
  const list = Object.entries(members).map(([key, value]) => `'${key}', CAST(${value} AS TEXT)`);
  const escaped = [
    ["'&'", "'\\u0026'"],
    ["'<'", "'\\u003c'"],
    ["'>'", "'\\u003e'"],
    ['char(8232)', "'\\u2028'"],
    ['char(8233)', "'\\u2029'"],
  ].reduce((sql, [from, to]) => `replace(${sql}, ${from}, ${to})`, `json_object(${list.join(', ')})`);
  return `CAST(${escaped} AS BLOB)`;
}

const gvk = { group: 'group_name', kind: 'kind', version: 'version' };
const isWhole =
  'group_name IS NOT NULL AND version IS NOT NULL AND kind IS NOT NULL AND operatorbundle_name IS NOT NULL';

/** Version 8: required APIs are dependencies. */
function addDependencies(database: Database): void {
  database.execute(bundleFactTable('dependencies'));
  const value = goJson({ group: 'group_name', kind: 'kind', type: "'olm.gvk'", version: 'version' });
  insertGvks(database, 'dependencies', 'api_requirer', value);
}

function insertGvks(database: Database, table: string, apis: string, value: string): void {
  database.run(
    `INSERT INTO ${table}
     SELECT DISTINCT 'olm.gvk', ${value}, operatorbundle_name, operatorbundle_version, operatorbundle_path
     FROM ${apis} WHERE ${isWhole} ORDER BY operatorbundle_name, group_name, version, kind`,
  );
}

/**
 * Version 9: provided APIs are properties, and so are package and version of all bundles in a package. Values of
 * dependencies no longer repeat their type.
 */
function addProperties(database: Database): void {
  database.execute(bundleFactTable('properties'));
  const value = goJson({ packageName: 'package_name', version: "coalesce(bundle_version, '')" });
  database.run(
    `INSERT INTO properties
     SELECT 'olm.package', ${value}, bundle_name, bundle_version, bundle_path
     FROM (
       SELECT DISTINCT operatorbundle_name AS bundle_name, operatorbundle_version AS bundle_version,
         operatorbundle_path AS bundle_path
       FROM api_provider WHERE ${isWhole}
       UNION ALL
       SELECT name, version, bundlepath FROM operatorbundle
       WHERE name NOT IN (SELECT operatorbundle_name FROM api_provider WHERE ${isWhole})
     )
     JOIN (
       SELECT operatorbundle_name AS entry_name, package_name, min(entry_id)
       FROM channel_entry WHERE package_name IS NOT NULL GROUP BY operatorbundle_name
     ) ON entry_name = bundle_name
     ORDER BY bundle_name`,
  );
  insertGvks(database, 'properties', 'api_provider', goJson(gvk));
  database.run(
    `UPDATE dependencies SET value = json_remove(CAST(value AS TEXT), '$.type')
     WHERE json_valid(CAST(value AS TEXT))`,
  );
}

/** Version 10. The path of a bundle without version becomes NULL, which matches any. */
function completePropertyPaths(database: Database): void {
  database.run(
    `UPDATE properties SET operatorbundle_path = (
       SELECT bundlepath FROM operatorbundle
       WHERE name = properties.operatorbundle_name AND version = properties.operatorbundle_version
     )`,
  );
}

/** Version 11. */
function addSubstitutesFor(database: Database): void {
  database.execute('ALTER TABLE operatorbundle ADD COLUMN substitutesfor TEXT');
}

/** Version 12. */
function addDeprecated(database: Database): void {
  database.execute(deprecatedTable);
  database.run(
    `INSERT OR REPLACE INTO deprecated (operatorbundle_name)
     SELECT operatorbundle_name FROM properties
     WHERE type = 'olm.deprecated' AND operatorbundle_name IS NOT NULL ORDER BY operatorbundle_name`,
  );
}

/** Version 13. */
function removeTruncatedDeprecations(database: Database): void {
  database.run('DELETE FROM deprecated WHERE operatorbundle_name NOT IN (SELECT name FROM operatorbundle)');
}

function bundleNames(database: Database, condition = '1'): string[] {
  return database.texts(
    `SELECT name FROM operatorbundle WHERE name IS NOT NULL AND (${condition}) ORDER BY name`,
  );
}

/** Returns the CSV of a bundle; empty if missing or unreadable. */
function readCsv(database: Database, name: string): JsonObject {
  const [csv = ''] = database.texts('SELECT csv FROM operatorbundle WHERE name = ?', name);
  return getObject(readable(() => parseGoJson(csv), null));
}

function getSpec(csv: JsonObject): JsonObject {
  return readable(() => csvSpec(csv), {});
}

/** Returns the content of a CSV, or `otherwise` if invalid: one invalid bundle must not block an index. */
function readable<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof OpmateError) return otherwise;
    throw error;
  }
}
