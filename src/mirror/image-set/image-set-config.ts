import type { VersionBounds } from '../../catalog/selection/version-bounds.js';
import { OpmateError } from '../../core/errors.js';
import { joinFaults } from '../../core/problems.js';
import { quoteGo } from '../../core/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../core/json.js';
import { type Reference, parseReference } from '../../core/reference.js';
import { compareVersions, parseVersion } from '../../core/semver.js';
import {
  type PlacedYaml,
  YamlError,
  type YamlPath,
  type YamlPlace,
  parseYamlWithPlaces,
} from '../../core/yaml.js';
import { NameIndex } from '../../model/suggest.js';

/** What is to be mirrored: an `ImageSetConfiguration` of `mirror.openshift.io/v2alpha1`, checked. */
export interface ImageSetConfiguration {
  /** As the user named it; messages begin with it. */
  file: string;
  /** Most bytes of one archive file. */
  archiveBytes: number;
  operators: OperatorConfig[];
  additionalImages: AdditionalImageConfig[];
  blockedImages: BlockedImageConfig[];
}

/** One catalog, and what of it. */
export interface OperatorConfig {
  /** As it was written. */
  catalog: string;
  reference: Reference;
  /** All bundles instead of the heads of channels. */
  full: boolean;
  /** Undefined for all packages. */
  packages: PackageConfig[] | undefined;
  /** Path in the target registry, instead of the catalog's own. */
  targetCatalog: string | undefined;
  targetTag: string | undefined;
  /** File of a CatalogSource to take the rest of the specification from. */
  targetCatalogSourceTemplate: string | undefined;
  platforms: PlatformConfig[];
  place: YamlPlace;
}

export interface PackageConfig extends VersionBounds {
  name: string;
  /** Undefined for all channels. */
  channels: ChannelConfig[] | undefined;
  defaultChannel: string | undefined;
  place: YamlPlace;
}

export interface ChannelConfig extends VersionBounds {
  name: string;
  place: YamlPlace;
}

export interface PlatformConfig {
  os: string;
  architecture: string;
}

export interface AdditionalImageConfig {
  name: string;
  reference: Reference;
  targetRepo: string | undefined;
  targetTag: string | undefined;
  platforms: PlatformConfig[];
  place: YamlPlace;
}

export interface BlockedImageConfig {
  name: string;
  /** Matches anywhere in a reference. */
  pattern: RegExp;
}

/** Characters of a configuration, at most. */
export const maxConfigLength = 4 * 1024 * 1024;

const defaultArchiveGiB = 500;
const gibibyte = 1024 ** 3;

/**
 * Reads an `ImageSetConfiguration`. Every fault is reported, each with line and column: unknown keys, keys
 * that are there twice, values of the wrong kind, names and versions that are none, choices that exclude each
 * other, and sections that opmate cannot mirror yet. Throws OpmateError SYNTAX, INVALID or UNSUPPORTED whose
 * cause is an AggregateError of all faults. (Source: ImageSetConfiguration of oc-mirror v2.)
 */
export function readImageSetConfiguration(text: string, file: string): ImageSetConfiguration {
  return readConfiguration(text, file, mirrorForm);
}

/**
 * Reads a `DeleteImageSetConfiguration`: what was to be mirrored, under the key `delete`. Throws as
 * `readImageSetConfiguration` does. (Source: DeleteImageSetConfiguration of oc-mirror v2.)
 */
export function readDeleteImageSetConfiguration(text: string, file: string): ImageSetConfiguration {
  return readConfiguration(text, file, deleteForm);
}

function readConfiguration(text: string, file: string, form: ConfigForm): ImageSetConfiguration {
  const reader = openConfig(text, file, maxConfigLength);
  const configuration = readRoot(reader, form);
  reader.finish();
  return configuration as ImageSetConfiguration;
}

