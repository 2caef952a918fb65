/** Indexes of older schema versions, made by SQL as opm's loaders of their time filled them. */
import type { Database } from '../../src/sqlite/schema/database.js';

export interface OldBundle {
  name: string;
  package: string;
  version?: string;
  skipRange?: string;
  image?: string;
  provides?: string[];
  requires?: string[];
  images?: string[];
  /** Stored as it is instead of a CSV. */
  csv?: string | null;
}

export interface OldChannel {
  package: string;
  name: string;
  default?: boolean;
  /** From the head down: a bundle, what it skips, what it replaces. */
  chain: { name: string; skips?: string[] }[];
}

const group = 'example.com';

/** The CSV of a bundle. */
export function csvOf(bundle: OldBundle): string {
  const definitions = (kinds: string[] = []) =>
    kinds.map((kind) => ({ name: `${kind.toLowerCase()}s.${group}`, version: 'v1', kind }));
  return JSON.stringify({
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    metadata: {
      name: bundle.name,
      annotations: bundle.skipRange === undefined ? {} : { 'olm.skipRange': bundle.skipRange },
    },
    spec: {
      ...(bundle.version !== undefined && { version: bundle.version }),
      customresourcedefinitions: {
        owned: definitions(bundle.provides),
        required: definitions(bundle.requires),
      },
      install: {
        strategy: 'deployment',
        spec: {
          deployments: (bundle.images ?? []).slice(0, 1).map((image) => ({
            name: 'operator',
            spec: { template: { spec: { containers: [{ name: 'operator', image }] } } },
          })),
        },
      },
      relatedImages: (bundle.images ?? []).map((image) => ({ name: 'x', image })),
    },
  });
}

/** Fills the tables of a schema version, 0 to 12, with bundles and channels. */
export function fillOldIndex(
  database: Database,
  version: number,
  bundles: OldBundle[],
  channels: OldChannel[],
): void {
  const insert = (table: string, row: Record<string, string | number | null | Buffer>): number =>
    database.run(
      `INSERT INTO ${table} (${Object.keys(row).join()}) VALUES (${Object.keys(row).fill('?').join()})`,
      ...Object.values(row),
    ).id;
  for (const bundle of bundles) {
    const csv = bundle.csv === undefined ? csvOf(bundle) : bundle.csv;
    const skips = channels.flatMap(({ chain }) =>
      chain.filter(({ name }) => name === bundle.name).map((one) => (one.skips ?? []).join()),
    );
    const replaces = channels.flatMap(({ chain }) =>
      chain.flatMap(({ name }, i) => (name === bundle.name ? [chain[i + 1]?.name ?? ''] : [])),
    );
    insert('operatorbundle', {
      name: bundle.name,
      csv: csv === null ? null : Buffer.from(csv),
      bundle: csv === null ? null : Buffer.from(`${csv}\n`),
      ...(version >= 2 && { bundlepath: bundle.image ?? '' }),
      ...(version >= 5 && { version: bundle.version ?? '', skiprange: bundle.skipRange ?? '' }),
      ...(version >= 7 && { replaces: replaces[0] ?? '', skips: skips[0] ?? '' }),
      ...(version >= 11 && { substitutesfor: '' }),
    });
    if (version >= 1)
      for (const image of new Set(bundle.images))
        insert('related_image', { image, operatorbundle_name: bundle.name });
    for (const kind of [...(bundle.provides ?? []), ...(bundle.requires ?? [])]) {
      database.run(
        'INSERT OR IGNORE INTO api (group_name, version, kind, plural) VALUES (?, ?, ?, ?)',
        ...[group, 'v1', kind, `${kind.toLowerCase()}s`],
      );
    }
    const key = {
      operatorbundle_name: bundle.name,
      operatorbundle_version: bundle.version || null,
      operatorbundle_path: bundle.image || null,
    };
    const apis = (table: string, kinds: string[] = []): void => {
      for (const kind of kinds) insert(table, { group_name: group, version: 'v1', kind, ...key });
    };
    if (version >= 6) {
      apis('api_provider', bundle.provides);
      apis('api_requirer', bundle.requires);
    }
    const gvk = (kind: string) => `{"group":"${group}","kind":"${kind}","version":"v1"}`;
    if (version >= 8) {
      for (const kind of bundle.requires ?? []) {
        const value = version === 8 ? gvk(kind).replace('{', '{"type":"olm.gvk",') : gvk(kind);
        insert('dependencies', { type: 'olm.gvk', value: Buffer.from(value), ...key });
      }
    }
    if (version >= 9) {
      const value = `{"packageName":"${bundle.package}","version":"${bundle.version ?? ''}"}`;
      // Up to version 9 paths were left out.
      const fact = { ...key, operatorbundle_path: version === 9 ? null : key.operatorbundle_path };
      insert('properties', { type: 'olm.package', value, ...fact });
      for (const kind of bundle.provides ?? [])
        insert('properties', { type: 'olm.gvk', value: gvk(kind), ...fact });
    }
  }
  for (const name of new Set(channels.map((channel) => channel.package)))
    insert('package', { name, default_channel: null });
  for (const channel of channels) {
    const { package: packageName, name, chain } = channel;
    insert('channel', { name, package_name: packageName, head_operatorbundle_name: chain[0]?.name ?? '' });
    if (channel.default === true)
      database.run('UPDATE package SET default_channel = ? WHERE name = ?', name, packageName);
    let depth = 0;
    const entry = (bundle: string, replaces: number | null): number =>
      insert('channel_entry', {
        channel_name: name,
        package_name: packageName,
        operatorbundle_name: bundle,
        replaces,
        depth,
      });
    const apisOf = (bundle: string, id: number): void => {
      if (version >= 6) return;
      const { provides = [], requires = [] } = bundles.find((one) => one.name === bundle) ?? {};
      for (const kind of provides)
        insert('api_provider', { group_name: group, version: 'v1', kind, channel_entry_id: id });
      if (version >= 3)
        for (const kind of requires)
          insert('api_requirer', { group_name: group, version: 'v1', kind, channel_entry_id: id });
    };
    let previous: number | undefined;
    for (const { name: bundle, skips = [] } of chain) {
      const id = entry(bundle, null);
      if (previous !== undefined)
        database.run('UPDATE channel_entry SET replaces = ? WHERE entry_id = ?', id, previous);
      apisOf(bundle, id);
      depth++;
      for (const skip of skips) {
        apisOf(bundle, entry(bundle, entry(skip, null)));
        depth++;
      }
      previous = id;
    }
  }
}
