// The tables of a database in the form of the recorded answers, with generated ids taken out.
import { createHash } from 'node:crypto';
import Sqlite from 'better-sqlite3';

const hash = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** Tables by name, rows unordered: blobs as `blob:sha256:…:length`. */
export function readTables(file) {
  const database = new Sqlite(file, { readonly: true });
  try {
    const names = database
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
      .pluck()
      .all();
    const tables = {};
    for (const name of names) {
      tables[name] = database
        .prepare(`SELECT * FROM "${name}"`)
        .all()
        .map((row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, shown(value)])));
    }
    return tables;
  } finally {
    database.close();
  }
}

function shown(value) {
  return Buffer.isBuffer(value) ? `blob:sha256:${hash(value)}:${value.length}` : value;
}

/** Rows without what is generated: ids become what they refer to, times go. Sorted. */
function normalized(tables) {
  const entries = new Map((tables.channel_entry ?? []).map((entry) => [entry.entry_id, entry]));
  const normal = {};
  for (const [name, rows] of Object.entries(tables)) {
    normal[name] = rows
      .map((row) => {
        const rest = { ...row };
        delete rest.entry_id;
        delete rest.timestamp;
        if (name !== 'channel_entry' || row.replaces === null) return rest;
        const target = entries.get(row.replaces);
        return { ...rest, replaces: target && `${target.operatorbundle_name} at ${target.depth}` };
      })
      .map((row) => JSON.stringify(Object.fromEntries(Object.entries(row).sort())))
      .sort();
  }
  return normal;
}

/** The first difference between two sets of tables in a few words; undefined where there is none. */
export function tablesDifference(expected, actual) {
  const [want, have] = [normalized(expected), normalized(actual)];
  for (const name of new Set([...Object.keys(want), ...Object.keys(have)])) {
    if (want[name] === undefined || have[name] === undefined) {
      return `table ${name}: only in ${want[name] === undefined ? 'ours' : 'the answer'}`;
    }
    const difference = listDifference(want[name], have[name]);
    if (difference !== undefined) return `table ${name}: ${difference}`;
  }
  return undefined;
}

function listDifference(want, have) {
  const count = new Map();
  for (const row of want) count.set(row, (count.get(row) ?? 0) + 1);
  for (const row of have) count.set(row, (count.get(row) ?? 0) - 1);
  const missing = [...count].filter(([, n]) => n > 0);
  const extra = [...count].filter(([, n]) => n < 0);
  if (missing.length === 0 && extra.length === 0) return undefined;
  const first = (rows) => (rows.length === 0 ? 'none' : `${rows.length}, e.g. ${rows[0][0].slice(0, 300)}`);
  return `missing ${first(missing)}; not wanted ${first(extra)}`;
}
