import { parseFirstDocument } from '../../bundle/manifest.js';
import { type Catalog, type CatalogImage, type MetasOptions, isFault } from '../../catalog/catalog.js';
import type { Meta } from '../../catalog/meta.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { checkPullSpec } from '../../core/reference.js';
import { type NamedKind, notFound } from '../../core/suggest.js';
import { findField } from '../../document/go-json-fold.js';
import { quoteGo } from '../../document/go-json.js';
import { getList, getValue } from '../../document/json-fields.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { isCsv } from '../../model/csv.js';
import { propertyTypes, schemas } from '../../model/declarative-config.js';
import { readBlobImages } from '../catalog-images.js';

/** Criteria of bundles; all must match. */
export interface ImageSelection {
  packages?: readonly string[] | undefined;
  channels?: readonly string[] | undefined;
  bundles?: readonly string[] | undefined;
}

/** An image that only a deployment of an operator names, so mirrors miss it. */
interface UndeclaredImage {
  image: string;
  bundle: string;
  /** `variable RELATED_IMAGE_X` or `init container`. */
  where: string;
}

/** The images of a catalog. */
export interface ImageList {
  /** References as written in the catalog, sorted: bundle images, containers of their deployments, related images. */
  images: string[];
  /** Images not in `images`, by image and bundle. */
  undeclared: UndeclaredImage[];
  /** Number of bundles without manifests, which may use further images. */
  unexamined: number;
  /** Selected packages without any of the selected channels. */
  withoutChannel: string[];
}

/** Images of the deployments of a bundle. */
interface Deployments {
  containers: string[];
  undeclared: Omit<UndeclaredImage, 'bundle'>[];
}

/**
 * Lists the images of selected bundles, including deprecated ones and those in no channel. Throws errors of reading the
 * catalog, OpmateError NOT_FOUND for unknown packages, channels and bundles, with the nearest names, and INVALID for
 * references with control characters.
 */
export async function listCatalogImages(
  catalog: Catalog,
  selection: ImageSelection,
  options: MetasOptions = {},
): Promise<ImageList> {
  const contents = await readContents(catalog, selection, options);
  const { includes, withoutChannel } = createFilter(catalog.name, contents, selection);
  const images = new Set(contents.images.filter(includes).map(({ image }) => image));
  let unexamined = 0;
  const undeclared: UndeclaredImage[] = [];
  for (const [key, bundle] of contents.bundles) {
    if (!includes(bundle)) continue;
    const deployments = contents.deployments.get(key);
    if (deployments === undefined) unexamined++;
    for (const image of deployments?.containers ?? []) images.add(image);
    for (const item of deployments?.undeclared ?? []) undeclared.push({ ...item, bundle: bundle.bundle });
  }
  for (const image of [...images, ...undeclared.map((item) => item.image)])
    requirePrintable(catalog.name, image);
  return {
    images: sortedByBytes(images),
    undeclared: undeclared
      .filter(({ image }) => !images.has(image))
      .sort((a, b) => compareBytes(a.image, b.image) || compareBytes(a.bundle, b.bundle)),
    unexamined,
    withoutChannel,
  };
}

interface BundleName {
  package: string;
  bundle: string;
}

type Contents = Awaited<ReturnType<typeof readContents>>;

const toKey = (packageName: string, bundle: string): string => `${packageName}\0${bundle}`;

