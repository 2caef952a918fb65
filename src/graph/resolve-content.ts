import { formatMessage } from '../core/diagnostic.js';
import { findFieldKeys } from '../document/go-json-fold.js';
import { isJsonObject } from '../document/json.js';
import { SemverError } from '../core/semver.js';
import { type BundleVersion, parseBundleVersion } from './bundle-version.js';
import {
  type BundleBlob,
  type ChannelBlob,
  type ChannelEntry,
  type DeprecationEntry,
  type DeprecationsBlob,
  type Property,
  propertyTypes,
  schemas,
} from '../model/declarative-config.js';
import { dependencyTypes } from '../model/dependency-needs.js';
import { describeChannel, describeDeprecations, detach } from '../model/describe.js';
import { findPropertyFault, parsePackageProperty, unwrap } from '../model/properties.js';

/** What a catalog has of one package, as far as choosing one of its bundles needs it. */
export interface PackageContent {
  /** Whether the catalog has any blob of the package. */
  isFound: boolean;
  channels: PackageChannel[];
  bundles: PackageBundle[];
  /** Of the first `olm.deprecations`, as OLM v1 reads them; undefined before one was read. */
  deprecations: readonly DeprecationEntry[] | undefined;
}

export interface PackageChannel {
  name: string;
  entries: readonly ChannelEntry[];
}

/** A bundle as it can be chosen. */
export interface PackageBundle {
  name: string;
  image: string;
  /** A message where the version cannot be read. */
  version: BundleVersion | string;
  /** Types of its properties that need something of other bundles, each once. */
  dependencies: string[];
}

export function emptyContent(): PackageContent {
  return { isFound: false, channels: [], bundles: [], deprecations: undefined };
}

/** A blob of the package, typed as far as it matters. */
type PackageBlobs =
  | { kind: 'package' | 'other' }
  | { kind: 'channel'; blob: ChannelBlob }
  | { kind: 'bundle'; blob: BundleBlob }
  | { kind: 'deprecations'; blob: DeprecationsBlob };

/** Adds what a blob of the package tells; what is kept holds nothing of the blob. */
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
      content.deprecations ??= describeDeprecations(decoded.blob).entries;
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

/** Whether the release is given at all; an empty one is. */
function hasRelease({ value: properties }: Property): boolean {
  const value = unwrap(properties);
  return isJsonObject(value) && findFieldKeys(value, 'release').some((key) => value[key] !== null);
}

/** Why something of the package is deprecated; undefined where it is not. `name` is empty for the package. */
export function findDeprecation(content: PackageContent, schema: string, name: string): string | undefined {
  return content.deprecations?.find(
    ({ reference }) => reference.schema === schema && (reference.name === name || schema === schemas.package),
  )?.message;
}

/** Why bundles are deprecated, by name; of several entries for one, the first. */
export function bundleDeprecations({ deprecations }: PackageContent): Map<string, string> {
  const messages = new Map<string, string>();
  for (const { reference, message } of deprecations ?? []) {
    if (reference.schema === schemas.bundle && !messages.has(reference.name))
      messages.set(reference.name, message);
  }
  return messages;
}
