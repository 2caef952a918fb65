import { OpmateError, getMessage } from '../core/errors.js';
import { quoteGo, parseGoJson } from '../document/go-json.js';
import { type JsonValue, isJsonObject } from '../document/json.js';
import { getValue } from '../document/json-fields.js';
import { parseRelease, parseVersion } from '../core/semver.js';
import {
  type BundleBlob,
  type ChannelBlob,
  type ChannelEntry,
  propertyTypes,
} from '../model/declarative-config.js';
import type { VersionRelease } from './bundle-version.js';
import { findCsvText } from '../model/migrations.js';
import { parsePackageProperty } from '../model/properties.js';

/**
 * Substitution of a bundle in the channels of a catalog. (Source: alpha/template/substitutes and
 * declcfg.Bundle.VersionRelease of operator-registry.)
 */

const substitutesFor = 'olm.substitutesFor';

/**
 * Returns the version and release of a bundle from its `olm.package` property. In bundles annotated as substitutes,
 * build metadata is the release if none is set. `csvText` is the bundle's ClusterServiceVersion, if at hand. Throws
 * OpmateError INVALID.
 */
export function readVersionRelease(blob: BundleBlob, csvText?: string): VersionRelease {
  const name = quoteGo(blob.name);
  const properties = blob.properties.filter(({ type }) => type === propertyTypes.package);
  const [property] = properties;
  if (property === undefined) throw invalid(`no "olm.package" property found for bundle ${name}`);
  if (properties.length > 1) throw invalid('must be exactly one property of type "olm.package"');
  const value = reading(`unable to unmarshal "olm.package" property for bundle ${name}`, () => {
    if (property.valueMissing) throw invalid('unexpected end of JSON input');
    return parsePackageProperty(property.value);
  });
  const inProperty = `in "olm.package" property for bundle ${name}`;
  const version = reading(`invalid semver version ${quoteGo(value.version)} ${inProperty}`, () =>
    parseVersion(value.version),
  );
  const release = reading(`invalid release ${quoteGo(value.release)} ${inProperty}`, () =>
    parseRelease(value.release),
  );
  if (release.length > 0 || version.build.length === 0 || !hasSubstitutesFor(blob, csvText)) {
    return { version, release };
  }
  const build = reading(`unable to convert build metadata to release for bundle ${name}`, () =>
    parseRelease(version.build.join('.')),
  );
  return { version: { ...version, build: [] }, release: build };
}

function invalid(message: string): OpmateError {
  return new OpmateError('INVALID', message);
}

function reading<T>(context: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw invalid(`${context}: ${getMessage(error)}`);
  }
}

function hasSubstitutesFor(blob: BundleBlob, csvText = findCsvText(blob)): boolean {
  if (csvText !== undefined && csvText !== '') return hasAnnotation(parseGoJson(csvText));
  for (const { type, value } of blob.properties) {
    if (type !== propertyTypes.csvMetadata || !isJsonObject(value)) continue;
    if (isSet(value['annotations'])) return true;
  }
  return false;
}

function hasAnnotation(csv: JsonValue): boolean {
  const metadata = getValue(csv, 'metadata');
  return isJsonObject(metadata) && isSet(metadata['annotations']);
}

function isSet(annotations: unknown): boolean {
  if (!isJsonObject(annotations)) return false;
  const value = annotations[substitutesFor];
  return typeof value === 'string' && value !== '';
}

/**
 * Substitutes the bundle `name` for `base` in every channel, in place: a new entry takes the edges of the base and
 * skips it, the base loses its edges, and entries that replaced or skipped the base now do so with the new one.
 */
export function substituteInChannels(channels: readonly ChannelBlob[], base: string, name: string): void {
  for (const channel of channels) {
    const entries = channel.entries ?? [];
    const added: ChannelEntry[] = [];
    for (const entry of entries.filter((channelEntry) => channelEntry.name === base).reverse()) {
      added.push({ ...entry, name, skips: [...entry.skips, base] });
      entry.replaces = '';
      entry.skips = [];
      entry.skipRange = '';
    }
    for (const entry of entries) {
      if (entry.replaces === base) {
        entry.replaces = name;
        entry.skips = [...entry.skips, base];
      } else if (entry.skips.includes(base)) {
        entry.skips = [...entry.skips, name].filter((skipped) => skipped !== base);
      }
    }
    entries.push(...added);
  }
}
