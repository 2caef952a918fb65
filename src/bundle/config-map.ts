import { gunzipSync } from 'node:zlib';
import { normalizeEntryPath } from '../archive/entry-path.js';
import { findBase64Error } from '../core/text/base64.js';
import { LimitError, systemCode } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { compareBytes, sortedByBytes } from '../core/order.js';
import { DiagnosticList } from '../document/document.js';
import { encodeYaml } from '../document/yaml.js';
import { describeKind } from '../document/field.js';
import { getObject } from '../document/json-fields.js';
import { bundleKeys } from '../model/bundle-keys.js';
import { readFirstDocument } from './manifest.js';
import { isMetadata } from './metadata.js';
import { isKubernetesObject } from './parse.js';
import { type Manifest, getTitle, locateIn, openManifest } from '../kube/manifests.js';
import { formatPath, formatLocation } from '../core/diagnostic.js';
import { Report } from './report.js';
import { maxBundleSize, maxFileSize } from './limits.js';

/** Annotations of a bundle that ConfigMaps have too. (Source: operator-registry, pkg/configmap.) */
export const bundleAnnotations = [
  bundleKeys.manifests,
  bundleKeys.mediaType,
  bundleKeys.metadata,
  bundleKeys.package,
  bundleKeys.channels,
  bundleKeys.defaultChannel,
];

/** Annotations that describe how a ConfigMap stores files. */
export const storageAnnotations = {
  /** `gzip+base64`: each value of binaryData is the base64 of a gzip stream. */
  encoding: 'olm.contentEncoding',
  sourceImage: 'olm.sourceImage',
  /** Names of all ConfigMaps of a split bundle, in order. */
  parts: 'opmate/parts',
  /** Keys of files of `metadata/`, if their content does not show it. */
  metadataKeys: 'opmate/metadata-keys',
} as const;
export const gzipEncoding = 'gzip+base64';

const maxKeys = 20_000;

/** A file from a ConfigMap, with its slash path. */
export interface ConfigMapFile {
  path: string;
  content: Buffer;
}

/** A ConfigMap whose keys become files below `path`, by default the root. */
export interface PlacedConfigMap {
  name: string;
  path?: string | undefined;
}

/**
 * Reads the files in ConfigMaps, from data and binaryData, in byte order of paths; incomplete if there are findings.
 *
 * Without `places`, all ConfigMaps are one bundle, as written by `extractConfigMaps`, `opm alpha bundle extract` or
 * `kubectl create configmap --from-file`: annotations, dependencies and properties become files of `metadata/`, all
 * else files of `manifests/`. Annotations of the ConfigMap become `metadata/annotations.yaml`, unless that is a key.
 * Other objects, missing parts, and ConfigMaps of different bundles are findings.
 *
 * With `places`, the keys of each named ConfigMap become files below its path; other ConfigMaps are ignored.
 *
 * Duplicate paths, and values that the API server would reject, are findings; a mutable ConfigMap is a warning.
 * Throws LimitError beyond 64 MiB per file, 256 MiB or 20,000 keys in total.
 */
export function readBundleConfigMaps(
  documents: readonly Manifest[],
  { places }: { places?: readonly PlacedConfigMap[] | undefined } = {},
): Pick<Report, 'findings' | 'warnings'> & { files: ConfigMapFile[] } {
  const reader = new Reader();
  if (places === undefined) reader.addBundle(documents);
  else reader.addPlaces(documents, places);
  const { findings, warnings } = reader;
  const files = [...reader.files].map(([path, { content }]) => ({ path, content }));
  return { files: files.sort((a, b) => compareBytes(a.path, b.path)), findings, warnings };
}

/** Reports whether a key is valid in a ConfigMap, and as a file name. (Source: Kubernetes' IsConfigMapKey.) */
export function isConfigMapKey(key: string): boolean {
  return /^[-._a-zA-Z0-9]{1,253}$/.test(key) && key !== '.' && !key.startsWith('..');
}

/** Reports whether the content of a file belongs to `metadata/`. */
export function looksLikeMetadata(content: Buffer): boolean {
  const { value = null } = readFirstDocument(content);
  return isJsonObject(value) && !isKubernetesObject(value) && isMetadata(value);
}

/** The decoded value of a key. */
interface Value {
  field: 'data' | 'binaryData';
  key: string;
  content: Buffer;
}

