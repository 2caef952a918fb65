/** The images that a catalog needs, and where `registry images` puts them: enhancement "Disconnected OLM". */
import { locate } from '../../catalog/locate.js';
import { parseFirstDocument } from '../../bundle/manifest.js';
import { type Catalog, type MetasOptions, isFault } from '../../catalog/catalog.js';
import type { Meta } from '../../catalog/meta.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { getList, getValue } from '../../document/json-fields.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { checkPullSpec } from '../../core/reference.js';
import { propertyTypes, schemas } from '../../model/declarative-config.js';
import { isCsv } from '../../model/csv.js';
import { type NamedKind, notFound } from '../../core/suggest.js';
import { findField } from '../../document/go-json-fold.js';
import { type CatalogImage, getImages } from '../catalog-images.js';
import {
  type MirrorEntry,
  type MirrorSetKind,
  encodeCatalogSource,
  encodeMirrorSets,
  getObjectName,
} from '../cluster-manifests.js';
import { TagOwners, findSharedRepositories } from './collisions.js';
import {
  type ImageName,
  getCanonicalRepository,
  getDestinationTag,
  formatImageName,
  parseImageName,
  getPath,
  getRepository,
  withDockerDefaults,
} from './image-names.js';

/** Which part of a catalog is meant: the bundles for which all hold that are given. */
export interface ImageSelection {
  packages?: readonly string[] | undefined;
  channels?: readonly string[] | undefined;
  bundles?: readonly string[] | undefined;
}

/** An image that only a deployment of an operator names, where mirrors do not look. */
interface UndeclaredImage {
  image: string;
  bundle: string;
  /** `variable RELATED_IMAGE_X` or `init container`. */
  where: string;
}

export interface ImageList {
  /** As the catalog writes them, each once, sorted: of bundles, of containers of their deployments, related ones. */
  images: string[];
  /** Not among `images`; by image and bundle. */
  undeclared: UndeclaredImage[];
  /** How many of the bundles carry no manifests that could name further images. */
  unexamined: number;
  /** Packages that were asked for, and have none of the channels that were. */
  withoutChannel: string[];
}

/** What was found of a bundle, in addition to the images that the catalog declares for it. */
interface Deployments {
  containers: string[];
  undeclared: Omit<UndeclaredImage, 'bundle'>[];
}

/**
 * Lists the images of a catalog, or of a part of it, with those of deprecated bundles and of bundles in no channel.
 * Throws what reading the catalog throws; OpmateError NOT_FOUND for packages, channels and bundles that are not
 * there, with the nearest names; INVALID for a name with control characters, which would make lines of its own.
 */
export async function listCatalogImages(
  catalog: Catalog,
  selection: ImageSelection,
  options: MetasOptions = {},
): Promise<ImageList> {
  const contents = await readContents(catalog, selection, options);
  const chosen = choose(catalog.name, contents, selection);
  const images = new Set<string>();
  for (const catalogImage of contents.images) if (chosen.takes(catalogImage)) images.add(catalogImage.image);
  let unexamined = 0;
  const undeclared: UndeclaredImage[] = [];
  for (const [key, { package: packageName, name }] of contents.bundles) {
    if (!chosen.takes({ package: packageName, bundle: name })) continue;
    const deployments = contents.deployments.get(key);
    if (deployments === undefined) unexamined++;
    for (const image of deployments?.containers ?? []) images.add(image);
    for (const item of deployments?.undeclared ?? []) undeclared.push({ ...item, bundle: name });
  }
  for (const image of [...images, ...undeclared.map((undeclaredImage) => undeclaredImage.image)])
    checkCharacters(catalog.name, image);
  return {
    images: sortedByBytes(images),
    undeclared: undeclared
      .filter(({ image }) => !images.has(image))
      .sort((a, b) => compareBytes(a.image, b.image) || compareBytes(a.bundle, b.bundle)),
    unexamined,
    withoutChannel: chosen.withoutChannel,
  };
}

interface Contents {
  packages: Set<string>;
  /** Packages and bundles by channel name. */
  channels: Map<string, { packages: Set<string>; bundles: Set<string> }>;
  bundles: Map<string, { package: string; name: string }>;
  images: CatalogImage[];
  /** By the key of the bundle. */
  deployments: Map<string, Deployments>;
}

const toKey = (packageName: string, bundle: string): string => `${packageName}\0${bundle}`;

