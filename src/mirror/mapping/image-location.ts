import path from 'node:path';
import { type Reference, parseReference } from '../../core/reference.js';
import {
  type TypedImageReference,
  formatTypedReference,
  getPath,
  getRepository,
  withDockerDefaults,
} from './image-names.js';

/** Name of the layout directory, below the root of `file://`, that holds all images there. */
const fileLayoutName = 'v2';

/**
 * The image that a place names, to be opened. All of `file://` is one OCI layout, `v2` below `root`, whose names are
 * `PATH:TAG`: what `opmate oci serve` takes for repositories. With a digest the tag does not count.
 */
export function getReference(place: TypedImageReference, root: string): Reference {
  const { tag, digest } = place.name;
  if (place.scheme === 'registry') {
    const name = withDockerDefaults(place.name);
    const suffix = digest === undefined ? `:${name.tag}` : `@${digest}`;
    return parseReference(`${getRepository(name)}${suffix}`);
  }
  return {
    transport: 'oci',
    text: formatTypedReference(place),
    path: path.resolve(root, fileLayoutName),
    ...(digest === undefined ? { tag: `${getPath(place.name)}:${tag ?? 'latest'}` } : { digest }),
  };
}

/** The image that a place gets, under its tag if it has one. */
export function getTargetReference(place: TypedImageReference, root: string): Reference {
  const { tag } = place.name;
  return getReference(
    tag === undefined ? place : { ...place, name: { ...place.name, digest: undefined } },
    root,
  );
}
