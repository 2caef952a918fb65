import { type CatalogFilter, type Criteria, emptyFilter } from '../catalog/selection/catalog-filter.js';
import { dayOf, monthsBefore } from '../catalog/selection/creation-days.js';
import { OpmateError, UsageError } from '../core/errors.js';
import { quoteGo } from '../core/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../core/json.js';
import { parseRange, parseVersion } from '../core/semver.js';
import type { YamlPath } from '../core/yaml.js';
import { type ConfigReader, maxConfigLength, openConfig } from '../mirror/image-set/image-set-config.js';

/** The flags of `catalog filter` that say what is kept. */
export interface FilterFlags {
  packages?: string[];
  channels?: string[];
  versions?: string[];
  minVersion?: string[];
  maxVersion?: string[];
  reachableFrom?: string[];
  createdSince?: string;
  latest?: string[];
  headsOnly?: boolean;
  undated?: string;
  defaultChannel?: string[];
  dropPackage?: string[];
  dropChannel?: string[];
  dropBundle?: string[];
  dropDeprecated?: boolean;
  exact?: boolean;
}

/**
 * Adds what flags say to a filter. `today` is what months are counted back from. Throws UsageError for a value that is
 * none.
 */
export function addFlags(filter: CatalogFilter, flags: FilterFlags, today: Date): void {
  const addScoped = (
    flag: string,
    values: readonly string[] | undefined,
    read: (text: string) => Criteria,
  ) => {
    for (const value of values ?? []) {
      const { package: of, channel, text } = scopeOf(value);
      const where = `--${flag}`;
      const criteria = orUsage(where, text, () => read(text));
      filter.criteria.push({ package: of, channel, where, criteria });
    }
  };
  for (const name of flags.packages ?? []) (filter.packages ??= []).push({ name, where: '--packages' });
  for (const text of flags.channels ?? []) {
    filter.channels.push({ ...pairOf(text), where: '--channels' });
  }
  addScoped('versions', flags.versions, (text) => ({ versions: rangeOf(text) }));
  addScoped('min-version', flags.minVersion, (text) => ({ minVersion: versionOf(text) }));
  addScoped('max-version', flags.maxVersion, (text) => ({ maxVersion: versionOf(text) }));
  addScoped('reachable-from', flags.reachableFrom, (text) => ({ reachableFrom: installedOf(text) }));
  if (flags.headsOnly === true && flags.latest !== undefined) {
    throw new UsageError('--heads-only and --latest cannot be used together', { hint: 'keep one of them' });
  }
  addScoped('latest', flags.latest, (text) => ({ latest: countOf(text) }));
  const everywhere = { package: undefined, channel: undefined };
  if (flags.headsOnly === true) {
    filter.criteria.push({ ...everywhere, where: '--heads-only', criteria: { latest: 1 } });
  }
  if (flags.createdSince !== undefined) {
    const text = flags.createdSince;
    const where = '--created-since';
    const createdSince = orUsage(where, text, () => sinceOf(text, today));
    filter.criteria.push({ ...everywhere, where, criteria: { createdSince } });
  }
  for (const value of flags.defaultChannel ?? []) {
    const { package: of, channel, text } = scopeOf(value);
    if (of === undefined || channel !== undefined || text === '') {
      throw new UsageError(`--default-channel ${quoteGo(value)}: expected package=channel`);
    }
    filter.defaultChannels.push({ package: of, name: text, where: '--default-channel' });
  }
  for (const name of flags.dropPackage ?? []) filter.dropPackages.push({ name, where: '--drop-package' });
  for (const text of flags.dropChannel ?? []) {
    filter.dropChannels.push({ ...pairOf(text), where: '--drop-channel' });
  }
  for (const text of flags.dropBundle ?? []) {
    filter.dropBundles.push({ ...pairOf(text), where: '--drop-bundle' });
  }
  if (flags.undated !== undefined) {
    if (flags.undated !== 'keep' && flags.undated !== 'drop') {
      throw new UsageError(`invalid --undated value ${quoteGo(flags.undated)}, expected (keep|drop)`);
    }
    filter.undated = flags.undated;
  }
  filter.dropDeprecated ||= flags.dropDeprecated === true;
  filter.exact ||= flags.exact === true;
}

function orUsage<T>(where: string, text: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw new UsageError(`${where} ${quoteGo(text)}: ${error.message}`, { hint: error.hint });
  }
}

