import { propertyFields } from '../../bundle/parse.js';
import { endOfValue, skipSpace } from '../../document/raw-json.js';
import { formatMessage } from '../../core/diagnostic.js';
import { OpmateError, getMessage } from '../../core/errors.js';
import { decodeUtf8, encodeGoJson, parseGoJson, quoteGo, sortKeysDeep } from '../../document/go-json.js';
import { type EncodableJson, type JsonObject, type JsonValue, RawJson } from '../../document/json.js';
import { groupBy } from '../../core/groups.js';
import { compareBytes, sortLikeGo, sortedByBytes } from '../../core/order.js';
import { parseRange, parseVersion, versionHint } from '../../core/semver.js';
import { type ApiKey, csvIcon, csvRelatedImages, csvSpec, csvVersion, isCsv } from '../../model/csv.js';
import {
  type BundleBlob,
  type ChannelBlob,
  type PackageBlob,
  type Property,
  type RelatedImage,
  propertyTypes,
  schemas,
} from '../../model/declarative-config.js';
import type { ErrorTree } from '../../model/error-tree.js';
import { describeDuplicateVersions, findDuplicateVersions } from '../../graph/bundle-version.js';
import { describeGraphFault, readGraph } from '../../graph/channel-graph.js';
import { findPropertyFault } from '../../model/properties.js';
import type { TypedValue } from '../schema/bundle-record.js';
import type { StoredBundle, StoredMember, StoredPackage } from './queries.js';

/**
 * Conversion of the rows of an index to the blobs of a file-based catalog, with its validation. (Source: ToModel of
 * pkg/sqlite, api_to_model of pkg/api, model.Validate, ConvertFromModel of alpha/declcfg, populateDBRelatedImages of
 * alpha/action; operator-registry v1.73.)
 */

/** A converted bundle with what validation of its package needs. */
export interface ConvertedBundle {
  blob: BundleBlob;
  /** Facts of the bundle in its package. */
  version: string;
  /** Problems of the bundle in any channel, in the words of `opm`. */
  faults: string[];
  /** A property is invalid JSON, so that the blob cannot be written. */
  unreadable: boolean;
}

/**
 * Converts a bundle to its blob. `manifests` are its stored objects, omitted if only names and versions are needed;
 * with `isChecked` they are not parsed again. Throws OpmateError INVALID in the words of `opm`, without the name of
 * the bundle, for an invalid bundle.
 */
export function convertBundle(
  stored: StoredBundle,
  packageName: string,
  manifests: Buffer = Buffer.alloc(0),
  options: { isChecked?: boolean | undefined } = {},
): ConvertedBundle {
  const { objects, csv } = readObjects(manifests, options.isChecked === true);
  const version = readStoredVersion(stored, csv);
  try {
    parseVersion(version);
  } catch (error) {
    const problem = `parse version ${quoteGo(version)}: ${getMessage(error)}`;
    throw new OpmateError('INVALID', problem, { hint: versionHint });
  }
  const typed = convertProperties(stored, packageName, version);
  const before = typed.filter(({ type }) => compareBytes(type, propertyTypes.bundleObject) <= 0);
  const encoded = objects.map((data) => ({ type: propertyTypes.bundleObject, value: { data } }));
  const properties = [...before, ...encoded, ...typed.slice(before.length)];
  const blob: BundleBlob = {
    schema: schemas.bundle,
    name: stored.name,
    package: packageName,
    image: stored.image,
    properties: properties.map(({ type, value }) => ({ type, value })),
    relatedImages: relatedImages(csv, stored.images),
  };
  const unreadable = properties.some(({ value }) => value instanceof InvalidJson);
  return { blob, version, faults: findFaults(stored, properties, objects.length), unreadable };
}

/** A converted property with its compact text, for sorting and comparison. */
interface SortableProperty {
  type: string;
  text: string;
  value: EncodableJson;
}

