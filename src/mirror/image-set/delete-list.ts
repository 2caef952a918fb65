import { OpmateError } from '../../core/errors.js';
import { joinFaults } from '../../core/problems.js';
import { quoteGo } from '../../core/go-json.js';
import type { JsonObject, JsonValue } from '../../core/json.js';
import { compareBytes } from '../../core/order.js';
import { type RegistryReference, formatReference, parseReference } from '../../core/reference.js';
import { type YamlPlace, encodeYaml } from '../../core/yaml.js';
import { destinationTagOf, parseImageName } from '../mapping/image-names.js';
import { type ConfigReader, configError, openConfig } from './image-set-config.js';
import { type MirrorTarget, destinationOf, pathBelow, tagOfDigest } from './image-set-names.js';
import type { ImageSetPlan, PlannedImage } from './image-set-plan.js';
import type { KeptImages } from './kept-images.js';

/** An image in a list of what is to be deleted. */
export interface DeleteItem {
  /** What it was mirrored from, with its transport. */
  imageName: string;
  /** What it is called at the target, with its transport. */
  imageReference: string;
  type: string;
}

/** One that was read from a file. */
export interface ReadDeleteItem extends DeleteItem {
  /** Where it is; it has a tag or a digest. */
  reference: RegistryReference;
  place: YamlPlace;
}

const apiVersion = 'mirror.openshift.io/v2alpha1';
const kind = 'DeleteImageList';

/** What an image is called in a list, by what it is in a plan. Catalogs are never listed. */
const typeOfKind = {
  bundle: 'operatorBundle',
  related: 'operatorRelatedImage',
  additional: 'generic',
} as const;

/** Every type that oc-mirror knows. */
const types = [
  'ocpRelease',
  'ocpReleaseContent',
  'cincinnatiGraph',
  'operatorCatalog',
  'operatorBundle',
  'operatorRelatedImage',
  'generic',
  'helmImage',
];

/** Where releases are, and nowhere else. */
const repositoryOfType: Readonly<Record<string, string>> = {
  ocpRelease: 'openshift/release-images',
  ocpReleaseContent: 'openshift/release',
  cincinnatiGraph: 'openshift/graph-image',
};

export interface ListOptions {
  target: MirrorTarget;
  /** The signatures of images that are named by digest, too. */
  signatures: boolean;
  /** By the tags that oc-mirror v1 gave: a hash for what is named by digest, `latest` for tag and digest. */
  v1Tags: boolean;
  keep: KeptImages;
}

/**
 * What of a plan to delete, by name at the target: its images without its catalogs, and what of it is kept for the
 * sake of another set, each with the reason. (Source: oc-mirror v2.)
 */
export function listDeletions(
  plan: Pick<ImageSetPlan, 'images'>,
  options: ListOptions,
): { items: DeleteItem[]; kept: string[] } {
  const { target, keep } = options;
  const items = new Map<string, DeleteItem>();
  const kept: string[] = [];
  for (const image of plan.images) {
    if (image.kind === 'catalog') continue;
    const { digest } = image.reference;
    const reason = keep.reasonFor(digest) ?? keep.reasonForName(image.name);
    if (reason !== undefined) {
      kept.push(`${image.destination}: kept, ${reason}`);
      continue;
    }
    const type = typeOfKind[image.kind];
    const add = (imageName: string, tag: string): void => {
      const imageReference = `docker://${destinationOf(target, image.repository, tag)}`;
      items.set(imageReference, { imageName, imageReference, type });
    };
    add(image.source, options.v1Tags ? v1TagOf(image) : image.name.tag);
    if (options.signatures && digest !== undefined) {
      const signature = `${tagOfDigest(digest)}.sig`;
      add(`${image.source.slice(0, image.source.lastIndexOf('@'))}:${signature}`, signature);
    }
  }
  const byName = (a: DeleteItem, b: DeleteItem): number => compareBytes(a.imageReference, b.imageReference);
  return { items: [...items.values()].sort(byName), kept };
}

