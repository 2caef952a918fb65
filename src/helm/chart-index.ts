import { OpmateError } from '../core/errors.js';
import { inContext } from '../core/diagnostics-error.js';
import { quoteGo } from '../core/go-json-quote.js';
import { compareBytes } from '../core/order.js';
import { parseConstraint } from '../core/semver-range.js';
import { tryParse } from '../core/semver.js';
import { compareKnownVersions } from '../graph/bundle-version.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { parseYaml } from '../document/yaml.js';
import { getValue } from '../document/json-fields.js';
import { parseLooseVersion } from './template/functions/versions.js';

/** A chart version in a repository index. */
export interface IndexedChart {
  name: string;
  /** Version as written. */
  version: string;
  urls: string[];
  /** `sha256:…` of the archive, if the index has it. */
  digest: string | undefined;
  isLibrary: boolean;
}

/** Charts of a repository by name, newest version first. */
export type ChartIndex = ReadonlyMap<string, readonly IndexedChart[]>;

/** Maximum bytes of an index; public ones have up to 30 MiB. */
export const maxIndexBytes = 64 * 1024 * 1024;
const maxVersions = 500_000;

/**
 * Reads the `index.yaml` of a repository. Omits entries without version or URL, as Helm does. Throws OpmateError that
 * starts with `label`.
 */
export function parseChartIndex(text: string, label: string): ChartIndex {
  const value: JsonValue = inContext({ subject: label }, () => parseYaml(text));
  const entries = getValue(value, 'entries');
  if (!isJsonObject(value) || (entries !== undefined && entries !== null && !isJsonObject(entries)))
    throw new OpmateError('INVALID', `${label}: not the index of a chart repository`);
  const index = new Map<string, IndexedChart[]>();
  let count = 0;
  for (const [name, versions] of Object.entries(entries ?? {})) {
    if (!Array.isArray(versions)) continue;
    count += versions.length;
    if (count > maxVersions) throw new OpmateError('LIMIT', `${label}: more than ${maxVersions} versions`);
    const read = versions.filter(isJsonObject).flatMap((entry): IndexedChart[] => readEntry(name, entry));
    index.set(name, newestFirst(read));
  }
  return index;
}

function readEntry(name: string, entry: JsonObject): IndexedChart[] {
  const { version, urls, digest, type } = entry;
  if (typeof version !== 'string' || version === '' || !Array.isArray(urls)) return [];
  const usable = urls.filter((url) => typeof url === 'string' && url !== '') as string[];
  if (usable.length === 0) return [];
  const hex = typeof digest === 'string' ? /^(?:sha256:)?([0-9a-f]{64})$/.exec(digest)?.[1] : undefined;
  return [{ name, version, urls: usable, digest: hex && `sha256:${hex}`, isLibrary: type === 'library' }];
}

/** Returns items by version, newest first; invalid versions are last. */
export function newestFirst<T extends { version: string }>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, parsed: tryParse(parseLooseVersion, item.version) }))
    .sort((a, b) => compareKnownVersions(b.parsed, a.parsed) || compareBytes(b.item.version, a.item.version))
    .map(({ item }) => item);
}

/**
 * Returns a chart by version: the exact version, else the newest that satisfies the constraint; the newest stable one
 * without a constraint. Throws OpmateError NOT_FOUND, and INVALID for an invalid constraint. (Source: Helm 3,
 * repo.IndexFile.Get.)
 */
export function findChart(
  index: ChartIndex,
  name: string,
  version: string | undefined,
  label: string,
): IndexedChart {
  const versions = index.get(name);
  const subject = `${label}: chart ${quoteGo(name)}`;
  if (versions === undefined || versions.length === 0)
    throw new OpmateError('NOT_FOUND', `${subject}: not found`);
  const entry = matchVersion(versions, version, subject);
  if (entry !== undefined) return entry;
  const known = versions.slice(0, 5).map((chart) => chart.version);
  const rest = versions.length > known.length ? ', …' : '';
  throw new OpmateError('NOT_FOUND', `${subject}: version ${quoteGo(version ?? '*')} not found`, {
    hint: `use one of ${known.join(', ')}${rest}`,
  });
}

/** Returns the item that a version or constraint selects from items sorted newest first. Throws OpmateError. */
export function matchVersion<T extends { version: string }>(
  items: readonly T[],
  version: string | undefined,
  label: string,
): T | undefined {
  const exact = items.find((item) => item.version === version);
  if (exact !== undefined) return exact;
  const range = tryParse(parseConstraint, version === undefined || version === '' ? '*' : version);
  if (range === undefined)
    throw new OpmateError('INVALID', `${label}: invalid version ${quoteGo(version ?? '')}`);
  return items.find((item) => {
    const parsed = tryParse(parseLooseVersion, item.version);
    return parsed !== undefined && range.contains(parsed);
  });
}
