import { isDigest } from '../core/digest.js';
import { LimitError, OpmateError } from '../core/errors.js';
import { isJsonObject, type JsonObject, type JsonValue, setJsonKey } from '../core/json.js';
import {
  type Descriptor,
  type ImageConfig,
  type ImageIndex,
  type ImageManifest,
  manifestMediaTypes,
  maxManifestBytes,
  mediaTypes,
  type Platform,
} from './types.js';

/** The most entries of an index, nested ones counted together. */
export const maxIndexEntries = 10_000;

/** A manifest or index; `mediaType` is what the document says it is, or what its shape and origin imply. */
export type ParsedManifest =
  | { kind: 'image'; mediaType: string; manifest: ImageManifest }
  | { kind: 'index'; mediaType: string; index: ImageIndex };

/** Whether a descriptor names an index or manifest list. */
export function isIndexType(mediaType: string): boolean {
  return mediaType === mediaTypes.ociIndex || mediaType === mediaTypes.dockerManifestList;
}

export interface ParseManifestOptions {
  /** Begins every message, e.g. `quay.io/ns/name:v1`. */
  subject: string;
  /** What the document was announced as: a descriptor's media type, or a Content-Type header. */
  mediaType?: string | undefined;
}

/**
 * Reads an image manifest or index, OCI or Docker schema 2. Unknown fields are ignored.
 *
 * Refuses what two readers could take for different things (CVE-2021-41190): fields of another kind of
 * document, a media type other than the announced one, a key given twice or in another case.
 * Throws OpmateError SYNTAX, INVALID, UNSUPPORTED (schema 1, unknown types) or LIMIT (over 4 MiB, or more
 * than 10,000 entries).
 */
export function parseManifest(bytes: Uint8Array, options: ParseManifestOptions): ParsedManifest {
  const { subject } = options;
  const announced = knownType(options.mediaType);
  if (announced?.startsWith('application/vnd.docker.distribution.manifest.v1+')) throw schema1(subject);
  const fields = new Fields(parseManifestDocument(bytes, subject), subject);
  if (fields.value('schemaVersion') === 1) throw schema1(subject);

  const declared = fields.string('mediaType');
  if (declared !== undefined && announced !== undefined && declared !== announced) {
    throw fields.invalid(`announced as ${show(announced)} but says of itself that it is ${show(declared)}`);
  }
  const implied = fields.has('manifests') ? mediaTypes.ociIndex : mediaTypes.ociManifest;
  const mediaType = declared ?? announced ?? implied;
  if (!manifestMediaTypes.includes(mediaType)) {
    throw new OpmateError('UNSUPPORTED', `${subject}: ${show(mediaType)} is neither an image nor an index`);
  }
  if (fields.value('schemaVersion') !== 2) throw fields.invalid('schemaVersion is not 2');
  const isIndex = isIndexType(mediaType);
  fields.refuse(
    isIndex
      ? ['config', 'layers', 'fsLayers', 'history', 'blobs']
      : ['manifests', 'fsLayers', 'history', 'blobs'],
    mediaType,
  );

  const common = defined({
    schemaVersion: 2 as const,
    mediaType: declared,
    artifactType: fields.string('artifactType'),
    annotations: fields.strings('annotations'),
    subject: fields.object('subject', readDescriptor),
  });
  if (isIndex) {
    const manifests = fields.list('manifests', readDescriptor, maxIndexEntries);
    return { kind: 'index', mediaType, index: { ...common, manifests } };
  }
  const config = fields.object('config', readDescriptor);
  if (config === undefined) throw fields.invalid('config is missing');
  return {
    kind: 'image',
    mediaType,
    manifest: { ...common, config, layers: fields.list('layers', readDescriptor) },
  };
}

/**
 * The JSON object of a manifest of any kind. Throws OpmateError SYNTAX, LIMIT (over 4 MiB), or INVALID for a key
 * that is given twice, or a known one in another case: two readers could take it for different things.
 */
export function parseManifestDocument(bytes: Uint8Array, subject: string): JsonObject {
  const document = parseDocument(bytes, subject, 'manifest');
  new Fields(document, subject).refuseOtherCase(documentFields);
  return document;
}

