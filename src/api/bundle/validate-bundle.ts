import path from 'node:path';
import {
  type ValidateBundleOptions,
  type ValidationDiagnostic,
  findBundleFaults,
} from '../../bundle/validate/validate-bundle.js';
import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { statIfPresent } from '../../files/file-status.js';
import type { Session } from '../../source/session.js';
import { type BundleSourceOptions, useSources } from './bundle-sources.js';

/** Findings about a bundle. */
export interface BundleValidation {
  findings: ValidationDiagnostic[];
  /** True for a directory that was read in place: findings name its paths. */
  isInPlace: boolean;
}

/**
 * Checks that a bundle can be published and installed. Every problem is returned as a finding; throws OpmateError for a
 * source that cannot be read.
 */
export async function validateBundle(
  reference: string,
  session: Session,
  options: BundleSourceOptions & Omit<ValidateBundleOptions, 'signal'> = {},
): Promise<BundleValidation> {
  const isDirectory = (await statIfPresent(reference))?.isDirectory() === true;
  const missing = isDirectory ? await findMissingParts(reference, 'format') : [];
  if (missing.length > 0) return { findings: missing, isInPlace: true };
  const { files, isInPlace } = await useSources(session, options, (sources) => sources.readBundle(reference));
  const { optional, k8sVersion, categories } = options;
  const { signal } = session;
  return { findings: findBundleFaults(files, { optional, k8sVersion, categories, signal }), isInPlace };
}

/** Returns a finding for each directory that a bundle lacks. */
export async function findMissingParts(
  directory: string,
  code: string,
  hint?: string,
): Promise<Diagnostic[]> {
  const findings: Diagnostic[] = [];
  for (const part of ['manifests', 'metadata']) {
    if ((await statIfPresent(path.join(directory, part)))?.isDirectory() === true) continue;
    findings.push(createFault(code, `Unable to locate ${part} directory`, { hint }));
  }
  return findings;
}