async function readContents(
  catalog: Catalog,
  selection: ImageSelection,
  options: MetasOptions,
): Promise<Contents> {
  const contents: Contents = {
    packages: new Set(),
    channels: new Map(),
    bundles: new Map(),
    images: [],
    deployments: new Map(),
  };
  const addBundle = (packageName: string, name: string): void =>
    void contents.bundles.set(toKey(packageName, name), { package: packageName, name });
  const addMember = (packageName: string, channel: string, bundle?: string): void => {
    const known = contents.channels.get(channel) ?? { packages: new Set(), bundles: new Set() };
    contents.channels.set(channel, known);
    known.packages.add(packageName);
    if (bundle !== undefined) known.bundles.add(toKey(packageName, bundle));
  };
  for (const image of catalog.storedImages?.() ?? []) {
    contents.images.push(image);
    addBundle(image.package, image.bundle);
  }
  for (const { package: packageName, channel, bundle } of catalog.storedMembers?.() ?? []) {
    contents.packages.add(packageName);
    addMember(packageName, channel, bundle);
    addBundle(packageName, bundle);
  }
  const isStored = catalog.storedImages !== undefined;
  const mayBeWanted = ({ package: packageName, name }: Meta): boolean =>
    (selection.packages?.includes(packageName) ?? true) && (selection.bundles?.includes(name) ?? true);
  // A database keeps manifests apart: they are read for the bundles that may be meant only. What is wrong with its
  // graph is no reason not to list images.
  const onFault = isStored ? createWarn(options) : options.onFault;
  for await (const meta of catalog.metas({ ...options, onFault, withoutManifests: isStored })) {
    throwIfCancelled(options.signal);
    const { schema, package: packageName, name } = meta;
    if (!isStored) contents.images.push(...(await imagesAt(catalog, meta)));
    if (schema === schemas.package) contents.packages.add(name);
    else if (schema === schemas.channel) {
      addMember(packageName, name);
      for (const entry of getList(findField(meta.value, 'entries'))) {
        const bundle = isJsonObject(entry) ? findField(entry, 'name') : undefined;
        if (typeof bundle === 'string') addMember(packageName, name, bundle);
      }
    } else if (schema === schemas.bundle) {
      contents.packages.add(packageName);
      addBundle(packageName, name);
      if (!mayBeWanted(meta)) continue;
      const value = isStored ? await readStored(catalog, meta, onFault) : meta.value;
      const csv = value && findCsv(value);
      if (csv !== undefined) contents.deployments.set(toKey(packageName, name), getDeployments(csv));
    }
  }
  return contents;
}

async function readStored(
  catalog: Catalog,
  { origin }: Meta,
  onFault: MetasOptions['onFault'],
): Promise<JsonObject | undefined> {
  try {
    return await catalog.read(origin);
  } catch (error) {
    if (!isFault(error)) throw error;
    onFault?.(error);
    return undefined;
  }
}

function createWarn({ logger }: MetasOptions): (fault: OpmateError) => void {
  return ({ message }) =>
    logger?.log('warn', `${message}; images that only its deployments name are not seen`);
}

async function imagesAt(catalog: Catalog, meta: Meta): Promise<CatalogImage[]> {
  try {
    return getImages(meta);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw await locate(catalog, meta.origin, error);
  }
}

/** The ClusterServiceVersion among the manifests that a bundle blob carries; what cannot be read is none. */
function findCsv(bundle: JsonObject): JsonObject | undefined {
  for (const property of getList(findField(bundle, 'properties'))) {
    if (!isJsonObject(property) || property['type'] !== propertyTypes.bundleObject) continue;
    const data = getValue(property, 'value', 'data');
    if (typeof data !== 'string') continue;
    const bytes = Buffer.from(data, 'base64');
    if (!bytes.includes('ClusterServiceVersion')) continue;
    try {
      const manifest = parseFirstDocument(bytes).value;
      if (isCsv(manifest)) return manifest as JsonObject;
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
    }
  }
  return undefined;
}

function getDeployments(csv: JsonObject): Deployments {
  const deployments: Deployments = { containers: [], undeclared: [] };
  const seen = new Set<string>();
  const add = (image: JsonValue | undefined, where: string): void => {
    if (typeof image !== 'string' || seen.has(image) || checkPullSpec(image) !== undefined) return;
    seen.add(image);
    deployments.undeclared.push({ image, where });
  };
  for (const deployment of getList(csv, 'spec', 'install', 'spec', 'deployments')) {
    const pod = getValue(deployment, 'spec', 'template', 'spec');
    const containers = getList(pod, 'containers');
    for (const container of containers) {
      const image = getValue(container, 'image');
      if (typeof image === 'string' && image !== '') deployments.containers.push(image);
    }
    const initContainers = getList(pod, 'initContainers');
    for (const container of initContainers) add(getValue(container, 'image'), 'init container');
    for (const container of [...containers, ...initContainers]) {
      for (const variable of getList(container, 'env')) {
        const name = getValue(variable, 'name');
        if (typeof name !== 'string' || !/^RELATED_IMAGE_\w+$/.test(name)) continue;
        add(getValue(variable, 'value'), `variable ${name}`);
      }
    }
  }
  return deployments;
}