/**
 * Reads an image configuration, OCI or Docker. Throws OpmateError SYNTAX, INVALID or LIMIT (over 4 MiB).
 */
export function parseImageConfig(bytes: Uint8Array, subject: string): ImageConfig {
  const fields = new Fields(parseDocument(bytes, subject, 'image configuration'), subject);
  return defined({
    architecture: fields.string('architecture'),
    os: fields.string('os'),
    variant: fields.string('variant'),
    created: fields.string('created'),
    config: fields.object('config', (config) =>
      defined({
        Labels: config.strings('Labels'),
        Env: config.stringList('Env'),
        Entrypoint: config.stringList('Entrypoint'),
        Cmd: config.stringList('Cmd'),
        WorkingDir: config.string('WorkingDir'),
        User: config.string('User'),
        ExposedPorts: config.object('ExposedPorts', (ports) => ports.objects()),
      }),
    ),
    rootfs: fields.object('rootfs', (rootfs) => ({
      type: 'layers' as const,
      diff_ids: rootfs.stringList('diff_ids') ?? [],
    })),
    history: fields.has('history')
      ? fields.list('history', (entry) =>
          defined({
            created: entry.string('created'),
            created_by: entry.string('created_by'),
            comment: entry.string('comment'),
            empty_layer: entry.value('empty_layer') === true ? true : undefined,
          }),
        )
      : undefined,
  });
}

function readDescriptor(fields: Fields): Descriptor {
  const mediaType = fields.string('mediaType');
  if (mediaType === undefined) throw fields.invalid('mediaType is missing');
  const digest = fields.string('digest');
  if (digest === undefined || !isDigest(digest))
    throw fields.invalid(`${show(digest ?? '')} is not a digest`, 'digest');
  const size = fields.value('size');
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
    throw fields.invalid('not a number of bytes', 'size');
  }
  return defined({
    mediaType,
    digest,
    size,
    annotations: fields.strings('annotations'),
    artifactType: fields.string('artifactType'),
    platform: fields.object('platform', readPlatform),
    data: fields.string('data'),
    urls: fields.stringList('urls'),
  });
}

function readPlatform(fields: Fields): Platform {
  return defined({
    os: fields.string('os') ?? '',
    architecture: fields.string('architecture') ?? '',
    variant: fields.string('variant'),
    'os.version': fields.string('os.version'),
    'os.features': fields.stringList('os.features'),
  });
}

const documentFields: readonly string[] = [
  'schemaVersion',
  'mediaType',
  'artifactType',
  'config',
  'layers',
  'manifests',
  'subject',
  'annotations',
  'fsLayers',
  'history',
  'blobs',
];

/** The fields of one foreign object, each read with a check; null counts as absent, as Go writes it. */
class Fields {
  readonly #object: JsonObject;
  readonly #subject: string;
  readonly #path: string;

  constructor(object: JsonObject, subject: string, path = '') {
    this.#object = object;
    this.#subject = subject;
    this.#path = path;
  }