function v1TagOf({ reference, name }: PlannedImage): string {
  if (reference.digest === undefined || reference.transport !== 'docker') return name.tag;
  if (reference.tag !== undefined) return 'latest';
  return destinationTagOf(parseImageName(formatReference(reference).replace(/^docker:\/\//, '')));
}

/** A list as the text of its file. */
export function encodeDeleteList(items: readonly DeleteItem[]): string {
  const listed = items.map(({ imageName, imageReference, type }) => ({ imageName, imageReference, type }));
  return encodeYaml({ apiVersion, items: listed, kind });
}

const maxListLength = 16 * 1024 * 1024;
const maxItems = 50_000;

/**
 * Reads a list of what is to be deleted. Every fault is reported with line and column: unknown keys, values of the
 * wrong kind, types that are none, and images that are not named with a registry and a tag or digest. At most 16 MiB
 * and 50,000 images. Throws OpmateError SYNTAX, INVALID or LIMIT.
 */
export function parseDeleteList(text: string, file: string): ReadDeleteItem[] {
  const reader = openConfig(text, file, maxListLength);
  const root = reader.object(reader.document.value, [], ['apiVersion', 'items', 'kind']);
  const items: (ReadDeleteItem | undefined)[] = [];
  if (root === undefined) reader.fail([], `expected kind: ${kind} and items:`);
  else {
    requireText(reader, root, 'kind', kind);
    requireText(reader, root, 'apiVersion', apiVersion);
    const listed = reader.list(root, [], 'items');
    if (listed === undefined || listed.length === 0) reader.fail(['items'], 'nothing to delete');
    if ((listed?.length ?? 0) > maxItems) {
      throw new OpmateError('LIMIT', `${file}: more than ${maxItems} images`, { file });
    }
    for (const [index, item] of (listed ?? []).entries()) items.push(readItem(reader, item, index));
  }
  reader.finish();
  return items as ReadDeleteItem[];
}

function requireText(reader: ConfigReader, root: JsonObject, key: string, wanted: string): void {
  const value = reader.requiredText(root, [], key);
  if (value !== undefined && value !== wanted) reader.fail([key], `${quoteGo(value)} is not ${wanted}`);
}

function readItem(reader: ConfigReader, value: JsonValue, index: number): ReadDeleteItem | undefined {
  const path = ['items', index];
  const object = reader.object(value, path, ['imageName', 'imageReference', 'type']);
  if (object === undefined) return reader.fail(path, 'imageReference is missing');
  const imageName = reader.text(object, path, 'imageName') ?? '';
  const imageReference = reader.requiredText(object, path, 'imageReference');
  const type = reader.requiredText(object, path, 'type');
  if (type !== undefined && !types.includes(type)) {
    return reader.fail([...path, 'type'], `${quoteGo(type)} is none of ${types.join(', ')}`);
  }
  if (imageReference === undefined || type === undefined) return undefined;
  const at = [...path, 'imageReference'];
  const hint = 'write docker://REGISTRY/PATH:TAG';
  if (!imageReference.startsWith('docker://')) {
    return reader.fail(at, `${quoteGo(imageReference)} does not begin with docker://`, hint);
  }
  try {
    const reference = parseReference(imageReference);
    if (reference.transport !== 'docker' || (reference.tag ?? reference.digest) === undefined) {
      return reader.fail(at, `${quoteGo(imageReference)} has neither tag nor digest`, hint);
    }
    return { imageName, imageReference, type, reference, place: reader.placeOf(path) };
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return reader.fail(at, error.message, error.hint);
  }
}

/** How many faults one error names. */
const maxFaultsNamed = 20;

/**
 * Throws OpmateError INVALID with every item that is not at or below the target, and every part of a release that is
 * not where releases are.
 */
export function requireBelow(items: readonly ReadDeleteItem[], target: MirrorTarget, file: string): void {
  const whole = [target.registry, target.path].filter((part) => part !== '').join('/');
  const faults: OpmateError[] = [];
  for (const { reference, type, place, imageReference } of items) {
    const { registry, repository } = reference;
    const own = repositoryOfType[type];
    const isBelow =
      registry === target.registry &&
      (own !== undefined
        ? repository === pathBelow(target, own)
        : target.path === '' || repository === target.path || repository.startsWith(`${target.path}/`));
    if (isBelow) continue;
    const where = own === undefined ? `below docker://${whole}` : `in docker://${whole}/${own}`;
    faults.push(configError(file, place, `${quoteGo(imageReference)} is not ${where}`));
  }
  if (faults.length === 0) return;
  const named = faults.slice(0, maxFaultsNamed);
  const more = faults.length - named.length;
  if (more > 0) named.push(new OpmateError('INVALID', `${file}: and ${more} more`));
  throw joinFaults(named);
}