/** Begins to read a YAML document that people may write by hand. Throws OpmateError LIMIT or SYNTAX. */
export function openConfig(text: string, file: string, maxLength: number): ConfigReader {
  if (text.length > maxLength) {
    throw new OpmateError('LIMIT', `${file}: more than ${maxLength} characters`, { file });
  }
  try {
    return new ConfigReader(file, parseYamlWithPlaces(text));
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    throw new OpmateError('SYNTAX', `${file}: ${error.message}`, { file, line: error.line });
  }
}

/** An error that names a place of a configuration. */
export function configError(
  file: string,
  place: YamlPlace | undefined,
  message: string,
  hint?: string,
  code: 'INVALID' | 'UNSUPPORTED' | 'NOT_FOUND' = 'INVALID',
): OpmateError {
  const where = place === undefined ? file : `${file}:${place.line}:${place.column}`;
  return new OpmateError(code, `${where}: ${message}`, { hint });
}

/** Reads fields of the document and notes what is wrong with them. */
export class ConfigReader {
  readonly file: string;
  readonly document: PlacedYaml;
  readonly #faults: { error: OpmateError; place: YamlPlace }[] = [];

  constructor(file: string, document: PlacedYaml) {
    this.file = file;
    this.document = document;
    for (const { path, place, first } of document.duplicates) {
      const message = `${shownPath(path)}: key is there twice`;
      this.#add(place, message, `it stands in line ${first.line} already; keep one of them`, 'INVALID');
    }
    if (document.furtherDocument !== undefined) {
      const hint = 'give each configuration a file of its own';
      this.#add(document.furtherDocument, 'a second document begins here', hint, 'INVALID');
    }
  }

  /** Where a path is written, or the nearest thing above it. */
  placeOf(path: YamlPath): YamlPlace {
    for (let length = path.length; length > 0; length--) {
      const place = this.document.placeOf(path.slice(0, length));
      if (place !== undefined) return place;
    }
    return { line: 1, column: 1 };
  }

  fail(
    path: YamlPath,
    problem: string,
    hint?: string,
    code: 'INVALID' | 'UNSUPPORTED' = 'INVALID',
  ): undefined {
    const subject = path.length === 0 ? problem : `${shownPath(path)}: ${problem}`;
    this.#add(this.placeOf(path), subject, hint, code);
    return undefined;
  }

  #add(place: YamlPlace, message: string, hint: string | undefined, code: 'INVALID' | 'UNSUPPORTED'): void {
    this.#faults.push({ error: configError(this.file, place, message, hint, code), place });
  }

  /** An object with no other keys than `keys`; undefined where it is absent or none. */
  object(value: JsonValue | undefined, path: YamlPath, keys: readonly string[]): JsonObject | undefined {
    if (value === undefined || value === null) return undefined;
    if (!isJsonObject(value)) return this.fail(path, 'expected keys and values');
    for (const key of Object.keys(value)) {
      if (keys.includes(key)) continue;
      this.fail([...path, key], 'unknown key', hintForKey(key, keys));
    }
    return value;
  }

  /** Field `key` of an object; undefined where it is absent or null. */
  field(object: JsonObject, key: string): JsonValue | undefined {
    return Object.hasOwn(object, key) ? (object[key] ?? undefined) : undefined;
  }

  list(object: JsonObject, path: YamlPath, key: string): JsonValue[] | undefined {
    const value = this.field(object, key);
    if (value === undefined || Array.isArray(value)) return value;
    return this.fail([...path, key], 'expected a list');
  }

  flag(object: JsonObject, path: YamlPath, key: string): boolean {
    const value = this.field(object, key);
    if (value !== undefined && typeof value !== 'boolean')
      this.fail([...path, key], 'expected true or false');
    return value === true;
  }

  /** A text; one that is empty counts as absent. */
  text(object: JsonObject, path: YamlPath, key: string): string | undefined {
    const value = this.field(object, key);
    if (value === undefined || value === '') return undefined;
    if (typeof value === 'string') return value;
    const hint = typeof value === 'object' ? undefined : 'write it in quotes';
    return this.fail([...path, key], 'expected a text', hint);
  }

  requiredText(object: JsonObject, path: YamlPath, key: string): string | undefined {
    const value = this.field(object, key);
    if (value === undefined || value === '') return this.fail(path, `${key} is missing`);
    return this.text(object, path, key);
  }

  /** A text that must match. */
  matching(
    object: JsonObject,
    path: YamlPath,
    key: string,
    pattern: RegExp,
    what: string,
  ): string | undefined {
    const value = this.text(object, path, key);
    if (value === undefined || pattern.test(value)) return value;
    return this.fail([...path, key], `${quoteGo(value)} is not ${what}`);
  }

  /** Throws when something is wrong, in the order of the text. */
  finish(): void {
    if (this.#faults.length === 0) return;
    const sorted = [...this.#faults].sort(
      (a, b) => a.place.line - b.place.line || a.place.column - b.place.column,
    );
    throw joinFaults(sorted.map(({ error }) => error));
  }
}