/** `package=…`, `package/channel=…`, or no scope. No operator of a range and no version is a package's name. */
function scopeOf(value: string): { package: string | undefined; channel: string | undefined; text: string } {
  const match = /^([A-Za-z0-9][^\s<>=!|/]*)(?:\/([^\s<>=!|]+))?=(.*)$/s.exec(value);
  if (match === null) return { package: undefined, channel: undefined, text: value };
  return { package: match[1], channel: match[2], text: (match[3] as string).trim() };
}

/** `package/name`, or a name of any package. */
function pairOf(text: string): { package: string | undefined; name: string } {
  const at = text.indexOf('/');
  if (at < 0) return { package: undefined, name: text };
  return { package: text.slice(0, at), name: text.slice(at + 1) };
}

function rangeOf(text: string): NonNullable<Criteria['versions']> {
  return { text, range: parseRange(text) };
}

function versionOf(text: string): string {
  parseVersion(text);
  return text;
}

function installedOf(text: string): string {
  if (text !== '') return text;
  throw new OpmateError('INVALID', 'expected the name or version of an installed bundle');
}

const maxCount = 1_000_000;

function countOf(text: string): number {
  const value = /^\d{1,7}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= maxCount) return value;
  throw new OpmateError('INVALID', `expected a whole number from 1 to ${maxCount}`);
}

const maxMonths = 1200;

/** A day, or a number of months back from today. */
function sinceOf(text: string, today: Date): string {
  const months = /^(\d{1,4}) ?(?:m|months?)?$/.exec(text.trim());
  if (months !== null && Number(months[1]) <= maxMonths) return monthsBefore(today, Number(months[1]));
  const day = /^[\d-]+$/.test(text) ? dayOf(text) : undefined;
  if (day !== undefined) return day;
  throw new OpmateError('INVALID', 'expected a day such as 2024-01-31, or a number of months');
}

const criteriaKeys = [
  'versions',
  'minVersion',
  'maxVersion',
  'reachableFrom',
  'createdSince',
  'latest',
  'headsOnly',
];
const rootKeys = ['kind', 'packages', ...criteriaKeys, 'undated', 'exact', 'drop'];
const packageKeys = ['name', 'channels', 'defaultChannel', ...criteriaKeys];
const dropKeys = ['packages', 'channels', 'bundles', 'deprecated'];

/**
 * Reads a file of kind `CatalogFilter`, YAML or JSON (`schemas/catalog-filter.schema.json`). Every fault is reported,
 * each with line and column. Throws OpmateError SYNTAX, INVALID or LIMIT.
 */
export function readFilterFile(text: string, file: string, today: Date): CatalogFilter {
  const reader = openConfig(text, file, maxConfigLength);
  const filter = emptyFilter();
  new FilterFileReader(reader, filter, today).read();
  reader.finish();
  return filter;
}

class FilterFileReader {
  readonly #reader: ConfigReader;
  readonly #filter: CatalogFilter;
  readonly #today: Date;

  constructor(reader: ConfigReader, filter: CatalogFilter, today: Date) {
    this.#reader = reader;
    this.#filter = filter;
    this.#today = today;
  }

  read(): void {
    const reader = this.#reader;
    const filter = this.#filter;
    const root = reader.object(reader.document.value, [], rootKeys);
    if (root === undefined) {
      reader.fail([], 'expected kind: CatalogFilter');
      return;
    }
    if (reader.text(root, [], 'kind') !== 'CatalogFilter') {
      const path = Object.hasOwn(root, 'kind') ? ['kind'] : [];
      reader.fail(path, 'kind is not CatalogFilter', 'write kind: CatalogFilter');
    }
    this.#addCriteria(root, [], undefined, undefined);
    const packages = reader.list(root, [], 'packages');
    if (packages !== undefined) filter.packages = [];
    for (const [at, item] of (packages ?? []).entries()) this.#addPackage(item, ['packages', at]);
    const undated = reader.text(root, [], 'undated');
    if (undated === 'keep' || undated === 'drop') filter.undated = undated;
    else if (undated !== undefined) reader.fail(['undated'], 'expected keep or drop');
    filter.exact = reader.flag(root, [], 'exact');
    const drop = reader.object(reader.field(root, 'drop'), ['drop'], dropKeys);
    if (drop === undefined) return;
    for (const { name, where } of this.#names(drop, 'packages')) filter.dropPackages.push({ name, where });
    for (const { name, where } of this.#names(drop, 'channels')) {
      filter.dropChannels.push({ ...pairOf(name), where });
    }
    for (const { name, where } of this.#names(drop, 'bundles')) {
      filter.dropBundles.push({ ...pairOf(name), where });
    }
    filter.dropDeprecated = reader.flag(drop, ['drop'], 'deprecated');
  }

  #whereOf(path: YamlPath): string {
    const { line, column } = this.#reader.placeOf(path);
    return `${this.#reader.file}:${line}:${column}`;
  }

