import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, OpmateError, fileError, throwIfCancelled } from '../../core/errors.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { type LinkOptions, outsideError } from '../../files/directory-root.js';
import { outsideManifestFault } from '../manifest.js';
import { type BundleFile, readFileWithin } from '../read.js';
import { findDuplicates } from './duplicates.js';
import { type Manifest, type ReadManifestsOptions, readManifests, getTitle } from '../../kube/manifests.js';
import { type PlainObject, sortObjects } from '../../kube/object.js';
import { type Diagnostic, createFault, createWarning } from '../../core/diagnostic.js';
import { diagnosticsFrom } from '../../core/diagnostics-error.js';

/** What a directory of manifests holds. */
export interface PlainManifests {
  /** Sorted by kind, namespace and name; empty where there are findings. */
  objects: PlainObject[];
  findings: Diagnostic[];
  warnings: Diagnostic[];
}

const maxFiles = 10_000;
const maxFileSize = 64 * 1024 * 1024;
const maxSize = 256 * 1024 * 1024;

/**
 * Reads a bundle of the format plain: objects as they are applied, in the files of `manifests/`, or of the
 * directory itself where it has no such part. Files that are neither YAML nor JSON are passed over with a
 * warning. Of content that was put together of several sources, `destinations` are further directories of this kind.
 * There must be an object at least, no other directory among the files, and unless `followLinks` no link that
 * leads out. Throws OpmateError where the directory cannot be read, or is beyond the caps. (Source: rukpak, plain+v0.)
 */
export async function readPlainDirectory(
  directory: string,
  options: CancelOptions &
    LinkOptions & { keepBelow?: number | undefined; destinations?: readonly string[] | undefined } = {},
): Promise<PlainManifests> {
  const warnings: Diagnostic[] = [];
  const findings: Diagnostic[] = [];
  const files: BundleFile[] = [];
  let count = 0;
  let total = 0;
  const checkSize = (size: number, subject: string): void => {
    total += size;
    if (size <= maxFileSize && total <= maxSize) return;
    throw new LimitError(`too large, or reaches the ${maxSize} bytes that all manifests may have`, {
      subject,
      hint: 'check that this is a manifest',
    });
  };
  // Where there are manifests/, whatever stands beside them is not applied.
  const hasManifests = (await list(directory)).some(
    (entry) => entry.name === 'manifests' && entry.isDirectory(),
  );
  const destinations = sortedByBytes(new Set(options.destinations ?? [])).filter(
    (place) => place !== '' && (!hasManifests || place.startsWith('manifests/')),
  );
  const isDestination = (name: string): boolean =>
    destinations.some((place) => place === name || place.startsWith(`${name}/`));
  const readPlace = async (place: string): Promise<string> => {
    const top = await list(path.join(directory, place));
    const below = place === '' ? '' : `${place}/`;
    const part = `${below}manifests`;
    const hasPart =
      !destinations.includes(part) && top.some((entry) => entry.name === 'manifests' && entry.isDirectory());
    const prefix = hasPart ? `${part}/` : below;
    const entries = hasPart ? await list(path.join(directory, part)) : top;
    count += entries.length;
    if (count > maxFiles) {
      throw new LimitError(`${count} files, more than ${maxFiles}`, {
        subject: directory,
        hint: 'check that these are the manifests of one operator',
      });
    }
    for (const entry of entries.sort((a, b) => compareBytes(a.name, b.name))) await readEntry(prefix, entry);
    return prefix;
  };
  const readEntry = async (prefix: string, entry: Dirent): Promise<void> => {
    throwIfCancelled(options.signal);
    const file = prefix + entry.name;
    if (entry.name.startsWith('.') || (entry.isDirectory() && isDestination(file))) return;
    if (entry.isDirectory()) {
      findings.push(
        createFault('directory', 'is a directory', {
          file,
          hint: 'move all manifests to one directory: the format plain has no subdirectories',
        }),
      );
    } else if (!/\.(?:ya?ml|json)$/i.test(entry.name)) {
      warnings.push(createWarning('ignored-file', 'skipped: neither .yaml, .yml nor .json', { file }));
    } else {
      const place = path.join(directory, file);
      const outside = entry.isSymbolicLink() ? await outsideError(directory, place, file) : undefined;
      if (outside !== undefined && options.followLinks !== true) {
        findings.push({ ...(diagnosticsFrom(outside)[0] as Diagnostic), code: 'link' });
        return;
      }
      const content = await readFileWithin(place, checkSize);
      const fault = content && outside ? outsideManifestFault(content, file) : undefined;
      if (fault !== undefined) {
        const { line } = fault;
        findings.push(createFault('syntax', 'not a manifest', { file, line }));
      } else if (content !== undefined) files.push({ name: file, content });
    }
  };
  const prefix = await readPlace('');
  for (const place of destinations) await readPlace(place);
  const read = readPlainFiles(files, { prefix: '', keepBelow: options.keepBelow });
  findings.push(...read.findings);
  if (read.isEmpty && findings.length === 0) {
    findings.push(createFault('no-objects', `${prefix === '' ? 'the directory' : prefix} holds no objects`));
  }
  return { objects: findings.length > 0 ? [] : read.objects, findings, warnings };
}

/**
 * The objects in manifests as they are applied: each with a kind, an apiVersion and a name, none duplicate. Throws
 * LimitError.
 */
export function readPlainFiles(
  files: readonly BundleFile[],
  options: ReadManifestsOptions,
): Pick<PlainManifests, 'objects' | 'findings'> & { isEmpty: boolean } {
  const { manifests, findings } = readManifests(files, options);
  for (const manifest of manifests) {
    if (manifest.apiVersion === '') {
      const message = `${getTitle(manifest)}: apiVersion: missing`;
      findings.push(
        createFault('missing-field', message, { file: manifest.file, line: manifest.lineOf(['kind']) }),
      );
    }
    if (manifest.name !== '' || hasGeneratedName(manifest)) continue;
    const message = `${manifest.kind}: metadata.name: missing`;
    findings.push(
      createFault('missing-field', message, { file: manifest.file, line: manifest.lineOf(['metadata']) }),
    );
  }
  const objects = manifests.map((manifest) => ({
    apiVersion: manifest.apiVersion,
    kind: manifest.kind,
    name: manifest.name,
    namespace: manifest.namespace,
    origin: manifest.file,
    isGenerated: false,
    load: manifest.load,
  }));
  if (findings.length === 0) {
    findings.push(...findDuplicates(objects.filter(({ name }) => name !== '')).findings);
  }
  const isGood = findings.length === 0;
  return { objects: isGood ? sortObjects(objects) : [], findings, isEmpty: manifests.length === 0 };
}

function hasGeneratedName(manifest: Manifest): boolean {
  const metadata = manifest.load()['metadata'];
  return typeof metadata === 'object' && metadata !== null && 'generateName' in metadata;
}

async function list(directory: string): Promise<Dirent[]> {
  try {
    return await readdir(directory, { withFileTypes: true });
  } catch (error) {
    if (error instanceof OpmateError) throw error;
    throw fileError(directory, error);
  }
}
