import { stat } from 'node:fs/promises';
import path from 'node:path';
import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { computeDigest } from '../../core/digest.js';
import { OpmateError, throwFileError } from '../../core/errors.js';
import { getFileState, listManifestFiles } from '../../files/file-status.js';
import { type LinkOptions, outsideError } from '../../files/directory-root.js';
import { readRegularFile } from '../../files/read-file.js';
import { DiagnosticList, type WrittenDocument, decodeFile, readObjects } from '../../document/document.js';
import type { Field } from '../../document/field.js';
import type { JsonObject } from '../../document/json.js';
import type { Logger } from '../../core/log.js';
import { getOrAdd, groupBy } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { getTitle } from '../../kube/manifests.js';
import { findCatalogNameFault } from '../http/catalog-names.js';
import { type CatalogManifest, readCatalog } from './catalog-manifest.js';
import { configMapKey } from './manifest-source.js';

/** An unusable manifest or file. */
export interface RefusedManifest {
  /** Name of the catalog, if readable. */
  name: string | undefined;
  /** As the user named it. */
  file: string;
  /** Line of its first fault; 0 for an unreadable file. */
  line: number;
  error: OpmateError;
}

export interface CatalogManifests {
  /** By name. */
  manifests: CatalogManifest[];
  refused: RefusedManifest[];
}

const maxFiles = 5_000;
const maxCatalogs = 2_000;
const maxFileBytes = 16 * 1024 * 1024;

interface ReadOptions extends LinkOptions {
  /** The directory as the user named it. */
  name?: string | undefined;
}

/** Computes a digest of the names and states of the manifests in a directory; `name` is the directory in messages. */
export async function computeManifestsVersion(directory: string, name = directory): Promise<string> {
  const lines: string[] = [];
  for (const file of await listManifestFiles(directory, maxFiles, name)) {
    const stats = await stat(file, { bigint: true }).catch(() => undefined);
    lines.push(`${file} ${stats && getFileState(stats)}`);
  }
  return computeDigest(lines.join('\n'));
}

/**
 * Reads the manifests in a directory, without subdirectories: ClusterCatalog and CatalogSource, also in their former
 * versions, and the ConfigMaps that they name. Relative paths are relative to the directory; other kinds are skipped with
 * a warning. An invalid manifest is refused with all its faults. So is a link out of the directory, unless `followLinks`;
 * faults of its target are reported without their text. Throws OpmateError for an unusable directory.
 */
export async function readCatalogManifests(
  directory: string,
  logger: Logger,
  { followLinks, name = directory }: ReadOptions = {},
): Promise<CatalogManifests> {
  const faults = new DiagnosticList();
  const refused: RefusedManifest[] = [];
  const objects: WrittenDocument[] = [];
  const outside = new Set<string>();
  for (const place of await listManifestFiles(directory, maxFiles, name)) {
    const file = path.join(name, path.basename(place));
    try {
      const error = await outsideError(directory, place);
      if (error !== undefined && followLinks !== true) throw error;
      if (error !== undefined) outside.add(file);
      const bytes = await readRegularFile(place, maxFileBytes, { name: file }).catch(
        throwFileError(file, { file }),
      );
      const text = decodeFile(bytes, file);
      // An editor may just have truncated the file.
      if (text.trim() === '') {
        faults.add(createFault('invalid-value', 'empty', { file, line: 1, hint: 'remove the file' }));
      }
      const read = readObjects(text, file);
      for (const fault of read.diagnostics.all) (findFaulty(fault, read.objects) ?? faults).add(fault);
      objects.push(...read.objects);
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      refused.push({ name: undefined, file, line: error.line ?? 0, error });
    }
  }
  const context = { directory, configMaps: readConfigMaps(objects.filter(isConfigMap)), logger };
  const byName = new Map<string, CatalogManifest>();
  for (const object of objects) {
    const catalog = isConfigMap(object) ? undefined : readCatalog(object, context);
    const { errors } = object.diagnostics;
    const other = catalog && byName.get(catalog.name);
    if (catalog !== undefined && other !== undefined) {
      // Refused without the name, which belongs to the other.
      const hint = 'use a name that is unique across kinds and namespaces';
      faults.add(diagnoseDuplicate(catalog, other, hint));
    } else if (errors.length > 0) {
      refused.push(refuse(isConfigMap(object) ? undefined : findName(object.root), errors));
    } else if (catalog !== undefined) byName.set(catalog.name, catalog);
  }
  if (byName.size > maxCatalogs) {
    throw new OpmateError('LIMIT', `${name}: more than ${maxCatalogs} catalogs`);
  }
  const byFile = groupBy(faults.all, ({ file }) => file);
  for (const fileFaults of byFile.values()) refused.push(refuse(undefined, fileFaults));
  const shown = refused.map((manifest) => {
    if (outside.has(manifest.file)) return withoutText(manifest);
    // A valid manifest of the same name takes precedence.
    return byName.has(manifest.name ?? '') ? { ...manifest, name: undefined } : manifest;
  });
  return {
    manifests: [...byName.values()].sort((a, b) => compareBytes(a.name, b.name)),
    refused: shown.sort((a, b) => compareBytes(a.file, b.file) || a.line - b.line),
  };
}