/** A path as people write it: `mirror.operators[0].catalog`. */
function shownPath(path: YamlPath): string {
  const text = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('');
  return text.replace(/^\./, '');
}

/** Keys that people bring along from older versions, and what to do instead. */
const formerKeys: Readonly<Record<string, string>> = {
  bundles: 'name versions with minVersion and maxVersion',
  selectedBundles: 'name versions with minVersion and maxVersion',
  storageConfig: 'this is a key of v1alpha2, which v2alpha1 does without',
  targetName: 'the key is called targetCatalog',
  mirror: 'a configuration says what to mirror or what to delete, not both',
  delete: 'a configuration says what to mirror or what to delete, not both',
};

function hintForKey(key: string, keys: readonly string[]): string {
  const former = Object.hasOwn(formerKeys, key) ? formerKeys[key] : undefined;
  if (former !== undefined) return former;
  const near = new NameIndex(keys).nearest(key);
  return near === undefined ? `there is ${keys.join(', ')}` : `did you mean ${near}`;
}

const componentPattern = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const repositoryPattern = new RegExp(`^${componentPattern}(?:/${componentPattern})*$`);
const tagPattern = /^\w[\w.-]{0,127}$/;

/** A kind of configuration and the key of what it lists. */
interface ConfigForm {
  kind: string;
  key: 'mirror' | 'delete';
  rootKeys: readonly string[];
  sections: readonly string[];
  /** What is done with what is listed. */
  purpose: string;
}

const commonSections = ['platform', 'operators', 'additionalImages', 'helm', 'samples'];

const mirrorForm: ConfigForm = {
  kind: 'ImageSetConfiguration',
  key: 'mirror',
  rootKeys: ['kind', 'apiVersion', 'mirror', 'archiveSize'],
  sections: [...commonSections, 'blockedImages'],
  purpose: 'to mirror',
};

const deleteForm: ConfigForm = {
  kind: 'DeleteImageSetConfiguration',
  key: 'delete',
  rootKeys: ['kind', 'apiVersion', 'delete'],
  sections: commonSections,
  purpose: 'to delete',
};

