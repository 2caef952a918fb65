import { type TextPosition, createFault } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { compareBytes } from '../../core/order.js';
import { type RegistryReference, formatReference, parseReference } from '../../core/reference.js';
import { encodeYaml } from '../../document/yaml.js';
import { DiagnosticList, readDocument } from '../../document/document.js';
import type { Field } from '../../document/field.js';
import { getDestinationTag, parseImageName } from '../naming/image-name.js';
import { type MirrorTarget, getDestination, pathBelow, toDigestTag } from '../naming/mirror-target.js';
import { openItem, readItems } from '../image-set/config-fields.js';
import type { ImageSetPlan } from '../image-set/image-set-plan.js';
import { type SetImage, releaseRepositories } from '../plan/planned-image.js';
import type { ImageSetLock } from '../lock/lock.js';
import { type PinnedImage, planLock } from '../lock/lock-plan.js';
import type { KeptImages } from './kept-images.js';

/** An image in a list of images to delete. */
interface DeleteItem {
  /** Source, with its transport. */
  imageName: string;
  /** Target, with its transport. */
  imageReference: string;
  type: string;
}

/** An item that was read from a file. */
export interface ReadDeleteItem extends DeleteItem {
  /** Target; has a tag or digest. */
  reference: RegistryReference;
  place: TextPosition;
}

const apiVersion = 'mirror.openshift.io/v2alpha1';
const kind = 'DeleteImageList';

/** Types of items, by the kind of the image in a plan. Catalogs and charts are never listed. */
const typeOfKind = {
  bundle: 'operatorBundle',
  related: 'operatorRelatedImage',
  additional: 'generic',
  helm: 'helmImage',
  release: 'ocpRelease',
  component: 'ocpReleaseContent',
  graph: 'cincinnatiGraph',
  signature: 'generic',
} as const;

/** Item types of oc-mirror. */
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

/** The only repositories of releases, by type. */
const repositoryOfType: Readonly<Record<string, string>> = {
  ocpRelease: releaseRepositories.release,
  ocpReleaseContent: releaseRepositories.component,
  cincinnatiGraph: releaseRepositories.graph,
};

interface ListOptions {
  target: MirrorTarget;
  /** Lists signatures of images with a digest too. */
  signatures: boolean;
  /** Uses the tags of oc-mirror v1: a hash for a digest, `latest` for tag and digest. */
  v1Tags: boolean;
  keep: KeptImages;
  /** Images that the mirror still needs; they are listed, and counted. */
  needed?: KeptImages | undefined;
}

/**
 * Lists the images of a plan, without catalogs and charts, by name at the target; `kept` has messages about images
 * kept for other sets, `needed` is the number of listed images that `options.needed` has. (Source: oc-mirror v2.)
 */
export function listDeletions(
  plan: Pick<ImageSetPlan, 'images'>,
  options: ListOptions,
): { items: DeleteItem[]; kept: string[]; needed: number } {
  const { target, keep } = options;
  const items = new Map<string, DeleteItem>();
  const needed = new Set<string>();
  const kept: string[] = [];
  for (const image of plan.images) {
    if (image.kind === 'catalog' || image.kind === 'chart') continue;
    const { digest } = image.reference;
    const reason = keep.reasonFor(digest) ?? keep.reasonForName(image.name);
    if (reason !== undefined) {
      kept.push(`${image.destination}: kept, ${reason}`);
      continue;
    }
    const isNeeded =
      options.needed?.reasonFor(digest) !== undefined ||
      options.needed?.reasonForName(image.name) !== undefined;
    const type = typeOfKind[image.kind];
    const add = (imageName: string, tag: string): void => {
      const imageReference = `docker://${getDestination(target, image.target.repository, tag)}`;
      items.set(imageReference, { imageName, imageReference, type });
      if (isNeeded) needed.add(imageReference);
    };
    add(image.source, options.v1Tags ? getV1Tag(image) : image.name.tag);
    if (options.signatures && digest !== undefined) {
      const signature = `${toDigestTag(digest)}.sig`;
      add(`${image.source.slice(0, image.source.lastIndexOf('@'))}:${signature}`, signature);
    }
  }
  const byName = (a: DeleteItem, b: DeleteItem): number => compareBytes(a.imageReference, b.imageReference);
  return { items: [...items.values()].sort(byName), kept, needed: needed.size };
}

/**
 * Lists the images of a previous lock that no current one keeps, without catalogs and charts, which are never deleted, as
 * `listDeletions` does; of signatures with `signatures` only.
 */
export function listReplaced(
  previous: ImageSetLock,
  { signatures, ...options }: Omit<ListOptions, 'v1Tags' | 'needed'>,
): { items: DeleteItem[]; kept: string[] } {
  const images = previous.images.filter(
    ({ kind: of }) => of !== 'catalog' && of !== 'chart' && (of !== 'signature' || signatures),
  );
  const { replaced, kept } = findReplaced({ ...previous, images }, options);
  const items = replaced.map(({ kind: of, source, destination }) => {
    const type = of === 'catalog' || of === 'chart' ? 'generic' : typeOfKind[of];
    return { imageName: source, imageReference: `docker://${destination}`, type };
  });
  return { items, kept };
}

