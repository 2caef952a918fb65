import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, fileError, throwIfCancelled } from '../../core/errors.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { type LinkOptions, outsideError } from '../../files/directory-root.js';
import { outsideManifestFault } from '../manifest.js';
import { type BundleFile, readFileWithin } from '../read.js';
import { findDuplicates } from './duplicates.js';
import { getObject } from '../../document/json-fields.js';
import { type Manifest, type ReadManifestsOptions, locateIn, readManifests } from '../../kube/manifests.js';
import { type PlainObject, sortObjects } from '../../kube/object.js';
import { type Diagnostic, createFault, createWarning } from '../../core/diagnostic.js';
import { diagnosticsFrom } from '../../core/diagnostics-error.js';

export interface PlainManifests {
  /** Sorted by kind, namespace and name; empty if there are findings. */
  objects: PlainObject[];
  findings: Diagnostic[];
  warnings: Diagnostic[];
}

const maxFiles = 10_000;
const maxFileSize = 64 * 1024 * 1024;
const maxSize = 256 * 1024 * 1024;

/**
 * Reads a bundle of the format plain: objects in the files of `manifests/`, or of the directory itself without
 * `manifests/`. `destinations` are further such directories, for content from several sources. Skips files other than
 * YAML and JSON with a warning. No objects, subdirectories, and unless `followLinks` links out of the directory are
 * findings. Throws OpmateError if the directory cannot be read or exceeds the limits. (Source: rukpak, plain+v0.)
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
  // Files beside manifests/ are not applied.
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
        findings.push(createFault('syntax', 'not a manifest', { file, line: fault.line }));
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

/** Reads objects to apply, each with a kind, an apiVersion and a name, without duplicates. Throws LimitError. */
export function readPlainFiles(
  files: readonly BundleFile[],
  options: ReadManifestsOptions,
): Pick<PlainManifests, 'objects' | 'findings'> & { isEmpty: boolean } {
  const { manifests, findings } = readManifests(files, options);
  for (const manifest of manifests) {
    if (manifest.apiVersion === '') {
      findings.push(createFault('missing-field', 'apiVersion: missing', locateIn(manifest, ['kind'])));
    }
    if (manifest.name !== '' || hasGeneratedName(manifest)) continue;
    findings.push(
      createFault('missing-field', 'metadata.name: missing', {
        ...locateIn(manifest, ['metadata']),
        subject: manifest.kind,
      }),
    );
  }
  const objects = manifests.map(({ apiVersion, kind, name, namespace, file, load }) => {
    return { apiVersion, kind, name, namespace, origin: file, isGenerated: false, load };
  });
  if (findings.length === 0) {
    findings.push(...findDuplicates(objects.filter(({ name }) => name !== '')).findings);
  }
  const isValid = findings.length === 0;
  return { objects: isValid ? sortObjects(objects) : [], findings, isEmpty: manifests.length === 0 };
}

function hasGeneratedName(manifest: Manifest): boolean {
  return 'generateName' in getObject(manifest.load(), 'metadata');
}

async function list(directory: string): Promise<Dirent[]> {
  return readdir(directory, { withFileTypes: true }).catch((error: unknown) => {
    throw fileError(directory, error);
  });
}