function readRoot(reader: ConfigReader, form: ConfigForm): Partial<ImageSetConfiguration> {
  const { key, sections } = form;
  const root = reader.object(reader.document.value, [], form.rootKeys);
  if (root === undefined) {
    reader.fail([], `expected kind: ${form.kind} and ${key}:`);
    return {};
  }
  const kind = reader.text(root, [], 'kind');
  if (kind !== form.kind) {
    const path = Object.hasOwn(root, 'kind') ? ['kind'] : [];
    reader.fail(path, `kind is not ${form.kind}`, `write kind: ${form.kind}`);
  }
  // Its text does not matter, as with oc-mirror.
  reader.text(root, [], 'apiVersion');
  const archiveBytes = readArchiveSize(reader, root);
  const listed = reader.object(reader.field(root, key), [key], sections);
  if (listed === undefined) {
    reader.fail([], `${key} is missing`, `list the catalogs below ${key}.operators`);
    return {};
  }
  const later = ['platform', 'helm', 'samples'].filter((section) => {
    const value = reader.field(listed, section);
    return value !== undefined && (typeof value !== 'object' || Object.keys(value as object).length > 0);
  });
  for (const section of later) {
    const hint = 'mirror operators and additionalImages with opmate, and this section with oc-mirror';
    reader.fail([key, section], 'not supported yet', hint, 'UNSUPPORTED');
  }
  const path = [key, 'operators'];
  const operators = (reader.list(listed, [key], 'operators') ?? []).map((item, index) =>
    readOperator(reader, item, [...path, index]),
  );
  checkTargets(reader, operators, path);
  const additional = (reader.list(listed, [key], 'additionalImages') ?? []).map((item, index) =>
    readAdditionalImage(reader, item, [key, 'additionalImages', index]),
  );
  const blocked = (reader.list(listed, [key], 'blockedImages') ?? []).map((item, index) =>
    readBlockedImage(reader, item, [key, 'blockedImages', index]),
  );
  const hasOwnKeys = Object.keys(listed).every((one) => sections.includes(one));
  if (operators.length + additional.length + later.length === 0 && hasOwnKeys) {
    reader.fail([key], `nothing ${form.purpose}`, `list catalogs below ${key}.operators`);
  }
  return {
    file: reader.file,
    archiveBytes,
    operators: operators.filter((one) => one !== undefined),
    additionalImages: additional.filter((one) => one !== undefined),
    blockedImages: blocked.filter((one) => one !== undefined),
  };
}

function readArchiveSize(reader: ConfigReader, root: JsonObject): number {
  const value = reader.field(root, 'archiveSize') ?? 0;
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0 || value > 2 ** 20) {
    reader.fail(['archiveSize'], 'expected a whole number of GiB');
    return 0;
  }
  return (value === 0 ? defaultArchiveGiB : value) * gibibyte;
}

const operatorKeys = [
  'catalog',
  'full',
  'packages',
  'targetCatalog',
  'targetTag',
  'targetCatalogSourceTemplate',
  'skipDependencies',
  'platforms',
];

function readOperator(reader: ConfigReader, value: JsonValue, path: YamlPath): OperatorConfig | undefined {
  const object = reader.object(value, path, operatorKeys);
  if (object === undefined) return value === null ? reader.fail(path, 'catalog is missing') : undefined;
  const catalog = reader.requiredText(object, path, 'catalog');
  const reference = readReference(reader, catalog, [...path, 'catalog']);
  const full = reader.flag(object, path, 'full');
  // Has no effect with oc-mirror either.
  reader.flag(object, path, 'skipDependencies');
  const items = reader.list(object, path, 'packages');
  const packages = (items ?? []).map((item, index) =>
    readPackage(reader, item, [...path, 'packages', index]),
  );
  checkUnique(reader, packages, [...path, 'packages'], 'package');
  if (full) {
    for (const [index, one] of packages.entries()) {
      const bounded = [one, ...(one?.channels ?? [])].some((part) => part !== undefined && hasBounds(part));
      if (!bounded) continue;
      const hint = 'full takes every version; leave out either full or the versions';
      reader.fail([...path, 'packages', index], 'versions cannot be chosen where full is true', hint);
    }
  }
  const operator: Partial<OperatorConfig> = {
    full,
    packages: packages.length === 0 ? undefined : packages.filter((one) => one !== undefined),
    targetCatalog: reader.matching(object, path, 'targetCatalog', repositoryPattern, 'a path of a registry'),
    targetTag: reader.matching(object, path, 'targetTag', tagPattern, 'a tag'),
    targetCatalogSourceTemplate: reader.text(object, path, 'targetCatalogSourceTemplate'),
    platforms: readPlatforms(reader, object, path),
    place: reader.placeOf(path),
  };
  if (catalog === undefined || reference === undefined) return undefined;
  return { ...operator, catalog, reference } as OperatorConfig;
}

