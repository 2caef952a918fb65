import type { Dirent } from 'node:fs';
import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, throwIfCancelled } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { type LinkOptions, outsideError } from '../../files/directory-root.js';
import { outsideManifestFault } from '../manifest.js';
import { listDirectory } from '../../files/file-status.js';
import { type BundleFile } from '../read.js';
import { checkDuplicates } from './duplicates.js';
import { getObject } from '../../document/json-fields.js';
import { locateIn, readManifests } from '../../kube/manifests.js';
import { type PlainObject, sortObjects, toPlainObject } from '../../kube/object.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { diagnosticsFrom } from '../../core/diagnostics-error.js';
import { Report } from '../report.js';
import { maxBundleSize, maxFileSize, maxFiles } from '../limits.js';
import { readFileWithin } from '../../files/read-file.js';

export interface PlainManifests extends Pick<Report, 'findings' | 'warnings'> {
  /** Sorted by kind, namespace and name; empty if there are findings. */
  objects: PlainObject[];
}

type PlainOptions = CancelOptions & LinkOptions & { destinations?: readonly string[] | undefined };

/**
 * Reads a bundle of the format plain: objects in the files of `manifests/`, or of the directory itself without
 * `manifests/`. `destinations` are further such directories, for content from several sources. Skips files other than
 * YAML and JSON with a warning. No objects, subdirectories, and unless `followLinks` links out of the directory are
 * findings. Throws OpmateError if the directory cannot be read or exceeds the limits. (Source: rukpak, plain+v0.)
 */
export async function readPlainDirectory(
  directory: string,
  options: PlainOptions = {},
): Promise<PlainManifests> {
  return new PlainDirectory(directory, options).read();
}

/** Reads the files of a directory, and counts them against the limits. */
class PlainDirectory {
  readonly #directory: string;
  readonly #options: PlainOptions;
  readonly #report = new Report();
  readonly #files: BundleFile[] = [];
  #count = 0;
  #total = 0;
  #destinations: readonly string[] = [];

  constructor(directory: string, options: PlainOptions) {
    this.#directory = directory;
    this.#options = options;
  }

  async read(): Promise<PlainManifests> {
    const { findings, warnings } = this.#report;
    // Files beside manifests/ are not applied.
    const isNested = this.#hasManifests(await listDirectory(this.#directory));
    this.#destinations = sortedByBytes(new Set(this.#options.destinations ?? [])).filter(
      (place) => place !== '' && (!isNested || place.startsWith('manifests/')),
    );
    const prefix = await this.#readPlace('');
    for (const place of this.#destinations) await this.#readPlace(place);
    const { objects, isEmpty, ...read } = readPlainFiles(this.#files);
    this.#report.add(read);
    if (isEmpty && findings.length === 0) {
      this.#report.fault('no-objects', `${prefix === '' ? 'the directory' : prefix} holds no objects`);
    }
    return { objects: findings.length > 0 ? [] : objects, findings, warnings };
  }

  #checkSize(size: number, subject: string): void {
    this.#total += size;
    if (size <= maxFileSize && this.#total <= maxBundleSize) return;
    throw new LimitError(`too large, or reaches the ${maxBundleSize} bytes that all manifests may have`, {
      subject,
      hint: 'check that this is a manifest',
    });
  }

  #hasManifests(entries: readonly Dirent[]): boolean {
    return entries.some((entry) => entry.name === 'manifests' && entry.isDirectory());
  }

  async #readPlace(place: string): Promise<string> {
    const top = await listDirectory(path.join(this.#directory, place));
    const below = place === '' ? '' : `${place}/`;
    const part = `${below}manifests`;
    const hasPart = !this.#destinations.includes(part) && this.#hasManifests(top);
    const prefix = hasPart ? `${part}/` : below;
    const entries = hasPart ? await listDirectory(path.join(this.#directory, part)) : top;
    this.#count += entries.length;
    if (this.#count > maxFiles) {
      throw new LimitError(`${this.#count} files, more than ${maxFiles}`, {
        subject: this.#directory,
        hint: 'check that these are the manifests of one operator',
      });
    }
    for (const entry of entries) await this.#readEntry(prefix + entry.name, entry);
    return prefix;
  }

  async #readEntry(file: string, entry: Dirent): Promise<void> {
    throwIfCancelled(this.#options.signal);
    if (entry.name.startsWith('.')) return;
    if (entry.isDirectory()) {
      if (this.#destinations.some((place) => place === file || place.startsWith(`${file}/`))) return;
      this.#report.fault('directory', 'is a directory', {
        file,
        hint: 'move all manifests to one directory: the format plain has no subdirectories',
      });
    } else if (!/\.(?:ya?ml|json)$/i.test(entry.name)) {
      this.#report.warn('ignored-file', 'skipped: neither .yaml, .yml nor .json', { file });
    } else {
      const place = path.join(this.#directory, file);
      const outside = entry.isSymbolicLink() ? await outsideError(this.#directory, place, file) : undefined;
      if (outside !== undefined && this.#options.followLinks !== true) {
        this.#report.findings.push({ ...(diagnosticsFrom(outside)[0] as Diagnostic), code: 'link' });
        return;
      }
      const content = readFileWithin(place, (size, subject) => this.#checkSize(size, subject));
      const fault = content && outside ? outsideManifestFault(content, file) : undefined;
      if (fault !== undefined) this.#report.fault('syntax', 'not a manifest', { file, line: fault.line });
      else if (content !== undefined) this.#files.push({ name: file, content });
    }
  }
}

/** Reads objects to apply, each with a kind, an apiVersion and a name, without duplicates. Throws LimitError. */
export function readPlainFiles(
  files: readonly BundleFile[],
): Pick<PlainManifests, 'objects' | 'findings'> & { isEmpty: boolean } {
  const report = new Report();
  const { findings } = report;
  const { manifests, findings: unread } = readManifests(files, { prefix: '' });
  findings.push(...unread);
  for (const manifest of manifests) {
    const { apiVersion, kind, name } = manifest;
    if (apiVersion === '') {
      report.fault('missing-field', 'apiVersion: missing', locateIn(manifest, ['kind']));
    }
    if (name !== '' || 'generateName' in getObject(manifest.load(), 'metadata')) continue;
    const place = { ...locateIn(manifest, ['metadata']), subject: kind };
    report.fault('missing-field', 'metadata.name: missing', place);
  }
  const objects = manifests.map((manifest) => toPlainObject(manifest));
  if (findings.length === 0) checkDuplicates(objects, report);
  return {
    objects: findings.length === 0 ? sortObjects(objects) : [],
    findings,
    isEmpty: manifests.length === 0,
  };
}
