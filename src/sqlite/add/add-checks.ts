import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { sortedByBytes } from '../../core/order.js';
import { parseReference } from '../../core/reference.js';
import { BundleImageAlreadyAddedError, VersionAlreadyAddedError } from './already-added.js';
import type { BundleRecord } from '../schema/bundle-record.js';
import type { Database } from '../schema/database.js';
import { findPackages } from './overwrite.js';
import { type IndexPackage, readBundle, readPackage } from '../schema/package-state.js';
import type { StagedBundle } from './stage.js';

interface CheckOptions {
  overwriteLatest: boolean;
  enableAlpha: boolean;
}

type Refuse = (error: OpmateError) => void;

/**
 * Checks bundles before anything is written, and refuses existing and duplicate bundles, edges into other packages, and
 * what an index accepts only with flags. Returns the names to remove before the bundles of the same name are added.
 * `bundles` are in order of addition. Within `withIndexes` of `entries` and `names`.
 */
export async function checkBundles(
  database: Database,
  bundles: readonly StagedBundle[],
  options: CheckOptions,
  refuseBundle: (bundle: StagedBundle, error: OpmateError) => void,
): Promise<Set<string>> {
  const overwritten = new Set<string>();
  const findEdgeProblems = edgeChecker(database, bundles);
  const known = new Map<string, KnownPackage>();
  const first = new Map<string, StagedBundle>();
  for (const bundle of bundles) {
    const { name, packageName } = bundle.record;
    const refuse = (error: OpmateError): void => refuseBundle(bundle, error);
    const twin = first.get(name);
    if (twin === undefined) first.set(name, bundle);
    else refuse(await twiceError(twin, bundle));
    checkAlone(bundle, options, refuse);
    if (packageName === '') continue;
    const entry = getOrAdd(known, packageName, () => toKnown(readPackage(database, packageName)));
    await checkPresence(database, bundle, entry, options, refuse);
    if (options.overwriteLatest && twin === undefined && readBundle(database, name) !== undefined)
      overwritten.add(name);
    for (const problem of findEdgeProblems(bundle.record)) refuse(new OpmateError('INVALID', problem));
  }
  return overwritten;
}

function checkAlone(
  { record, reference }: StagedBundle,
  { enableAlpha }: CheckOptions,
  refuse: Refuse,
): void {
  const fail = (problem: string, hint: string): void =>
    refuse(new OpmateError('INVALID', problem, { subject: reference, hint }));
  const { name, packageName, channels, substitutesFor } = record;
  if (packageName === '') fail(`bundle ${name} names no package`, 'set it in metadata/annotations.yaml');
  if (channels.length === 0) fail(`bundle ${name} names no channel`, 'set one in metadata/annotations.yaml');
  if (substitutesFor !== '' && !enableAlpha) {
    fail(
      `bundle ${name} substitutes for ${substitutesFor}: SubstitutesFor is an alpha-only feature. ` +
        'You must enable alpha features with the flag --enable-alpha in order to use this feature',
      'add it with options.enableAlpha',
    );
  }
}

async function twiceError(twin: StagedBundle, bundle: StagedBundle): Promise<OpmateError> {
  const digests = [twin, bundle].map(stagedDigest);
  const known = digests[0] !== undefined && digests[1] !== undefined;
  const what = known ? `digest${digests[0] === digests[1] ? '' : 's'}` : 'manifests';
  const same = known
    ? digests[0] === digests[1]
    : (await twin.manifests()).objects.equals((await bundle.manifests()).objects);
  return new OpmateError(
    'INVALID',
    `failed to add bundle "${bundle.record.name}": ${twin.reference} and ${bundle.reference} both have that name, ` +
      (same ? `with the same ${what}` : `with different ${what}`),
    { hint: 'set one of them' },
  );
}

/** A package of the index with lookups for the checks. */
interface KnownPackage {
  state: IndexPackage;
  /** Names of bundles by image. */
  images: ReadonlyMap<string, string>;
  overwrites: number;
}

function toKnown(state: IndexPackage): KnownPackage {
  const images = new Map([...state.bundles].map(([name, { image }]) => [image, name]));
  return { state, images, overwrites: 0 };
}

/** Returns the last bundle of a package that replaces or skips another, with its channel. */
function findReplacer({ channels, bundles }: IndexPackage, name: string): [string, string] | undefined {
  let replacer: [by: string, channel: string] | undefined;
  for (const [channel, entries] of channels) {
    for (const { name: by, replaces, skips } of entries)
      if (bundles.has(by) && (replaces === name || skips.includes(name))) replacer = [by, channel];
  }
  return replacer;
}