interface Choice {
  takes(image: { package: string; bundle: string }): boolean;
  withoutChannel: string[];
}

function choose(name: string, contents: Contents, selection: ImageSelection): Choice {
  const packages = selection.packages && new Set(selection.packages);
  const bundles = selection.bundles && new Set(selection.bundles);
  const isPackage = (text: string): boolean => packages?.has(text) ?? true;
  const bundleNames = new Set([...contents.bundles.values()].map((bundle) => bundle.name));
  const channels = new Map([...contents.channels].filter(([, item]) => [...item.packages].some(isPackage)));
  const faults = [
    ...missing(name, 'package', packages, contents.packages),
    ...missing(name, 'channel', selection.channels, channels.keys()),
    ...missing(name, 'bundle', bundles, bundleNames),
  ];
  const [only] = faults;
  if (faults.length === 1) throw only as OpmateError;
  if (only !== undefined) {
    const told = faults.map((fault) => new OpmateError(fault.code, `${fault.message}; ${fault.hint}`));
    throw new OpmateError('NOT_FOUND', `${faults.length} names not found`, {
      subject: name,
      cause: new AggregateError(told),
    });
  }
  const wanted = selection.channels?.map((channel) => channels.get(channel));
  const members = wanted && new Set(wanted.flatMap((channel) => [...(channel?.bundles ?? [])]));
  const hasChannel = (text: string): boolean =>
    wanted?.some((channel) => channel?.packages.has(text)) ?? true;
  return {
    takes: ({ package: packageName, bundle }) =>
      isPackage(packageName) &&
      (members?.has(toKey(packageName, bundle)) ?? true) &&
      (bundles?.has(bundle) ?? true),
    withoutChannel: sortedByBytes(packages ?? []).filter((text) => !hasChannel(text)),
  };
}

function missing(
  catalog: string,
  kind: NamedKind,
  wanted: Iterable<string> | undefined,
  names: Iterable<string>,
): OpmateError[] {
  if (wanted === undefined) return [];
  const known = new Set(names);
  return [...new Set(wanted)]
    .filter((name) => !known.has(name))
    .map((name) => notFound(kind, name, known, { prefix: `${catalog}: ` }));
}

function checkCharacters(catalog: string, image: string): void {
  if (!/[\0-\x1f\x7f-\x9f\u2028\u2029]/.test(image)) return;
  throw new OpmateError('INVALID', `image ${quoteGo(image)}: has control characters`, {
    subject: catalog,
    hint: 'download the catalog again, or fix the image reference',
  });
}

/** An image and its place at the target. */
interface RegistryPair {
  /** With what Docker clients fill in. */
  source: ImageName;
  /** Without a tag where the image keeps its own tag, or is the only digest of its repository. */
  target: ImageName;
}

interface RegistryMappingOptions {
  /** Registry, and what goes before the repositories there. */
  destination: ImageName;
  /** Gives digests the tag that `oc adm catalog mirror` gives them, so that no registry takes them for leftovers. */
  tagDigests?: boolean | undefined;
}

interface RegistryMapping {
  /** Sorted by the text of their lines. */
  pairs: RegistryPair[];
  /** References that are none, one error each. */
  faults: OpmateError[];
  /** Source repositories that share a target repository, one sentence per target. */
  notes: string[];
}

/**
 * Maps each image to a repository below the destination, named by the source's whole name, registry included, with
 * `-` for `/`, `.` and `:`. In a repository of several images each digest gets a tag, since `oc image mirror` takes
 * every target once. Throws OpmateError INVALID, one for each as its cause, for tags that would name two images.
 */