function readPackage(reader: ConfigReader, value: JsonValue, path: YamlPath): PackageConfig | undefined {
  const keys = ['name', 'channels', 'defaultChannel', 'minVersion', 'maxVersion'];
  const object = reader.object(value, path, keys);
  if (object === undefined) return value === null ? reader.fail(path, 'name is missing') : undefined;
  const name = reader.requiredText(object, path, 'name');
  const bounds = readBounds(reader, object, path);
  const items = reader.list(object, path, 'channels') ?? [];
  const channels = items.map((item, index) => readChannel(reader, item, [...path, 'channels', index]));
  checkUnique(reader, channels, [...path, 'channels'], 'channel');
  if (hasBounds(bounds) && channels.some((channel) => channel !== undefined && hasBounds(channel))) {
    const hint = 'give them for the package, or for each channel';
    reader.fail(path, 'versions are given for the package and for its channels', hint);
  }
  const defaultChannel = reader.text(object, path, 'defaultChannel');
  if (name === undefined) return undefined;
  const chosen = channels.filter((one) => one !== undefined);
  return {
    name,
    ...bounds,
    channels: items.length === 0 ? undefined : chosen,
    defaultChannel,
    place: reader.placeOf(path),
  };
}

function readChannel(reader: ConfigReader, value: JsonValue, path: YamlPath): ChannelConfig | undefined {
  const object = reader.object(value, path, ['name', 'minVersion', 'maxVersion']);
  if (object === undefined) return value === null ? reader.fail(path, 'name is missing') : undefined;
  const name = reader.requiredText(object, path, 'name');
  const bounds = readBounds(reader, object, path);
  return name === undefined ? undefined : { name, ...bounds, place: reader.placeOf(path) };
}

/** Whether any version is asked for. */
export function hasBounds({ minVersion, maxVersion }: VersionBounds): boolean {
  return minVersion !== undefined || maxVersion !== undefined;
}

function readBounds(reader: ConfigReader, object: JsonObject, path: YamlPath): VersionBounds {
  const read = (key: string) => {
    const text = reader.text(object, path, key);
    try {
      return text === undefined ? undefined : { text, version: parseVersion(text) };
    } catch {
      const problem = `${quoteGo(text as string)} is not a version`;
      return reader.fail([...path, key], problem, 'write it as 1.2.3 or 1.2.3-rc.1');
    }
  };
  const [min, max] = [read('minVersion'), read('maxVersion')];
  if (min !== undefined && max !== undefined && compareVersions(min.version, max.version) > 0) {
    reader.fail([...path, 'minVersion'], `${min.text} is above maxVersion ${max.text}`);
  }
  return { minVersion: min?.text, maxVersion: max?.text };
}

function readPlatforms(reader: ConfigReader, object: JsonObject, path: YamlPath): PlatformConfig[] {
  const items = reader.list(object, path, 'platforms') ?? [];
  const platforms = items.map((item, index) => {
    const at = [...path, 'platforms', index];
    const platform = reader.object(item, at, ['os', 'architecture']);
    if (platform === undefined) return item === null ? reader.fail(at, 'os is missing') : undefined;
    const os = reader.requiredText(platform, at, 'os');
    const architecture = reader.requiredText(platform, at, 'architecture');
    return os === undefined || architecture === undefined ? undefined : { os, architecture };
  });
  return platforms.filter((one) => one !== undefined);
}

function readAdditionalImage(
  reader: ConfigReader,
  value: JsonValue,
  path: YamlPath,
): AdditionalImageConfig | undefined {
  const object = reader.object(value, path, ['name', 'targetRepo', 'targetTag', 'platforms']);
  if (object === undefined) return value === null ? reader.fail(path, 'name is missing') : undefined;
  const name = reader.requiredText(object, path, 'name');
  const reference = readReference(reader, name, [...path, 'name']);
  const rest = {
    targetRepo: reader.matching(object, path, 'targetRepo', repositoryPattern, 'a path of a registry'),
    targetTag: reader.matching(object, path, 'targetTag', tagPattern, 'a tag'),
    platforms: readPlatforms(reader, object, path),
    place: reader.placeOf(path),
  };
  if (reference !== undefined && reference.transport !== 'docker' && rest.targetRepo === undefined) {
    reader.fail(path, 'targetRepo is missing', 'an image that is in no registry has no path of its own');
  }
  return name === undefined || reference === undefined ? undefined : { name, reference, ...rest };
}

