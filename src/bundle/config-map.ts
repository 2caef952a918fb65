import { gunzipSync } from 'node:zlib';
import { normalizeEntryPath } from '../archive/entry-path.js';
import { findBase64Error } from '../core/base64.js';
import { LimitError, systemCode } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { compareBytes, sortedByBytes } from '../core/order.js';
import { encodeYaml } from '../document/yaml.js';
import { describeKind } from '../document/field.js';
import { getObject } from '../document/json-fields.js';
import { bundleKeys } from '../model/bundle-keys.js';
import { readFirstDocument } from './manifest.js';
import { isMetadata } from './metadata.js';
import { isKubernetesObject } from './parse.js';
import { type Manifest, getTitle } from '../kube/manifests.js';
import { type Diagnostic, createFault, createWarning } from '../core/diagnostic.js';

/** The annotations of a bundle that a ConfigMap carries. (Source: operator-registry, pkg/configmap.) */
export const bundleAnnotations = [
  bundleKeys.manifests,
  bundleKeys.mediaType,
  bundleKeys.metadata,
  bundleKeys.package,
  bundleKeys.channels,
  bundleKeys.defaultChannel,
];

/** Annotations by which a ConfigMap tells how its files are kept. */
export const keptAnnotations = {
  /** `gzip+base64`: each value of binaryData is the base64 of a gzip stream. */
  encoding: 'olm.contentEncoding',
  sourceImage: 'olm.sourceImage',
  /** Of a bundle in several ConfigMaps: the names of all, in order. */
  parts: 'opmate/parts',
  /** The keys that are files of `metadata/`, where that does not show from what is in them. */
  metadataKeys: 'opmate/metadata-keys',
} as const;
export const gzipEncoding = 'gzip+base64';

const maxFileSize = 64 * 1024 * 1024;
const maxSize = 256 * 1024 * 1024;
const maxKeys = 20_000;

/** A file out of a ConfigMap, at its slash path. */
export interface ConfigMapFile {
  path: string;
  content: Buffer;
}

/** A ConfigMap whose keys become files below `path`, the root unless told. */
export interface ConfigMapPlace {
  name: string;
  path?: string | undefined;
}

/** What ConfigMaps hold; `files` is complete only where there are no findings. In byte order of the paths. */
export interface ConfigMapContent {
  files: ConfigMapFile[];
  findings: Diagnostic[];
  warnings: Diagnostic[];
}

/**
 * The files in ConfigMaps, from both data and binaryData, as documents that `readManifests` gives.
 *
 * Without `places`, all of them together are one bundle, as `extractConfigMaps` and `opm alpha bundle extract`
 * write it, or as `kubectl create configmap --from-file` makes it of its files: objects of Kubernetes, and what
 * is not read otherwise, become files of `manifests/`, lists of annotations, dependencies and properties files of
 * `metadata/`. Annotations of the ConfigMap become `metadata/annotations.yaml`, unless that is a key. Anything
 * else than ConfigMaps is a finding; parts that are missing, and ConfigMaps of different bundles, are too.
 *
 * With `places`, each ConfigMap that they name is put below its path, key by key, and all others are passed over.
 *
 * One path out of two ConfigMaps, and whatever the API server would not take, is a finding; a ConfigMap that is
 * not immutable a warning. Throws LimitError beyond 64 MiB a file, 256 MiB or 20,000 keys together.
 */
export function readBundleConfigMaps(
  documents: readonly Manifest[],
  options: { places?: readonly ConfigMapPlace[] | undefined } = {},
): ConfigMapContent {
  const reader = new Reader();
  if (options.places === undefined) reader.addBundle(documents);
  else reader.addPlaces(documents, options.places);
  const { findings, warnings } = reader;
  const files = [...reader.files].map(([path, { content }]) => ({ path, content }));
  return { files: files.sort((a, b) => compareBytes(a.path, b.path)), findings, warnings };
}

