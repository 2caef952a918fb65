import path from 'node:path';
import { isDigest } from '../../core/digest.js';
import { OpmateError } from '../../core/errors.js';
import { type Reference, formatReference, parseReference } from '../../core/reference.js';
import {
  type ImageName,
  formatImageName,
  parseImageName,
  toReference,
  withDockerDefaults,
} from './image-name.js';

/** An image in a registry, or in a directory below the root of `file://`. (Source: oc, imagesource.) */
export interface ImageLocation {
  scheme: 'registry' | 'file';
  /** In `file://` the registry is empty, and the repository is a path. */
  name: ImageName;
}

/** Formats a reference with its scheme, if it is `file://`. */
export function formatImageLocation({ scheme, name }: ImageLocation): string {
  return (scheme === 'file' ? 'file://' : '') + formatImageName(name);
}

/**
 * Parses the source or destination of a command; `isPrefix` for a prefix of images. Throws OpmateError UNSUPPORTED for
 * `s3://`, INVALID, and UNSAFE for a path that leaves the root.
 */
export function parseImageLocation(text: string, options: { isPrefix?: boolean } = {}): ImageLocation {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//.exec(text)?.[0];
  if (scheme === 's3://') {
    throw new OpmateError('UNSUPPORTED', 's3:// is not supported', {
      subject: text,
      hint: 'mirror to file://DIR, and copy that directory',
    });
  }
  if (scheme === 'file://') return { scheme: 'file', name: parseFileName(text, options.isPrefix === true) };
  const rest = scheme === 'docker://' ? text.slice(scheme.length) : text;
  return { scheme: 'registry', name: parseImageName(rest, options) };
}

const pathComponent = /^[A-Za-z0-9_.-]+$/;

function parseFileName(text: string, isPrefix: boolean): ImageName {
  const rest = text.slice('file://'.length).replace(/^\//, '').replace(/\/+$/, '');
  const position = rest.indexOf('@');
  const digest = position < 0 ? undefined : rest.slice(position + 1);
  const named = position < 0 ? rest : rest.slice(0, position);
  const colon = isPrefix ? -1 : named.indexOf(':', named.lastIndexOf('/') + 1);
  const tag = colon < 0 ? undefined : named.slice(colon + 1);
  const path = colon < 0 ? named : named.slice(0, colon);
  const components = path.split('/');
  if (components.includes('..') || components.includes('.'))
    throw new OpmateError('UNSAFE', 'a path must not contain . or ..', { subject: text });
  const isValid =
    components.every((component) => pathComponent.test(component)) &&
    (tag === undefined || /^\w[\w.-]{0,127}$/.test(tag)) &&
    (digest === undefined || isDigest(digest));
  if (!isValid) {
    throw new OpmateError('INVALID', 'not a file:// image location', {
      subject: text,
      hint: isPrefix ? 'use file://PATH' : 'use file://PATH:TAG or file://PATH@sha256:DIGEST',
    });
  }
  return { registry: '', repository: path, tag, digest };
}

/** Layout directory of all images, below the root of `file://`. */
const fileLayoutName = 'v2';

/**
 * Returns where an image is. All images in `file://` are in one OCI layout, `v2` below `root`, with names `PATH:TAG`,
 * which `opmate oci serve` serves as repositories. A digest takes precedence over a tag.
 */
export function locateImage(location: ImageLocation, root: string): Reference {
  const { tag, digest } = location.name;
  const text = formatImageLocation(location);
  if (location.scheme === 'registry') {
    const name = withDockerDefaults(location.name);
    return { ...toReference(digest === undefined ? name : { ...name, tag: undefined }), text };
  }
  const version =
    digest === undefined ? { tag: `${location.name.repository}:${tag ?? 'latest'}` } : { digest };
  return { transport: 'oci', text, path: path.resolve(root, fileLayoutName), ...version };
}

/** Returns where an image is at a target: by its tag, if it has one. */
export function locateTarget({ scheme, name }: ImageLocation, root: string): Reference {
  return locateImage({ scheme, name: name.tag === undefined ? name : { ...name, digest: undefined } }, root);
}

/** Returns a reference that `locateImage` returned. Throws OpmateError INVALID for one that no registry can have. */
export function requireReference(reference: Reference): Reference {
  return reference.transport === 'docker' ? parseReference(formatReference(reference)) : reference;
}