class Reader extends Report {
  readonly files = new Map<string, { content: Buffer; from: Manifest }>();
  /** Directories of files, with the ConfigMap of their latest file. */
  readonly #directories = new Map<string, Manifest>();
  #size = 0;
  #keys = 0;

  addBundle(documents: readonly Manifest[]): void {
    const maps = documents.filter((document) => {
      if (isConfigMap(document)) return true;
      const hint = 'keep only the ConfigMaps of one bundle in the file';
      if (document.kind !== 'ConfigMap') this.#refuse(document, 'not a ConfigMap', ['kind'], hint);
      else {
        const diagnostics = new DiagnosticList();
        openManifest(document, diagnostics).field('apiVersion').constant('v1');
        this.add({ findings: diagnostics.errors });
      }
      return false;
    });
    if (maps.length === 0 && this.findings.length === 0) this.fault('missing-object', 'no ConfigMap in it');
    this.#checkParts(maps);
    let first: { map: Manifest; annotations: JsonObject } | undefined;
    for (const map of maps) {
      const all = getAnnotations(map);
      const annotations: JsonObject = {};
      for (const key of bundleAnnotations) if (typeof all[key] === 'string') annotations[key] = all[key];
      if (Object.keys(annotations).length > 0) {
        first ??= { map, annotations };
        const other = bundleAnnotations.find((key) => annotations[key] !== first?.annotations[key]);
        if (other !== undefined) {
          const problem = `is of another bundle than ${getTitle(first.map)}: its annotation ${other} differs`;
          this.#refuse(map, problem, ['metadata', 'annotations', other]);
        }
      }
      const listed = all[storageAnnotations.metadataKeys];
      const metadata = typeof listed === 'string' ? new Set(listed.split(',')) : undefined;
      for (const value of this.#iterateValues(map)) {
        const isMetadata =
          metadata === undefined ? looksLikeMetadata(value.content) : metadata.has(value.key);
        this.#add(`${isMetadata ? 'metadata' : 'manifests'}/${value.key}`, value, map);
      }
    }
    const path = 'metadata/annotations.yaml';
    if (first === undefined || this.files.has(path)) return;
    const annotations = Object.fromEntries(
      Object.entries(first.annotations).filter(([, text]) => text !== ''),
    );
    if (Object.keys(annotations).length === 0) return;
    this.files.set(path, { content: Buffer.from(encodeYaml({ annotations })), from: first.map });
  }

  addPlaces(documents: readonly Manifest[], places: readonly PlacedConfigMap[]): void {
    const maps = documents.filter(isConfigMap);
    for (const { name, path = '' } of places) {
      const [map, another] = maps.filter((manifest) => manifest.name === name);
      if (map === undefined) {
        const known = sortedByBytes(new Set(maps.map((manifest) => manifest.name)));
        this.fault('missing-object', 'not found', {
          subject: `ConfigMap ${quoteGo(name)}`,
          hint:
            known.length === 0
              ? 'check the file: it contains no ConfigMap'
              : `use one of ${known.slice(0, 10).join(', ')}`,
        });
        continue;
      }
      if (another !== undefined) {
        const problem = `duplicate, first defined in ${formatLocation(locateIn(map, ['kind']))}`;
        this.#refuse(another, problem, ['kind'], 'keep one of them');
        continue;
      }
      const directory = normalizeEntryPath(path, `ConfigMap ${quoteGo(name)}`);
      for (const value of this.#iterateValues(map)) {
        this.#add(directory === '' ? value.key : `${directory}/${value.key}`, value, map);
      }
    }
  }

