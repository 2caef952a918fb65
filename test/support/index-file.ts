/** The file of a small index with manifests, and ways to spoil it. */
import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { openDatabase } from '../../src/sqlite/schema/database.js';
import { migrateDatabase } from '../../src/sqlite/schema/schema.js';
import { directoryWith } from './temporary.js';

/** An icon whose base64 was wrapped with blanks, as some manifests have it. */
const icon = { base64data: 'aWNv bg==', mediatype: 'image/png' };

function csvOf(version: string): string {
  return `${JSON.stringify({
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    metadata: { name: `widget.v${version}`, annotations: {} },
    spec: {
      displayName: 'Widget',
      icon: [icon],
      relatedImages: [{ name: 'operand', image: `quay.io/widget/operand:${version}` }],
      version,
    },
  })}\n`;
}

const service = '{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"}}\n';

/**
 * Makes an index of the package `widget`: 1.0.0 ← 1.1.0 ← 1.2.0 in its default channel `stable`, where 1.2.0
 * also skips 1.1.1, which is not there; 1.2.0 alone in `beta`. 1.0.0 has no image; 1.1.0 has no manifests
 * any more. `statements` are then run without any constraints. Returns the path of the file.
 */
export async function indexFile(...statements: string[]): Promise<string> {
  const file = path.join(await directoryWith(), 'index.db');
  const made = await openDatabase(file, { access: 'create' });
  await made.transaction(() => migrateDatabase(made));
  made.close();
  const database = new Sqlite(file);
  database.pragma('foreign_keys = OFF');
  database.pragma('synchronous = OFF');
  database.exec('BEGIN');
  const insert = (table: string, ...values: (string | number | Buffer | null)[]): void => {
    database.prepare(`INSERT INTO ${table} VALUES (${values.map(() => '?').join()})`).run(values);
  };
  for (const [version, replaces, skips] of [
    ['1.0.0', '', ''],
    ['1.1.0', 'widget.v1.0.0', ''],
    ['1.2.0', 'widget.v1.1.0', 'widget.v1.1.1'],
  ] as const) {
    const name = `widget.v${version}`;
    const image = version === '1.0.0' ? '' : `quay.io/widget/bundle:${version}`;
    const csv = csvOf(version);
    const manifests = version === '1.1.0' ? [null, null] : [Buffer.from(csv), Buffer.from(csv + service)];
    const columns = 'name, csv, bundle, bundlepath, skiprange, version, replaces, skips, substitutesfor';
    const row = [
      name,
      ...manifests,
      image,
      version === '1.2.0' ? '<1.2.0' : '',
      version,
      replaces,
      skips,
      '',
    ];
    insert(`operatorbundle (${columns})`, ...row);
    const owner = [name, version, image === '' ? null : image];
    const value = JSON.stringify({ packageName: 'widget', version });
    insert('properties', 'olm.package', value, ...owner);
    insert('properties', 'olm.package', value, ...owner);
    insert('properties', 'olm.gvk', '{"group":"w.io","kind":"Widget","version":"v1"}', ...owner);
    insert('related_image', `quay.io/widget/operand:${version}`, name);
    if (image !== '') insert('related_image', image, name);
  }
  insert('package', 'widget', 'stable');
  insert('channel', 'stable', 'widget', 'widget.v1.2.0');
  insert('channel', 'beta', 'widget', 'widget.v1.2.0');
  insert('channel_entry', 1, 'stable', 'widget', 'widget.v1.2.0', 4, 0);
  insert('channel_entry', 2, 'stable', 'widget', 'widget.v1.1.1', null, 1);
  insert('channel_entry', 3, 'stable', 'widget', 'widget.v1.2.0', 2, 1);
  insert('channel_entry', 4, 'stable', 'widget', 'widget.v1.1.0', 5, 2);
  insert('channel_entry', 5, 'stable', 'widget', 'widget.v1.0.0', null, 3);
  insert('channel_entry', 6, 'beta', 'widget', 'widget.v1.2.0', null, 0);
  for (const statement of statements) database.exec(statement);
  database.exec('COMMIT');
  database.close();
  return file;
}