async function readContents(catalog: Catalog, selection: ImageSelection, options: MetasOptions) {
  const packages = new Set<string>();
  /** Packages and bundles by channel name. */
  const channels = new Map<string, { packages: Set<string>; bundles: Set<string> }>();
  const bundles = new Map<string, BundleName>();
  const images: CatalogImage[] = [];
  /** By bundle key. */
  const deployments = new Map<string, Deployments>();
  const addBundle = (packageName: string, bundle: string): void =>
    void bundles.set(toKey(packageName, bundle), { package: packageName, bundle });
  const addMember = (packageName: string, channel: string, bundle?: string): void => {
    const members = getOrAdd(channels, channel, () => ({ packages: new Set(), bundles: new Set() }));
    members.packages.add(packageName);
    if (bundle !== undefined) members.bundles.add(toKey(packageName, bundle));
  };
  for (const image of catalog.storedImages?.() ?? []) {
    images.push(image);
    addBundle(image.package, image.bundle);
  }
  for (const { package: packageName, channel, bundle } of catalog.storedMembers?.() ?? []) {
    packages.add(packageName);
    addMember(packageName, channel, bundle);
    addBundle(packageName, bundle);
  }
  const isStored = catalog.storedImages !== undefined;
  const mayMatch = ({ package: packageName, name }: Meta): boolean =>
    (selection.packages?.includes(packageName) ?? true) && (selection.bundles?.includes(name) ?? true);
  // A database stores manifests separately; they are read for matching bundles only. Its graph does not matter here.
  const onFault = isStored ? createWarn(options) : options.onFault;
  for await (const meta of catalog.metas({ ...options, onFault, withoutManifests: isStored })) {
    throwIfCancelled(options.signal);
    const { schema, package: packageName, name } = meta;
    if (!isStored) images.push(...(await readBlobImages(catalog, meta)));
    if (schema === schemas.package) packages.add(name);
    else if (schema === schemas.channel) {
      addMember(packageName, name);
      for (const entry of getList(findField(meta.value, 'entries'))) {
        const bundle = isJsonObject(entry) ? findField(entry, 'name') : undefined;
        if (typeof bundle === 'string') addMember(packageName, name, bundle);
      }
    } else if (schema === schemas.bundle) {
      packages.add(packageName);
      addBundle(packageName, name);
      if (!mayMatch(meta)) continue;
      const value = isStored ? await readStored(catalog, meta, onFault) : meta.value;
      const csv = value && findCsv(value);
      if (csv !== undefined) deployments.set(toKey(packageName, name), getDeployments(csv));
    }
  }
  return { packages, channels, bundles, images, deployments };
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

/** Returns the ClusterServiceVersion of a bundle blob; undefined if missing or unreadable. */
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

/** Throws OpmateError NOT_FOUND for unknown names. */
function createFilter(
  name: string,
  contents: Contents,
  selection: ImageSelection,
): { includes: (bundle: BundleName) => boolean; withoutChannel: string[] } {
  const packages = selection.packages && new Set(selection.packages);
  const bundles = selection.bundles && new Set(selection.bundles);
  const hasPackage = (packageName: string): boolean => packages?.has(packageName) ?? true;
  const bundleNames = [...contents.bundles.values()].map(({ bundle }) => bundle);
  const channels = new Map(
    [...contents.channels].filter(([, members]) => [...members.packages].some(hasPackage)),
  );
  requireNames(
    [
      ...findUnknown(name, 'package', contents.packages, packages),
      ...findUnknown(name, 'channel', channels.keys(), selection.channels),
      ...findUnknown(name, 'bundle', bundleNames, bundles),
    ],
    name,
  );
  const selected = selection.channels?.map((channel) => channels.get(channel));
  const members = selected && new Set(selected.flatMap((channel) => [...(channel?.bundles ?? [])]));
  const hasChannel = (packageName: string): boolean =>
    selected?.some((channel) => channel?.packages.has(packageName)) ?? true;
  return {
    includes: ({ package: packageName, bundle }) =>
      hasPackage(packageName) &&
      (members?.has(toKey(packageName, bundle)) ?? true) &&
      (bundles?.has(bundle) ?? true),
    withoutChannel: sortedByBytes(packages ?? []).filter((packageName) => !hasChannel(packageName)),
  };
}

function requireNames(errors: readonly OpmateError[], subject: string): void {
  const [only] = errors;
  if (only === undefined) return;
  if (errors.length === 1) throw only;
  const causes = errors.map((error) => new OpmateError(error.code, `${error.message}; ${error.hint}`));
  throw new OpmateError('NOT_FOUND', `${errors.length} names not found`, {
    subject,
    cause: new AggregateError(causes),
  });
}

function findUnknown(
  catalog: string,
  kind: NamedKind,
  names: Iterable<string>,
  wanted: Iterable<string> = [],
): OpmateError[] {
  const known = new Set(names);
  return [...new Set(wanted)]
    .filter((name) => !known.has(name))
    .map((name) => notFound(kind, name, known, { prefix: `${catalog}: ` }));
}

function requirePrintable(catalog: string, image: string): void {
  if (!/[\0-\x1f\x7f-\x9f\u2028\u2029]/.test(image)) return;
  throw new OpmateError('INVALID', `image ${quoteGo(image)}: has control characters`, {
    subject: catalog,
    hint: 'download the catalog again, or fix the image reference',
  });
}
