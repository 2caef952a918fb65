import path from 'node:path';
import { OpmateError, UsageError, fileError, redact } from '../core/errors.js';
import { isDigest } from '../core/digest.js';
import { quoteGo } from '../document/go-json.js';
import { openRegularFile } from '../files/read-file.js';
import { shownUrl } from './drivers/http-archive.js';
import { holdsConfigMaps } from './drivers/config-map-files.js';
import type { ContentSource, HttpSource, PlacedSource } from './content/content-types.js';
import { directoryOf, isCommit } from './drivers/git.js';
import { parseImageReference, statIfThere } from './source.js';

/** What relative paths are counted from. */
export interface ParseOptions {
  workingDirectory: string;
}

/**
 * Takes a source as it is written on the command line:
 *
 * - `git+https://HOST/REPO[@REF]` or `…[#[REF][:DIRECTORY]]`; `git+ssh`, `git+file` and `git+http` alike
 * - `https://HOST/ARCHIVE[#sha256:HEX]` or `…[@sha256:HEX]`; `http` alike
 * - `configmap:FILE[#NAME]`
 * - a path: a directory, a tar archive, or a file with ConfigMaps
 * - otherwise an image, as `parseReference` takes it
 *
 * A path that exists is never taken for an image. Throws OpmateError, which never shows credentials.
 */
export async function parseContentSource(text: string, options: ParseOptions): Promise<ContentSource> {
  if (/^git\+/.test(text)) return parseGit(text);
  if (/^https?:\/\//i.test(text)) return parseHttpSource(text);
  const absolute = (file: string): string => path.resolve(options.workingDirectory, file);
  if (text.startsWith('configmap:')) {
    const [, file = '', name] = /^configmap:(.+?)(?:#([^#/]+))?$/s.exec(text) ?? [];
    if (file === '')
      throw new UsageError(`${text}: no file is named`, { hint: 'write configmap:FILE[#NAME]' });
    return {
      type: 'configMaps',
      file: absolute(file),
      ...(name !== undefined && { configMaps: [{ name }] }),
    };
  }
  const found = await statIfThere(absolute(text));
  if (found === undefined || text === '') {
    parseImageReference(text);
    return { type: 'image', ref: text };
  }
  if (found.isDirectory()) return { type: 'directory', path: absolute(text) };
  if (!found.isFile()) throw new OpmateError('INVALID', `${text}: neither a file nor a directory`);
  const kind = await contentFileKind(absolute(text));
  if (kind === 'archive') return { type: 'archive', path: absolute(text) };
  if (kind === 'configMaps') return { type: 'configMaps', file: absolute(text) };
  throw new OpmateError('UNSUPPORTED', `${text}: neither a tar archive nor a file with ConfigMaps`, {
    hint: 'for the image in a file, write oci-archive:FILE or docker-archive:FILE',
  });
}

/** What a file is a source as: a tar archive, or documents that are ConfigMaps all of them. Throws OpmateError. */
export async function contentFileKind(file: string): Promise<'archive' | 'configMaps' | undefined> {
  if (await isArchive(file)) return 'archive';
  return (await holdsConfigMaps(file)) ? 'configMaps' : undefined;
}

/** Takes `DESTINATION=SOURCE` as it is written on the command line. Throws OpmateError. */
export async function parsePlacedSource(text: string, options: ParseOptions): Promise<PlacedSource> {
  const at = text.indexOf('=');
  if (at <= 0) {
    throw new UsageError(`${quoteGo(redact(text))}: expected DESTINATION=SOURCE`, {
      hint: 'as in manifests=git+https://git.example/team/repo.git#main:deploy',
    });
  }
  const source = text.slice(at + 1);
  return {
    name: redact(source),
    source: await parseContentSource(source, options),
    destination: text.slice(0, at),
  };
}

function parseGit(text: string): ContentSource {
  const [, address = '', fragment] = /^git\+([^#]*)(?:#(.*))?$/s.exec(text) ?? [];
  const [, base = '', last = ''] = /^([a-z]+:\/\/.*\/)([^/]*)$/s.exec(address) ?? [];
  const at = last.lastIndexOf('@');
  const repository = at < 0 ? address : base + last.slice(0, at);
  const url = URL.canParse(repository) ? new URL(repository) : undefined;
  const shown = redact(text);
  if (url === undefined || !/^(?:https?|ssh|file):$/.test(url.protocol) || url.pathname.length < 2) {
    throw new UsageError(`${shown}: not the address of a git repository`, {
      hint: 'write git+https://HOST/REPOSITORY[#REF[:DIRECTORY]], or git+ssh, git+file',
    });
  }
  if (url.password !== '' || (url.username !== '' && url.protocol !== 'ssh:')) throw credentialsIn(shown);
  if (at >= 0 && fragment !== undefined) {
    throw new UsageError(`${shown}: @ and # both name a ref`, { hint: 'write #REF:DIRECTORY alone' });
  }
  const [, ref, directory] =
    /^([^:]*)(?::(.*))?$/s.exec(at < 0 ? (fragment ?? '') : last.slice(at + 1)) ?? [];
  const source: ContentSource = { type: 'git', repository };
  if (ref !== undefined && ref !== '') {
    if (isCommit(ref)) source.commit = ref;
    else source.revision = ref;
  }
  if (directory !== undefined && directory !== '') source.directory = directory;
  directoryOf(source);
  return source;
}

/** Takes `URL`, `URL#sha256:HEX` or `URL@sha256:HEX`. Throws OpmateError, which never shows credentials. */
export function parseHttpSource(text: string): HttpSource {
  const [, address = '', checksum] = /^(.*?)(?:[#@](sha256:[^/]*))?$/s.exec(text) ?? [];
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined) throw new UsageError(`${redact(text)}: not a URL`);
  if (url.username !== '' || url.password !== '') throw credentialsIn(shownUrl(url));
  if (url.hash !== '') {
    throw new UsageError(`${shownUrl(url)}: ${quoteGo(url.hash)} is no checksum`, {
      hint: 'write #sha256: and 64 hexadecimal digits behind the URL',
    });
  }
  if (checksum !== undefined && !isDigest(checksum)) {
    throw new UsageError(`${shownUrl(url)}: ${quoteGo(checksum)} is no checksum`, {
      hint: 'write sha256: and 64 hexadecimal digits in lower case',
    });
  }
  return { type: 'http', url: address, ...(checksum !== undefined && { checksum }) };
}

function credentialsIn(shown: string): OpmateError {
  return new UsageError(`${shown}: credentials do not belong into a URL`, {
    hint: 'put them into the auth file, or into a Secret in a file: --secrets DIRECTORY --secret NAME',
  });
}

/** Whether a file begins like a tar archive, or like compressed data. */
async function isArchive(file: string): Promise<boolean> {
  try {
    const handle = await openRegularFile(file);
    try {
      const head = Buffer.alloc(512);
      const { bytesRead } = await handle.read(head, 0, head.length, 0);
      const starts = ['1f8b', '28b52ffd', '425a68', 'fd377a58'];
      const hex = head.toString('hex', 0, 4);
      if (starts.some((start) => hex.startsWith(start)) || /^5[0-9a-f]2a4d18/.test(hex)) return true;
      // The oldest form of tar has no mark; an empty archive is zeros.
      const isMarked = bytesRead === 512 && head.toString('latin1', 257, 262) === 'ustar';
      return isMarked || (bytesRead === 512 && (head.every((byte) => byte === 0) || /\.tar$/.test(file)));
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw fileError(file, error, { file });
  }
}
