import { OpmateError } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { parseReference } from '../../core/reference.js';
import { BundleImageAlreadyAddedError, VersionAlreadyAddedError } from './already-added.js';
import type { BundleRecord } from '../schema/bundle-record.js';
import type { Database } from '../schema/database.js';
import { findPackages } from './overwrite.js';
import { type IndexedPackage, readBundle, readPackage } from '../schema/package-state.js';
import type { StagedBundle } from './stage.js';

/** A bundle that is not added, with the reason. */
export interface Refusal {
  bundle: StagedBundle;
  error: OpmateError;
}

interface CheckOptions {
  overwriteLatest: boolean;
  enableAlpha: boolean;
}

export interface CheckedBundles {
  refusals: Refusal[];
  /** Names to remove before the bundles of the same name are added. */
  overwritten: Set<string>;
}

/**
 * Checks bundles before anything is written: existing and duplicate bundles, edges into other packages, and what an
 * index accepts only with flags. `bundles` are in order of addition. Within `withIndexes` of `entries` and `names`.
 */
export async function checkBundles(
  database: Database,
  bundles: readonly StagedBundle[],
  options: CheckOptions,
): Promise<CheckedBundles> {
  const checked: CheckedBundles = { refusals: [], overwritten: new Set() };
  const edges = new EdgeOwners(database, bundles);
  const known = new Map<string, KnownPackage>();
  const first = new Map<string, StagedBundle>();
  for (const bundle of bundles) {
    const { name, packageName } = bundle.record;
    const refuse = (error: OpmateError): void => void checked.refusals.push({ bundle, error });
    const twin = first.get(name);
    if (twin === undefined) first.set(name, bundle);
    else refuse(await twiceError(twin, bundle));
    for (const error of ownProblems(bundle, options)) refuse(error);
    if (packageName === '') continue;
    const entry = known.get(packageName) ?? new KnownPackage(readPackage(database, packageName));
    known.set(packageName, entry);
    for (const error of await presenceProblems(database, bundle, entry, options)) refuse(error);
    if (options.overwriteLatest && twin === undefined && readBundle(database, name) !== undefined)
      checked.overwritten.add(name);
    for (const error of edges.getProblems(bundle.record)) refuse(error);
  }
  return checked;
}

