import { decodeUtf8 } from '../../document/go-json.js';
import { throwIfCancelled } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { findPlaces, nearestPlace } from '../../document/places.js';
import type { PlacedYaml } from '../../document/yaml-full.js';
import type { BundleFiles } from '../read.js';
import { bundleObjectFaults } from './bundle-objects.js';
import { communityFaults } from './community.js';
import { type BundleContent, checkContent, detectMediaType, readObjects } from './content.js';
import type { ValidationDiagnostic } from './diagnostic.js';
import { checkFormat, isChart } from './format.js';
import { goodPracticeFaults } from './good-practices.js';
import { installFaults } from './install-rules.js';
import { type Diagnostic, type DocumentPath, createFault } from '../../core/diagnostic.js';
import type { CheckDiagnostic } from './diagnostic.js';
import { capabilityFaults, categoryFaults, operatorHubFaults, operatorHubV2Faults } from './operatorhub.js';
import { removedApiFaults } from './removed-apis.js';

/** Optional checks by name: those of `opm`, then those of `operator-sdk`. */
const optionalChecks = {
  operatorhub: (content, { categories }) => operatorHubFaults(content, categories),
  'bundle-objects': bundleObjectFaults,
  'operatorhub/v2': (content, { k8sVersion }) => operatorHubV2Faults(content, k8sVersion),
  standardcapabilities: capabilityFaults,
  standardcategories: (content, { categories }) => categoryFaults(content, categories),
  install: installFaults,
  community: communityFaults,
  'good-practices': goodPracticeFaults,
  'alpha-deprecated-apis': (content, { k8sVersion }) => removedApiFaults(content, k8sVersion),
} as const satisfies Record<string, (content: BundleContent, options: ValidateOptions) => CheckDiagnostic[]>;

/** Name of an optional validator. */
export type OptionalValidator = keyof typeof optionalChecks;

export const optionalValidators = Object.keys(optionalChecks) as readonly OptionalValidator[];

export interface ValidateOptions {
  optional?: readonly OptionalValidator[] | undefined;
  /** Target version of Kubernetes for the check of removed APIs. */
  k8sVersion?: string | undefined;
  /** Replacement for the categories of operatorhub.io. */
  categories?: ReadonlySet<string> | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Validates a bundle as `opm alpha bundle validate` does, and with the named optional validators. Findings are sorted by
 * file and line. Of plain manifests and charts, checks what concerns bundles. Throws LimitError, CancelledError.
 */
export function validateBundle(files: BundleFiles, options: ValidateOptions = {}): ValidationDiagnostic[] {
  const { objects, faults: unread } = readObjects(files.manifests);
  const isHelm = isChart(files.manifests);
  const mediaType = isHelm ? 'helm' : detectMediaType(objects);
  const { faults: format, format: annotations } = checkFormat(
    files,
    files.manifests.length === 0 ? undefined : mediaType,
  );
  const diagnostics: Diagnostic[] = format.map((fault) => ({ ...fault, code: 'format' }));
  if (!isHelm) {
    const content: BundleContent = {
      name: '',
      csv: undefined,
      csvObject: undefined,
      objects,
      crds: [],
      isIncomplete: false,
      format: annotations,
      files: [...files.manifests, ...files.metadata].map((file) => file.content),
    };
    for (const fault of unread) diagnostics.push({ ...fault, code: 'manifests' });
    for (const name of files.folders ?? []) {
      const message = `Unable to read file manifests/${name} in supported types: is a directory`;
      diagnostics.push(createFault('manifests', message, { file: `manifests/${name}` }));
    }
    throwIfCancelled(options.signal);
    diagnostics.push(...checkContent(content, mediaType));
    for (const validator of new Set(options.optional)) {
      throwIfCancelled(options.signal);
      const file = content.csvObject?.file;
      for (const fault of optionalChecks[validator](content, options)) {
        diagnostics.push({ ...(fault.path?.length ? { file } : {}), ...fault, code: validator });
      }
    }
  }
  const places = new Places(files);
  const findings = diagnostics.map((fault) => getFinding(fault, places));
  const seen = new Set<string>();
  return findings.sort(compareFindings).filter(({ severity, problem, file = '', line = 0 }) => {
    const key = [severity, file, line, problem].join('\0');
    return !seen.has(key) && seen.add(key);
  });
}

/** Validators whose warnings `opm` does not report. */
const quiet: ReadonlySet<string> = new Set(['csv', 'bundle', 'operatorhub']);

function getFinding(diagnostic: Diagnostic, places: Places): ValidationDiagnostic {
  const { severity, code, file, path = [], line } = diagnostic;
  return {
    ...diagnostic,
    line: line ?? (file === undefined ? undefined : places.lineOf(file, path)),
    ...(severity === 'warning' && quiet.has(code) && { isUnreported: true }),
  };
}

function compareFindings(a: ValidationDiagnostic, b: ValidationDiagnostic): number {
  return (
    compareBytes(a.file ?? '', b.file ?? '') ||
    (a.line ?? 0) - (b.line ?? 0) ||
    compareBytes(a.severity, b.severity) ||
    compareBytes(a.problem, b.problem) ||
    compareBytes(a.code, b.code)
  );
}

/** Finds lines of values; parses a file only for findings about it. */
class Places {
  readonly #files: BundleFiles;
  /** Only the latest file, as large ones have many places. */
  #latest: { file: string; placed: PlacedYaml | undefined } | undefined;

  constructor(files: BundleFiles) {
    this.#files = files;
  }

  /** Returns the line of a path, or of its nearest existing parent. */
  lineOf(file: string, path: DocumentPath): number | undefined {
    if (this.#latest?.file !== file) {
      const slash = file.indexOf('/');
      const part = file.slice(0, slash) === 'metadata' ? this.#files.metadata : this.#files.manifests;
      const content = part.find(({ name }) => name === file.slice(slash + 1))?.content;
      this.#latest = { file, placed: content && findPlaces(decodeUtf8(content)) };
    }
    const { placed } = this.#latest;
    return placed && (nearestPlace(placed, path)?.line ?? 1);
  }
}