/** Whether a key may stand in a ConfigMap, and as a file in a directory. (Source: Kubernetes' IsConfigMapKey.) */
export function isConfigMapKey(key: string): boolean {
  return /^[-._a-zA-Z0-9]{1,253}$/.test(key) && key !== '.' && !key.startsWith('..');
}

/** Whether a file that nothing else tells of belongs into `metadata/`. */
export function looksLikeMetadata(content: Buffer): boolean {
  const { value = null } = readFirstDocument(content);
  return isJsonObject(value) && !isKubernetesObject(value) && isMetadata(value);
}

/** What a ConfigMap has under one key. */
interface Value {
  field: 'data' | 'binaryData';
  key: string;
  content: Buffer;
}

class Reader {
  readonly files = new Map<string, { content: Buffer; from: Manifest }>();
  readonly findings: Diagnostic[] = [];
  readonly warnings: Diagnostic[] = [];
  /** Directories that files are in, and the ConfigMap of the latest of them. */
  readonly #directories = new Map<string, Manifest>();
  #size = 0;
  #keys = 0;

  addBundle(documents: readonly Manifest[]): void {
    const maps = documents.filter((document) => {
      if (isConfigMap(document)) return true;
      this.#tell(document, `${getTitle(document)}: not a ConfigMap`, ['kind'], {
        hint: 'keep only the ConfigMaps of one bundle in the file',
      });
      return false;
    });
    if (maps.length === 0 && this.findings.length === 0)
      this.findings.push(createFault('missing-object', 'no ConfigMap in it'));
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
          this.#tell(
            map,
            `${getTitle(map)}: is of another bundle than ${getTitle(first.map)}: its annotation ${other} differs`,
            ['metadata', 'annotations', other],
          );
        }
      }
      const listed = all[keptAnnotations.metadataKeys];
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

  addPlaces(documents: readonly Manifest[], places: readonly ConfigMapPlace[]): void {
    const maps = documents.filter(isConfigMap);
    for (const { name, path = '' } of places) {
      const [map, another] = maps.filter((manifest) => manifest.name === name);
      if (map === undefined) {
        const known = sortedByBytes(new Set(maps.map((manifest) => manifest.name)));
        this.findings.push(
          createFault('missing-object', 'not found', {
            subject: `ConfigMap ${quoteGo(name)}`,
            hint:
              known.length === 0
                ? 'check the file: it contains no ConfigMap'
                : `use one of ${known.slice(0, 10).join(', ')}`,
          }),
        );
        continue;
      }
      if (another !== undefined) {
        this.#tell(another, `${getTitle(another)}: another of this name`, ['metadata', 'name'], {
          hint: 'keep one of them in the file',
        });
        continue;
      }
      const directory = normalizeEntryPath(path, `ConfigMap ${quoteGo(name)}`);
      for (const value of this.#iterateValues(map)) {
        this.#add(directory === '' ? value.key : `${directory}/${value.key}`, value, map);
      }
    }
  }

  /** A bundle in several ConfigMaps is read whole or not at all. */
  #checkParts(maps: readonly Manifest[]): void {
    const names = new Set(maps.map(({ name }) => name));
    const told = new Set<string>();
    for (const map of maps) {
      const parts = getAnnotations(map)[keptAnnotations.parts];
      if (typeof parts !== 'string' || told.has(parts)) continue;
      told.add(parts);
      const path = ['metadata', 'annotations', keptAnnotations.parts];
      const listed = parts.split(',');
      const missing = listed.filter((name) => !names.has(name));
      if (missing.length > 0) {
        this.#tell(
          map,
          `${getTitle(map)}: is one of ${listed.length} parts, and ${missing.map(quoteGo).join(', ')} is missing`,
          path,
          { hint: 'add all parts to one file' },
        );
      } else if (!listed.includes(map.name)) {
        this.#tell(map, `${getTitle(map)}: is none of the parts that it names`, path);
      }
    }
  }

  /** The values of a ConfigMap, decoded. */
  *#iterateValues(map: Manifest): Generator<Value> {
    const object = map.load();
    if (object['immutable'] !== true) {
      this.warnings.push(
        createWarning(
          'mutable-config-map',
          'not immutable, so that the bundle may change after it was reviewed',
          { subject: getTitle(map), file: map.file, line: map.lineOf(['immutable']) },
        ),
      );
    }
    const isGzip = getAnnotations(map)[keptAnnotations.encoding] === gzipEncoding;
    const seen = new Set<string>();
    for (const field of ['data', 'binaryData'] as const) {
      const values = object[field] ?? {};
      if (!isJsonObject(values)) {
        this.#tell(map, `${getTitle(map)}: ${field}: expected an object, got ${describeKind(values)}`, [
          field,
        ]);
        continue;
      }
      for (const [key, value] of Object.entries(values)) {
        if (++this.#keys > maxKeys) {
          throw new LimitError(`${getTitle(map)}: more than ${maxKeys} keys`, {
            subject: map.file,
            file: map.file,
          });
        }
        const fault = seen.has(key)
          ? 'is in both data and binaryData'
          : isConfigMapKey(key)
            ? undefined
            : 'is not a valid ConfigMap key';
        seen.add(key);
        if (fault !== undefined) {
          this.#tell(map, `${getTitle(map)}: ${quoteGo(key)} ${fault}`, [field, key]);
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
      this.#tell(map, `${getTitle(map)}: ${field}: ${key}: ${problem}`, [field, key]);
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
          return fail(`expected base64, as set in ${keptAnnotations.encoding}`);
        try {
          content = gunzipSync(Buffer.from(text, 'base64'), { maxOutputLength: maxFileSize });
        } catch (error) {
          if (systemCode(error) === 'ERR_BUFFER_TOO_LARGE')
            throw tooLarge(subject, `more than ${maxFileSize} bytes`);
          return fail(`not gzip, as ${keptAnnotations.encoding} says it is`);
        }
      }
    }
    if (content.length > maxFileSize)
      throw tooLarge(subject, `${content.length} bytes, more than ${maxFileSize}`);
    this.#size += content.length;
    if (this.#size > maxSize) throw tooLarge(subject, `more than ${maxSize} bytes are reached with this key`);
    return content;
  }

  #add(path: string, { field, key, content }: Value, from: Manifest): void {
    const above = path.split('/').map((_, index, parts) => parts.slice(0, index).join('/'));
    const known = [path, ...above].map((name) => this.files.get(name)).find((file) => file !== undefined);
    const other = known?.from ?? this.#directories.get(path);
    if (other !== undefined) {
      const line = other.lineOf();
      const where = `${other.file}${line === undefined ? '' : `:${line}`}`;
      const problem = `${quoteGo(key)} becomes ${path}, for which ${getTitle(other)} (${where}) has a file too`;
      this.#tell(from, `${getTitle(from)}: ${problem}`, [field, key]);
      return;
    }
    this.files.set(path, { content, from });
    for (const directory of above) if (directory !== '') this.#directories.set(directory, from);
  }

  #tell(map: Manifest, message: string, path: readonly string[], more: { hint?: string } = {}): void {
    this.findings.push(
      createFault('config-map', message, { file: map.file, line: map.lineOf(path), ...more }),
    );
  }
}

function tooLarge(subject: string, problem: string): LimitError {
  return new LimitError(problem, { subject, hint: 'check that these are manifests of a bundle' });
}

function isConfigMap({ kind, apiVersion }: Manifest): boolean {
  return kind === 'ConfigMap' && apiVersion === 'v1';
}

/** An object without prototype, so that no name finds more than the document has. */
function getAnnotations(map: Manifest): JsonObject {
  return Object.assign(Object.create(null) as JsonObject, getObject(map.load(), 'metadata', 'annotations'));
}
