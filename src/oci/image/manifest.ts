import { LimitError, OpmateError } from '../../core/errors.js';
import { isJsonObject, type JsonObject } from '../../document/json.js';
import { openValue } from '../../document/document.js';
import { type Field, quoteShort } from '../../document/field.js';
import { findDuplicateKey } from '../../document/raw-json.js';
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

/** Maximum entries of an index, nested ones included. */
export const maxIndexEntries = 10_000;

/** A manifest or index. `mediaType` is declared, announced, or implied by its fields. */
export type ParsedManifest =
  | { kind: 'image'; mediaType: string; manifest: ImageManifest }
  | { kind: 'index'; mediaType: string; index: ImageIndex };

/** Returns a media type as clients compare it: without parameters, in lower case. */
function normalizeType(mediaType: string): string {
  return (mediaType.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** Reports whether a media type is that of an index or manifest list. */
export function isIndexType(mediaType: string): boolean {
  const type = normalizeType(mediaType);
  return type === mediaTypes.ociIndex || type === mediaTypes.dockerManifestList;
}

/** Reports whether a descriptor is that of a manifest or index. */
export function isManifestType({ mediaType }: Pick<Descriptor, 'mediaType'>): boolean {
  return manifestMediaTypes.includes(normalizeType(mediaType));
}

/** Reports whether a layer must not be redistributed, and so may be missing. */
export function isNonDistributable(descriptor: Descriptor): boolean {
  return /nondistributable|\.foreign\./.test(descriptor.mediaType);
}

interface ParseManifestOptions {
  /** Start of messages: `quay.io/ns/name:v1`. */
  subject: string;
  /** Announced type: media type of the descriptor, or a Content-Type header. */
  mediaType?: string | undefined;
  /** A list of referrers, whose entries may be artifacts of other types. */
  isReferrersList?: boolean;
}

/**
 * Parses an image manifest or index, OCI or Docker schema 2. Unknown fields are ignored. Refuses ambiguous documents
 * (CVE-2021-41190): fields of another kind, another media type than announced, duplicate keys, keys in another case,
 * index entries that are not manifests. Throws OpmateError SYNTAX, INVALID, UNSUPPORTED (schema 1, unknown types) or
 * LIMIT (4 MiB, 10,000 entries).
 */
export function parseManifest(bytes: Uint8Array, options: ParseManifestOptions): ParsedManifest {
  const { subject } = options;
  const announced = knownType(options.mediaType);
  if (announced?.startsWith('application/vnd.docker.distribution.manifest.v1+')) throw schema1(subject);
  const { document, root, fields } = openManifest(bytes, subject);
  const schemaVersion = fields.schemaVersion.value;
  if (schemaVersion === 1) throw schema1(subject);

  const declared = fields.mediaType.optionalText();
  if (declared !== undefined && announced !== undefined && declared !== announced) {
    return root.fail(
      `media type ${quoteShort(declared)} differs from the announced ${quoteShort(announced)}`,
    );
  }
  const implied = fields.manifests.isPresent ? mediaTypes.ociIndex : mediaTypes.ociManifest;
  const mediaType = declared ?? announced ?? implied;
  if (!manifestMediaTypes.includes(mediaType)) {
    throw new OpmateError('UNSUPPORTED', `${quoteShort(mediaType)} is neither an image nor an index`, {
      subject,
    });
  }
  if (schemaVersion !== 2) fields.schemaVersion.fail('expected 2');
  const isIndex = isIndexType(mediaType);
  const refused = isIndex ? imageFields : indexFields;
  const other = refused.find((key) => Object.hasOwn(document, key));
  if (other !== undefined) root.field(other).fail(`not allowed in ${mediaType}`);

  const common = defined({
    schemaVersion: 2 as const,
    mediaType: declared,
    artifactType: fields.artifactType.optionalText(),
    annotations: fields.annotations.optionalTexts(),
    subject: fields.subject.isPresent ? readDescriptor(fields.subject) : undefined,
  });
  if (isIndex) {
    const readEntry = options.isReferrersList ? readDescriptor : readIndexEntry;
    const manifests = fields.manifests.optionalList(maxIndexEntries).map(readEntry);
    return { kind: 'index', mediaType, index: { ...common, manifests } };
  }
  return {
    kind: 'image',
    mediaType,
    manifest: {
      ...common,
      config: readDescriptor(fields.config),
      layers: fields.layers.optionalList().map(readDescriptor),
    },
  };
}

/**
 * Reads an entry of an index. Clients run an entry of the right platform whatever its media type says, so one that is
 * no manifest is refused, and a spelling that others read as a manifest type becomes that type.
 */
function readIndexEntry(field: Field<never>): Descriptor {
  const descriptor = readDescriptor(field);
  if (isManifestType(descriptor)) return { ...descriptor, mediaType: normalizeType(descriptor.mediaType) };
  const problem = `${quoteShort(descriptor.mediaType)} is neither an image nor an index`;
  return field.field('mediaType').fail(problem, { code: 'unsupported' });
}

/** Fields of images only and of indexes only; both refuse those of older formats. */
const imageFields = ['config', 'layers', 'fsLayers', 'history', 'blobs'];
const indexFields = ['manifests', 'fsLayers', 'history', 'blobs'];

/** Properties of a manifest that storing and listing it require. */
export interface ManifestFacts {
  /** Declared media type, or the one that the fields imply. */
  mediaType: string;
  declaredMediaType: string | undefined;
  /** Config, layers, and listed content that is no manifest. */
  blobs: Descriptor[];
  /** Manifests and indexes that an index lists. */
  manifests: Descriptor[];
  /** Digest of the manifest that this one refers to. */
  subject: string | undefined;
  /** Artifact type of the referrers API; default: the media type of the config. */
  artifactType: string | undefined;
  annotations?: Record<string, string> | undefined;
}

/**
 * Reads the references of a manifest or index of any type. Unknown fields are ignored. Throws
 * OpmateError SYNTAX, LIMIT (4 MiB), and INVALID for duplicate keys, the fields of several kinds of manifest (CVE-2021-41190), for a
 * schema version other than 2, and for invalid descriptors.
 */
export function readManifestFacts(bytes: Uint8Array, subject = 'manifest'): ManifestFacts {
  const { document, fields } = openManifest(bytes, subject);
  if (fields.schemaVersion.isPresent && fields.schemaVersion.value !== 2)
    fields.schemaVersion.fail('expected 2');
  const { config, layers, manifests } = document;
  if ('fsLayers' in document || (manifests !== undefined && (layers !== undefined || config !== undefined))) {
    throw new OpmateError('INVALID', 'has the fields of several kinds of manifest', { subject });
  }
  const configDescriptor = fields.config.isPresent ? checkDescriptor(fields.config) : undefined;
  const listed = fields.manifests.optionalList().map(checkDescriptor);
  const declaredMediaType = fields.mediaType.optionalText();
  return {
    mediaType: declaredMediaType ?? (manifests === undefined ? mediaTypes.ociManifest : mediaTypes.ociIndex),
    declaredMediaType,
    blobs: [
      ...(configDescriptor === undefined ? [] : [configDescriptor]),
      ...fields.layers.optionalList().map(checkDescriptor),
      ...listed.filter((item) => !isManifestType(item)),
    ],
    manifests: listed.filter(isManifestType),
    subject: fields.subject.isPresent ? checkDescriptor(fields.subject).digest : undefined,
    artifactType: fields.artifactType.optionalText() ?? configDescriptor?.mediaType,
    annotations: fields.annotations.optionalTexts(Infinity),
  };
}

/** Returns a descriptor with all of its fields, after checking its media type, digest and size. */
export function checkDescriptor(field: Field<never>): Descriptor {
  const { mediaType, digest, size } = field.object(['mediaType', 'digest', 'size'], { unknown: 'ignore' });
  mediaType.anyText();
  digest.digest();
  size.size();
  return field.value as unknown as Descriptor;
}

/**
 * Opens the JSON object of a manifest of any kind. Throws OpmateError SYNTAX, LIMIT (4 MiB), or INVALID for a duplicate
 * key or a known one in another case.
 */
function openManifest(bytes: Uint8Array, subject: string) {
  const document = parseDocument(bytes, subject, 'manifest');
  // Go reads `Layers` as `layers`, other readers do not.
  const byLowerCase = new Map(documentFields.map((key) => [key.toLowerCase(), key]));
  for (const key of Object.keys(document)) {
    const meant = byLowerCase.get(key.toLowerCase());
    if (meant === undefined || meant === key) continue;
    throw new OpmateError('INVALID', `expected key ${meant}, got ${quoteShort(key)}`, { subject });
  }
  const root = openValue(document, { name: subject, kind: 'reference' });
  return { document, root, fields: root.object(documentFields, { unknown: 'ignore' }) };
}

/** Parses an image configuration, OCI or Docker. Throws OpmateError SYNTAX, INVALID or LIMIT (4 MiB). */
export function parseImageConfig(bytes: Uint8Array, subject: string): ImageConfig {
  const document = parseDocument(bytes, subject, 'image configuration');
  const root = openValue(document, { name: subject, kind: 'reference' });
  const { config, rootfs, history, ...fields } = root.object(configFields, { unknown: 'ignore' });
  return defined({
    architecture: fields.architecture.optionalText(),
    os: fields.os.optionalText(),
    variant: fields.variant.optionalText(),
    created: fields.created.optionalText(),
    config: config.isPresent ? readContainerConfig(config) : undefined,
    rootfs: rootfs.isPresent
      ? { type: 'layers' as const, diff_ids: rootfs.field('diff_ids').optionalTextList() ?? [] }
      : undefined,
    history: history.isPresent ? history.list().map(readHistory) : undefined,
  });
}

function readContainerConfig(field: Field<never>): NonNullable<ImageConfig['config']> {
  const fields = field.object(containerFields, { unknown: 'ignore' });
  const ports = fields.ExposedPorts;
  return defined({
    Labels: fields.Labels.optionalTexts(),
    Env: fields.Env.optionalTextList(),
    Entrypoint: fields.Entrypoint.optionalTextList(),
    Cmd: fields.Cmd.optionalTextList(),
    WorkingDir: fields.WorkingDir.optionalText(Infinity),
    User: fields.User.optionalText(Infinity),
    ExposedPorts: ports.isPresent
      ? Object.fromEntries(ports.entries(maxIndexEntries).map(([name, port]) => [name, port.jsonObject()]))
      : undefined,
  });
}

function readHistory(field: Field<never>): NonNullable<ImageConfig['history']>[number] {
  const fields = field.object(['created', 'created_by', 'comment', 'empty_layer'], { unknown: 'ignore' });
  return defined({
    created: fields.created.optionalText(Infinity),
    created_by: fields.created_by.optionalText(Infinity),
    comment: fields.comment.optionalText(Infinity),
    empty_layer: fields.empty_layer.value === true ? (true as const) : undefined,
  });
}

function readDescriptor(field: Field<never>): Descriptor {
  const fields = field.object(descriptorFields, { unknown: 'ignore' });
  return defined({
    mediaType: fields.mediaType.text(),
    digest: fields.digest.digest(),
    size: fields.size.size(),
    annotations: fields.annotations.optionalTexts(),
    artifactType: fields.artifactType.optionalText(),
    platform: fields.platform.isPresent ? readPlatform(fields.platform) : undefined,
    data: fields.data.isPresent ? fields.data.anyText(Infinity) : undefined,
    urls: fields.urls.optionalTextList(),
  });
}

function readPlatform(field: Field<never>): Platform {
  const keys = ['os', 'architecture', 'variant', 'os.version', 'os.features'] as const;
  const fields = field.object(keys, { unknown: 'ignore' });
  return defined({
    os: fields.os.optionalText() ?? '',
    architecture: fields.architecture.optionalText() ?? '',
    variant: fields.variant.optionalText(),
    'os.version': fields['os.version'].optionalText(),
    'os.features': fields['os.features'].optionalTextList(),
  });
}

const documentFields = [
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
] as const;

const descriptorFields = [
  'mediaType',
  'digest',
  'size',
  'annotations',
  'artifactType',
  'platform',
  'data',
  'urls',
] as const;

const configFields = ['architecture', 'os', 'variant', 'created', 'config', 'rootfs', 'history'] as const;

const containerFields = ['Labels', 'Env', 'Entrypoint', 'Cmd', 'WorkingDir', 'User', 'ExposedPorts'] as const;

/** Removes undefined fields. */
function defined<T extends object>(object: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  for (const key of Object.keys(object) as (keyof T)[]) if (object[key] === undefined) delete object[key];
  return object as { [K in keyof T]: Exclude<T[K], undefined> };
}

/** Returns the media type of a Content-Type header; undefined for generic ones. */
function knownType(header: string | undefined): string | undefined {
  const type = header === undefined ? undefined : normalizeType(header);
  const generic = ['', 'application/json', 'application/octet-stream', 'binary/octet-stream', 'text/plain'];
  return type === undefined || generic.includes(type) ? undefined : type;
}

function schema1(subject: string): OpmateError {
  return new OpmateError('UNSUPPORTED', 'Docker schema 1 images are no longer supported', {
    subject,
    hint: 'convert it with skopeo copy --format v2s2 docker://OLD docker://NEW',
  });
}

function parseDocument(bytes: Uint8Array, subject: string, what: string): JsonObject {
  if (bytes.length > maxManifestBytes) {
    throw new LimitError(`${what}: larger than the maximum of ${maxManifestBytes} bytes`, { subject });
  }
  let text: string;
  let document: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    document = JSON.parse(text);
  } catch (cause) {
    throw new OpmateError('SYNTAX', `${what}: invalid JSON`, { subject, cause });
  }
  if (!isJsonObject(document)) throw new OpmateError('SYNTAX', `${what}: expected an object`, { subject });
  const repeated = findDuplicateKey(text);
  if (repeated !== undefined) {
    throw new OpmateError('INVALID', `${what}: duplicate key ${quoteShort(repeated)}`, { subject });
  }
  return document;
}