function convertProperties(stored: StoredBundle, packageName: string, version: string): SortableProperty[] {
  const all: SortableProperty[] = [];
  const provided = new Map<string, SortableProperty>();
  const required = new Map<string, SortableProperty>();
  stored.properties.forEach((property, index) => {
    if (property.type === propertyTypes.gvk) addApi(provided, property, index, propertyTypes.gvk);
    else all.push(asStored(property));
  });
  stored.dependencies.forEach((dependency, index) => {
    if (dependency.type === propertyTypes.gvk) {
      addApi(required, dependency, index, propertyTypes.gvkRequired);
    } else if (dependency.type === propertyTypes.package) {
      const fields = getFields(dependency, index, ['packageName', 'version']);
      const { packageName: name = '', version: versionRange = '' } = fields;
      all.push(made(propertyTypes.packageRequired, { packageName: name, versionRange }));
    } else {
      // Constraints and labels belong to catalogs too: at the place where rendering the bundle puts them. `opm`
      // stores NULL for a missing value.
      all.push(asStored(dependency.value === '' ? { ...dependency, value: 'null' } : dependency));
    }
  });
  if (!all.some(({ type }) => type === propertyTypes.package)) {
    all.push(made(propertyTypes.package, { packageName, version }));
  }
  all.push(...provided.values(), ...required.values());
  return withoutRepeats(all).sort((a, b) => compareBytes(a.type, b.type) || compareBytes(a.text, b.text));
}

/** Removes duplicates: an index repeats the package of a bundle per channel, without its release. */
function withoutRepeats(properties: readonly SortableProperty[]): SortableProperty[] {
  const byText = new Map(properties.map((property) => [`${property.type}\0${property.text}`, property]));
  for (const { type, text } of properties) {
    if (type !== propertyTypes.package || !text.includes('"release"')) continue;
    const plain = withoutRelease(text);
    if (plain !== undefined) byText.delete(`${type}\0${plain}`);
  }
  return [...byText.values()];
}

function withoutRelease(text: string): string | undefined {
  try {
    const {
      packageName = '',
      version = '',
      release = '',
    } = propertyFields({ type: propertyTypes.package, text }, ['packageName', 'version', 'release']);
    return release === '' ? undefined : encodeGoJson({ packageName, version });
  } catch (error) {
    // Reported when properties are checked.
    if (error instanceof OpmateError) return undefined;
    throw error;
  }
}

function addApi(set: Map<string, SortableProperty>, property: TypedValue, index: number, type: string): void {
  const fields = getFields(property, index, ['group', 'kind', 'version']);
  const { group = '', kind = '', version = '' } = fields as Partial<ApiKey>;
  const api = made(type, { group, kind, version });
  set.set(api.text, api);
}

function getFields(
  { type, value }: TypedValue,
  index: number,
  fields: readonly string[],
): Record<string, string> {
  try {
    return propertyFields({ type, text: value }, fields);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw new OpmateError(
      'INVALID',
      `convert properties: parse property[${index}] of type ${quoteGo(type)}: ${error.message}`,
    );
  }
}

function made(type: string, value: JsonObject): SortableProperty {
  return { type, value, text: encodeGoJson(value) };
}

/** Keeps a value as stored; as data if encoding would give the same text. */
function asStored({ type, value: stored }: TypedValue): SortableProperty {
  let value: JsonValue;
  try {
    value = parseGoJson(stored);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    // Reported when properties are checked.
    return { type, text: stored, value: new InvalidJson(stored, error.message) };
  }
  if (encodeGoJson(sortKeysDeep(value)) === stored) return { type, text: stored, value };
  const raw = new RawJson(stored);
  return { type, text: encodeGoJson(raw), value: raw };
}

/** A value that does not parse; never written, as its bundle is rejected. */
class InvalidJson extends RawJson {
  readonly problem: string;
  constructor(text: string, problem: string) {
    super(text);
    this.problem = problem;
  }
}

/**
 * Returns the version of a bundle: old migrations left the column of older bundles empty, but their manifests or
 * properties have it.
 */
function readStoredVersion({ version, properties }: StoredBundle, csv: JsonObject | undefined): string {
  if (version !== null) return version;
  const fromCsv = csv === undefined ? '' : csvVersion(csvSpec(csv));
  if (fromCsv !== '') return fromCsv;
  for (const [index, property] of properties.entries()) {
    if (property.type === propertyTypes.package)
      return getFields(property, index, ['version'])['version'] ?? '';
  }
  return '';
}

