import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Diagnostic } from '../../core/diagnostic.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { computeDigest } from '../../core/digest.js';
import { OpmateError, fileError } from '../../core/errors.js';
import { getFileState } from '../../files/file-status.js';
import { type LinkOptions, outsideError } from '../../files/directory-root.js';
import { readRegularFile } from '../../files/read-file.js';
import { DiagnosticList, type WrittenDocument, readObjects } from '../../document/document.js';
import type { Field } from '../../document/field.js';
import { quoteGo } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import type { Logger } from '../../core/log.js';
import { groupBy } from '../../core/groups.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { catalogNameFault } from '../http/catalog-names.js';
import { type CatalogManifest, readCatalog } from './catalog-manifest.js';
import { configMapKey } from './manifest-source.js';

/** A manifest, or what is in the place of one, that cannot be used. */
export interface RefusedManifest {
  /** Of the catalog, where that much can be read. */
  name: string | undefined;
  /** As the user named it. */
  file: string;
  /** Of its first fault; 0 where the file cannot be read. */
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

/** What the directory holds at this moment, to be compared; reading its manifests again may tell the same. */
export async function manifestsVersion(directory: string): Promise<string> {
  const lines: string[] = [];
  for (const name of await manifestNames(directory)) {
    const stats = await stat(path.join(directory, name), { bigint: true }).catch(() => undefined);
    lines.push(`${name} ${stats && getFileState(stats)}`);
  }
  return computeDigest(lines.join('\n'));
}

async function manifestNames(directory: string): Promise<string[]> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    throw fileError(directory, error);
  }
  const manifests = names.filter((name) => /\.(?:ya?ml|json)$/i.test(name) && !name.startsWith('.'));
  if (manifests.length <= maxFiles) return sortedByBytes(manifests);
  throw new OpmateError('LIMIT', `${directory}: more than ${maxFiles} manifests`);
}

/**
 * Reads the manifests in a directory, not those further down: ClusterCatalog and CatalogSource, also what they were
 * called before, and the ConfigMaps that they name. Other kinds are passed over, and told. Relative paths count from
 * the directory. One that is wrong does not keep the others from being used: it is refused, with everything that is
 * wrong with it, each with file and line. So is a link that leads out of the directory, unless `followLinks`; then what
 * is wrong behind it is told without its text. Throws OpmateError where the directory itself cannot be used.
 */
export async function readCatalogManifests(
  directory: string,
  logger: Logger,
  { followLinks }: LinkOptions = {},
): Promise<CatalogManifests> {
  const faults = new DiagnosticList();
  const refused: RefusedManifest[] = [];
  const objects: WrittenDocument[] = [];
  const outside = new Set<string>();
  for (const name of await manifestNames(directory)) {
    const file = path.join(directory, name);
    try {
      const error = await outsideError(directory, file);
      if (error !== undefined && followLinks !== true) throw error;
      if (error !== undefined) outside.add(file);
      const text = await readManifest(file);
      // An editor that has just begun to write would otherwise take catalogs away.
      if (text.trim() === '')
        faults.add({ ...fault, file, line: 1, problem: 'empty', hint: 'remove the file' });
      const read = readObjects(text, file);
      for (const diagnostic of read.diagnostics.all) faults.add(diagnostic);
      objects.push(...read.objects);
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      refused.push({ name: undefined, file, line: 0, error });
    }
  }
  const { configMaps, others } = sortOut(objects);
  const byName = new Map<string, CatalogManifest>();
  for (const object of objects) {
    const catalog = others.has(object) ? readCatalog(object, { directory, configMaps, logger }) : undefined;
    const { errors } = object.diagnostics;
    const other = catalog && byName.get(catalog.name);
    if (other !== undefined) {
      const { name, file, line } = catalog as CatalogManifest;
      const problem = `duplicate catalog ${quoteGo(name)}, first defined in ${other.file}:${other.line}`;
      // It has no name of its own: that is the other's.
      const hint = 'use a name that is unique across kinds and namespaces';
      faults.add({ ...fault, subject: 'metadata.name', problem, file, line, hint });
    } else if (errors.length > 0) {
      refused.push(refusedFor(others.has(object) ? nameIn(object.root) : undefined, errors));
    } else if (catalog !== undefined) byName.set(catalog.name, catalog);
  }
  if (byName.size > maxCatalogs) {
    throw new OpmateError('LIMIT', `${directory}: more than ${maxCatalogs} catalogs`);
  }
  const byFile = groupBy(faults.all, ({ file }) => file);
  for (const own of byFile.values()) refused.push(refusedFor(undefined, own));
  return {
    manifests: [...byName.values()].sort((a, b) => compareBytes(a.name, b.name)),
    refused: refused
      .map((manifest) => (outside.has(manifest.file) ? withoutText(manifest) : manifest))
      // A valid manifest of the same name takes precedence.
      .map((manifest) =>
        manifest.name !== undefined && byName.has(manifest.name)
          ? { ...manifest, name: undefined }
          : manifest,
      )
      .sort((a, b) => compareBytes(a.file, b.file) || a.line - b.line),
  };
}

const fault = { severity: 'error', code: 'invalid-value' } as const;

/** Refuses one manifest, or one file, with everything that is wrong with it. */
function refusedFor(name: string | undefined, diagnostics: readonly Diagnostic[]): RefusedManifest {
  const { file = '', line = 0 } = diagnostics[0] as Diagnostic;
  return { name, file, line, error: new DiagnosticsError(diagnostics, { code: 'INVALID' }) };
}

/** The same without what faults quote of a file that others may not have meant to be a manifest. */
function withoutText({ file, line }: RefusedManifest): RefusedManifest {
  const error = new OpmateError('INVALID', `${file}: not a manifest of a catalog`, { file, line });
  return { name: undefined, file, line, error };
}

/** Returns the name of a manifest with errors, if the name is valid. */
function nameIn(root: Field): string | undefined {
  const { value } = root.field('metadata').field('name');
  return typeof value === 'string' && catalogNameFault(value) === undefined ? value : undefined;
}

async function readManifest(file: string): Promise<string> {
  try {
    return String(await readRegularFile(file, maxFileBytes));
  } catch (error) {
    throw fileError(file, error, { file });
  }
}

/** Finds the ConfigMaps; reports what is no object. */
function sortOut(objects: readonly WrittenDocument[]): {
  configMaps: Map<string, JsonObject>;
  others: Set<WrittenDocument>;
} {
  const configMaps = new Map<string, JsonObject>();
  const others = new Set<WrittenDocument>();
  for (const object of objects) {
    const { root } = object;
    const value = root.jsonObject();
    if (value === undefined) continue;
    if (root.field('kind').value !== 'ConfigMap') {
      others.add(object);
      continue;
    }
    const metadata = root.field('metadata').object(['name', 'namespace'], { unknown: 'ignore' });
    const name = metadata?.name.text();
    if (metadata === undefined || name === undefined) continue;
    const key = configMapKey(metadata.namespace.optionalText(), name);
    if (configMaps.has(key)) metadata.name.fail(`duplicate ConfigMap ${quoteGo(key)}`, { code: 'duplicate' });
    configMaps.set(key, value);
  }
  return { configMaps, others };
}