  invalid(problem: string, key = ''): OpmateError {
    const path = [this.#path, key].filter((part) => part !== '').join('.');
    return new OpmateError('INVALID', `${this.#subject}: ${path === '' ? '' : `${path}: `}${problem}`);
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#object, key);
  }

  value(key: string): JsonValue | undefined {
    return this.has(key) ? (this.#object[key] ?? undefined) : undefined;
  }

  string(key: string): string | undefined {
    const value = this.value(key);
    if (value !== undefined && typeof value !== 'string') throw this.invalid('not a string', key);
    return value === '' && key !== 'data' ? undefined : value;
  }

  strings(key: string): Record<string, string> | undefined {
    return this.object(key, (fields) => {
      const result: Record<string, string> = {};
      for (const [name, value] of Object.entries(fields.#object)) {
        if (typeof value !== 'string') throw fields.invalid('not a string', name);
        setJsonKey(result, name, value);
      }
      return result;
    });
  }

  stringList(key: string): string[] | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) throw this.invalid('not a list', key);
    return value.map((item, i) => {
      if (typeof item !== 'string') throw this.invalid('not a string', `${key}[${i}]`);
      return item;
    });
  }

  object<T>(key: string, read: (fields: Fields) => T): T | undefined {
    const value = this.value(key);
    return value === undefined ? undefined : read(this.#inner(value, key));
  }

  list<T>(key: string, read: (fields: Fields) => T, limit = Infinity): T[] {
    const value = this.value(key);
    if (value === undefined) return [];
    if (!Array.isArray(value)) throw this.invalid('not a list', key);
    if (value.length > limit) {
      throw new LimitError(`${this.#subject}: ${key}: ${value.length} entries, more than ${limit}`);
    }
    return value.map((item, i) => read(this.#inner(item, `${key}[${i}]`)));
  }

  /** All values, each of which must be an object. */
  objects(): Record<string, object> {
    const result: Record<string, object> = {};
    for (const [name, value] of Object.entries(this.#object)) {
      if (!isJsonObject(value)) throw this.invalid('not an object', name);
      setJsonKey<object>(result, name, value);
    }
    return result;
  }

  refuse(keys: readonly string[], mediaType: string): void {
    const found = keys.find((key) => this.has(key));
    if (found !== undefined) throw this.invalid(`has ${found}, which ${mediaType} must not have`);
  }

  /** Go reads `Layers` as `layers`: a document with such a key means different things to different readers. */
  refuseOtherCase(known: readonly string[]): void {
    const byLowerCase = new Map(known.map((key) => [key.toLowerCase(), key]));
    for (const key of Object.keys(this.#object)) {
      const meant = byLowerCase.get(key.toLowerCase());
      if (meant !== undefined && meant !== key) throw this.invalid(`has ${show(key)} in place of ${meant}`);
    }
  }

  #inner(value: JsonValue, key: string): Fields {
    const path = this.#path === '' ? key : `${this.#path}.${key}`;
    if (!isJsonObject(value)) throw this.invalid('not an object', key);
    return new Fields(value, this.#subject, path);
  }
}

/** Drops the fields that are undefined. */
function defined<T extends object>(object: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  for (const key of Object.keys(object) as (keyof T)[]) if (object[key] === undefined) delete object[key];
  return object as { [K in keyof T]: Exclude<T[K], undefined> };
}

/** The media type of a Content-Type header, unless it is one that says nothing. */
function knownType(header: string | undefined): string | undefined {
  const type = header?.split(';')[0]?.trim().toLowerCase();
  const generic = ['', 'application/json', 'application/octet-stream', 'binary/octet-stream', 'text/plain'];
  return type === undefined || generic.includes(type) ? undefined : type;
}

function schema1(subject: string): OpmateError {
  return new OpmateError(
    'UNSUPPORTED',
    `${subject}: a Docker schema 1 image, a format that was given up in 2017`,
    {
      hint: 'convert it: skopeo copy --format v2s2 docker://OLD docker://NEW',
    },
  );
}

/** Foreign text for a message: short and on one line. */
function show(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}

function parseDocument(bytes: Uint8Array, subject: string, what: string): JsonObject {
  if (bytes.length > maxManifestBytes) {
    throw new LimitError(`${subject}: ${what} is larger than ${maxManifestBytes} bytes`);
  }
  let text: string;
  let document: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    document = JSON.parse(text);
  } catch (cause) {
    throw new OpmateError('SYNTAX', `${subject}: ${what} is not valid JSON`, { cause });
  }
  if (!isJsonObject(document)) throw new OpmateError('SYNTAX', `${subject}: ${what} is not a JSON object`);
  const repeated = findRepeatedKey(text);
  if (repeated !== undefined) {
    throw new OpmateError('INVALID', `${subject}: ${what} has the key ${show(repeated)} twice in one object`);
  }
  return document;
}

/** The first key that valid JSON text gives twice in one object. */
export function findRepeatedKey(text: string): string | undefined {
  const objects: Set<string>[] = [];
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (char === '{') objects.push(new Set());
    else if (char === '}') objects.pop();
    else if (char === '"') {
      const start = i++;
      while (text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
      let next = i + 1;
      while (' \t\r\n'.includes(text[next] ?? '.')) next++;
      if (text[next] !== ':') continue;
      const key = JSON.parse(text.slice(start, i + 1)) as string;
      const keys = objects.at(-1);
      if (keys?.has(key)) return key;
      keys?.add(key);
    }
  }
  return undefined;
}
