import path from 'node:path';
import {
  type ValidateBundleOptions,
  type ValidationDiagnostic,
  findBundleFaults,
} from '../../bundle/validate/validate-bundle.js';
import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import { GoJsonError, parseGoJson } from '../../document/go-json.js';
import { isJsonObject } from '../../document/json.js';
import { statIfPresent } from '../../files/file-status.js';
import { readInputFile } from '../../files/read-file.js';
import type { Session } from '../../source/session.js';
import { type BundleSourceOptions, useSources } from './bundle-sources.js';

/** Findings about a bundle. */
export interface BundleValidation {
  findings: ValidationDiagnostic[];
  /** True for a directory that was read in place: findings name its paths. */
  isInPlace: boolean;
}

/** Options of `validateBundle`. */
export interface BundleValidationOptions
  extends BundleSourceOptions, Pick<ValidateBundleOptions, 'optional' | 'k8sVersion'> {
  /** File `{"categories": […]}` with categories that replace those of operatorhub.io. */
  categoriesFile?: string | undefined;
}

/**
 * Checks that a bundle can be published and installed. Every problem is returned as a finding; throws OpmateError for a
 * source that cannot be read.
 */
export async function validateBundle(
  reference: string,
  session: Session,
  options: BundleValidationOptions = {},
): Promise<BundleValidation> {
  const isDirectory = (await statIfPresent(reference))?.isDirectory() === true;
  const missing = isDirectory ? await findMissingParts(reference, 'format') : [];
  if (missing.length > 0) return { findings: missing, isInPlace: true };
  const { files, isInPlace } = await useSources(session, options, (sources) => sources.readBundle(reference));
  const { optional, k8sVersion, categoriesFile } = options;
  const categories = categoriesFile === undefined ? undefined : await readCategories(categoriesFile, session);
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

/** Reads categories that replace those of operatorhub.io from a file `{"categories": […]}`. Throws OpmateError. */
async function readCategories(file: string, { signal }: Session): Promise<ReadonlySet<string>> {
  const content = await readInputFile(file, { signal });
  const fail = (problem: string): OpmateError =>
    new OpmateError('INVALID', `${file}: ${problem}`, {
      hint: 'set options.categoriesFile to a file such as {"categories": ["Database"]}',
      file,
    });
  try {
    const value = parseGoJson(content.toString('utf8'));
    const list = isJsonObject(value) ? (value['categories'] ?? []) : undefined;
    if (!Array.isArray(list) || !list.every((item) => typeof item === 'string')) {
      throw fail('expected a list of categories');
    }
    return new Set(list as string[]);
  } catch (error) {
    if (error instanceof GoJsonError) throw fail(error.message);
    throw error;
  }
}
