import path from 'node:path';
import {
  type CrdDiagnostic,
  checkCrdUpgrade as checkDefinition,
  storedVersionWarnings,
} from '../../bundle/plain/crd-upgrade/crd-upgrade.js';
import type { BundleFile } from '../../bundle/read.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import { statIfPresent } from '../../files/file-status.js';
import { readInputFile } from '../../files/read-file.js';
import { type Manifest, readManifests, getTitle } from '../../kube/manifests.js';
import { contentFileKind } from '../../source/content/file-kind.js';
import type { Pin } from '../../source/content/content-types.js';
import type { Session } from '../../source/session.js';
import { type BundleSourceOptions, type SourceOpener, useSources } from './bundle-sources.js';
import { fileInSource, inSource } from './in-source.js';

/** Result of checking an upgrade of CustomResourceDefinitions. */
export interface CrdUpgrade {
  /** Changes that would break stored objects or clients, or faults of the files. */
  findings: (CrdDiagnostic | Diagnostic)[];
  /** Warnings about stored versions. */
  warnings: Diagnostic[];
  /** Definitions that the newer file or bundle lacks, as titles; they stay on the cluster. */
  missing: string[];
  /** False if a file could not be read; `findings` are then faults of the files. */
  isReadable: boolean;
  /** Sources of both, pinned. */
  pins: readonly Pin[];
}

/**
 * Checks that the CustomResourceDefinitions of a file or bundle can safely replace those of an older one. Throws
 * OpmateError for files without definitions in common.
 */
export async function checkCrdUpgrade(
  older: string,
  newer: string,
  session: Session,
  options: BundleSourceOptions = {},
): Promise<CrdUpgrade> {
  const { before, after, pins } = await useSources(session, options, async (sources) => ({
    before: await readDefinitions(older, sources),
    after: await readDefinitions(newer, sources),
    pins: sources.pins,
  }));
  const findings: Diagnostic[] = [...before.findings, ...after.findings];
  if (findings.length > 0) return { findings, warnings: [], missing: [], isReadable: false, pins };
  checkOverlap(older, before.definitions, newer, after.definitions);
  const warnings: Diagnostic[] = [];
  const missing: string[] = [];
  for (const crd of before.definitions) {
    const next = after.definitions.find(({ name }) => name === crd.name);
    if (next === undefined) {
      missing.push(getTitle(crd));
      continue;
    }
    const faults = checkDefinition(crd, next);
    findings.push(...faults);
    if (faults.every(({ code }) => code !== 'form')) warnings.push(...storedVersionWarnings(crd, next));
  }
  return { findings, warnings, missing, isReadable: true, pins };
}

/** Refuses files without a definition in common: a mistake of the caller. */
function checkOverlap(
  oldReference: string,
  before: readonly Manifest[],
  newReference: string,
  after: readonly Manifest[],
): void {
  const names = new Set(after.map(({ name }) => name));
  if (before.length === 0 || after.length === 0 || before.some(({ name }) => names.has(name))) return;
  throw new OpmateError('INVALID', `${newReference}: has none of the definitions of ${oldReference}`, {
    hint: 'specify an older and a newer version of the same definitions',
  });
}

/** Reads the definitions in a file or bundle. Throws OpmateError for a file without any. */
async function readDefinitions(
  reference: string,
  sources: SourceOpener,
): Promise<{ definitions: Manifest[]; findings: Diagnostic[] }> {
  const isFile =
    (await statIfPresent(reference))?.isFile() === true && (await contentFileKind(reference)) !== 'archive';
  const { files, isInPlace } = isFile
    ? { files: [await readDefinitionFile(reference)], isInPlace: false }
    : await readManifestsOf(reference, sources);
  const prefix = isFile ? path.join(path.dirname(reference), '/') : 'manifests/';
  const { manifests, findings } = readManifests(files, { prefix: prefix === './' ? '' : prefix });
  const named = inSource(reference, isInPlace);
  const definitions = manifests
    .filter(({ kind }) => kind === 'CustomResourceDefinition')
    .map((manifest) =>
      isFile ? manifest : { ...manifest, file: fileInSource(reference, manifest.file, isInPlace) },
    );
  if (definitions.length === 0 && findings.length === 0 && isFile) {
    throw new OpmateError(
      'INVALID',
      `${reference}: holds no CustomResourceDefinition among ${manifests.length === 1 ? '1 object' : `${manifests.length} objects`}`,
      {
        hint: 'specify a file of definitions, or a whole bundle',
      },
    );
  }
  return { definitions, findings: isFile ? findings : findings.map(named) };
}

async function readDefinitionFile(file: string): Promise<BundleFile> {
  return { name: path.basename(file), content: await readInputFile(file) };
}

async function readManifestsOf(
  reference: string,
  sources: SourceOpener,
): Promise<{ files: BundleFile[]; isInPlace: boolean }> {
  const { files, isInPlace } = await sources.readBundle(reference);
  return { files: files.manifests, isInPlace };
}
