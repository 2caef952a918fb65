import { describeMissing } from '../../core/suggest.js';
import { OpmateError, getMessage } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { sortedByBytes } from '../../core/order.js';
import { type Version, parseVersion } from '../../core/semver.js';
import { compareWithBuild } from './channel-heads.js';
import type { Database } from '../schema/database.js';
import { type BundleEdges, readEdges } from '../schema/package-state.js';

/**
 * Rewrites the edges of a bundle and of those around it for `olm.substitutesFor`, by which a rebuild takes
 * the place of a bundle; its row is there already. To be called for each bundle as it comes, also for those
 * that substitute for none.
 *
 * Those that substitute for the same bundle form a chain by version, build metadata counting. Each skips all
 * that are below it in the chain; who replaces one of them replaces the newest; who skips a bundle skips its
 * substitutes. A list of skips that grows is sorted. Only the columns change, never the manifests.
 *
 * Each call looks up who substitutes for a bundle: who makes many does it within `withIndexes` of `substitutions`.
 * Throws OpmateError INVALID for a cycle of substitutions, equal versions, and more than one substitute that
 * are in no order; then some of the edges are changed already.
 */
export function applySubstitution(database: Database, bundle: string): void {
  const added = readEdges(database, bundle);
  if (added === undefined)
    throw new OpmateError('NOT_FOUND', describeMissing('bundle', bundle), { subject: database.name });
  if (added.substitutesFor !== '') joinChain(database, added);

  const below = chainBelow(database, bundle);
  const above = chainAbove(database, bundle);
  replaceNewest(database, [...below.reverse(), bundle, ...above]);

  const skips = new Set([...added.skips.filter((name) => name !== ''), ...below]);
  for (const name of above) addSkips(database, name, [...skips, bundle]);
  for (const skip of [...skips]) {
    for (const name of chainAbove(database, skip)) {
      // What follows the bundle in its own chain skips the bundle, and not the other way round.
      if (name === bundle) break;
      skips.add(name);
    }
  }
  addSkips(database, bundle, skips);

  const newest = added.replaces === '' ? undefined : chainAbove(database, added.replaces).at(-1);
  if (newest !== undefined)
    database.run('UPDATE operatorbundle SET replaces = ? WHERE name = ?', newest, bundle);
}

/** Finds the place of a bundle among all that substitute for the same bundle, and puts it there. */
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
        { hint: 'use unique build metadata for each rebuild, e.g. 1.0.0+1 and 1.0.0+2' },
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

/**
 * Whoever replaces one of a chain, given from its lowest to its newest, replaces the newest from now on. One of
 * the chain itself then turns in a circle, which counts only where channels follow what bundles replace.
 */
function replaceNewest(database: Database, chain: readonly string[]): void {
  const newest = chain.at(-1) as string;
  if (chain.length === 1) return;
  for (const name of chain.slice(0, -1))
    database.run('UPDATE operatorbundle SET replaces = ? WHERE replaces = ?', newest, name);
}

/** What a bundle substitutes for, and what that does, and so on. */
function chainBelow(database: Database, bundle: string): string[] {
  const seen = new Set([bundle]);
  for (
    let name = readEdges(database, bundle)?.substitutesFor ?? '';
    name !== '';
    name = readEdges(database, name)?.substitutesFor ?? ''
  )
    markSeen(seen, name, bundle);
  return [...seen].slice(1);
}

/** What substitutes for a bundle, what substitutes for that, and so on. */
function chainAbove(database: Database, bundle: string): string[] {
  const seen = new Set([bundle]);
  for (let name = findSubstitute(database, bundle); name !== undefined; name = findSubstitute(database, name))
    markSeen(seen, name, bundle);
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

/** Writes the skips of a bundle where there are more than before. */
function addSkips(database: Database, bundle: string, more: Iterable<string>): void {
  const skips = new Set(readEdges(database, bundle)?.skips.filter((name) => name !== ''));
  const before = skips.size;
  for (const name of more) skips.add(name);
  if (skips.size === before) return;
  database.run('UPDATE operatorbundle SET skips = ? WHERE name = ?', sortedByBytes(skips).join(','), bundle);
}
