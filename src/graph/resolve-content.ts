import { formatMessage } from '../core/diagnostic.js';
import { findFieldKeys } from '../document/go-json-fold.js';
import { isJsonObject } from '../document/json.js';
import { SemverError } from '../core/semver.js';
import { type BundleVersion, parseBundleVersion } from './bundle-version.js';
import {
  type BundleBlob,
  type ChannelBlob,
  type ChannelEntry,
  type DeprecationsBlob,
  type Property,
  propertyTypes,
} from '../model/declarative-config.js';
import { dependencyTypes } from '../model/dependency-needs.js';
import { readDeprecations } from '../model/deprecations.js';
import { describeChannel, describeDeprecations, detach } from '../model/describe.js';
import { findPropertyFault, parsePackageProperty, getPropertyValue } from '../model/properties.js';

/** Content of a package in a catalog that matters for resolution. */
export interface PackageContent {
  /** The catalog has a blob of the package. */
  isFound: boolean;
  channels: PackageChannel[];
  bundles: PackageBundle[];
  /** Messages of the first `olm.deprecations`, as OLM v1 reads them, by `deprecationKey`; undefined before one was read. */
  deprecations: ReadonlyMap<string, string> | undefined;
}

export interface PackageChannel {
  name: string;
  entries: readonly ChannelEntry[];
}

/** A bundle as a candidate. */
export interface PackageBundle {
  name: string;
  image: string;
  /** Error message for an unreadable version. */
  version: BundleVersion | string;
  /** Types of properties that require other bundles, without duplicates. */
  dependencies: string[];
}

export function emptyContent(): PackageContent {
  return { isFound: false, channels: [], bundles: [], deprecations: undefined };
}

/** A blob of the package, typed as needed here. */
type PackageBlobs =
  | { kind: 'package' | 'other' }
  | { kind: 'channel'; blob: ChannelBlob }
  | { kind: 'bundle'; blob: BundleBlob }
  | { kind: 'deprecations'; blob: DeprecationsBlob };

/** Adds the content of a blob, without keeping the blob in memory. */
export function addToContent(content: PackageContent, decoded: PackageBlobs): void {
  content.isFound = true;
  switch (decoded.kind) {
    case 'channel':
      content.channels.push(describeChannel(decoded.blob));
      break;
    case 'bundle':
      content.bundles.push(getBundle(decoded.blob));
      break;
    case 'deprecations':
      content.deprecations ??= readDeprecations([describeDeprecations(decoded.blob)]);
      break;
    case 'package':
    case 'other':
      break;
  }
}

function getBundle({ name, image, properties }: BundleBlob): PackageBundle {
  const types = new Set(properties.map(({ type }) => type));
  return {
    name: detach(name),
    image: detach(image),
    version: readVersion(properties),
    dependencies: [...dependencyTypes].filter((type) => types.has(type)),
  };
}

function readVersion(properties: readonly Property[]): BundleVersion | string {
  const index = properties.findIndex(({ type }) => type === propertyTypes.package);
  const property = properties[index];
  if (property === undefined) return `it has no property ${propertyTypes.package}`;
  const fault = findPropertyFault(property, index);
  if (fault !== undefined) return formatMessage(fault);
  const { version, release } = parsePackageProperty(property.value);
  try {
    return parseBundleVersion(detach(version), hasRelease(property) ? release : undefined);
  } catch (error) {
    if (error instanceof SemverError) return `version: ${error.message}`;
    throw error;
  }
}

/** Reports whether the release is set, possibly to an empty one. */
function hasRelease({ value: properties }: Property): boolean {
  const value = getPropertyValue(properties);
  return isJsonObject(value) && findFieldKeys(value, 'release').some((key) => value[key] !== null);
}