/** Returns the objects of a bundle in base64 order, with their ClusterServiceVersion. */
function readObjects(bytes: Buffer, isChecked: boolean): { objects: string[]; csv: JsonObject | undefined } {
  if (bytes.length === 0) return { objects: [], csv: undefined };
  const objects: string[] = [];
  let csv: JsonObject | undefined;
  for (const object of splitObjects(bytes)) {
    if (csv === undefined && object.includes('ClusterServiceVersion')) {
      const value = parseManifest(object);
      if (isCsv(value)) csv = value as JsonObject;
    } else if (!isChecked) {
      // The built-in parser is fastest; the other one has the error text.
      try {
        JSON.parse(object.toString());
      } catch {
        parseManifest(object);
      }
    }
    objects.push(object.toString('base64'));
  }
  if (csv === undefined) {
    throw new OpmateError('INVALID', 'no csv in bundle', {
      hint: 'add the bundle again: its manifests lack the ClusterServiceVersion',
    });
  }
  // Base64 is ASCII, which the default order compares by bytes too.
  return { objects: [...new Set(objects)].sort(), csv };
}

function parseManifest(bytes: Buffer): JsonValue {
  try {
    return parseGoJson(decodeUtf8(bytes));
  } catch (error) {
    throw new OpmateError('INVALID', `its manifests are not JSON: ${getMessage(error)}`, {
      hint: 'add the bundle again: it is stored incompletely',
      cause: error,
    });
  }
}

/**
 * Returns the JSON values of a column of manifests, which may be damaged. Tools write one per line; other forms are
 * scanned.
 */
export function splitObjects(bytes: Buffer): Buffer[] {
  const objects: Buffer[] = [];
  for (let index = 0; index < bytes.length;) {
    const lineEnd = bytes.indexOf(0x0a, index);
    const end = lineEnd < 0 ? bytes.length : lineEnd;
    const line = bytes.subarray(index, end);
    index = end + 1;
    if (line.length === 0) continue;
    if (line[0] !== 0x7b || line[line.length - 1] !== 0x7d) return scanObjects(bytes);
    if (mayHoldTwo.some((text) => line.includes(text))) objects.push(...scanObjects(line));
    else objects.push(line);
  }
  return objects;
}

/** Only white space separates two objects; in compact JSON both patterns occur in strings only. */
const mayHoldTwo = ['}{', '} ', '}\t', '}\r'];

function scanObjects(bytes: Buffer): Buffer[] {
  // One character per byte, so that offsets are equal in both.
  const text = bytes.toString('latin1');
  const objects: Buffer[] = [];
  for (let position = skipSpace(text, 0); position < text.length; position = skipSpace(text, position)) {
    const end = Math.max(endOfValue(text, position), position + 1);
    objects.push(bytes.subarray(position, end));
    position = end;
  }
  return objects;
}

/** Returns the images of the manifests, then additional ones of the index, by image. */
function relatedImages(csv: JsonObject | undefined, images: readonly string[]): RelatedImage[] {
  const related =
    csv === undefined ? [] : csvRelatedImages(csvSpec(csv)).map(({ name, image }) => ({ name, image }));
  const named = new Set(related.map(({ image }) => image));
  for (const image of images) if (!named.has(image)) related.push({ name: '', image });
  return sortLikeGo(related, (a, b) => compareBytes(a.image, b.image));
}

type AnyProperty = Pick<SortableProperty, 'type' | 'value'>;

function findFaults(stored: StoredBundle, properties: readonly AnyProperty[], objects: number): string[] {
  const faults: string[] = [];
  if (stored.name === '') faults.push('name must be set');
  const broken = firstPropertyFault(properties);
  if (broken !== undefined) faults.push(broken);
  if (stored.skipRange !== '') {
    try {
      parseRange(stored.skipRange);
    } catch (error) {
      faults.push(`invalid skipRange ${quoteGo(stored.skipRange)}: ${getMessage(error)}`);
    }
  }
  const packages = properties.filter(({ type }) => type === propertyTypes.package);
  if (broken === undefined && packages.length !== 1) {
    faults.push(`must be exactly one property with type ${quoteGo(propertyTypes.package)}`);
  }
  if (stored.image === '' && objects === 0) faults.push('bundle image must be set');
  return faults;
}