function readBlockedImage(
  reader: ConfigReader,
  value: JsonValue,
  path: YamlPath,
): BlockedImageConfig | undefined {
  const object = reader.object(value, path, ['name']);
  if (object === undefined) return value === null ? reader.fail(path, 'name is missing') : undefined;
  const name = reader.requiredText(object, path, 'name');
  if (name === undefined) return undefined;
  try {
    // Go's flags at the beginning; the other rules of both languages are the same for what names images.
    const [, flags = '', rest = name] = /^\(\?([ims]+)\)(.*)$/s.exec(name) ?? [];
    return { name, pattern: new RegExp(rest, flags) };
  } catch {
    return reader.fail([...path, 'name'], `${quoteGo(name)} is not a regular expression`);
  }
}

/** An image in a registry, or `oci://DIR` for one in a layout directory. */
function readReference(
  reader: ConfigReader,
  text: string | undefined,
  path: YamlPath,
): Reference | undefined {
  if (text === undefined) return undefined;
  try {
    const reference = parseReference(text.replace(/^oci:\/\//, 'oci:'));
    if (reference.transport === 'docker' || reference.transport === 'oci') return reference;
    return reader.fail(
      path,
      `${reference.transport} is not supported`,
      'give a registry reference or oci://DIR',
    );
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return reader.fail(path, error.message, error.hint);
  }
}

function checkUnique(
  reader: ConfigReader,
  items: readonly ({ name: string; place: YamlPlace } | undefined)[],
  path: YamlPath,
  what: string,
): void {
  const seen = new Map<string, YamlPlace>();
  for (const [index, item] of items.entries()) {
    if (item === undefined) continue;
    const first = seen.get(item.name);
    if (first === undefined) seen.set(item.name, item.place);
    else {
      const hint = `line ${first.line} has it too; put everything about it into one item`;
      reader.fail([...path, index], `${what} ${quoteGo(item.name)} is there twice`, hint);
    }
  }
}

/** Repository path and tag that a catalog gets; the tag is undefined where only its digest is known. */
export function targetOfCatalog(operator: OperatorConfig): { repository: string; tag: string | undefined } {
  const { reference, targetCatalog, targetTag } = operator;
  const isLayout = reference.transport !== 'docker';
  const own = isLayout ? lastPathPart(reference.path) : reference.repository;
  // What names neither means the tag that every tool takes then.
  const untold = reference.digest === undefined || isLayout ? 'latest' : undefined;
  const ownTag = isLayout ? untold : (reference.tag ?? untold);
  return { repository: targetCatalog ?? own, tag: targetTag ?? ownTag };
}

function lastPathPart(path: string): string {
  return path.replace(/\/+$/, '').replace(/^.*\//, '').toLowerCase();
}

/** Two catalogs must not land in one place. */
function checkTargets(
  reader: ConfigReader,
  operators: readonly (OperatorConfig | undefined)[],
  at: YamlPath,
): void {
  const seen = new Map<string, OperatorConfig>();
  for (const [index, operator] of operators.entries()) {
    if (operator === undefined) continue;
    const path = [...at, index];
    const { repository, tag = operator.reference.digest } = targetOfCatalog(operator);
    if (!repositoryPattern.test(repository)) {
      const hint = 'give it a name with targetCatalog';
      reader.fail([...path, 'catalog'], `${quoteGo(repository)} cannot be a path of a registry`, hint);
    }
    const key = `${repository}:${tag}`;
    const first = seen.get(key);
    if (first === undefined) seen.set(key, operator);
    else {
      const problem = `lands on ${key}, as the catalog ${first.catalog} in line ${first.place.line} does`;
      reader.fail(path, problem, 'give one of them another targetCatalog or targetTag');
    }
  }
}
