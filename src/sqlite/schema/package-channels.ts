import { OpmateError } from '../../core/errors.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import { propertyTypes } from '../../model/declarative-config.js';
import { insertChain } from './channel-edges.js';
import { type ColumnValue, type Database, toText } from './database.js';
import { withEntryIndexes } from './helper-indexes.js';
import { insertProperty, isDeprecated } from './insert-bundle.js';
import { aggregateErrors } from './aggregate.js';

/** A package and the heads of its channels, from which its upgrade graph follows. */
export interface PackageChannels {
  packageName: string;
  channels: { name: string; head: string }[];
  /** A package of a single channel needs none. */
  defaultChannel: string;
}

/**
 * Writes a package anew: its channels, and in each the entries that are reached from the head over replaces
 * and skips. A channel whose head is deprecated is left out, and below a deprecated bundle a channel ends.
 * Throws OpmateError INVALID with every problem of the graph, and then leaves the package as it was. Runs in
 * the caller's transaction. Who writes many packages does it within `withEntryIndexes`.
 */
export async function writePackageChannels(database: Database, channels: PackageChannels): Promise<void> {
  const plan = planChannels(database, channels);
  const { packageName } = channels;
  const isThere = database.get('SELECT 1 FROM channel_entry WHERE package_name = ? LIMIT 1', packageName);
  const replace = async (): Promise<void> =>
    database.transaction(() => {
      // Entries before channels, as each channel would look for its own.
      database.run('DELETE FROM channel_entry WHERE package_name = ?', packageName);
      database.run('DELETE FROM channel WHERE package_name = ?', packageName);
      database.run('DELETE FROM package WHERE name = ?', packageName);
      writePlan(database, packageName, plan);
    });
  if (isThere === undefined) await replace();
  else await withEntryIndexes(database, replace);
}

/** What the rows of a package will be. */
interface Plan {
  defaultChannel: string;
  channels: PlannedChannel[];
}

interface PlannedChannel {
  name: string;
  head: string;
  /** The chain of replaces from the head. */
  steps: Step[];
}

/** A bundle in a channel. The last one may be the bundle that another one replaces, cut off there. */
interface Step {
  bundle: GraphBundle;
  /** What it skips, in order; none where it is deprecated. */
  skips: string[];
}

/** What the graph needs to know of a bundle. */
interface GraphBundle {
  name: string;
  replaces: string;
  skips: string[];
  version: string;
  image: string;
  deprecated: boolean;
}

function planChannels(database: Database, wanted: PackageChannels): Plan {
  const { packageName } = wanted;
  const find = bundleFinder(database);
  const errors: OpmateError[] = [];
  const fail = (message: string, hint?: string): void => {
    errors.push(new OpmateError('INVALID', message, { hint }));
  };
  const plan: Plan = { defaultChannel: '', channels: [] };
  let hasDefault = false;
  for (const { name, head } of wanted.channels) {
    // Even where its row is gone.
    if (isDeprecated(database, head)) continue;
    if (wanted.channels.length === 1 || name === wanted.defaultChannel) {
      hasDefault = true;
      plan.defaultChannel = name;
    }
    const bundle = find(head);
    if (bundle === undefined) {
      const subject = `failed to add channel ${quoteGo(name)} in package ${quoteGo(packageName)}`;
      fail(`${subject}: its head ${head} is not in the index`);
    } else plan.channels.push({ name, head, steps: walkChannel(bundle, find, fail) });
  }
  if (!hasDefault) fail(...noDefaultChannel(wanted));
  if (errors.length > 0) throw aggregateErrors(errors);
  return plan;
}

function noDefaultChannel({ packageName, channels, defaultChannel }: PackageChannels): [string, string] {
  const names = channels.map(({ name }) => name).join(', ');
  return [
    `no default channel specified for ${packageName}`,
    channels.some(({ name }) => name === defaultChannel)
      ? `the head of its default channel ${defaultChannel} is deprecated`
      : `name one of its channels as the default: ${names}`,
  ];
}

/** Follows replaces from the head of a channel. */
function walkChannel(
  head: GraphBundle,
  find: (name: string) => GraphBundle | undefined,
  fail: (message: string, hint: string) => void,
): Step[] {
  const steps: Step[] = [];
  const seen = new Set<string>();
  for (let bundle = head; ;) {
    const { name, replaces, skips, deprecated } = bundle;
    seen.add(name);
    steps.push({ bundle, skips: deprecated ? [] : skips });
    if (deprecated || replaces === '') return steps;
    if (seen.has(replaces)) {
      fail(`Cycle detected, ${name} replaces ${replaces}`, 'correct spec.replaces of one of them');
      return steps;
    }
    const next = find(replaces);
    if (next === undefined) {
      fail(
        `Invalid bundle ${name}, replaces nonexistent bundle ${replaces}`,
        `add ${replaces} first or in the same call, or correct spec.replaces of ${name}`,
      );
      return steps;
    }
    bundle = next;
  }
}

/** Looks each bundle up once: its row may be long, and a bundle is in many channels. */
function bundleFinder(database: Database): (name: string) => GraphBundle | undefined {
  const known = new Map<string, GraphBundle | undefined>();
  return (name) => {
    if (!known.has(name)) known.set(name, readGraphBundle(database, name));
    return known.get(name);
  };
}

function readGraphBundle(database: Database, name: string): GraphBundle | undefined {
  const row = database.get<Record<'replaces' | 'skips' | 'version' | 'bundlepath', ColumnValue>>(
    'SELECT replaces, skips, version, bundlepath FROM operatorbundle WHERE name = ?',
    name,
  );
  if (row === undefined) return undefined;
  const skips = toText(row.skips) ?? '';
  return {
    name,
    replaces: toText(row.replaces) ?? '',
    skips: skips === '' ? [] : skips.split(','),
    version: toText(row.version) ?? '',
    image: toText(row.bundlepath) ?? '',
    deprecated: isDeprecated(database, name),
  };
}

function writePlan(database: Database, packageName: string, { defaultChannel, channels }: Plan): void {
  database.run('INSERT INTO package (name) VALUES (?)', packageName);
  for (const { name, head } of channels) {
    database.run(
      'INSERT INTO channel (name, package_name, head_operatorbundle_name) VALUES (?, ?, ?)',
      name,
      packageName,
      head,
    );
  }
  database.run('UPDATE package SET default_channel = ? WHERE name = ?', defaultChannel, packageName);
  for (const { name, steps } of channels) {
    const nodes = steps.map(({ bundle, skips }) => ({ name: bundle.name, skips }));
    insertChain(database, packageName, name, nodes);
    for (const { bundle } of steps) {
      const value = encodeGoJson({ packageName, version: bundle.version }, { escapeHtml: true });
      insertProperty(database, bundle, propertyTypes.package, value);
    }
  }
}
