import path from 'node:path';
import { inContext } from '../core/diagnostics-error.js';
import { parseGitRepository } from './git-names.js';
import { OpmateError, UsageError, redactUrls } from '../core/errors.js';
import { isDigest } from '../core/digest.js';
import { type Reference, looksLikePath, missingTag, parseReference } from '../core/reference.js';
import { quoteGo } from '../document/go-json.js';
import { statIfPresent } from '../files/file-status.js';
import { fromDirectory } from '../oci/image/open.js';
import { isDatabaseFile } from '../sqlite/schema/database.js';
import type { PlacedSource } from './content/content-types.js';
import {
  type ContentPlace,
  type GitPlace,
  type HttpPlace,
  type Place,
  type ServedPlace,
  credentialsInUrl,
  getDirectory,
  formatUrl,
  isCommit,
} from './place.js';

interface ParsePlaceOptions {
  /** Use of the reference: a catalog or bundle to render (`catalog`), or the files of a bundle (`content`). */
  purpose: 'catalog' | 'content';
  /** Base of relative paths, which become absolute for content; default: that of the process. */
  workingDirectory?: string | undefined;
}

/**
 * Parses a reference from the command line:
 *
 * - `git+https://HOST/REPO[@REF]` or `…[#[REF][:DIRECTORY]]`; `git+ssh`, `git+file` and `git+http` alike
 * - `https://HOST/ARCHIVE[#sha256:HEX]` or `…[@sha256:HEX]`; `http` alike
 * - for a catalog: any other `https://HOST/PATH` as the base URL of a served one, e.g. `https://HOST/catalogs/NAME`
 * - `configmap:FILE[#NAME]`
 * - a path: a directory, a tar archive or a file with ConfigMaps; for a catalog, also a sqlite index file
 * - otherwise an image, as in `parseReference`
 *
 * An existing path takes precedence over an image. Throws OpmateError, which never contains credentials.
 */
