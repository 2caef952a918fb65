import { type DocumentPath, formatMessage, formatPath } from '../../core/diagnostic.js';
import { getMessage } from '../../core/errors.js';
import { parseRelease, parseVersion, versionHint } from '../../core/semver.js';
import { quoteGo } from '../../document/go-json.js';
import { type ChannelEntry, propertyTypes } from '../../model/declarative-config.js';
import type { BundleFacts } from '../../model/facts.js';
import { formatBundleVersion } from '../bundle-version.js';
import type { SkipRanges } from '../skip-ranges.js';

/** A fault of a blob, with the message of `opm`. */
interface BlobFault {
  text: string;
  path: DocumentPath;
  hint: string;
}

/** A fault of a bundle in a channel. */
interface EntryFault extends BlobFault {
  /** Blob of `path`: the bundle or the entry of the channel. */
  in: 'bundle' | 'entry';
  /** Consequence of another fault, which is reported. */
  follows?: boolean;
}

/** Problem of a deprecation without message. */
export const emptyDeprecation = 'invalid deprecation: message must be set';

const packageType = quoteGo(propertyTypes.package);

/** Returns the faults of a bundle blob alone. (Source: ConvertToModel of operator-registry.) */
export function findBlobFaults(bundle: BundleFacts, isPackageKnown: boolean): BlobFault[] {
  const { packageProperties, propertyFaults, imageFaults } = bundle;
  // Nearly all bundles are valid and need no text.
  const quoteName = (): string => quoteGo(bundle.name);
  const formatBundle = (): string => `package ${quoteGo(bundle.package)} bundle ${quoteName()}`;
  const faults = propertyFaults.map((fault): BlobFault => ({
    text: `parse properties for bundle ${quoteName()}: ${formatMessage(fault)}`,
    path: fault.path ?? [],
    hint: 'fix the value of this property',
  }));
  const [property] = packageProperties;
  if (packageProperties.length !== 1) {
    if (propertyFaults.some(({ code }) => code === 'invalid-package')) return faults;
    faults.push({
      text: `${formatBundle()} must have exactly 1 ${packageType} property, found ${packageProperties.length}`,
      path: ['properties'],
      hint: `${property === undefined ? 'add one' : 'keep only the one'} with the version of this bundle`,
    });
  } else if (property !== undefined && property.packageName !== bundle.package && isPackageKnown) {
    const names = `${quoteGo(bundle.package)} does not match ${packageType} property`;
    faults.push({
      text: `package ${names} ${quoteGo(property.packageName)}`,
      path: getValuePath(property),
      hint: 'use the same package name in both',
    });
  }
  for (const fault of imageFaults) {
    const { path = [] } = fault;
    const hint = 'use an image reference such as quay.io/org/name:tag or quay.io/org/name@sha256:…';
    faults.push({ text: `${formatBundle()} ${formatPath(path)}: ${formatMessage(fault)}`, path, hint });
  }
  if (property === undefined || packageProperties.length > 1) return faults;
  const { version, release } = property;
  const path = getValuePath(property);
  const versionFault = findFault(parseVersion, version);
  if (versionFault !== undefined) {
    faults.push({
      text: `error parsing bundle ${quoteName()} version ${quoteGo(version)}: ${versionFault}`,
      path,
      hint: versionHint,
    });
  }
  const releaseFault = release === '' ? undefined : findFault(parseRelease, release);
  if (releaseFault !== undefined) {
    const text = `error parsing bundle ${quoteName()} release version ${quoteGo(release)}: ${releaseFault}`;
    const hint = 'use at most 20 characters of dot-separated identifiers, numbers without leading zeros';
    faults.push({ text, path, hint });
  }
  return faults;
}

/**
 * Returns the faults of an entry and its bundle, which is undefined if missing. (Source: Bundle.Validate of
 * operator-registry.)
 */
export function findEntryFaults(
  entry: ChannelEntry,
  bundle: BundleFacts | undefined,
  {
    packageName,
    ranges,
    hasEmptyDeprecation,
  }: { packageName: string; ranges: SkipRanges; hasEmptyDeprecation: boolean },
): EntryFault[] {
  const property = bundle?.packageProperties[0] ?? { version: '', release: '' };
  const faults: EntryFault[] = [];
  addNameFaults(faults, entry.name, packageName, property);
  addEdgeFaults(faults, entry, ranges);
  addContentFaults(faults, bundle);
  if (hasEmptyDeprecation) {
    faults.push({ text: emptyDeprecation, path: [], in: 'bundle', hint: '', follows: true });
  }
  if (property.release !== '' && property.version.includes('+')) {
    const text = 'cannot use build metadata in version with a release version';
    const hint = 'remove the build metadata of its version, or remove the release';
    faults.push({ text, path: getValuePath(bundle?.packageProperties[0]), in: 'bundle', hint });
  }
  return faults;
}

/** Adds the faults of a name; with a release, it is normalized. */
function addNameFaults(
  faults: EntryFault[],
  name: string,
  packageName: string,
  property: { version: string; release: string },
): void {
  if (name === '') {
    const hint = 'set the name of the bundle';
    faults.push({ text: 'name must be set', path: ['name'], in: 'entry', hint });
  }
  const normalized = property.release === '' ? name : `${packageName}-v${formatBundleVersion(property)}`;
  if (name !== normalized) {
    const fault = findFault(parseVersion, property.version) ?? findFault(parseRelease, property.release);
    faults.push({
      text: `name ${quoteGo(name)} does not match normalized name ${quoteGo(normalized)}`,
      path: ['name'],
      in: 'bundle',
      hint: `rename the bundle and its entries to ${quoteGo(normalized)}, or remove its release`,
      follows: fault !== undefined,
    });
  }
}

/** Adds the faults of what an entry skips. */
function addEdgeFaults(faults: EntryFault[], entry: ChannelEntry, ranges: SkipRanges): void {
  for (const [index, skip] of entry.skips.entries()) {
    if (skip !== '') continue;
    const hint = 'remove the empty item, or set it to a bundle name';
    faults.push({ text: `skip[${index}] is empty`, path: ['skips', index], in: 'entry', hint });
  }
  const rangeFault = ranges.read(entry.skipRange).fault;
  if (rangeFault !== undefined) {
    const hint =
      'use comparisons separated by spaces, such as ">=1.0.0 <1.2.0"; "^", "~" and "-" are not supported';
    const text = `invalid skipRange ${quoteGo(entry.skipRange)}: ${rangeFault}`;
    faults.push({ text, path: ['skipRange'], in: 'entry', hint });
  }
}

/** Adds the faults of a bundle that is missing, or has neither image nor objects. */
function addContentFaults(faults: EntryFault[], bundle: BundleFacts | undefined): void {
  const follows = bundle === undefined;
  if (bundle === undefined) {
    const text = `must be exactly one property with type ${packageType}`;
    faults.push({ text, path: [], in: 'bundle', hint: '', follows });
  }
  if (bundle === undefined || (bundle.image === '' && bundle.objectCount === 0)) {
    const hint = 'set image to the reference of the bundle image';
    faults.push({ text: 'bundle image must be set', path: ['image'], in: 'bundle', hint, follows });
  }
}

/** Returns the path of the value of a package property; that of the properties if it is missing. */
export function getValuePath(property: { index: number } | undefined): DocumentPath {
  return property === undefined ? ['properties'] : ['properties', property.index, 'value'];
}

function findFault(parse: (text: string) => unknown, text: string): string | undefined {
  try {
    parse(text);
    return undefined;
  } catch (error) {
    return getMessage(error);
  }
}