/** Returns the diagnostics of the object with a duplicate key, which is refused with it. */
function findFaulty(
  { code, line = 0 }: Diagnostic,
  objects: readonly WrittenDocument[],
): DiagnosticList | undefined {
  if (code !== 'duplicate-key') return undefined;
  return objects.findLast(({ findPlace }) => findPlace([]).line <= line)?.diagnostics;
}

interface NamedPlace {
  kind: string;
  name: string;
  file: string;
  line: number;
}

function diagnoseDuplicate(
  { kind, name, ...place }: NamedPlace,
  first: NamedPlace,
  hint: string,
): Diagnostic {
  const { file, line } = place;
  const problem = `duplicate, first defined in ${first.file}:${first.line}`;
  return createFault('duplicate', problem, { subject: getTitle({ kind, name }), file, line, hint });
}

/** Refuses a manifest or a file with all its faults. */
function refuse(name: string | undefined, diagnostics: readonly Diagnostic[]): RefusedManifest {
  const { file = '', line = 0 } = diagnostics[0] as Diagnostic;
  return { name, file, line, error: new DiagnosticsError(diagnostics, { code: 'INVALID' }) };
}

/** Removes the quotes from a file that may not have been meant to be a manifest. */
function withoutText({ file, line }: RefusedManifest): RefusedManifest {
  const error = new OpmateError('INVALID', `${file}: not a manifest of a catalog`, { file, line });
  return { name: undefined, file, line, error };
}

/** Returns the name of a manifest with errors, if the name is valid. */
function findName(root: Field): string | undefined {
  const { value } = root.field('metadata').field('name');
  return typeof value === 'string' && findCatalogNameFault(value) === undefined ? value : undefined;
}

function isConfigMap({ root }: WrittenDocument): boolean {
  return root.field('kind').value === 'ConfigMap';
}

function readConfigMaps(objects: readonly WrittenDocument[]): Map<string, JsonObject> {
  const configMaps = new Map<string, JsonObject>();
  const places = new Map<string, NamedPlace>();
  for (const { root, name: file, diagnostics } of objects) {
    const metadata = root.field('metadata').object(['name', 'namespace'], { unknown: 'ignore' });
    const name = metadata?.name.text();
    if (metadata === undefined || name === undefined) continue;
    const key = configMapKey(metadata.namespace.optionalText(), name);
    const place = { kind: 'ConfigMap', name: key, file, line: metadata.name.place.line };
    const first = getOrAdd(places, key, () => place);
    if (first !== place) diagnostics.add(diagnoseDuplicate(place, first, 'keep one of them'));
    configMaps.set(key, root.value as JsonObject);
  }
  return configMaps;
}
