import { describeMissing } from '../../core/suggest.js';
import { OpmateError, getMessage } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { sortedByBytes } from '../../core/order.js';
import { type Version, parseVersion } from '../../core/semver.js';
import { compareWithBuild } from './channel-heads.js';
import type { Database } from '../schema/database.js';
import { type BundleEdges, readEdges } from '../schema/package-state.js';

/**
 * Updates the edges of a bundle and its neighbors for `olm.substitutesFor`, by which a rebuild substitutes a bundle;
 * its row exists. Call it for every added bundle, including those without substitution.
 *
 * Bundles that substitute for the same bundle form a chain by version and build metadata. Each skips all below it in
 * the chain; bundles that replace one of them replace the newest; bundles that skip a bundle skip its substitutes. A
 * changed list of skips is sorted and has no repetitions. Only columns change, never manifests.
 *
 * Every call looks up the substitutes of a bundle: wrap many calls in `withIndexes` of `substitutions`. Throws
 * OpmateError INVALID for a cycle of substitutions, equal versions, and several unordered substitutes; some edges are
 * then already changed.
 */
export function applySubstitution(database: Database, bundle: string): void {
  const added = readEdges(database, bundle);
  if (added === undefined)
    throw new OpmateError('NOT_FOUND', describeMissing('bundle', bundle), { subject: database.name });
  if (added.substitutesFor !== '') joinChain(database, added);

  const below = chainBelow(database, bundle);
  const above = chainAbove(database, bundle);
  const chain = [...below.reverse(), bundle, ...above];
  const latest = chain.pop() as string;
  // A member of the chain may then form a cycle, which matters only if channels follow the columns.
  for (const name of chain)
    database.run('UPDATE operatorbundle SET replaces = ? WHERE replaces = ?', latest, name);

  const skips = new Set([...added.skips.filter((name) => name !== ''), ...below]);
  for (const name of above) addSkips(database, name, [...skips, bundle]);
  for (const skip of [...skips]) {
    for (const name of chainAbove(database, skip)) {
      // Later bundles of its own chain skip the bundle, not vice versa.
      if (name === bundle) break;
      skips.add(name);
    }
  }
  addSkips(database, bundle, skips);

  const newest = added.replaces === '' ? undefined : chainAbove(database, added.replaces).at(-1);
  if (newest !== undefined)
    database.run('UPDATE operatorbundle SET replaces = ? WHERE name = ?', newest, bundle);
}

/** Inserts a bundle into the chain of all substitutes for the same bundle. */
function joinChain(database: Database, added: BundleEdges): void {
  const seen = new Set([added.name]);
  let below = added.substitutesFor;
  for (;;) {
    markSeen(seen, below, added.name);
    const name = findSubstitute(database, below, added.name);
    if (name === undefined) break;
    const other = readEdges(database, name) as BundleEdges;
    const order = compareWithBuild(requireVersion(other), requireVersion(added));
    if (order === 0) {
      throw new OpmateError(
        'INVALID',
        `bundle ${quoteGo(added.name)}: cannot determine latest substitution because of duplicate versions: ` +
          `bundle ${quoteGo(name)} substitutes for ${quoteGo(below)} too and has version ${other.version}`,
        { hint: 'use unique build metadata for each rebuild, such as 1.0.0+1 and 1.0.0+2' },
      );
    }
    if (order > 0) {
      database.run('UPDATE operatorbundle SET substitutesfor = ? WHERE name = ?', added.name, name);
      break;
    }
    below = name;
  }
  if (below !== added.substitutesFor)
    database.run('UPDATE operatorbundle SET substitutesfor = ? WHERE name = ?', below, added.name);
}

function requireVersion({ name, version }: BundleEdges): Version {
  try {
    return parseVersion(version);
  } catch (error) {
    throw new OpmateError(
      'INVALID',
      `bundle ${quoteGo(name)}: version ${quoteGo(version)}: ${getMessage(error)}`,
      { cause: error, hint: 'set a semantic version for the substitute' },
    );
  }
}

/** Returns what a bundle substitutes for, transitively. */
function chainBelow(database: Database, bundle: string): string[] {
  return follow(bundle, (name) => readEdges(database, name)?.substitutesFor || undefined);
}

/** Returns the substitutes for a bundle, transitively. */
function chainAbove(database: Database, bundle: string): string[] {
  return follow(bundle, (name) => findSubstitute(database, name));
}

function follow(bundle: string, next: (name: string) => string | undefined): string[] {
  const seen = new Set([bundle]);
  for (let name = next(bundle); name !== undefined; name = next(name)) markSeen(seen, name, bundle);
  return [...seen].slice(1);
}

function markSeen(seen: Set<string>, name: string, subject: string): void {
  if (seen.has(name)) {
    throw new OpmateError(
      'INVALID',
      `bundle ${quoteGo(subject)}: cyclic substitutesFor chain detected involving ${quoteGo(name)}`,
      { hint: 'fix the annotation olm.substitutesFor of one of the bundles' },
    );
  }
  seen.add(name);
}

function findSubstitute(database: Database, name: string, excluded?: string): string | undefined {
  const names = database
    .texts('SELECT name FROM operatorbundle WHERE substitutesfor = ?', name)
    .filter((substitute) => substitute !== excluded);
  if (names.length > 1) {
    throw new OpmateError(
      'INVALID',
      `bundle ${quoteGo(name)}: more than one bundle substitutes for it: ${sortedByBytes(names).join(', ')}`,
      { hint: 'remove all but one of them from the index, and add them again' },
    );
  }
  return names[0];
}

/** Writes the skips of a bundle, sorted if there are new ones, and without repetitions. */
function addSkips(database: Database, bundle: string, more: Iterable<string>): void {
  const stored = readEdges(database, bundle)?.skips.filter((name) => name !== '') ?? [];
  const unique = new Set(stored);
  const skips = new Set([...stored, ...more]);
  if (skips.size === stored.length) return;
  const written = skips.size > unique.size ? sortedByBytes(skips) : [...skips];
  database.run('UPDATE operatorbundle SET skips = ? WHERE name = ?', written.join(','), bundle);
}