export function parsePlace(
  text: string,
  options: ParsePlaceOptions & { purpose: 'content' },
): Promise<ContentPlace>;
export function parsePlace(text: string, options: ParsePlaceOptions): Promise<Place>;
export async function parsePlace(text: string, options: ParsePlaceOptions): Promise<Place> {
  const { workingDirectory } = options;
  const isContent = options.purpose === 'content';
  // Messages about a catalog name its path as the user wrote it.
  const absolute = (file: string): string =>
    isContent && workingDirectory !== undefined
      ? path.resolve(workingDirectory, file)
      : fromDirectory(options, file);
  if (/^git\+/.test(text)) return parseGitReference(text);
  if (/^https?:\/\//i.test(text)) {
    return isContent || isArchiveUrl(text) ? parseArchiveUrl(text) : parseServed(text);
  }
  if (text.startsWith('configmap:')) {
    const [, file = '', name] = /^configmap:(.+?)(?:#([^#/]+))?$/s.exec(text) ?? [];
    if (file === '')
      throw new UsageError('missing file name', { subject: text, hint: 'use configmap:FILE[#NAME]' });
    return {
      kind: 'configMaps',
      file: absolute(file),
      ...(name !== undefined && { configMaps: [{ name }] }),
    };
  }
  const stats = text === '' ? undefined : await statIfPresent(absolute(text));
  if (stats === undefined) {
    parseImageReference(text);
    return { kind: 'image', ref: text };
  }
  const file = absolute(text);
  if (stats.isDirectory()) return { kind: 'directory', path: file };
  if (!isContent && (!stats.isFile() || (await isDatabaseFile(file))))
    return { kind: 'database', path: file };
  if (!stats.isFile()) throw new OpmateError('INVALID', 'expected a file or directory', { subject: text });
  const { contentFileKind } = await import('./content/file-kind.js');
  const kind = await contentFileKind(file);
  if (kind === 'archive') return { kind: 'archive', path: file };
  if (kind === 'configMaps') return { kind: 'configMaps', file };
  // Opening it as a database fails in the words of opm.
  if (!isContent) return { kind: 'database', path: file };
  throw new OpmateError('UNSUPPORTED', 'expected a tar archive or a file with ConfigMaps', {
    subject: text,
    hint: 'use oci-archive:FILE or docker-archive:FILE for an image in a file',
  });
}

/** Parses the reference of a catalog or bundle, with paths relative to the working directory of a session. */
export function parseCatalogPlace(
  text: string,
  { workingDirectory }: { workingDirectory?: string | undefined },
): Promise<Place> {
  return parsePlace(text, { purpose: 'catalog', workingDirectory });
}

/** Parses an image reference. Throws OpmateError for one that looks like a path, or has neither tag nor digest. */
export function parseImageReference(reference: string): Reference {
  // Existing paths were opened before.
  refuseMissingPath(reference);
  const parsed = parseReference(reference);
  if (parsed.transport === 'docker' && parsed.tag === undefined && parsed.digest === undefined) {
    throw missingTag(reference);
  }
  return parsed;
}

/**
 * Parses the name of an image to read, as a user wrote it. Throws what `parseSourceRepository` and `parseImageReference`
 * throw.
 */
export async function parseSourceImage(
  text: string,
  session: { workingDirectory?: string | undefined },
): Promise<Reference> {
  await refuseExistingPath(text, session);
  return parseImageReference(text);
}

/**
 * Parses the name of a repository to read, with or without a tag. Throws OpmateError, for an existing path with the form
 * that names it.
 */
export async function parseSourceRepository(
  text: string,
  session: { workingDirectory?: string | undefined },
): Promise<Reference> {
  await refuseExistingPath(text, session);
  refuseMissingPath(text);
  return parseReference(text);
}

/** Throws UsageError for a path in place of an image. */
async function refuseExistingPath(
  text: string,
  session: { workingDirectory?: string | undefined },
): Promise<void> {
  const stats = text === '' ? undefined : await statIfPresent(fromDirectory(session, text));
  if (stats === undefined) return;
  const isDirectory = stats.isDirectory();
  throw new UsageError(isDirectory ? 'is a directory' : 'is a file', {
    subject: text,
    hint: isDirectory ? `use oci:${text}` : `use oci-archive:${text} or docker-archive:${text}`,
  });
}

/** Throws OpmateError NOT_FOUND for a reference that can only be a path. */
function refuseMissingPath(reference: string): void {
  if (!looksLikePath(reference) && !/^[^:]*\/$/.test(reference)) return;
  throw new OpmateError('NOT_FOUND', 'no such file or directory', { subject: reference });
}

function parseGitReference(text: string): GitPlace {
  const [, address = '', fragment] = /^git\+([^#]*)(?:#(.*))?$/s.exec(text) ?? [];
  const [, base = '', last = ''] = /^([a-z]+:\/\/.*\/)([^/]*)$/s.exec(address) ?? [];
  const position = last.lastIndexOf('@');
  const repository = position < 0 ? address : base + last.slice(0, position);
  const shown = redactUrls(text);
  const hint = 'use git+https://HOST/REPOSITORY[#REF[:DIRECTORY]], or git+ssh, git+file';
  const newHint = /:\/\/[^/]*@/.test(repository) ? credentialsInUrl(shown).hint : hint;
  inContext({ subject: shown, newHint }, () => parseGitRepository(repository));
  if (position >= 0 && fragment !== undefined) {
    throw new UsageError('@ and # cannot be combined', { subject: shown, hint: 'use #REF:DIRECTORY only' });
  }
  const [, ref, directory] =
    /^([^:]*)(?::(.*))?$/s.exec(position < 0 ? (fragment ?? '') : last.slice(position + 1)) ?? [];
  const source: GitPlace = { kind: 'git', repository };
  if (ref !== undefined && ref !== '') {
    if (isCommit(ref)) source.commit = ref;
    else source.revision = ref;
  }
  if (directory !== undefined && directory !== '') source.directory = directory;
  getDirectory(source);
  return source;
}

/** Reports whether a URL names an archive, by its file extension or a trailing checksum. */
function isArchiveUrl(text: string): boolean {
  return /\.(?:tar|tgz|tzst|tar\.(?:gz|zst|xz|bz2))(?:[?#@]|$)|[#@]sha256:[^/]*$/i.test(text);
}

/** Parses the base URL of a served catalog, or that of all its blobs. Throws UsageError, never with credentials. */
export function parseServed(text: string): ServedPlace {
  const url = parseHttpUrl(text);
  if (url.hash !== '') {
    throw new UsageError(`unexpected ${quoteGo(url.hash)}`, {
      subject: formatUrl(url),
      hint: 'use the base URL of a served catalog, e.g. https://HOST/catalogs/NAME',
    });
  }
  return { kind: 'served', url: text.replace(/(?:\/api\/v1\/all)?\/*(?=$|\?)/, '') };
}

/** Parses an archive `URL`, `URL#sha256:HEX` or `URL@sha256:HEX`. Throws OpmateError, never with credentials. */
export function parseArchiveUrl(text: string): HttpPlace {
  const [, address = '', checksum] = /^(.*?)(?:[#@](sha256:[^/]*))?$/s.exec(text) ?? [];
  const url = parseHttpUrl(address);
  if (url.hash !== '') {
    throw new UsageError(`invalid checksum ${quoteGo(url.hash)}`, {
      subject: formatUrl(url),
      hint: 'add #sha256: and 64 hexadecimal digits to the URL',
    });
  }
  if (checksum !== undefined && !isDigest(checksum)) {
    throw new UsageError(`invalid checksum ${quoteGo(checksum)}`, {
      subject: formatUrl(url),
      hint: 'use sha256: and 64 hexadecimal digits in lower case',
    });
  }
  return { kind: 'http', url: address, ...(checksum !== undefined && { checksum }) };
}

function parseHttpUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new UsageError('not a URL', { subject: redactUrls(text) });
  if (!/^https?:$/.test(url.protocol)) {
    throw new UsageError('not an http or https URL', { subject: redactUrls(text) });
  }
  if (url.username !== '' || url.password !== '') throw credentialsIn(formatUrl(url));
  return url;
}

function credentialsIn(shown: string): OpmateError {
  const { problem, hint } = credentialsInUrl(shown);
  return new UsageError(problem, { subject: shown, hint });
}

/**
 * Parses `DESTINATION=SOURCE` from the command line; relative paths are resolved against the working directory.
 * Throws OpmateError.
 */
export async function parsePlacedSource(text: string, workingDirectory: string): Promise<PlacedSource> {
  const position = text.indexOf('=');
  if (position <= 0) {
    throw new UsageError('expected DESTINATION=SOURCE', {
      subject: quoteGo(redactUrls(text)),
      hint: 'use the form manifests=git+https://git.example/team/repo.git#main:deploy',
    });
  }
  const source = text.slice(position + 1);
  return {
    name: redactUrls(source),
    source: await parsePlace(source, { purpose: 'content', workingDirectory }),
    destination: text.slice(0, position),
  };
}
