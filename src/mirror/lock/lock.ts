import { isUtf8 } from 'node:buffer';
import { computeDigest, isDigest } from '../../core/digest.js';
import { LimitError, OpmateError, fileError } from '../../core/errors.js';
import { type JsonValue, setJsonKey } from '../../document/json.js';
import { compareBytes } from '../../core/order.js';
import { parseReference } from '../../core/reference.js';
import { openValue, parseJsonFile } from '../../document/document.js';
import { type Field, quoteShort } from '../../document/field.js';
import { readRegularFile } from '../../files/read-file.js';
import { type ContentManifest, type ImageContents, getBlobs } from '../../oci/image/contents.js';
import { findRepeatedKey } from '../../oci/image/manifest.js';
import { type Descriptor, maxManifestBytes } from '../../oci/image/types.js';
import { type Verdict, verificationStatuses } from '../../oci/signatures/verify-image.js';
import { isRepositoryName, isTag } from '../../oci/registry/registry-names.js';
import type { PlannedImage } from '../image-set/image-set-plan.js';
import { type LockedReleases, encodeReleases, readReleases } from './locked-releases.js';

/** Name of the lock file below `working-dir` and in archives. */
export const lockName = 'opmate.lock.json';

/**
 * An image set with every reference pinned to digest and size: what was, or is to be, mirrored. Independent of
 * where to, so that one lock serves any target, archives included.
 */
export interface ImageSetLock {
  /** `sha256:…` of the bytes of the configuration. */
  configuration: string;
  /** Which options of the command line shaped the selection, e.g. `dependencies`. */
  options: Readonly<Record<string, string>>;
  catalogs: LockedCatalog[];
  /** In the order of the configuration; undefined for none. */
  charts?: LockedChart[] | undefined;
  /** Undefined for none. */
  releases?: LockedReleases | undefined;
  /** By kind, then source, then name. */
  images: LockedImage[];
}

/** A catalog of the set, and what of it. */
export interface LockedCatalog {
  /** As the configuration writes it. */
  catalog: string;
  /** Of the image that the catalog was read from. */
  sourceDigest: string;
  /** Path below the target and tag. */
  repository: string;
  tag: string;
  isWhole: boolean;
  /** Whether it is an index in a sqlite database. */
  isDatabase?: boolean | undefined;
  targetCatalogSourceTemplate?: LockedTemplate | undefined;
  /** By name. */
  packages: LockedPackage[];
}

/** A Helm chart of the set, and the artifact that holds it where charts are mirrored too. */
export interface LockedChart {
  /** URL of its repository, or its path, as the configuration writes it. */
  source: string;
  name: string;
  version: string;
  /** Path below the target and tag. */
  repository: string;
  tag: string;
}

/** A CatalogSource template: its file as the configuration names it, and what that held. */
interface LockedTemplate {
  file: string;
  /** Undefined in locks that were written before locks held it. */
  text: string | undefined;
}

interface LockedPackage {
  name: string;
  defaultChannel: string;
  /** In the order of the catalog. */
  channels: { name: string; head: string }[];
  /** By version. */
  bundles: { name: string; version: string }[];
}

/** An image of the set, to the byte. */
export interface LockedImage {
  kind: PlannedImage['kind'] | 'signature';
  /** As the catalog or configuration writes it; of a signature that of the image that it signs. */
  reference: string;
  /** What it was found by, as in the left side of a mapping line. */
  source: string;
  /** References to the same image in other source repositories that have this name at the target too. */
  aliases?: readonly string[] | undefined;
  /** Path below the target, and the tag there; no tag where a digest is all that names it. */
  repository: string;
  tag: string | undefined;
  bundles: { package: string; bundle: string }[];
  contents: ImageContents;
  /** The verdict on its signatures, where the run that wrote the lock verified them. */
  verification?: Verdict | undefined;
}

/** The version of the file format that is written, and the newest that is read. */
const formatVersion = 1;

