import type { DocumentPath } from '../../core/diagnostic.js';
import { type WrittenDocument, readDocument } from '../../document/document.js';
import type { Field } from '../../document/field.js';
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
  const filter = emptyFilter();
  new FilterFileReader(document, filter, today).read();
  document.diagnostics.throwIfErrors();
  return filter;
}

class FilterFileReader {
  readonly #document: WrittenDocument;
  readonly #filter: CatalogFilter;
  readonly #today: Date;

  constructor(document: WrittenDocument, filter: CatalogFilter, today: Date) {
    this.#document = document;
    this.#filter = filter;
    this.#today = today;
  }

  read(): void {
    const filter = this.#filter;
    const { root } = this.#document;
    if (!root.isPresent) root.fail('expected kind: CatalogFilter');
    const fields = root.isPresent ? root.object(rootKeys) : undefined;
    if (fields === undefined) return;
    fields.kind.constant('CatalogFilter');
    this.#addCriteria(fields, root.path, undefined, undefined);
    if (fields.packages.isPresent) filter.packages = [];
    for (const item of fields.packages.optionalList()) this.#addPackage(item);
    filter.undated = fields.undated.optionalChoice(['keep', 'drop']) ?? filter.undated;
    if (fields.exact.optionalBoolean()) filter.keep = 'nothing';
    const drop = fields.drop.isPresent ? fields.drop.object(dropKeys) : undefined;
    if (drop === undefined) return;
    filter.dropPackages.push(...this.#readNames(drop.packages));
    for (const { name, where } of this.#readNames(drop.channels)) {
      filter.dropChannels.push({ ...parseQualifiedName(name), where });
    }
    for (const { name, where } of this.#readNames(drop.bundles)) {
      filter.dropBundles.push({ ...parseQualifiedName(name), where });
    }
    filter.dropDeprecated = drop.deprecated.optionalBoolean();
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
    (this.#filter.packages ??= []).push({ name, where: this.#placeOf(item.path) });
    this.#addCriteria(fields, item.path, name, undefined);
    const defaultChannel = fields.defaultChannel.optionalText();
    if (defaultChannel !== undefined) {
      const where = this.#placeOf(fields.defaultChannel.path);
      this.#filter.defaultChannels.push({ package: name, name: defaultChannel, where });
    }
    const channels = fields.channels.optionalList();
    if (fields.channels.isPresent && channels.length === 0) {
      fields.channels.fail('no channels', { hint: 'remove it to keep all channels' });
    }
    for (const channel of channels) {
      const read = readNamed(channel, channelKeys);
      const channelName = read?.name.text();
      if (read === undefined || channelName === undefined) continue;
      const where = this.#placeOf(channel.path);
      this.#filter.channels.push({ package: name, name: channelName, where });
      this.#addCriteria(read, channel.path, name, channelName);
    }
  }

  #addCriteria(
    fields: CriteriaFields,
    path: DocumentPath,
    packageName: string | undefined,
    channel: string | undefined,
  ): void {
    const criteria: Criteria = {};
    const versions = fields.versions.optionalParsed(parseNamedRange);
    const minVersion = fields.minVersion.optionalParsed(checkVersion);
    const maxVersion = fields.maxVersion.optionalParsed(checkVersion);
    const reachableFrom = fields.reachableFrom.optionalParsed(parseInstalled);
    const createdSince = fields.createdSince.optionalParsed((text) => parseSince(text, this.#today));
    const latest = readLatest(fields);
    if (versions !== undefined) criteria.versions = versions;
    if (minVersion !== undefined) criteria.minVersion = minVersion;
    if (maxVersion !== undefined) criteria.maxVersion = maxVersion;
    if (reachableFrom !== undefined) criteria.reachableFrom = reachableFrom;
    if (createdSince !== undefined) criteria.createdSince = createdSince;
    if (latest !== undefined) criteria.latest = latest;
    if (Object.keys(criteria).length === 0) return;
    this.#filter.criteria.push({
      package: packageName,
      channel,
      where: this.#placeOf(path),
      criteria,
    });
  }
}

/** Returns the fields of an object with a name, or of a bare name. */
function readNamed<K extends string>(
  item: Field,
  keys: readonly (K | 'name')[],
): Readonly<Record<K | 'name', Field>> | undefined {
  if (typeof item.value !== 'string') {
    return item.isPresent ? item.object(keys) : item.mismatch('a name or an object');
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
