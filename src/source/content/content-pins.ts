import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { OpmateError, redactUrls } from '../../core/errors.js';
import { parseImageReference } from '../parse-place.js';
import { type ContentPlace, formatUrl, isCommit, pinReference } from '../place.js';
import type { Pin, PlacedSource } from './content-types.js';

/** Describes a source for its lock entry, without secrets and local paths, so that it is the same for every user. */
export function describeSource(source: ContentPlace): string {
  switch (source.kind) {
    case 'directory':
    case 'archive':
      return source.kind;
    case 'image':
      return `image ${source.ref}`;
    case 'http':
      return `http ${formatUrl(new URL(source.url))}`;
    case 'git': {
      const { repository, directory } = source;
      const refs = (['branch', 'tag', 'commit', 'revision'] as const).flatMap((kind) =>
        source[kind] === undefined ? [] : [`${kind} ${source[kind]}`],
      );
      return [
        'git',
        redactUrls(repository),
        ...refs,
        ...(directory === undefined ? [] : [`directory ${directory}`]),
      ].join(' ');
    }
    case 'configMaps': {
      const selected = (source.configMaps ?? []).map(({ name, path }) =>
        path === undefined ? name : `${name} to ${path}`,
      );
      return ['configMaps', ...(selected.length > 0 ? [selected.join(', ')] : [])].join(' ');
    }
  }
}

/** Returns a finding for each source that is not pinned; local files need no pin. */
export function findUnpinned(sources: readonly PlacedSource[], pins: readonly Pin[] = []): Diagnostic[] {
  return sources.flatMap(({ name, source }): Diagnostic[] => {
    if (pins.some((pin) => pin.name === name)) return [];
    const fault = (problem: string, hint: string) => [
      createFault('unpinned', problem, { subject: name, hint }),
    ];
    if (source.kind === 'image') {
      const { transport, digest } = parseImageReference(source.ref);
      const isPinned = transport !== 'docker' || digest !== undefined;
      return isPinned ? [] : fault('image is not pinned by digest', 'use NAME@sha256:…');
    }
    if (source.kind === 'git' && source.commit === undefined && !isCommit(source.revision ?? ''))
      return fault('git source is not pinned by commit', 'use all 40 digits of the commit');
    if (source.kind === 'http' && source.checksum === undefined)
      return fault('URL is not pinned by checksum', 'add #sha256:… to the URL');
    return [];
  });
}

/**
 * Returns the source at its pinned digest, commit or checksum. Throws OpmateError for the pin of a different source, or
 * if the source itself specifies a different state.
 */
export function pinnedSource({ name, source }: PlacedSource, pin: Pin): ContentPlace {
  const requested = describeSource(source);
  if (pin.type !== source.kind || (pin.source !== undefined && pin.source !== requested)) {
    throw drift(name, pin.source ?? pin.type, requested);
  }
  const state = getPinnedState(pin);
  switch (source.kind) {
    case 'image': {
      const reference = parseImageReference(source.ref);
      if (reference.digest !== undefined && reference.digest !== state)
        throw drift(name, state, reference.digest);
      return { ...source, ref: pinReference(reference, state).text };
    }
    case 'git': {
      if (source.commit !== undefined && source.commit !== state) throw drift(name, state, source.commit);
      const pinned = { ...source, commit: state };
      delete pinned.branch;
      delete pinned.tag;
      delete pinned.revision;
      return pinned;
    }
    case 'http':
      if (source.checksum !== undefined && source.checksum !== state)
        throw drift(name, state, source.checksum);
      return { ...source, checksum: state };
    default:
      return source;
  }
}

/** Returns the digest, commit or checksum of a pin; older locks have `REPOSITORY@COMMIT`. */
export function getPinnedState({ type, ref }: Pin): string {
  const commit = type === 'git' ? /[#@]([0-9a-f]{40,64})(?::.*)?$/s.exec(ref)?.[1] : undefined;
  return commit ?? ref.slice(ref.lastIndexOf('@') + 1);
}

/** Returns the error for a source that differs from its lock entry. */
export function drift(name: string, locked: string, actual: string): OpmateError {
  return new OpmateError('DIGEST', `locked as ${locked}, got ${actual}`, {
    subject: name,
    hint: 'review the changes, then update the lock with options.updateLock',
  });
}