async function checkPresence(
  database: Database,
  bundle: StagedBundle,
  known: KnownPackage,
  { overwriteLatest }: CheckOptions,
  refuse: Refuse,
): Promise<void> {
  const { name, packageName, image } = bundle.record;
  const owner = image === '' ? undefined : known.images.get(image);
  if (owner !== undefined) {
    const as = owner === name ? '' : `, as the image of ${owner}`;
    refuse(new BundleImageAlreadyAddedError('INVALID', `Bundle ${image} already exists${as}`));
  }
  const there = readBundle(database, name);
  if (there === undefined) return;
  const details = `${name} is in the index ${await likeness(database, there.image, bundle)}`;
  const inPackage = known.state.bundles.has(name);
  const fail = (problem: string, hint?: string): void =>
    refuse(new OpmateError('INVALID', problem, { hint }));
  if (overwriteLatest) {
    const [by, channel] = findReplacer(known.state, name) ?? [];
    if (there.image === '') {
      fail(`index add --overwrite-latest is only supported when using bundle images: ${details}`);
    } else if (inPackage && by !== undefined) {
      fail(
        'Cannot overwrite a bundle that is not at the head of a channel using --overwrite-latest: ' +
          `${name} from package ${packageName} is replaced by ${by} on channel ${channel}`,
      );
    } else if (inPackage && ++known.overwrites > 1) {
      fail(
        'Cannot overwrite more than one bundle at a time for a given package using --overwrite-latest: ' +
          `${name} from package ${packageName}`,
        'add them one at a time',
      );
    }
  } else if (inPackage) {
    const problem = `Bundle already added that provides package and csv: ${details}`;
    const hint = 'use options.overwriteLatest for channel heads only';
    refuse(new VersionAlreadyAddedError('INVALID', problem, { hint }));
  } else if (findPackages(database, name).length === 0) {
    fail(
      `failed to add bundle "${name}": ${details}, but in no channel`,
      'remove bundles without a channel with api.editIndex prune-stranded',
    );
  }
}

/** Compares the bundle in the index with the new one, as far as possible. */
async function likeness(database: Database, image: string, bundle: StagedBundle): Promise<string> {
  const { record } = bundle;
  const as =
    image === '' ? 'without an image' : image === record.image ? 'with the same image' : `as ${image}`;
  const [stored, added] = [computeDigest(image), stagedDigest(bundle)];
  if (stored !== undefined && added !== undefined) {
    return `${as}, the digest ${stored === added ? 'is the same' : 'differs'}`;
  }
  const [objects = ''] = database.texts('SELECT bundle FROM operatorbundle WHERE name = ?', record.name);
  if (objects === '') return as;
  const same = objects === (await bundle.manifests()).objects.toString('utf8');
  return `${as}, the manifests ${same ? 'are the same' : 'differ'}`;
}

function stagedDigest({ record, digest }: StagedBundle): string | undefined {
  return computeDigest(record.image) ?? digest;
}

function computeDigest(image: string): string | undefined {
  if (!image.includes('@')) return undefined;
  try {
    const reference = parseReference(image);
    return reference.transport === 'docker' ? reference.digest : undefined;
  } catch {
    return undefined;
  }
}

/** Returns a function that finds names of a bundle which belong to another package of the index or of `bundles`. */
function edgeChecker(
  database: Database,
  bundles: readonly StagedBundle[],
): (record: BundleRecord) => string[] {
  const packages = new Map<string, Set<string>>();
  const owners = new Map<string, Set<string>>();
  const inIndex = new Map<string, string[]>();
  const none = (): Set<string> => new Set();
  for (const { record } of bundles) {
    for (const name of namesIn(record)) getOrAdd(packages, name, none).add(record.packageName);
    getOrAdd(owners, record.name, none).add(record.packageName);
  }
  return (record) => {
    const { packageName } = record;
    const problems: string[] = [];
    for (const name of namesIn(record)) {
      const candidates = packages.get(name) ?? none();
      // The bundle itself determines its package.
      const own = owners.get(name);
      if (candidates.size > 1 && !(own?.size === 1 && own.has(packageName))) {
        problems.push(
          `bundle ${name} must belong to exactly one package, found on: [${sortedByBytes(candidates).join(' ')}]`,
        );
      }
      const indexed = getOrAdd(inIndex, name, () => findPackages(database, name));
      const other = indexed.find((text) => text !== packageName);
      if (other === undefined) continue;
      problems.push(
        `bundle ${name} belongs to package ${other} on index, cannot be added as an edge for package ${packageName}`,
      );
    }
    return problems;
  };
}

/** Returns the names of a bundle and of all that it replaces and skips. */
function namesIn({ name, replaces, skips }: BundleRecord): Set<string> {
  return new Set([...skips, replaces, name].filter((text) => text !== ''));
}