export function mapToRegistry(images: Iterable<string>, options: RegistryMappingOptions): RegistryMapping {
  const { destination, tagDigests = false } = options;
  const prefix = getPath(destination);
  const pairs = new Map<string, RegistryPair & { written: ImageName }>();
  const counts = new Map<string, number>();
  const faults: OpmateError[] = [];
  for (const text of sortedByBytes(images)) {
    try {
      const written = parseImageName(text);
      const source = withDockerDefaults(written);
      const flat = getCanonicalRepository(source).toLowerCase().replace(/[/.:]/g, '-');
      const name = prefix === '' ? flat : `${prefix}/${flat}`;
      const target: ImageName = { registry: destination.registry, namespace: '', name };
      const fault = checkPullSpec(formatImageName(target));
      if (fault !== undefined)
        throw new OpmateError('INVALID', `${formatImageName(target)}, where it would go: ${fault}`, {
          subject: text,
        });
      const from = formatImageName(source);
      if (pairs.has(from)) continue;
      pairs.set(from, { source, target, written });
      counts.set(name, (counts.get(name) ?? 0) + 1);
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      faults.push(error);
    }
  }
  const tagged = [...pairs.values()].map(({ source, target, written }) => {
    const needsTag = source.digest !== undefined && (tagDigests || (counts.get(target.name) ?? 0) > 1);
    return needsTag ? { source, target: { ...target, tag: getHashTag(written) } } : { source, target };
  });
  const sorted = tagged.sort((a, b) => compareBytes(formatPair(a), formatPair(b)));
  requireOneImagePerTag(sorted);
  return {
    pairs: sorted,
    faults,
    notes: findSharedRepositories(
      sorted.map(({ source, target }) => ({
        source: getCanonicalRepository(source),
        target: getRepository(target),
      })),
    ),
  };
}

function getHashTag(name: ImageName): string {
  return getDestinationTag({ ...name, tag: undefined });
}

/** One line of a mapping, without its end. */
export function formatPair({ source, target }: RegistryPair): string {
  return `${formatImageName(source)}=${formatImageName(target)}`;
}

function requireOneImagePerTag(pairs: readonly RegistryPair[]): void {
  const owners = new TagOwners<string>();
  for (const { source, target } of pairs) {
    const tag = target.tag ?? (source.digest === undefined ? source.tag : undefined);
    if (tag === undefined) continue;
    const place = `${getRepository(target)}:${tag}`;
    const name = formatImageName(source);
    const owner = owners.claim(place, name);
    if (owner !== name) owners.refuse(place, owner, name);
  }
  owners.throwIfRefused(
    'remove one of them with --package, --channel or --bundle, and mirror it below another namespace',
  );
}

/** The files that `registry images` writes. */
const registryManifestNames = {
  contentSourcePolicy: 'imagecontentsourcepolicy.yaml',
  digestMirrorSet: 'imagedigestmirrorset.yaml',
  tagMirrorSet: 'imagetagmirrorset.yaml',
  catalogSource: 'catalogsource.yaml',
} as const;

interface RegistryManifestOptions {
  /** What the objects are called; made fit to be a name. */
  name: string;
  /** What the cluster is to pull the catalog from; undefined where there is no image of it. */
  catalogImage: string | undefined;
  /**
   * The kind of mirror set to write, since a cluster is given one of them. ImageDigestMirrorSet comes with an
   * ImageTagMirrorSet, which clusters know since the same version.
   */
  mirrorSet: 'ImageContentSourcePolicy' | 'ImageDigestMirrorSet';
}

/**
 * Returns the manifests of a cluster by file name; undefined for those without content. Throws LimitError, see
 * `encodeMirrorSets`.
 */
export function encodeRegistryManifests(
  pairs: readonly RegistryPair[],
  { name, catalogImage, mirrorSet }: RegistryManifestOptions,
): Map<string, string | undefined> {
  const labels = { 'operators.openshift.org/catalog': 'true' };
  const setName = getObjectName(name);
  const setOf = (kind: MirrorSetKind, byDigest: boolean): string | undefined => {
    const entries: MirrorEntry[] = pairs
      .filter(({ source }) => (source.digest !== undefined) === byDigest)
      .map(({ source, target }) => ({
        source: getCanonicalRepository(source),
        mirrors: [getRepository(target)],
      }));
    return encodeMirrorSets(kind, entries, { name: setName, labels }) || undefined;
  };
  const isNew = mirrorSet === 'ImageDigestMirrorSet';
  return new Map([
    [registryManifestNames.contentSourcePolicy, isNew ? undefined : setOf('ImageContentSourcePolicy', true)],
    [registryManifestNames.digestMirrorSet, isNew ? setOf('ImageDigestMirrorSet', true) : undefined],
    [registryManifestNames.tagMirrorSet, isNew ? setOf('ImageTagMirrorSet', false) : undefined],
    [
      registryManifestNames.catalogSource,
      catalogImage === undefined
        ? undefined
        : encodeCatalogSource({ name: getServiceName(name), image: catalogImage }),
    ],
  ]);
}

/** A name that a cluster takes for a CatalogSource, whose service has the same one: a DNS label that begins with a letter. */
function getServiceName(text: string): string {
  const label = getObjectName(text).replaceAll('.', '-');
  return (/^[a-z]/.test(label) ? label : `cs-${label}`).slice(0, 63).replace(/-+$/, '');
}
