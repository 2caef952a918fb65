/** Definitions of tables and triggers, by schema version. */

type Cascade = '' | ' ON DELETE CASCADE';

export const operatorbundleTable = {
  first: 'CREATE TABLE IF NOT EXISTS operatorbundle (name TEXT PRIMARY KEY, csv TEXT UNIQUE, bundle TEXT)',
  fourth: 'CREATE TABLE operatorbundle (name TEXT PRIMARY KEY, csv TEXT, bundle TEXT, bundlepath TEXT)',
};

/**
 * Returns the table of packages. The default channel is one of its channels: the key columns have the other order
 * there.
 */
export function packageTable(cascade: Cascade): string {
  return `CREATE TABLE IF NOT EXISTS package (
    name TEXT PRIMARY KEY,
    default_channel TEXT,
    FOREIGN KEY (name, default_channel) REFERENCES channel (package_name, name)${cascade}
  )`;
}

export function channelTable(cascade: Cascade): string {
  const packageKey = 'FOREIGN KEY (package_name) REFERENCES package (name),';
  return `CREATE TABLE IF NOT EXISTS channel (
    name TEXT,
    package_name TEXT,
    head_operatorbundle_name TEXT,
    PRIMARY KEY (name, package_name),
    ${cascade === '' ? packageKey : ''}
    FOREIGN KEY (head_operatorbundle_name) REFERENCES operatorbundle (name)${cascade}
  )`;
}

export function channelEntryTable(cascade: Cascade): string {
  return `CREATE TABLE IF NOT EXISTS channel_entry (
    entry_id INTEGER PRIMARY KEY,
    channel_name TEXT,
    package_name TEXT,
    operatorbundle_name TEXT,
    replaces INTEGER,
    depth INTEGER,
    FOREIGN KEY (replaces) REFERENCES channel_entry (entry_id) DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (channel_name, package_name) REFERENCES channel (name, package_name)${cascade}
  )`;
}

export const apiTable = `CREATE TABLE IF NOT EXISTS api (
  group_name TEXT,
  version TEXT,
  kind TEXT,
  plural TEXT NOT NULL,
  PRIMARY KEY (group_name, version, kind)
)`;

/** Returns `api_provider` or `api_requirer` up to version 5, which refer to channel entries. */
export function entryApiTable(name: string, cascade: Cascade): string {
  const key = 'PRIMARY KEY (group_name, version, kind, channel_entry_id),';
  return `CREATE TABLE IF NOT EXISTS ${name} (
    group_name TEXT,
    version TEXT,
    kind TEXT,
    channel_entry_id INTEGER,
    ${cascade === '' ? '' : key}
    FOREIGN KEY (channel_entry_id) REFERENCES channel_entry (entry_id)${cascade},
    FOREIGN KEY (group_name, version, kind) REFERENCES api (group_name, version, kind)
  )`;
}

const bundleColumns = `
    operatorbundle_name TEXT,
    operatorbundle_version TEXT,
    operatorbundle_path TEXT,
    FOREIGN KEY (operatorbundle_name, operatorbundle_version, operatorbundle_path)
      REFERENCES operatorbundle (name, version, bundlepath) ON DELETE CASCADE`;

/** Returns the same tables from version 6 on, which refer to bundles. */
export function bundleApiTable(name: string): string {
  return `CREATE TABLE ${name} (
    group_name TEXT,
    version TEXT,
    kind TEXT,${bundleColumns} DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (group_name, version, kind) REFERENCES api (group_name, version, kind) ON DELETE CASCADE
  )`;
}

/** Target of foreign keys to bundles, which need an index on their columns. */
export const bundleKeyIndex = 'CREATE UNIQUE INDEX pk ON operatorbundle (name, version, bundlepath)';

export function relatedImageTable(cascade: Cascade): string {
  return `CREATE TABLE IF NOT EXISTS related_image (
    image TEXT,
    operatorbundle_name TEXT,
    FOREIGN KEY (operatorbundle_name) REFERENCES operatorbundle (name)${cascade}
  )`;
}

/** Returns the table `dependencies` or `properties`. */
export function bundleFactTable(name: string): string {
  return `CREATE TABLE IF NOT EXISTS ${name} (
    type TEXT,
    value TEXT,${bundleColumns}
  )`;
}

/** Without foreign key: deprecation outlasts removing and adding a bundle again. */
export const deprecatedTable = 'CREATE TABLE IF NOT EXISTS deprecated (operatorbundle_name TEXT PRIMARY KEY)';

export const versionTable = `CREATE TABLE schema_migrations (
  version bigint NOT NULL,
  timestamp DATETIME DEFAULT CURRENT_TIMESTAMP
)`;

/**
 * Returns the trigger that deletes an API with its last provider or requirer. The two tables are joined without a
 * condition, as upstream: if one is empty, the API is deleted although the other one has it.
 */
function cleanupTrigger(table: string): string {
  const same = (other: string): string =>
    ['group_name', 'version', 'kind'].map((column) => `${other}.${column} = OLD.${column}`).join(' AND ');
  return `CREATE TRIGGER ${table}_cleanup AFTER DELETE ON ${table}
    WHEN NOT EXISTS (
      SELECT 1 FROM api_provider JOIN api_requirer WHERE (${same('api_provider')}) OR (${same('api_requirer')})
    )
    BEGIN
      DELETE FROM api WHERE group_name = OLD.group_name AND version = OLD.version AND kind = OLD.kind;
    END`;
}

/** Triggers from version 7 on, by name. */
export const triggers: ReadonlyMap<string, string> = new Map(
  ['api_provider', 'api_requirer'].map((table) => [`${table}_cleanup`, cleanupTrigger(table)]),
);

const bundleKey = 'operatorbundle_name operatorbundle_version operatorbundle_path';

/** Columns of every table of the latest version, separated by spaces. */
export const latestColumns = {
  operatorbundle: 'name csv bundle bundlepath skiprange version replaces skips substitutesfor',
  package: 'name default_channel',
  channel: 'name package_name head_operatorbundle_name',
  channel_entry: 'entry_id channel_name package_name operatorbundle_name replaces depth',
  api: 'group_name version kind plural',
  api_provider: `group_name version kind ${bundleKey}`,
  api_requirer: `group_name version kind ${bundleKey}`,
  related_image: 'image operatorbundle_name',
  dependencies: `type value ${bundleKey}`,
  properties: `type value ${bundleKey}`,
  deprecated: 'operatorbundle_name',
  schema_migrations: 'version timestamp',
} as const;