/** Returns the tagged images of a previous lock that no current one keeps, of all kinds, by name at the target. */
export function findReplaced(
  previous: ImageSetLock,
  { target, keep }: Pick<ListOptions, 'target' | 'keep'>,
): { replaced: PinnedImage[]; kept: string[] } {
  const replaced: PinnedImage[] = [];
  const kept: string[] = [];
  for (const image of planLock(previous, { target }).images) {
    const { destination, contents, locked } = image;
    const { repository, tag } = locked;
    if (tag === undefined) continue;
    const reason = keep.reasonFor(contents.root.digest) ?? keep.reasonForName({ repository, tag });
    if (reason === undefined) replaced.push(image);
    else kept.push(`${destination}: kept, ${reason}`);
  }
  return { replaced: replaced.sort((a, b) => compareBytes(a.destination, b.destination)), kept };
}

function getV1Tag({ kind: of, reference, name }: SetImage): string {
  const isOfRelease = of === 'release' || of === 'component';
  if (reference.digest === undefined || reference.transport !== 'docker' || isOfRelease) return name.tag;
  if (reference.tag !== undefined || of === 'helm') return 'latest';
  return getDestinationTag(parseImageName(formatReference(reference).replace(/^docker:\/\//, '')));
}

/** Encodes a list as YAML. */
export function encodeDeleteList(items: readonly DeleteItem[]): string {
  const listed = items.map(({ imageName, imageReference, type }) => ({ imageName, imageReference, type }));
  return encodeYaml({ apiVersion, items: listed, kind });
}

const maxListLength = 16 * 1024 * 1024;
const maxItems = 50_000;

/**
 * Reads a list of images to delete: at most 16 MiB and 50,000 images, each with a registry and a tag or digest. Throws
 * OpmateError SYNTAX or LIMIT, or DiagnosticsError with everything that is wrong.
 */
export function parseDeleteList(text: string, file: string): ReadDeleteItem[] {
  const { root, diagnostics } = readDocument(text, file, { maxLength: maxListLength, noun: 'list' });
  if (!root.isPresent) root.fail(`expected kind: ${kind} and items:`);
  const fields = root.isPresent ? root.object(['apiVersion', 'items', 'kind']) : undefined;
  fields?.kind.constant(kind);
  fields?.apiVersion.constant(apiVersion);
  const items = readItems(fields?.items.optionalList(maxItems) ?? [], readItem);
  const listed = fields?.items.value;
  const isEmpty = listed === undefined || (Array.isArray(listed) && listed.length === 0);
  if (isEmpty) fields?.items.fail('nothing to delete');
  diagnostics.throwIfErrors();
  return items;
}

function readItem(item: Field): ReadDeleteItem | undefined {
  const fields = openItem(item, ['imageName', 'imageReference', 'type'], 'imageReference');
  if (fields === undefined) return undefined;
  const imageName = fields.imageName.optionalText() ?? '';
  const imageReference = fields.imageReference.text();
  const type = fields.type.choice(types);
  const reference = imageReference === undefined ? undefined : fields.imageReference.parsed(parseTarget);
  if (imageReference === undefined || type === undefined || reference === undefined) return undefined;
  return { imageName, imageReference, type, reference, place: item.place };
}

function parseTarget(text: string): RegistryReference {
  const hint = 'use docker://REGISTRY/PATH:TAG';
  if (!text.startsWith('docker://')) {
    throw new OpmateError('INVALID', `${quoteGo(text)} does not begin with docker://`, { hint });
  }
  const reference = parseReference(text);
  if (reference.transport !== 'docker' || (reference.tag ?? reference.digest) === undefined) {
    throw new OpmateError('INVALID', `${quoteGo(text)} has neither tag nor digest`, { hint });
  }
  return reference;
}

/** Maximum number of images in an error. */
const maxFaultsNamed = 20;

/** Throws OpmateError INVALID with all items outside of the target, and release images outside of their repositories. */
export function requireBelow(items: readonly ReadDeleteItem[], target: MirrorTarget, file: string): void {
  const whole = [target.registry, target.path].filter((part) => part !== '').join('/');
  const faults = new DiagnosticList();
  for (const { reference, type, place, imageReference } of items) {
    const { registry, repository } = reference;
    const own = repositoryOfType[type];
    const isBelow =
      registry === target.registry &&
      (own !== undefined
        ? repository === pathBelow(target, own)
        : target.path === '' || repository === target.path || repository.startsWith(`${target.path}/`));
    if (isBelow) continue;
    const where =
      own === undefined
        ? `below docker://${whole}`
        : `in docker://${getDestination(target, pathBelow(target, own))}`;
    const problem = `${quoteGo(imageReference)} is not ${where}`;
    faults.add(createFault('outside-target', problem, { file, ...place }));
  }
  faults.throwIfErrors(maxFaultsNamed);
}
