import path from 'node:path';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { withoutCredentials } from '../../core/reference.js';
import { type MirrorTarget, archiveTarget, parseMirrorTarget } from '../../mirror/naming/mirror-target.js';
import type { Session } from '../../source/session.js';

/** Destination of an image set; `text` is a URL that names it. */
export type MirrorDestination =
  | { kind: 'registry'; text: string; target: MirrorTarget }
  /** `directory` is absolute. */
  | { kind: 'disk'; text: string; directory: string; target: MirrorTarget };

/** Reads `docker://REGISTRY[/PATH]` or `file://DIRECTORY`. Throws UsageError. */
export function parseDestination(
  text: string,
  { workingDirectory }: Pick<Session, 'workingDirectory'>,
  maxNestedPaths?: number,
): MirrorDestination {
  if (text.startsWith('docker://'))
    return { kind: 'registry', text, target: parseMirrorTarget(text, maxNestedPaths) };
  const directory = parseDirectoryUrl(text, workingDirectory);
  if (directory !== undefined)
    return {
      kind: 'disk',
      text: `file://${directory}`,
      directory,
      target: { ...archiveTarget, maxNestedPaths },
    };
  throw new UsageError(`${quoteGo(withoutCredentials(text))}: not a registry or directory`, {
    hint: 'use docker://REGISTRY[/PATH] or file://DIRECTORY',
  });
}

/** Returns a destination unless it is a directory, for which it throws UsageError. */
export function requireRegistry(text: string): string {
  if (!text.startsWith('file://')) return text;
  throw new UsageError(`${quoteGo(text)}: not a registry`, { hint: 'use docker://REGISTRY[/PATH]' });
}

/** Returns the directory, absolute, that `file://DIRECTORY` names; undefined for another text. */
export function parseDirectoryUrl(text: string, workingDirectory: string): string | undefined {
  const [, directory] = /^file:\/\/(.+)$/s.exec(text) ?? [];
  return directory === undefined ? undefined : path.resolve(workingDirectory, directory);
}
