import { decodeUtf8 } from '../../document/go-json.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { parseYamlWithPlaces } from '../../document/yaml.js';
import type { PlacedYaml } from '../../document/yaml-full.js';
import type { BundleFiles } from '../read.js';
import { bundleObjectFaults } from './bundle-objects.js';
import { communityFaults } from './community.js';
import { type BundleContent, checkContent, detectMediaType, readObjects } from './content.js';
import type { ValidationDiagnostic } from './diagnostic.js';
import { checkFormat, isChart } from './format.js';
import { goodPracticeFaults } from './good-practices.js';
import { installFaults } from './install-rules.js';
import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import type { CheckDiagnostic } from './diagnostic.js';
import { capabilityFaults, categoryFaults, operatorHubFaults, operatorHubV2Faults } from './operatorhub.js';
import { removedApiFaults } from './removed-apis.js';

/** Checks that run when they are asked for, by name: those of `opm`, then those of `operator-sdk`. */
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

/** A validator that runs when it is asked for. */
export type OptionalValidator = keyof typeof optionalChecks;

/** Their names. */
export const optionalValidators = Object.keys(optionalChecks) as readonly OptionalValidator[];

/** What is asked of `validateBundle`. */
export interface ValidateOptions {
  optional?: readonly OptionalValidator[] | undefined;
  /** The version of Kubernetes that a bundle is meant for, for deprecated APIs. */
  k8sVersion?: string | undefined;
  /** Categories in place of those of operatorhub.io. */
  categories?: ReadonlySet<string> | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Checks a bundle as `opm alpha bundle validate` does, and with the optional validators that are named. All that is
 * wrong is told together, by file and line; bundles of plain manifests or charts are checked as far as they have to
 * do with bundles. Throws LimitError, CancelledError.
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

/** Warnings of these are what `opm` finds and keeps to itself. */
const quiet: ReadonlySet<string> = new Set(['csv', 'bundle', 'operatorhub']);

function getFinding(diagnostic: Diagnostic, places: Places): ValidationDiagnostic {
  const { severity, code, file, path = [], line } = diagnostic;
  return {
    ...diagnostic,
    line: line ?? (file === undefined ? undefined : places.lineOf(file, path)),
    ...(severity === 'warning' && quiet.has(code) && { isUntold: true }),
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

/** Where keys stand in the files; a file is parsed for it when there is something to tell. */
class Places {
  readonly #files: BundleFiles;
  #known = new Map<string, PlacedYaml | undefined>();

  constructor(files: BundleFiles) {
    this.#files = files;
  }

  /** The line of what a path leads to, or of the innermost part on the way to it. */
  lineOf(file: string, path: readonly (string | number)[]): number | undefined {
    if (!this.#known.has(file)) {
      // One file at a time: large ones have many places.
      this.#known = new Map([[file, this.#findPlaces(file)]]);
    }
    const placed = this.#known.get(file);
    if (placed === undefined) return undefined;
    for (let length = path.length; length > 0; length--) {
      const place = placed.findPlace(path.slice(0, length));
      if (place !== undefined) return place.line;
    }
    return 1;
  }

  #findPlaces(file: string): PlacedYaml | undefined {
    const slash = file.indexOf('/');
    const part = file.slice(0, slash) === 'metadata' ? this.#files.metadata : this.#files.manifests;
    const content = part.find(({ name }) => name === file.slice(slash + 1))?.content;
    if (content === undefined) return undefined;
    try {
      return parseYamlWithPlaces(decodeUtf8(content));
    } catch (error) {
      if (error instanceof OpmateError) return undefined;
      throw error;
    }
  }
}
