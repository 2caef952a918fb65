import { Readable } from 'node:stream';
import { type ArchiveLimits, ArchiveMeter } from '../archive/limits.js';
import { readTar } from '../archive/tar-reader.js';
import type { CancelOptions } from '../core/concurrency.js';
import { type Diagnostic, type DocumentPath, createFault, formatPath } from '../core/diagnostic.js';
import { DiagnosticsError } from '../core/diagnostics-error.js';
import { LimitError, OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { getOrAdd } from '../core/groups.js';
import { sortedByBytes } from '../core/order.js';
import { tryParse } from '../core/semver.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { parseYamlFile } from '../document/document.js';
import { findPlaces, nearestPlace } from '../document/places.js';
import { getList } from '../document/json-fields.js';
import { parseLooseVersion } from './template/functions/versions.js';

/** A chart with its sub-charts as packed, before conditions and aliases. */
export interface Chart {
  name: string;
  version: string;
  isLibrary: boolean;
  /** Content of Chart.yaml. */
  metadata: JsonObject;
  /** Content of values.yaml. */
  values: JsonObject;
  /** Content of values.schema.json. */
  schema: string | undefined;
  dependencies: ChartDependency[];
  /** Files below templates/ by path in the chart. */
  templates: ReadonlyMap<string, string>;
  /** Custom resource definitions by path in the chart. */
  crds: ReadonlyMap<string, string>;
  /** Other files by path in the chart. */
  files: ReadonlyMap<string, Buffer>;
  charts: Chart[];
}

/** A dependency in Chart.yaml, or in requirements.yaml of older charts. */
export interface ChartDependency {
  name: string;
  version: string;
  repository: string;
  alias: string | undefined;
  conditions: string[];
  tags: string[];
  importValues: JsonValue[];
}

/** Files of a chart by path in it. */
export type ChartFiles = ReadonlyMap<string, Buffer>;

const mebibyte = 1024 * 1024;

/** Limits of a chart with all its sub-charts. */
export const chartLimits: ArchiveLimits = {
  maxEntries: 20_000,
  maxUnpackedSize: 100 * mebibyte,
  maxFileSize: 16 * mebibyte,
  maxMetadataFileSize: 16 * mebibyte,
  maxRatio: 200,
  ratioThreshold: 16 * mebibyte,
};

/** Maximum nesting of charts. */
const maxDepth = 20;
const maxDependencies = 1000;
/** Files that templates cannot read. */
const special = /^(?:Chart\.(?:yaml|lock)|values\.(?:yaml|schema\.json)|requirements\.(?:yaml|lock))$/;
/** Special files that templates of `v1` charts see as files. */
const requirementsFile = /^requirements\./;

/**
 * Reads the files of a packed chart, whose paths start with the name of the chart. Throws OpmateError for other
 * archives, paths outside the chart, and exceeded limits.
 */
export async function readChartArchive(
  source: Readable,
  label: string,
  { meter = new ArchiveMeter(chartLimits), signal }: { meter?: ArchiveMeter } & CancelOptions = {},
): Promise<ChartFiles> {
  const files = new Map<string, Buffer>();
  for await (const entry of readTar(source, { label, meter, signal })) {
    if (entry.type !== 'file') continue;
    const slash = entry.path.indexOf('/');
    if (slash < 0) continue;
    if (entry.size > meter.limits.maxFileSize)
      throw new LimitError(`${label}: ${quoteGo(entry.path)}: more than ${meter.limits.maxFileSize} bytes`);
    const chunks: Buffer[] = [];
    for await (const chunk of entry.body) chunks.push(chunk);
    files.set(entry.path.slice(slash + 1), Buffer.concat(chunks));
  }
  return files;
}

/**
 * Builds a chart from its files, including the sub-charts in `charts/`. Throws OpmateError for a missing or invalid
 * Chart.yaml, and for an invalid values.yaml.
 */
export async function loadChart(
  files: ChartFiles,
  label: string,
  options: { meter?: ArchiveMeter; depth?: number } & CancelOptions = {},
): Promise<Chart> {
  const { depth = 0, meter = new ArchiveMeter(chartLimits), signal } = options;
  if (depth > maxDepth) throw new LimitError(`${label}: charts nested deeper than ${maxDepth}`);
  const metadata = readObject(files, 'Chart.yaml', label);
  if (metadata === undefined) throw new OpmateError('INVALID', `${label}: Chart.yaml: not found`);
  const { name, version, type, isFirstVersion, dependencies } = readDescription(files, metadata, label);
  const { templates, crds, others, inner } = sortFiles(files, isFirstVersion);
  const schema = files.get('values.schema.json');
  const charts = await loadInner(inner, label, { depth, meter, signal });
  return {
    name,
    version,
    metadata,
    templates,
    crds,
    charts,
    isLibrary: type === 'library',
    values: readObject(files, 'values.yaml', label) ?? {},
    schema: schema && toText(schema),
    dependencies,
    files: others,
  };
}

/** Reads the fields of Chart.yaml, and the dependencies. Throws DiagnosticsError with all problems. */
function readDescription(
  files: ChartFiles,
  metadata: JsonObject,
  label: string,
): Pick<Chart, 'name' | 'version' | 'dependencies'> & { type: JsonValue; isFirstVersion: boolean } {
  const [name, version] = [toVersionText(metadata['name']), toVersionText(metadata['version'])];
  const faults: Diagnostic[] = [];
  const refuse = (path: DocumentPath, problem: string, file = 'Chart.yaml'): void => {
    const places = findPlaces(toText(files.get(file) as Buffer));
    const place = (places && nearestPlace(places, path)) ?? { line: 1, column: 1 };
    const details = { subject: formatPath(path), file: `${label}: ${file}`, ...place, path };
    faults.push(createFault('invalid-value', problem, details));
  };
  if (name === '') refuse(['name'], 'missing');
  else if (/^\.{1,2}$|\//.test(name)) refuse(['name'], `invalid name ${quoteGo(name)}`);
  if (version === '') refuse(['version'], 'missing');
  else if (tryParse(parseLooseVersion, version) === undefined)
    refuse(['version'], `invalid version ${quoteGo(version)}`);
  const type = metadata['type'] ?? '';
  if (type !== '' && type !== 'application' && type !== 'library')
    refuse(['type'], 'expected application or library');
  // Charts of Helm 2 have no version of the API.
  const isFirstVersion = [undefined, null, '', 'v1'].includes(metadata['apiVersion'] as string | undefined);
  const requirements = readObject(files, 'requirements.yaml', label);
  const required = requirements?.['dependencies'] ?? null;
  const dependencies = readDependencies(
    required ?? metadata['dependencies'] ?? null,
    label,
    (path, problem) => refuse(path, problem, required === null ? 'Chart.yaml' : 'requirements.yaml'),
  );
  if (faults.length > 0) throw new DiagnosticsError(faults);
  return { name, version, type, isFirstVersion, dependencies };
}

/** Sorts the files of a chart by what they are for; `inner` has those of charts in it. */
function sortFiles(files: ChartFiles, isFirstVersion: boolean) {
  const templates = new Map<string, string>();
  const crds = new Map<string, string>();
  const others = new Map<string, Buffer>();
  const inner = new Map<string, Map<string, Buffer>>();
  for (const path of sortedByBytes(files.keys())) {
    const bytes = files.get(path) as Buffer;
    if (path.startsWith('templates/')) templates.set(path, toText(bytes));
    else if (path.startsWith('charts/')) {
      const [part = '', ...rest] = path.slice('charts/'.length).split('/');
      if (/^[_.]/.test(part)) continue;
      getOrAdd(inner, part, () => new Map<string, Buffer>()).set(rest.join('/'), bytes);
    } else if (!special.test(path) || (requirementsFile.test(path) && isFirstVersion)) {
      others.set(path, bytes);
      if (/^crds\/.*\.(?:ya?ml|json)$/.test(path)) crds.set(path, toText(bytes));
    }
  }
  return { templates, crds, others, inner };
}

/** Loads the charts in a chart, which may be archives. */
async function loadInner(
  inner: ReadonlyMap<string, Map<string, Buffer>>,
  label: string,
  { depth, meter, signal }: { depth: number; meter: ArchiveMeter } & CancelOptions,
): Promise<Chart[]> {
  const charts: Chart[] = [];
  for (const [part, own] of inner) {
    const packed = own.get('');
    // Helm ignores files that are not archives, too.
    if (packed !== undefined && !part.endsWith('.tgz')) continue;
    const where = `${label}: charts/${part}`;
    const content =
      packed === undefined
        ? own
        : await readChartArchive(Readable.from([packed], { objectMode: false }), where, { meter, signal });
    charts.push(await loadChart(content, where, { depth: depth + 1, meter, signal }));
  }
  return charts;
}

function readDependencies(
  listed: JsonValue,
  label: string,
  refuse: (path: DocumentPath, problem: string) => void,
): ChartDependency[] {
  if (listed === null) return [];
  if (!Array.isArray(listed) || listed.length > maxDependencies)
    throw new OpmateError('INVALID', `${label}: dependencies: expected a list of at most ${maxDependencies}`);
  const objects = listed.filter(isJsonObject);
  const dependencies = objects.map((value) => ({
    name: toVersionText(value['name']),
    version: toVersionText(value['version']),
    repository: toVersionText(value['repository']),
    alias: toVersionText(value['alias']) || undefined,
    conditions: toVersionText(value['condition'])
      .trim()
      .split(',')
      .filter((path) => path !== ''),
    tags: Array.isArray(value['tags']) ? value['tags'].map(toVersionText) : [],
    importValues: getList(value, 'import-values'),
  }));
  const names = new Set<string>();
  for (const [index, { name, alias = name }] of dependencies.entries()) {
    const path = ['dependencies', listed.indexOf(objects[index] as JsonObject)];
    if (names.has(alias)) refuse(path, `duplicate name or alias ${quoteGo(alias)}`);
    else if (alias !== name && !/^[\w-]+$/.test(alias))
      refuse([...path, 'alias'], `invalid alias ${quoteGo(alias)} of dependency ${quoteGo(name)}`);
    names.add(alias);
  }
  return dependencies;
}

function readObject(files: ChartFiles, path: string, label: string): JsonObject | undefined {
  const bytes = files.get(path);
  if (bytes === undefined) return undefined;
  const file = `${label}: ${path}`;
  const value = parseYamlFile(toText(bytes), file);
  if (value === null) return {};
  if (isJsonObject(value)) return value;
  throw new OpmateError('INVALID', `${file}: expected an object`);
}

function toText(bytes: Buffer): string {
  const text = bytes.toString('utf8');
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

/** Returns a version, which may be written as a number. */
function toVersionText(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'bigint' ? String(value) : '';
}