const maxLockBytes = 256 * 1024 * 1024;
const maxOptions = 100;
const maxCatalogs = 1000;
const maxNames = 100_000;
const maxImages = 100_000;
const maxReasonLength = 2000;
const maxTemplateLength = 1024 * 1024;
/** Of the tables, and of all images together: one that names a large index twice counts it twice. */
const maxManifests = 1_000_000;
const maxBlobs = 10_000_000;
/** As `copyImage` has it. */
const maxManifestsOfImage = 20_000;
const maxDepth = 16;

const kinds = [
  ...(['additional', 'bundle', 'catalog', 'chart', 'component', 'graph', 'helm', 'related'] as const),
  ...(['release', 'signature'] as const),
] as const;

/** The blobs of a lock by digest, each once. */
export function blobsOfLock(lock: ImageSetLock): Map<string, Descriptor> {
  const blobs = new Map<string, Descriptor>();
  for (const { contents } of lock.images) {
    for (const [digest, blob] of getBlobs(contents)) if (!blobs.has(digest)) blobs.set(digest, blob);
  }
  return blobs;
}

/** The same lock without the artifacts of its charts. */
export function withoutCharts(lock: ImageSetLock): ImageSetLock {
  return { ...lock, images: lock.images.filter(({ kind }) => kind !== 'chart') };
}

/** What names an image in its place: `repository:tag`, or `repository@digest` where it has no tag. */
export function nameOfLocked({ repository, tag, contents }: LockedImage): string {
  return tag === undefined ? `${repository}@${contents.root.digest}` : `${repository}:${tag}`;
}

/** The order of images in a lock. */
export function compareLocked(a: LockedImage, b: LockedImage): number {
  return (
    compareBytes(a.kind, b.kind) ||
    compareBytes(a.source, b.source) ||
    compareBytes(nameOfLocked(a), nameOfLocked(b))
  );
}

/**
 * A lock as the text of its file: equal locks have equal bytes. Manifests and blobs stand in tables, each once;
 * of their descriptors media type, digest and size are kept. What is written can be read: throws OpmateError, as
 * `parseLock` would, where two images have one name, or a limit is reached.
 */
export function encodeLock(lock: ImageSetLock): string {
  const { version, ...content } = encodeContent(lock);
  const text = `${layOut({ version, plan: planOf(lock), ...content }, '')}\n`;
  parseLock(text, 'lock');
  return text;
}

/**
 * Returns the digest of a plan: over everything that a lock pins. Machines that share a plan compare it; a lock names its
 * own as `plan`.
 */
export function planOf(lock: ImageSetLock): string {
  return computeDigest(JSON.stringify(encodeContent(lock)));
}

function encodeContent(lock: ImageSetLock) {
  const images = [...lock.images].sort(compareLocked);
  const tables = new Tables(images);
  return {
    version: formatVersion,
    configuration: lock.configuration,
    options: Object.fromEntries(Object.entries(lock.options).sort(([a], [b]) => compareBytes(a, b))),
    catalogs: lock.catalogs.map(encodeCatalog),
    ...(lock.charts !== undefined &&
      lock.charts.length > 0 && {
        charts: lock.charts.map(({ source, name, version, repository, tag }) => ({
          ...{ source, name, version, repository, tag },
        })),
      }),
    ...(lock.releases !== undefined && { releases: encodeReleases(lock.releases) }),
    images: images.map((image) => tables.encodeImage(image)),
    manifests: tables.encodeManifests(),
    blobs: tables.encodeBlobs(),
  };
}

