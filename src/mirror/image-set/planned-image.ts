import type { Reference } from '../../core/reference.js';
import { quoteGo } from '../../document/go-json.js';
import type { ImageContents } from '../../oci/image/contents.js';
import type { OpenedReference } from '../../oci/image/open.js';
import type { Platform } from '../../oci/image/types.js';
import type { TargetName } from '../naming/image-name.js';

/** Handling of images that cannot be copied. */
export type OnError = 'stop' | 'skip-image' | 'skip-bundle';

/** An image, chart artifact or graph image of a set. */
export interface PlannedImage {
  kind:
    'catalog' | 'bundle' | 'related' | 'additional' | 'helm' | 'chart' | 'release' | 'component' | 'graph';
  /** Reference to pull. */
  reference: Reference;
  /** The reference as text, with its transport, by digest if known. */
  source: string;
  /** Name below the target. */
  name: TargetName;
  /** Whole name with tag at the target. */
  destination: string;
  /** Path of the repository at the target. */
  repository: string;
  /** Bundles that need it; empty for catalogs and additional images. */
  bundles: { package: string; bundle: string }[];
  /** Platforms to copy of an index; undefined for all. */
  platforms: readonly Platform[] | undefined;
  /** References to it as written in catalogs and charts. */
  texts: Set<string>;
  /** Place in the configuration, for messages. */
  place?: { file: string; line: number } | undefined;
  /** Set if the configuration or a chart names it, so it is kept without its bundles. */
  isRequested?: boolean | undefined;
  /** The same image, by digest, in other source repositories with the same name at the target. */
  aliases?: readonly Reference[] | undefined;
  /** Contents, if already read. */
  contents?: ImageContents | undefined;
  /** Opens an image without a source: a chart artifact, the graph image. */
  open?: (() => Promise<OpenedReference>) | undefined;
}

/** The fields of an image that manifests of a cluster depend on. */
export type MirroredName = Pick<PlannedImage, 'kind' | 'reference' | 'aliases' | 'repository'>;

/** An image with its names at source and target. */
export type NamedImage = MirroredName & Pick<PlannedImage, 'source' | 'destination'>;

type ImageKind = { kind: PlannedImage['kind'] | 'signature' };

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
export function isCopiedLast({ kind }: ImageKind): boolean {
  return kind === 'catalog' || kind === 'release';
}

/** Reports whether an image belongs to a release, which is incomplete without it. */
export function isOfRelease({ kind }: ImageKind): boolean {
  return kind === 'release' || kind === 'component' || kind === 'graph';
}