function firstPropertyFault(properties: readonly AnyProperty[]): string | undefined {
  for (const [index, { type, value }] of properties.entries()) {
    if (value instanceof InvalidJson) {
      return `parse property[${index}] of type ${quoteGo(type)}: ${value.problem}`;
    }
    const fault = findPropertyFault({ type, value } as Property, index);
    if (fault !== undefined) return formatMessage(fault);
  }
  return undefined;
}

/**
 * Converts the channels of a package to blobs, by name. Throws OpmateError INVALID for a member of an unknown
 * channel.
 */
export function convertChannels(
  stored: StoredPackage,
  members: readonly StoredMember[],
  skipRangeOf: (member: StoredMember) => string,
): ChannelBlob[] {
  const names = stored.channels.map(({ name }) => name);
  const channels = new Map<string, ChannelBlob>();
  for (const name of sortedByBytes(names)) {
    const { channel: schema } = schemas;
    channels.set(name, { schema, name, package: stored.name, entries: [], properties: [] });
  }
  for (const member of members) {
    const { name, channel, replaces, skips } = member;
    const blob = channels.get(channel);
    if (blob === undefined) {
      throw new OpmateError('INVALID', `unknown channel ${quoteGo(channel)} for bundle ${quoteGo(name)}`);
    }
    blob.entries?.push({ name, replaces, skips, skipRange: skipRangeOf(member) });
  }
  return [...channels.values()];
}

/** Converts a package to its blob. `csv` is the manifest of its default channel's head; empty if not kept. */
export function convertPackage(stored: StoredPackage, csv: Buffer): PackageBlob {
  const icon = csv.length === 0 ? undefined : csvIcon(parseManifest(csv));
  return {
    schema: schemas.package,
    name: stored.name,
    defaultChannel: stored.defaultChannel,
    ...(icon !== undefined && { icon }),
    description: '',
    properties: [],
  };
}

/** Returns the problems of a package as a tree in the words of `opm`, without children if valid. */
export function checkPackage(
  stored: StoredPackage,
  channels: readonly ChannelBlob[],
  bundles: ReadonlyMap<string, Pick<ConvertedBundle, 'version' | 'faults'>>,
): ErrorTree {
  const tree: ErrorTree = { message: `invalid package ${quoteGo(stored.name)}`, children: [] };
  const add = (parent: ErrorTree, message: string): void =>
    void parent.children.push({ message, children: [] });
  const hasDefault = channels.some(({ name }) => name === stored.defaultChannel);
  if (stored.name === '') add(tree, 'package name must not be empty');
  if (stored.defaultChannel === '') add(tree, 'default channel must be set');
  if (channels.length === 0) add(tree, 'package must contain at least one channel');
  for (const { name, entries } of channels) {
    const branch: ErrorTree = { message: `invalid channel ${quoteGo(name)}`, children: [] };
    if (name === '') add(branch, 'channel name must not be empty');
    if (entries === null || entries.length === 0) {
      add(branch, 'channel must contain at least one bundle');
    } else {
      const fault = describeGraphFault(readGraph(entries));
      if (fault !== undefined) add(branch, fault);
    }
    for (const entry of entries ?? []) {
      const faults = [...(bundles.get(entry.name)?.faults ?? [])];
      entry.skips.forEach((skip, index) => {
        if (skip === '') faults.push(`skip[${index}] is empty`);
      });
      if (faults.length === 0) continue;
      const children = faults.map((message) => ({ message, children: [] }));
      branch.children.push({ message: `invalid bundle ${quoteGo(entry.name)}`, children });
    }
    if (branch.children.length > 0) tree.children.push(branch);
  }
  const byVersion = groupBy(bundles.keys(), (name) => bundles.get(name)?.version ?? '');
  const duplicates = findDuplicateVersions(byVersion);
  if (duplicates.length > 0) add(tree, describeDuplicateVersions(duplicates));
  if (stored.defaultChannel !== '' && !hasDefault) {
    add(tree, `default channel ${quoteGo(stored.defaultChannel)} not found in channels list`);
  }
  return tree;
}
