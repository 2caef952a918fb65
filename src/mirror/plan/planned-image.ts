import type { Reference, RegistryReference } from '../../core/reference.js';
import { quoteGo } from '../../document/go-json.js';
import type { ImageContents } from '../../oci/image/contents.js';
import type { OpenedReference } from '../../oci/image/open.js';
import type { Platform } from '../../oci/image/types.js';
import type { TargetName } from '../naming/image-name.js';

/** Handling of images that cannot be copied. */
export type OnError = 'stop' | 'skip-image' | 'skip-bundle';

/** Role of an image in a set; a chart artifact and the graph image are built. */
type SetImageKind =
  'catalog' | 'bundle' | 'related' | 'additional' | 'helm' | 'chart' | 'release' | 'component' | 'graph';

/** An image by its names at source and target, and why it is mirrored. */
export interface PlannedImage<Target extends Reference = Reference> {
  /** `mapped` for a pair of a mapping. */
  kind: SetImageKind | 'signature' | 'mapped';
  /** Name by which clusters pull it, as written. */
  reference: Reference;
  /** Place to copy it from; default `reference`. */
  from?: Reference | undefined;
  /** Name of the source in mappings, by digest if known. */
  source: string;
  /** Name of the source in messages. */
  title: string;
  /** Has the tag, or the digest of an image without one. */
  target: Target;
  /** Name of the target in mappings and messages. */
  destination: string;
  /** Bundles that need it; empty for catalogs and additional images. */
  bundles: { package: string; bundle: string }[];
  /** Place in the configuration, for messages. */
  place?: { file: string; line: number } | undefined;
  /** Platforms to copy of an index; default all. */
  platforms?: readonly Platform[] | undefined;
  /** The same image, by digest, in other source repositories with the same name at the target. */
  aliases?: readonly Reference[] | undefined;
  /** Contents, if already read. */
  contents?: ImageContents | undefined;
  /** Opens an image without a source: a chart artifact, the graph image. */
  open?: (() => Promise<OpenedReference>) | undefined;
}

/** An image that an image set selects. */
export interface SetImage extends PlannedImage<RegistryReference> {
  kind: SetImageKind;
  /** Name below the target. */
  name: TargetName;
  /** References to it as written in catalogs and charts. */
  texts: Set<string>;
  /** Set if the configuration or a chart names it, so it is kept without its bundles. */
  isRequested?: boolean | undefined;
}

/** Repositories below a target in which clusters look for releases. (Source: oc-mirror v2.) */
export const releaseRepositories = {
  release: 'openshift/release-images',
  component: 'openshift/release',
  graph: 'openshift/graph-image',
} as const;

/** Returns the key of a bundle: `package/bundle`. */
export function toBundleKey({ package: packageName, bundle }: { package: string; bundle: string }): string {
  return `${packageName}/${bundle}`;
}

/** Returns the bundles that need an image, for messages: the first, and the number of others; undefined for none. */
export function describeBundles([first, ...others]: PlannedImage['bundles']): string | undefined {
  if (first === undefined) return undefined;
  const name = `bundle ${quoteGo(first.bundle)} of package ${quoteGo(first.package)}`;
  return others.length === 0 ? name : `${name} (and ${others.length} more)`;
}

/** Reports whether an image is copied after the others, because it names them. */
export function isCopiedLast({ kind }: Pick<PlannedImage, 'kind'>): boolean {
  return kind === 'catalog' || kind === 'release';
}

/** Reports whether an image belongs to a release, which is incomplete without it. */
export function isOfRelease({ kind }: Pick<PlannedImage, 'kind'>): boolean {
  return kind === 'release' || kind === 'component' || kind === 'graph';
}