  /** Requires all parts of a split bundle. */
  #checkParts(maps: readonly Manifest[]): void {
    const names = new Set(maps.map(({ name }) => name));
    const checked = new Set<string>();
    for (const map of maps) {
      const parts = getAnnotations(map)[storageAnnotations.parts];
      if (typeof parts !== 'string' || checked.has(parts)) continue;
      checked.add(parts);
      const path = ['metadata', 'annotations', storageAnnotations.parts];
      const listed = parts.split(',');
      const missing = listed.filter((name) => !names.has(name));
      if (missing.length > 0) {
        const problem = `is one of ${listed.length} parts, and ${missing.map(quoteGo).join(', ')} is missing`;
        this.#refuse(map, problem, path, 'add all parts to one file');
      } else if (!listed.includes(map.name)) this.#refuse(map, 'is not one of the parts that it names', path);
    }
  }

  *#iterateValues(map: Manifest): Generator<Value> {
    const object = map.load();
    if (object['immutable'] !== true) {
      const problem = 'not immutable: its content may change after review';
      this.warn('mutable-config-map', problem, locateIn(map, ['immutable']));
    }
    const isGzip = getAnnotations(map)[storageAnnotations.encoding] === gzipEncoding;
    const seen = new Set<string>();
    for (const field of ['data', 'binaryData'] as const) {
      const values = object[field] ?? {};
      if (!isJsonObject(values)) {
        this.#refuse(map, `${field}: expected an object, got ${describeKind(values)}`, [field]);
        continue;
      }
      for (const [key, value] of Object.entries(values)) {
        if (++this.#keys > maxKeys) {
          const { file } = map;
          throw new LimitError(`${getTitle(map)}: more than ${maxKeys} keys`, { about: file });
        }
        const fault = seen.has(key)
          ? 'is in both data and binaryData'
          : isConfigMapKey(key)
            ? undefined
            : 'is not a valid ConfigMap key';
        seen.add(key);
        if (fault !== undefined) {
          this.#refuse(map, `${quoteGo(key)} ${fault}`, [field, key]);
          continue;
        }
        const content = this.#decode(map, field, key, value, isGzip);
        if (content !== undefined) yield { field, key, content };
      }
    }
  }

  #decode(
    map: Manifest,
    field: 'data' | 'binaryData',
    key: string,
    value: JsonValue,
    isGzip: boolean,
  ): Buffer | undefined {
    const fail = (problem: string): undefined => {
      this.#refuse(map, `${formatPath([field, key])}: ${problem}`, [field, key]);
    };
    if (typeof value !== 'string') return fail(`expected a string, got ${describeKind(value)}`);
    const subject = `${map.file}: ${getTitle(map)}: ${key}`;
    let content: Buffer;
    if (field === 'data') content = Buffer.from(value);
    else {
      if (findBase64Error(value) !== undefined) return fail('invalid base64');
      content = Buffer.from(value, 'base64');
      if (isGzip) {
        const text = content.toString('latin1');
        if (findBase64Error(text) !== undefined)
          return fail(`expected base64, as set in ${storageAnnotations.encoding}`);
        try {
          content = gunzipSync(Buffer.from(text, 'base64'), { maxOutputLength: maxFileSize });
        } catch (error) {
          if (systemCode(error) === 'ERR_BUFFER_TOO_LARGE')
            throw sizeError(subject, `more than ${maxFileSize} bytes`);
          return fail(`not gzip, as ${storageAnnotations.encoding} says it is`);
        }
      }
    }
    if (content.length > maxFileSize)
      throw sizeError(subject, `${content.length} bytes, more than ${maxFileSize}`);
    this.#size += content.length;
    if (this.#size > maxBundleSize)
      throw sizeError(subject, `more than ${maxBundleSize} bytes are reached with this key`);
    return content;
  }

  #add(path: string, { field, key, content }: Value, from: Manifest): void {
    const parents = path.split('/').map((_, index, parts) => parts.slice(0, index).join('/'));
    const known = [path, ...parents].map((name) => this.files.get(name)).find((file) => file !== undefined);
    const other = known?.from ?? this.#directories.get(path);
    if (other !== undefined) {
      const place = formatLocation(locateIn(other));
      const problem = `${quoteGo(key)} becomes ${path}, for which ${getTitle(other)} (${place}) has a file too`;
      this.#refuse(from, problem, [field, key]);
      return;
    }
    this.files.set(path, { content, from });
    for (const directory of parents) if (directory !== '') this.#directories.set(directory, from);
  }

  #refuse(map: Manifest, problem: string, path: readonly string[], hint?: string): void {
    this.fault('config-map', problem, { ...locateIn(map, path), hint });
  }
}

function sizeError(subject: string, problem: string): LimitError {
  return new LimitError(problem, { subject, hint: 'check that these are manifests of a bundle' });
}

function isConfigMap({ kind, apiVersion }: Manifest): boolean {
  return kind === 'ConfigMap' && apiVersion === 'v1';
}

/** Returns annotations without a prototype, whose members no key may find. */
function getAnnotations(map: Manifest): JsonObject {
  return Object.assign(Object.create(null) as JsonObject, getObject(map.load(), 'metadata', 'annotations'));
}