/** Returns the problems of one bundle alone. */
function ownProblems({ record, reference }: StagedBundle, { enableAlpha }: CheckOptions): OpmateError[] {
  const problems: OpmateError[] = [];
  const fail = (problem: string, hint: string): void => {
    problems.push(new OpmateError('INVALID', problem, { subject: reference, hint }));
  };
  const { name, packageName, channels, substitutesFor } = record;
  if (packageName === '') fail(`bundle ${name} names no package`, 'set it in metadata/annotations.yaml');
  if (channels.length === 0) fail(`bundle ${name} names no channel`, 'set one in metadata/annotations.yaml');
  if (substitutesFor !== '' && !enableAlpha) {
    fail(
      `bundle ${name} substitutes for ${substitutesFor}: SubstitutesFor is an alpha-only feature. ` +
        'You must enable alpha features with the flag --enable-alpha in order to use this feature',
      'add it with --enable-alpha',
    );
  }
  return problems;
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

/** A package of the index with lookups for the checks, created once. */
class KnownPackage {
  readonly state: IndexedPackage;
  /** Names of bundles by image. */
  readonly images: ReadonlyMap<string, string>;
  overwrites = 0;

  constructor(state: IndexedPackage) {
    this.state = state;
    this.images = new Map([...state.bundles].map(([name, { image }]) => [image, name]));
  }

  /** Returns the last bundle that replaces or skips another, with its channel. */
  findReplacer(name: string): { by: string; channel: string } | undefined {
    let replacer: { by: string; channel: string } | undefined;
    for (const [channel, entries] of this.state.channels) {
      for (const { name: by, replaces, skips } of entries) {
        if (!this.state.bundles.has(by)) continue;
        if (replaces === name || skips.includes(name)) replacer = { by, channel };
      }
    }
    return replacer;
  }
}

/** Returns the problems of a bundle that already exists. */
async function presenceProblems(
  database: Database,
  bundle: StagedBundle,
  known: KnownPackage,
  { overwriteLatest }: CheckOptions,
): Promise<OpmateError[]> {
  const problems: OpmateError[] = [];
  const { name, packageName, image } = bundle.record;
  const owner = image === '' ? undefined : known.images.get(image);
  if (owner !== undefined) {
    const as = owner === name ? '' : `, as the image of ${owner}`;
    problems.push(new BundleImageAlreadyAddedError('INVALID', `Bundle ${image} already exists${as}`));
  }
  const there = readBundle(database, name);
  if (there === undefined) return problems;
  const details = `${name} is in the index ${await likeness(database, there.image, bundle)}`;
  const inPackage = known.state.bundles.has(name);
  if (overwriteLatest) {
    const replacer = known.findReplacer(name);
    const fail = (problem: string, hint?: string): void => {
      problems.push(new OpmateError('INVALID', problem, { hint }));
    };
    if (there.image === '') {
      fail(`index add --overwrite-latest is only supported when using bundle images: ${details}`);
    } else if (inPackage && replacer !== undefined) {
      fail(
        'Cannot overwrite a bundle that is not at the head of a channel using --overwrite-latest: ' +
          `${name} from package ${packageName} is replaced by ${replacer.by} on channel ${replacer.channel}`,
      );
    } else if (inPackage && ++known.overwrites > 1) {
      fail(
        'Cannot overwrite more than one bundle at a time for a given package using --overwrite-latest: ' +
          `${name} from package ${packageName}`,
        'add them one at a time',
      );
    }
  } else if (inPackage) {
    const hint = 'use --overwrite-latest for channel heads only';
    problems.push(
      new VersionAlreadyAddedError(
        'INVALID',
        `Bundle already added that provides package and csv: ${details}`,
        {
          hint,
        },
      ),
    );
  } else if (findPackages(database, name).length === 0) {
    problems.push(
      new OpmateError('INVALID', `failed to add bundle "${name}": ${details}, but in no channel`, {
        hint: 'remove bundles without a channel with opmate registry prune-stranded',
      }),
    );
  }
  return problems;
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

/** Packages of all names that the bundles of one call have, replace or skip. */
class EdgeOwners {
  readonly #database: Database;
  readonly #packages = new Map<string, Set<string>>();
  readonly #owners = new Map<string, Set<string>>();
  readonly #inIndex = new Map<string, string[]>();

  constructor(database: Database, bundles: readonly StagedBundle[]) {
    this.#database = database;
    for (const { record } of bundles) {
      for (const name of namesIn(record)) add(this.#packages, name, record.packageName);
      add(this.#owners, record.name, record.packageName);
    }
  }

  getProblems(record: BundleRecord): OpmateError[] {
    const { packageName } = record;
    const problems: string[] = [];
    for (const name of namesIn(record)) {
      const packages = this.#packages.get(name) ?? new Set();
      // The bundle itself determines its package.
      const owners = this.#owners.get(name);
      if (packages.size > 1 && !(owners?.size === 1 && owners.has(packageName))) {
        problems.push(
          `bundle ${name} must belong to exactly one package, found on: [${sortedByBytes(packages).join(' ')}]`,
        );
      }
      const other = this.#packagesInIndex(name).find((bundle) => bundle !== packageName);
      if (other === undefined) continue;
      problems.push(
        `bundle ${name} belongs to package ${other} on index, cannot be added as an edge for package ${packageName}`,
      );
    }
    return problems.map((problem) => new OpmateError('INVALID', problem));
  }

  #packagesInIndex(name: string): string[] {
    let packages = this.#inIndex.get(name);
    if (packages === undefined) {
      packages = findPackages(this.#database, name);
      this.#inIndex.set(name, packages);
    }
    return packages;
  }
}

function add(map: Map<string, Set<string>>, key: string, value: string): void {
  const values = map.get(key) ?? new Set();
  map.set(key, values.add(value));
}

/** Returns the names of a bundle and of all that it replaces and skips. */
function namesIn({ name, replaces, skips }: BundleRecord): Set<string> {
  return new Set([...skips, replaces, name].filter((text) => text !== ''));
}
