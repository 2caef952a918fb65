import { count } from '../../core/printable.js';
import path from 'node:path';
import {
  type CrdDiagnostic,
  compareCrds,
  storedVersionWarnings,
} from '../../bundle/plain/crd-upgrade/crd-upgrade.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { statIfPresent } from '../../files/file-status.js';
import { readInputFile } from '../../files/read-file.js';
import { type Manifest, readManifests, getTitle } from '../../kube/manifests.js';
import { contentFileKind } from '../../source/content/file-kind.js';
import type { Pin } from '../../source/content/content-types.js';
import type { Session } from '../../source/session.js';
import {
  type BundleSourceOptions,
  type SourceOpener,
  fileInSource,
  inSource,
  useSources,
} from './bundle-sources.js';

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
    before: await readDefinitions(older, sources, session),
    after: await readDefinitions(newer, sources, session),
    pins: sources.pins,
  }));
  const findings: Diagnostic[] = [...before.findings, ...after.findings];
  if (findings.length > 0) return { findings, warnings: [], missing: [], isReadable: false, pins };
  // The first of several of the same name.
  const nextByName = new Map([...after.definitions].reverse().map((crd) => [crd.name, crd]));
  const isDisjoint = before.definitions.every(({ name }) => !nextByName.has(name));
  if (isDisjoint && before.definitions.length > 0 && nextByName.size > 0) {
    throw new OpmateError('INVALID', `${newer}: has none of the definitions of ${older}`, {
      hint: 'specify an older and a newer version of the same definitions',
    });
  }
  const warnings: Diagnostic[] = [];
  const missing: string[] = [];
  for (const crd of before.definitions) {
    const next = nextByName.get(crd.name);
    if (next === undefined) {
      missing.push(getTitle(crd));
      continue;
    }
    const faults = compareCrds(crd, next);
    findings.push(...faults);
    if (faults.every(({ code }) => code !== 'form')) warnings.push(...storedVersionWarnings(crd, next));
  }
  return { findings, warnings, missing, isReadable: true, pins };
}

/** Reads the definitions in a file or bundle. Throws OpmateError for a file without any. */
async function readDefinitions(
  reference: string,
  sources: SourceOpener,
  { signal }: CancelOptions,
): Promise<{ definitions: Manifest[]; findings: Diagnostic[] }> {
  const isFile =
    (await statIfPresent(reference))?.isFile() === true && (await contentFileKind(reference)) !== 'archive';
  if (!isFile) {
    const { files, isInPlace } = await sources.readBundle(reference);
    const { manifests, findings } = readManifests(files.manifests, { prefix: 'manifests/' });
    const definitions = manifests
      .filter(isDefinition)
      .map((manifest) => ({ ...manifest, file: fileInSource(reference, manifest.file, isInPlace) }));
    return { definitions, findings: findings.map(inSource(reference, isInPlace)) };
  }
  const files = [{ name: path.basename(reference), content: await readInputFile(reference, { signal }) }];
  const prefix = path.join(path.dirname(reference), '/');
  const { manifests, findings } = readManifests(files, {
    prefix: prefix === './' ? '' : prefix,
    isWritten: true,
  });
  const definitions = manifests.filter(isDefinition);
  if (definitions.length === 0 && findings.length === 0) {
    const problem = `${reference}: holds no CustomResourceDefinition among ${count(manifests.length, 'object')}`;
    throw new OpmateError('INVALID', problem, { hint: 'specify a file of definitions, or a whole bundle' });
  }
  return { definitions, findings };
}

function isDefinition({ kind }: Manifest): boolean {
  return kind === 'CustomResourceDefinition';
}
