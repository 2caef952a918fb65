import type { DocumentPath } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { quoteGo } from '../../document/go-json.js';
import { type WrittenDocument, readDocument } from '../../document/document.js';
import { type Field, quoteShort } from '../../document/field.js';
import { isJsonObject } from '../../document/json.js';
import {
  type CatalogFilter,
  type Criteria,
  type NamedRequest,
  type RequestPlace,
  emptyFilter,
} from './catalog-filter.js';
import {
  checkVersion,
  maxCount,
  parseInstalled,
  parseQualifiedName,
  parseSince,
  parseNamedRange,
} from './filter-criteria.js';

/** Maximum characters of a filter file. */
const maxFilterLength = 4 * 1024 * 1024;

const criteriaKeys = [
  'versions',
  'minVersion',
  'maxVersion',
  'reachableFrom',
  'createdSince',
  'latest',
  'headsOnly',
] as const;
type CriteriaFields = Readonly<Record<(typeof criteriaKeys)[number], Field>>;
const rootKeys = ['kind', 'packages', ...criteriaKeys, 'undated', 'exact', 'drop'] as const;
const packageKeys = ['name', 'channels', 'defaultChannel', ...criteriaKeys] as const;
const channelKeys = ['name', ...criteriaKeys] as const;
const dropKeys = ['packages', 'channels', 'bundles', 'deprecated'] as const;

/**
 * Reads a `CatalogFilter` file, YAML or JSON (`schemas/catalog-filter.schema.json`). `today` is the reference of
 * months. Throws OpmateError SYNTAX or LIMIT, or DiagnosticsError with all problems.
 */
export function readFilterFile(text: string, file: string, today: Date): CatalogFilter {
  const document = readDocument(text, file, { maxLength: maxFilterLength, noun: 'filter' });
  const { root } = document;
  if (!root.isPresent) root.fail('expected kind: CatalogFilter');
  const reader = new FilterFileReader(document, today);
  if (root.isPresent) reader.readRoot();
  document.diagnostics.throwIfErrors();
  return reader.filter;
}

/** Reads the fields of a filter file into a filter. */
class FilterFileReader {
  readonly filter = emptyFilter();
  readonly #document: WrittenDocument;
  readonly #today: Date;
  readonly #packageFields = new Map<string, Field>();

  constructor(document: WrittenDocument, today: Date) {
    this.#document = document;
    this.#today = today;
  }

