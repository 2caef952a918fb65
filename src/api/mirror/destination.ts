import path from 'node:path';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { type MirrorTarget, parseMirrorTarget } from '../../mirror/image-set/image-set-names.js';
import type { Session } from '../../source/session.js';

/** Where an image set goes. */
export type MirrorDestination =
  | { kind: 'registry'; target: MirrorTarget }
  /** Absolute. */
  | { kind: 'disk'; directory: string; target: MirrorTarget };

type Place = Pick<Session, 'workingDirectory'>;

/** Reads `docker://REGISTRY[/PATH]` or `file://DIR`. Throws UsageError. */
export function parseDestination(text: string, place: Place): MirrorDestination {
  if (!text.startsWith('file://')) return { kind: 'registry', target: parseMirrorTarget(text) };
  return toDisk(parseFileDirectory(text, place), place);
}

/** Reads `docker://REGISTRY[/PATH]`. Throws UsageError. */
export function requireRegistry(text: string): MirrorDestination {
  if (text.startsWith('file://'))
    throw new UsageError(`${text}: not a registry`, { hint: 'write docker://REGISTRY[/PATH]' });
  return { kind: 'registry', target: parseMirrorTarget(text) };
}

/** Returns the destination that a directory is. */
export function toDisk(directory: string, { workingDirectory }: Place): MirrorDestination {
  const target = { registry: '', path: '' };
  return { kind: 'disk', directory: path.resolve(workingDirectory, directory), target };
}

/** Returns the directory, absolute, that `file://DIR` names. Throws UsageError. */
export function parseFileDirectory(text: string, { workingDirectory }: Place): string {
  if (text.startsWith('file://') && text !== 'file://')
    return path.resolve(workingDirectory, text.slice('file://'.length));
  throw new UsageError(`${quoteGo(text)}: not a directory`, { hint: 'write file://DIRECTORY' });
}
