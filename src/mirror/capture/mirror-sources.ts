import { compareBytes } from '../../core/order.js';
import { findReference } from '../../core/reference.js';
import type { ClusterCatalog, ClusterObjects } from './cluster-objects.js';

/** Sources of mirrored catalogs by their images in the cluster; undefined for an unknown one. */
export type FindSource = (image: string) => string | undefined;

/**
 * Finds the sources of mirrored catalogs: in this order, that of `findSource`, the annotation of a catalog, and that of
 * the mirror sets of the cluster.
 */
export class MirrorSources {
  readonly #objects: ClusterObjects;
  readonly #findSource: FindSource;

  constructor(objects: ClusterObjects, findSource: FindSource) {
    this.#objects = objects;
    this.#findSource = findSource;
  }

  /** Returns the source of a mirrored image; the image itself if it is unknown. */
  getSource(image: string): string {
    const own = [...this.#objects.catalogSources.values(), ...this.#objects.clusterCatalogs.values()];
    const annotated = own.find((catalog) => catalog.image === image && isImage(catalog.source))?.source;
    return this.#findSource(image) ?? annotated ?? this.#getMirrorSetSource(image);
  }

  /** Returns the source of a mirrored image by the mirror sets of the cluster; the longest match takes precedence. */
  #getMirrorSetSource(image: string): string {
    const isBelow = (mirror: string): boolean =>
      image.startsWith(mirror) && ['', '/', ':', '@'].includes(image.charAt(mirror.length));
    const match = this.#objects.mirrors
      .filter(({ mirror }) => isBelow(mirror))
      .sort((a, b) => b.mirror.length - a.mirror.length || compareBytes(a.source, b.source))[0];
    return match === undefined ? image : `${match.source}${image.slice(match.mirror.length)}`;
  }

  /** Reports whether an image is in a mirror, and its source is unknown. */
  isUnknownMirror({ isMirror }: ClusterCatalog, image: string): boolean {
    const getHost = (name: string): string => name.split('/', 1)[0] ?? '';
    const isListed = (key: 'mirror' | 'source'): boolean =>
      this.#objects.mirrors.some((entry) => getHost(entry[key]) === getHost(image));
    if (this.#findSource(image) !== undefined) return false;
    return isMirror || (isListed('mirror') && !isListed('source'));
  }
}

/** Reports whether a text is an image in a registry. */
export function isImage(text: string): boolean {
  return findReference(text)?.transport === 'docker' && !text.startsWith('docker://');
}