  readRoot(): void {
    const { root } = this.#document;
    const read = root.object(rootKeys, { hints: { apiVersion: 'remove it' } });
    if (read === undefined) return;
    read.kind.constant('CatalogFilter');
    this.#addCriteria(read, root.path, undefined, undefined);
    if (read.packages.isPresent) this.filter.packages = [];
    for (const item of read.packages.optionalList()) this.#addPackage(item);
    this.filter.undated = read.undated.optionalChoice(['keep', 'drop']) ?? this.filter.undated;
    if (read.exact.optionalBoolean()) this.filter.keep = 'nothing';
    const drop = read.drop.isPresent ? read.drop.object(dropKeys) : undefined;
    if (drop === undefined) return;
    this.filter.dropPackages.push(...this.#readNames(drop.packages));
    const readQualified = (list: Field): (ReturnType<typeof parseQualifiedName> & NamedRequest)[] =>
      this.#readNames(list).map(({ name, where }) => ({ ...parseQualifiedName(name), where }));
    this.filter.dropChannels.push(...readQualified(drop.channels));
    this.filter.dropBundles.push(...readQualified(drop.bundles));
    this.filter.dropDeprecated = drop.deprecated.optionalBoolean();
  }

  #placeOf(path: DocumentPath): RequestPlace {
    const { line, column } = this.#document.findPlace(path);
    return { file: this.#document.name, line, column };
  }

  #readNames(list: Field): NamedRequest[] {
    return list.optionalList().flatMap((item) => {
      const name = item.text();
      return name === undefined ? [] : [{ name, where: this.#placeOf(item.path) }];
    });
  }

  #addPackage(item: Field): void {
    const fields = readNamed(item, packageKeys);
    const name = fields?.name.text();
    if (fields === undefined || name === undefined) return;
    requireUnique(item, 'package', name, this.#packageFields);
    (this.filter.packages ??= []).push({ name, where: this.#placeOf(item.path) });
    this.#addCriteria(fields, item.path, name, undefined);
    const defaultChannel = fields.defaultChannel.optionalText();
    if (defaultChannel !== undefined) {
      const where = this.#placeOf(fields.defaultChannel.path);
      this.filter.defaultChannels.push({ package: name, name: defaultChannel, where });
    }
    const channels = fields.channels.optionalList();
    if (Array.isArray(fields.channels.value) && channels.length === 0) {
      fields.channels.fail('no channels', { hint: 'remove it to keep all channels' });
    }
    const channelFields = new Map<string, Field>();
    for (const channel of channels) {
      const read = readNamed(channel, channelKeys);
      const channelName = read?.name.text();
      if (read === undefined || channelName === undefined) continue;
      requireUnique(channel, 'channel', channelName, channelFields);
      const where = this.#placeOf(channel.path);
      this.filter.channels.push({ package: name, name: channelName, where });
      this.#addCriteria(read, channel.path, name, channelName);
    }
  }

  #addCriteria(
    fields: CriteriaFields,
    path: DocumentPath,
    packageName: string | undefined,
    channel: string | undefined,
  ): void {
    const set = Object.entries({
      versions: fields.versions.optionalParsed(withValue(parseNamedRange)),
      minVersion: fields.minVersion.optionalParsed(withValue(checkVersion)),
      maxVersion: fields.maxVersion.optionalParsed(withValue(checkVersion)),
      reachableFrom: fields.reachableFrom.optionalParsed(parseInstalled),
      createdSince: fields.createdSince.optionalParsed((text) => parseSince(text, this.#today)),
      latest: readLatest(fields),
    }).filter(([, value]) => value !== undefined);
    if (set.length === 0) return;
    const criteria: Criteria = Object.fromEntries(set);
    this.filter.criteria.push({ package: packageName, channel, where: this.#placeOf(path), criteria });
  }
}

/** Reports an item with the name of an earlier one. */
function requireUnique(item: Field, noun: string, name: string, known: Map<string, Field>): void {
  const first = getOrAdd(known, name, () => item);
  if (first === item) return;
  const problem = `duplicate ${noun} ${quoteShort(name)}, first defined on line ${first.place.line}`;
  item.fail(problem, { code: 'duplicate', hint: 'merge both into one item' });
}

/** Returns the fields of an object with a name, or of a bare name. */
function readNamed<K extends string>(
  item: Field,
  keys: readonly (K | 'name')[],
): Readonly<Record<K | 'name', Field>> | undefined {
  if (typeof item.value !== 'string') {
    return isJsonObject(item.value) ? item.object(keys) : item.mismatch('a name or an object');
  }
  const fields = keys.map((key) => [key, key === 'name' ? item : item.field(key)]);
  return Object.fromEntries(fields) as Record<K | 'name', Field>;
}

function readLatest({ headsOnly, latest }: CriteriaFields): number | undefined {
  if (!headsOnly.optionalBoolean()) return latest.optionalInteger(1, maxCount);
  if (latest.isPresent) {
    latest.fail('cannot be combined with headsOnly', {
      code: 'exclusive-fields',
      hint: 'keep one of them',
    });
  }
  return 1;
}

/** Returns a parser whose error quotes the text, which the subject of a file does not have. */
function withValue<T>(parse: (text: string) => T): (text: string) => T {
  return (text) => {
    try {
      return parse(text);
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      throw new OpmateError(error.code, `${error.problem} ${quoteGo(text)}`, { hint: error.hint });
    }
  };
}
