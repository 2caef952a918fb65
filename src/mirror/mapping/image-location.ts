import path from 'node:path';
import { type Reference, parseReference } from '../../core/reference.js';
import {
  type TypedImageReference,
  formatTypedReference,
  getPath,
  getRepository,
  withDockerDefaults,
} from './image-names.js';

/** Layout directory of all images, below the root of `file://`. */
const fileLayoutName = 'v2';

/**
 * Returns the reference of an image. All images in `file://` are in one OCI layout, `v2` below `root`, with names
 * `PATH:TAG`, which `opmate oci serve` serves as repositories. A digest takes precedence over a tag.
 */
export function getReference(location: TypedImageReference, root: string): Reference {
  const { tag, digest } = location.name;
  if (location.scheme === 'registry') {
    const name = withDockerDefaults(location.name);
    const suffix = digest === undefined ? `:${name.tag}` : `@${digest}`;
    return parseReference(`${getRepository(name)}${suffix}`);
  }
  return {
    transport: 'oci',
    text: formatTypedReference(location),
    path: path.resolve(root, fileLayoutName),
    ...(digest === undefined ? { tag: `${getPath(location.name)}:${tag ?? 'latest'}` } : { digest }),
  };
}

/** Returns the reference of an image at a target: by its tag, if it has one. */
export function getTargetReference(location: TypedImageReference, root: string): Reference {
  const { tag } = location.name;
  return getReference(
    tag === undefined ? location : { ...location, name: { ...location.name, digest: undefined } },
    root,
  );
}
