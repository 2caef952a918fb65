import { OpmateError } from '../../core/errors.js';
import { type ColumnValue, type Database, toText } from './database.js';

/** A bundle in the chain of a channel. The next one in the chain is what it replaces. */
export interface ChannelNode {
  name: string;
  /** What it skips in addition; in the order of the entries. */
  skips: string[];
}

/**
 * The chain of a channel from its head down, as the entries have it: each bundle replaces the next, and skips
 * others. Throws OpmateError INVALID for bundles that the head does not lead to, as no such channel could be
 * written again.
 */
export function readChain(
  database: Database,
  packageName: string,
  channel: string,
  head: string,
): ChannelNode[] {
  const entries = database
    .all<Record<'id' | 'name' | 'replaces' | 'depth', ColumnValue>>(
      `SELECT entry_id AS id, operatorbundle_name AS name, replaces, depth FROM channel_entry
        WHERE channel_name = ? AND package_name = ? ORDER BY depth, entry_id`,
      channel,
      packageName,
    )
    .map((entry) => ({ ...entry, name: toText(entry.name) ?? '' }));
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const nodes = new Map<string, Set<string>>();
  const inChain = new Set<ColumnValue>();
  let place = entries.find((entry) => entry.name === head);
  while (place !== undefined && !inChain.has(place.id)) {
    inChain.add(place.id);
    if (!nodes.has(place.name)) nodes.set(place.name, new Set());
    place = byId.get(place.replaces);
  }
  const reached = new Set(nodes.keys());
  for (const entry of entries) {
    const lower = byId.get(entry.replaces);
    const skips = nodes.get(entry.name);
    if (lower === undefined || skips === undefined) continue;
    reached.add(lower.name);
    if (!inChain.has(entry.id)) skips.add(lower.name);
  }
  const loose = entries.find((entry) => !reached.has(entry.name) && hasBundle(database, entry.name));
  if (loose !== undefined) {
    throw new OpmateError(
      'INVALID',
      `package ${packageName}, channel ${channel}: its head ${head || '(none)'} does not lead to ${loose.name}`,
      { subject: database.name, hint: 'add the package anew' },
    );
  }
  return [...nodes].map(([name, skips]) => ({ name, skips: [...skips] }));
}

/** Writes the entries of a channel anew. */
export function writeChain(
  database: Database,
  packageName: string,
  channel: string,
  nodes: readonly ChannelNode[],
): void {
  database.run('DELETE FROM channel_entry WHERE channel_name = ? AND package_name = ?', channel, packageName);
  insertChain(database, packageName, channel, nodes);
}

/**
 * Writes the entries of a channel that has none: one of each bundle in the chain, and for each that it skips two
 * more, of the skipped one and of itself replacing that.
 */
export function insertChain(
  database: Database,
  packageName: string,
  channel: string,
  nodes: readonly ChannelNode[],
): void {
  const insert = (name: string, depth: number, replaces: number | null): number =>
    database.run(
      'INSERT INTO channel_entry (channel_name, package_name, operatorbundle_name, replaces, depth) VALUES (?, ?, ?, ?, ?)',
      channel,
      packageName,
      name,
      replaces,
      depth,
    ).id;
  let depth = 0;
  let upper: number | undefined;
  for (const { name, skips } of nodes) {
    const entry = insert(name, depth++, null);
    // Not written with the entry: an edge to an entry that is not there yet makes sqlite search for it.
    if (upper !== undefined)
      database.run('UPDATE channel_entry SET replaces = ? WHERE entry_id = ?', entry, upper);
    upper = entry;
    for (const skipped of skips) {
      insert(name, depth, insert(skipped, depth, null));
      depth++;
    }
  }
}

/** Whether an index holds a bundle, rather than only its name. */
export function hasBundle(database: Database, name: string): boolean {
  return database.get('SELECT 1 FROM operatorbundle WHERE name = ?', name) !== undefined;
}