  #names(drop: JsonObject, key: string): { name: string; where: string }[] {
    const items = this.#reader.list(drop, ['drop'], key) ?? [];
    return items.flatMap((name, at) => {
      const path = ['drop', key, at];
      if (typeof name === 'string' && name !== '') return [{ name, where: this.#whereOf(path) }];
      this.#reader.fail(path, 'expected a name');
      return [];
    });
  }

  #addPackage(item: JsonValue, path: YamlPath): void {
    const reader = this.#reader;
    const object = this.#named(item, path, packageKeys);
    if (object === undefined) return;
    const { name, value } = object;
    const where = this.#whereOf(path);
    (this.#filter.packages ??= []).push({ name, where });
    this.#addCriteria(value, path, name, undefined);
    const defaultChannel = reader.text(value, path, 'defaultChannel');
    if (defaultChannel !== undefined) {
      const place = this.#whereOf([...path, 'defaultChannel']);
      this.#filter.defaultChannels.push({ package: name, name: defaultChannel, where: place });
    }
    const channels = reader.list(value, path, 'channels');
    if (channels?.length === 0)
      reader.fail([...path, 'channels'], 'names no channel', 'leave it out for all');
    for (const [at, channel] of (channels ?? []).entries()) {
      const place = [...path, 'channels', at];
      const found = this.#named(channel, place, ['name', ...criteriaKeys]);
      if (found === undefined) continue;
      this.#filter.channels.push({ package: name, name: found.name, where: this.#whereOf(place) });
      this.#addCriteria(found.value, place, name, found.name);
    }
  }

  /** An object with a name, or a name alone. */
  #named(
    item: JsonValue,
    path: YamlPath,
    keys: readonly string[],
  ): { name: string; value: JsonObject } | undefined {
    if (typeof item === 'string' && item !== '') return { name: item, value: {} };
    if (!isJsonObject(item)) return this.#reader.fail(path, 'expected a name, or keys and values');
    const value = this.#reader.object(item, path, keys);
    const name = value === undefined ? undefined : this.#reader.requiredText(value, path, 'name');
    return name === undefined ? undefined : { name, value: item };
  }

  #addCriteria(
    object: JsonObject,
    path: YamlPath,
    packageName: string | undefined,
    channel: string | undefined,
  ): void {
    const reader = this.#reader;
    const criteria: Criteria = {};
    const read = <T>(key: string, parse: (text: string) => T): T | undefined => {
      const text = reader.text(object, path, key);
      if (text === undefined) return undefined;
      try {
        return parse(text);
      } catch (error) {
        if (!(error instanceof OpmateError)) throw error;
        return reader.fail([...path, key], error.message, error.hint);
      }
    };
    const [versions, reachableFrom] = [read('versions', rangeOf), read('reachableFrom', installedOf)];
    const [minVersion, maxVersion] = [read('minVersion', versionOf), read('maxVersion', versionOf)];
    const createdSince = read('createdSince', (text) => sinceOf(text, this.#today));
    const latest = this.#latest(object, path);
    if (versions !== undefined) criteria.versions = versions;
    if (minVersion !== undefined) criteria.minVersion = minVersion;
    if (maxVersion !== undefined) criteria.maxVersion = maxVersion;
    if (reachableFrom !== undefined) criteria.reachableFrom = reachableFrom;
    if (createdSince !== undefined) criteria.createdSince = createdSince;
    if (latest !== undefined) criteria.latest = latest;
    if (Object.keys(criteria).length === 0) return;
    this.#filter.criteria.push({ package: packageName, channel, where: this.#whereOf(path), criteria });
  }

  #latest(object: JsonObject, path: YamlPath): number | undefined {
    const reader = this.#reader;
    const value = reader.field(object, 'latest');
    if (reader.flag(object, path, 'headsOnly')) {
      if (value !== undefined)
        reader.fail([...path, 'latest'], 'headsOnly says 1 already', 'keep one of them');
      return 1;
    }
    if (value === undefined) return undefined;
    try {
      return countOf(typeof value === 'number' ? String(value) : '');
    } catch (error) {
      return reader.fail([...path, 'latest'], (error as OpmateError).message);
    }
  }
}