function encodeCatalog(catalog: LockedCatalog): JsonValue {
  const { targetCatalogSourceTemplate: template } = catalog;
  return {
    catalog: catalog.catalog,
    sourceDigest: catalog.sourceDigest,
    repository: catalog.repository,
    tag: catalog.tag,
    isWhole: catalog.isWhole,
    ...(catalog.isDatabase === true && { isDatabase: true }),
    ...(template !== undefined && {
      targetCatalogSourceTemplate:
        template.text === undefined ? template.file : { file: template.file, text: template.text },
    }),
    packages: catalog.packages.map(({ name, defaultChannel, channels, bundles }) => ({
      name,
      defaultChannel,
      channels: channels.map((channel) => ({ name: channel.name, head: channel.head })),
      bundles: bundles.map((bundle) => ({ name: bundle.name, version: bundle.version })),
    })),
  };
}

/** Manifests and blobs as the first image has them that needs them; where another has them otherwise, it says so. */
class Tables {
  readonly #manifests = new Map<string, ContentManifest>();
  readonly #blobs = new Map<string, Descriptor>();

  constructor(images: readonly LockedImage[]) {
    for (const manifest of images.flatMap(({ contents }) => contents.manifests)) {
      if (this.#manifests.has(manifest.descriptor.digest)) continue;
      this.#manifests.set(manifest.descriptor.digest, manifest);
      for (const blob of manifest.blobs)
        if (!this.#blobs.has(blob.digest)) this.#blobs.set(blob.digest, blob);
    }
  }

  encodeImage(image: LockedImage): JsonValue {
    const { root, manifests } = image.contents;
    const listed = manifests.map((manifest) => {
      const known = this.#manifests.get(manifest.descriptor.digest) as ContentManifest;
      const { digest } = manifest.descriptor;
      return isSameManifest(known, manifest) ? digest : { digest, ...this.#encodeManifest(manifest) };
    });
    const implied = impliedManifests(root.digest, (digest) => this.#manifests.get(digest)?.manifests ?? []);
    const isImplied = implied.length === listed.length && implied.every((digest, i) => digest === listed[i]);
    return {
      kind: image.kind,
      reference: image.reference,
      source: image.source,
      ...(image.aliases !== undefined && { aliases: [...image.aliases] }),
      repository: image.repository,
      ...(image.tag !== undefined && { tag: image.tag }),
      digest: root.digest,
      ...(!isImplied && { manifests: listed }),
      bundles: image.bundles.map(({ package: name, bundle }) => ({ package: name, bundle })),
      ...(image.verification !== undefined && {
        verification: {
          status: image.verification.status,
          reason: image.verification.reason.slice(0, maxReasonLength),
        },
      }),
    };
  }

  encodeManifests(): JsonValue {
    return sortedTable(this.#manifests, (manifest) => this.#encodeManifest(manifest));
  }

  encodeBlobs(): JsonValue {
    return sortedTable(this.#blobs, ({ mediaType, size }) => ({ mediaType, size }));
  }

  #encodeManifest({ descriptor: { mediaType, size }, manifests, blobs }: ContentManifest) {
    return {
      mediaType,
      size,
      ...(manifests.length > 0 && { manifests: [...manifests] }),
      ...(blobs.length > 0 && { blobs: blobs.map((blob) => this.#encodeBlob(blob)) }),
    };
  }

  /** One digest may stand for a layer here and for a configuration there. */
  #encodeBlob(blob: Descriptor): JsonValue {
    const { digest, mediaType, size } = blob;
    const known = this.#blobs.get(digest);
    return known !== undefined && isSameContent(known, blob) ? digest : { digest, mediaType, size };
  }
}

function isSameManifest(a: ContentManifest, b: ContentManifest): boolean {
  return (
    a === b ||
    (isSameContent(a.descriptor, b.descriptor) &&
      a.manifests.length === b.manifests.length &&
      a.manifests.every((digest, i) => digest === b.manifests[i]) &&
      a.blobs.length === b.blobs.length &&
      a.blobs.every((blob, i) => isSameContent(blob, b.blobs[i] as Descriptor)))
  );
}

function isSameContent(a: Descriptor, b: Descriptor): boolean {
  return a.digest === b.digest && a.mediaType === b.mediaType && a.size === b.size;
}

function sortedTable<T>(table: ReadonlyMap<string, T>, encode: (value: T) => JsonValue): JsonValue {
  const entries = [...table].sort(([a], [b]) => compareBytes(a, b));
  return Object.fromEntries(entries.map(([digest, value]) => [digest, encode(value)]));
}

/**
 * A manifest and those below it, each after what it lists, as an image has them of which no more is said. Leaves
 * out what is deeper than `maxDepth`, and goes round no circle.
 */
function impliedManifests(root: string, listedBy: (digest: string) => readonly string[]): string[] {
  const entered = new Set<string>();
  const order: string[] = [];
  const visit = (digest: string, depth: number): void => {
    if (entered.has(digest) || depth > maxDepth) return;
    entered.add(digest);
    for (const listed of listedBy(digest)) visit(listed, depth + 1);
    order.push(digest);
  };
  visit(root, 1);
  return order;
}

/** JSON, a field a line but for short objects, so that one thing more or less is about a line more or less. */
function layOut(value: JsonValue, indent: string): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((item) => layOut(item, `${indent}  `))
    : Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${layOut(item, `${indent}  `)}`);
  const [begin, end] = isList ? ['[', ']'] : ['{', '}'];
  if (items.length === 0) return `${begin}${end}`;
  const isShort = !isList && items.length <= 3 && Object.values(value).every(isPlain);
  if (isShort) return `{ ${items.join(', ')} }`;
  const inner = `\n${indent}  `;
  return `${begin}${inner}${items.join(`,${inner}`)}\n${indent}${end}`;
}

function isPlain(value: JsonValue): boolean {
  return typeof value !== 'object' || value === null;
}

/**
 * Reads a lock file, which `file` names in messages. At most 256 MiB. Throws OpmateError: what `parseLock` throws,
 * NOT_FOUND and IO.
 */
export async function readLock(place: string, file = place): Promise<ImageSetLock> {
  let bytes: Buffer;
  try {
    bytes = await readRegularFile(place, maxLockBytes, { name: file, label: `open ${file}` });
  } catch (error) {
    throw fileError(`open ${file}`, error, { file });
  }
  if (!isUtf8(bytes)) throw new OpmateError('SYNTAX', 'not UTF-8', { subject: file, file });
  return parseLock(bytes.toString(), file);
}

function tooLarge(file: string): OpmateError {
  return new LimitError(`more than ${maxLockBytes} bytes`, { subject: file, file });
}

/** Returns the error for a file of another kind. */
function notLock(file: string): OpmateError {
  return new OpmateError('INVALID', 'expected a lock or an archive', {
    subject: file,
    file,
    hint: `specify the ${lockName} that opmate mirror writes, or the directory of an archive`,
  });
}

/** Reads a lock file, checking all of it. Throws OpmateError SYNTAX, INVALID, LIMIT or UNSUPPORTED (newer version). */
export function parseLock(text: string, file: string): ImageSetLock {
  if (text.length > maxLockBytes) throw tooLarge(file);
  // JSON that is cut off is a damaged lock, anything else another file.
  if (/^\s*[^\s{[]/.test(text)) throw notLock(file);
  const value = parseJsonFile(text, file);
  const top = openValue(value, { name: file });
  requireVersion(value, top, file);
  const repeated = findRepeatedKey(text);
  if (repeated !== undefined) {
    return top.fail(`duplicate key ${quoteShort(repeated)}`, { code: 'duplicate-key' });
  }
  const fields = top.object([
    'version',
    'plan',
    'configuration',
    'options',
    'catalogs',
    'charts',
    'releases',
    'images',
    'manifests',
    'blobs',
  ]);
  // For people and scripts: whoever compares plans computes it.
  if (fields.plan.isPresent) fields.plan.digest();
  const options: Record<string, string> = {};
  for (const [key, option] of fields.options.entries(maxOptions)) setJsonKey(options, key, option.text());
  const reader = new LockReader(fields.blobs, fields.manifests);
  return {
    configuration: fields.configuration.digest(),
    options,
    catalogs: readCatalogs(fields.catalogs),
    ...(fields.charts.isPresent && { charts: readCharts(fields.charts) }),
    ...(fields.releases.isPresent && { releases: readReleases(fields.releases) }),
    images: reader.readImages(fields.images),
  };
}

function requireVersion(value: JsonValue, top: Field<never>, file: string): void {
  const version: unknown = typeof value === 'object' && value !== null && Reflect.get(value, 'version');
  if (version === formatVersion) return;
  if (typeof version === 'number' && Number.isSafeInteger(version) && version > formatVersion) {
    const hint = `use the version of opmate that wrote it, or a newer one: this one reads version ${formatVersion}`;
    return top.fail(`version ${version} of the lock format is not supported`, { code: 'unsupported', hint });
  }
  throw notLock(file);
}

function readCatalogs(field: Field<never>): LockedCatalog[] {
  const names = new Names();
  return field.list(maxCatalogs).map((item) => {
    const fields = item.object([
      'catalog',
      'sourceDigest',
      'repository',
      'tag',
      'isWhole',
      'isDatabase',
      'targetCatalogSourceTemplate',
      'packages',
    ]);
    const template = fields.targetCatalogSourceTemplate;
    const catalog: LockedCatalog = {
      catalog: fields.catalog.text(),
      sourceDigest: fields.sourceDigest.digest(),
      repository: fields.repository.matching(isRepositoryName, 'a repository'),
      tag: fields.tag.matching(isTag, 'a tag'),
      isWhole: fields.isWhole.boolean(),
      ...(fields.isDatabase.isPresent && { isDatabase: fields.isDatabase.boolean() }),
      ...(template.isPresent && { targetCatalogSourceTemplate: readTemplate(template) }),
      packages: readPackages(fields.packages),
    };
    names.add(`${catalog.repository}:${catalog.tag}`, item);
    return catalog;
  });
}

function readCharts(field: Field<never>): LockedChart[] {
  return field.list(maxImages).map((item) => {
    const fields = item.object(['source', 'name', 'version', 'repository', 'tag']);
    return {
      source: fields.source.text(),
      name: fields.name.text(),
      version: fields.version.text(),
      repository: fields.repository.matching(isRepositoryName, 'a repository'),
      tag: fields.tag.matching(isTag, 'a tag'),
    };
  });
}

function readVerdict(field: Field<never>): Verdict {
  const { status, reason } = field.object(['status', 'reason']);
  return { status: status.choice(verificationStatuses), reason: reason.anyText(maxReasonLength) };
}

/** Returns the text of an image reference. */
function readReference(field: Field<never>): string {
  return field.parsed((text) => {
    parseReference(text);
    return text;
  });
}

function readTemplate(field: Field<never>): LockedTemplate {
  if (typeof field.value === 'string') return { file: field.text(), text: undefined };
  const { file, text } = field.object(['file', 'text']);
  return { file: file.text(), text: text.anyText(maxTemplateLength) };
}

function readPackages(field: Field<never>): LockedPackage[] {
  const names = new Names();
  const packages = field.list(maxNames).map((item) => {
    const fields = item.object(['name', 'defaultChannel', 'channels', 'bundles']);
    const name = names.add(fields.name.anyText(), fields.name);
    const channelNames = new Names();
    const channels = fields.channels.list(maxNames).map((entry) => {
      const channel = entry.object(['name', 'head']);
      return { name: channelNames.add(channel.name.anyText(), channel.name), head: channel.head.anyText() };
    });
    // A catalog that is taken as it is may have a bundle twice.
    const bundles = fields.bundles.list(maxNames).map((entry) => {
      const bundle = entry.object(['name', 'version']);
      return { name: bundle.name.anyText(), version: bundle.version.anyText() };
    });
    return { name, defaultChannel: fields.defaultChannel.anyText(), channels, bundles };
  });
  return packages.sort((a, b) => compareBytes(a.name, b.name));
}

/** Names of which each may be given once. */
class Names {
  readonly #seen = new Set<string>();

  add(name: string, field: Field<never>): string {
    if (this.#seen.has(name)) return field.fail(`duplicate ${quoteShort(name)}`, { code: 'duplicate' });
    this.#seen.add(name);
    return name;
  }
}

class LockReader {
  readonly #blobs = new Map<string, Descriptor>();
  readonly #manifests = new Map<string, ContentManifest>();
  readonly #fields = new Map<string, Field<never>>();
  /** What roots imply: images of one root share the list. */
  readonly #implied = new Map<string, readonly ContentManifest[]>();
  /** Of all images, as the limits count. */
  #manifestCount = 0;
  #blobCount = 0;
  #bytes = 0;

  constructor(blobs: Field<never>, manifests: Field<never>) {
    for (const [digest, field] of blobs.entries(maxManifests)) {
      this.#blobs.set(requireDigest(digest, field), this.#readBlob(digest, field, ['mediaType', 'size']));
    }
    for (const [digest, field] of manifests.entries(maxManifests)) {
      const fields = field.object(['mediaType', 'size', 'manifests', 'blobs']);
      this.#manifests.set(requireDigest(digest, field), this.#readManifest(digest, fields));
      this.#fields.set(digest, fields.manifests);
    }
    for (const [digest, manifest] of this.#manifests) {
      for (const [i, listed] of manifest.manifests.entries()) {
        if (this.#manifests.has(listed)) continue;
        const field = this.#fields.get(digest)?.list(maxManifestsOfImage)[i];
        field?.fail(`${listed} is not in manifests`);
      }
    }
  }

  readImages(field: Field<never>): LockedImage[] {
    const names = new Names();
    const images = field.list(maxImages).map((item) => {
      const image = this.#readImage(item);
      names.add(nameOfLocked(image), item);
      return image;
    });
    return images.sort(compareLocked);
  }

  #readImage(item: Field<never>): LockedImage {
    const fields = item.object([
      'kind',
      'reference',
      'source',
      'aliases',
      'repository',
      'tag',
      'digest',
      'manifests',
      'bundles',
      'verification',
    ]);
    const digest = fields.digest.digest();
    const manifests = fields.manifests.isPresent
      ? this.#readContents(fields.manifests)
      : this.#impliedBy(digest, fields.digest);
    const root = manifests.find((manifest) => manifest.descriptor.digest === digest);
    if (root === undefined) return fields.digest.fail(`${digest} is not among the manifests of the image`);
    this.#count(manifests, item);
    return {
      kind: fields.kind.choice(kinds),
      reference: readReference(fields.reference),
      source: readReference(fields.source),
      ...(fields.aliases.isPresent && { aliases: fields.aliases.list(maxNames).map(readReference) }),
      repository: fields.repository.matching(isRepositoryName, 'a repository'),
      tag: fields.tag.isPresent ? fields.tag.matching(isTag, 'a tag') : undefined,
      bundles: fields.bundles.list(maxNames).map((field) => {
        const bundle = field.object(['package', 'bundle']);
        return { package: bundle.package.anyText(), bundle: bundle.bundle.anyText() };
      }),
      contents: { root: root.descriptor, manifests },
      ...(fields.verification.isPresent && { verification: readVerdict(fields.verification) }),
    };
  }

  #impliedBy(root: string, field: Field<never>): readonly ContentManifest[] {
    const known = this.#implied.get(root);
    if (known !== undefined) return known;
    if (!this.#manifests.has(root)) return field.fail(`${root} is not in manifests`);
    const digests = impliedManifests(root, (digest) => this.#manifests.get(digest)?.manifests ?? []);
    const manifests = digests.map((digest) => this.#manifests.get(digest) as ContentManifest);
    requireOrder(manifests, () => field);
    this.#implied.set(root, manifests);
    return manifests;
  }

  #readContents(field: Field<never>): readonly ContentManifest[] {
    const items = field.list(maxManifestsOfImage);
    const names = new Names();
    const manifests = items.map((item) => {
      if (typeof item.value === 'string') {
        const digest = names.add(item.digest(), item);
        const known = this.#manifests.get(digest);
        if (known === undefined) return item.fail(`${digest} is not in manifests`);
        return known;
      }
      const fields = item.object(['digest', 'mediaType', 'size', 'manifests', 'blobs']);
      return this.#readManifest(names.add(fields.digest.digest(), item), fields);
    });
    requireOrder(manifests, (i) => items[i] as Field<never>);
    return manifests;
  }

  #readManifest(
    digest: string,
    fields: Readonly<Record<'mediaType' | 'size' | 'manifests' | 'blobs', Field<never>>>,
  ): ContentManifest {
    const descriptor: Descriptor = {
      mediaType: fields.mediaType.text(),
      digest,
      size: fields.size.size(maxManifestBytes),
    };
    const names = new Names();
    return {
      descriptor,
      manifests: fields.manifests
        .optionalList(maxManifestsOfImage)
        .map((item) => names.add(item.digest(), item)),
      blobs: fields.blobs.optionalList(maxManifestsOfImage).map((item) => {
        const blob = this.#getBlob(item);
        names.add(blob.digest, item);
        return blob;
      }),
    };
  }

  #getBlob(item: Field<never>): Descriptor {
    if (typeof item.value !== 'string') {
      const { digest } = item.object(['digest', 'mediaType', 'size']);
      return this.#readBlob(digest.digest(), item, ['digest', 'mediaType', 'size']);
    }
    const digest = item.digest();
    const known = this.#blobs.get(digest);
    if (known === undefined) return item.fail(`${digest} is not in blobs`);
    return known;
  }

  #readBlob(
    digest: string,
    field: Field<never>,
    keys: readonly ('digest' | 'mediaType' | 'size')[],
  ): Descriptor {
    const fields = field.object(keys);
    const size = fields.size.size();
    this.#bytes += size;
    if (this.#bytes > Number.MAX_SAFE_INTEGER)
      return fields.size.fail('more bytes than can be counted', { code: 'limit' });
    return { mediaType: fields.mediaType.text(), digest, size };
  }

  #count(manifests: readonly ContentManifest[], item: Field<never>): void {
    if (manifests.length > maxManifestsOfImage)
      return item.fail(`more than ${maxManifestsOfImage} manifests`, { code: 'limit' });
    this.#manifestCount += manifests.length;
    for (const { blobs } of manifests) this.#blobCount += blobs.length;
    if (this.#manifestCount > maxManifests)
      return item.fail(`more than ${maxManifests} manifests in all`, { code: 'limit' });
    if (this.#blobCount > maxBlobs) return item.fail(`more than ${maxBlobs} blobs in all`, { code: 'limit' });
  }
}

function requireDigest(digest: string, field: Field<never>): string {
  if (isDigest(digest)) return digest;
  return field.fail(`invalid digest ${quoteShort(digest)}`);
}

/** What a manifest lists must stand before it, so none can contain itself. */
function requireOrder(manifests: readonly ContentManifest[], fieldOf: (i: number) => Field<never>): void {
  const heights = new Map<string, number>();
  for (const [i, { descriptor, manifests: listed }] of manifests.entries()) {
    let height = 1;
    for (const digest of listed) {
      const below = heights.get(digest);
      if (below === undefined) {
        const problem = `${descriptor.digest} lists ${digest}, which does not stand before it`;
        const hint = 'list a manifest after the manifests that it contains';
        return fieldOf(i).fail(problem, { hint });
      }
      height = Math.max(height, below + 1);
    }
    if (height > maxDepth) {
      return fieldOf(i).fail(`manifests are nested deeper than ${maxDepth}`, { code: 'limit' });
    }
    heights.set(descriptor.digest, height);
  }
}
