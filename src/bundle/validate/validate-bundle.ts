import { decodeUtf8 } from '../../document/go-json.js';
import { throwIfCancelled } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { diagnoseDuplicates } from '../../document/document.js';
import { findPlaces, nearestPlace } from '../../document/places.js';
import type { PlacedYaml } from '../../document/yaml/full.js';
import type { BundleFiles } from '../read.js';
import { checkBundleObjects } from './bundle-objects.js';
import { checkCommunity } from './community.js';
import { type BundleContent, checkContent, csvKind, readBundleObjects } from './content.js';
import { checkFormat, isChart } from './format.js';
import { checkGoodPractices } from './good-practices.js';
import { checkInstallation } from './install-rules.js';
import type { Diagnostic, DocumentPath, TextPosition } from '../../core/diagnostic.js';
import { checkCapabilities, checkCategories, checkOperatorHub, checkOperatorHubV2 } from './operatorhub.js';
import { checkOpenShiftVersions } from './openshift-versions.js';
import { checkRemovedApis } from './removed-apis.js';
import type { Reporter } from './report.js';

/** Code of findings about the versions of OpenShift. */
const openShiftCode = 'openshift-versions';

/** A finding about a bundle; `code` is the name of the validator, or `duplicate-key`. */
export interface ValidationDiagnostic extends Diagnostic {
  /** `opm` does not report it. */
  isUnreported?: boolean;
}

/** Optional checks by name: those of `opm`, then those of `operator-sdk`. */
const optionalChecks = {
  operatorhub: (content, report, { categories }) => checkOperatorHub(content, report, categories),
  'bundle-objects': checkBundleObjects,
  'operatorhub/v2': (content, report, { k8sVersion }) => checkOperatorHubV2(content, report, k8sVersion),
  standardcapabilities: checkCapabilities,
  standardcategories: (content, report, { categories }) => checkCategories(content, report, categories),
  install: checkInstallation,
  community: checkCommunity,
  'good-practices': checkGoodPractices,
  'alpha-deprecated-apis': (content, report, { k8sVersion }) => checkRemovedApis(content, report, k8sVersion),
} as const satisfies Record<
  string,
  (content: BundleContent, report: Reporter, options: ValidateBundleOptions) => void
>;

/** Name of an optional validator. */
type OptionalValidator = keyof typeof optionalChecks;

export const optionalValidators = Object.keys(optionalChecks) as readonly OptionalValidator[];

export interface ValidateBundleOptions {
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
export function findBundleFaults(
  files: BundleFiles,
  options: ValidateBundleOptions = {},
): ValidationDiagnostic[] {
  const diagnostics: Diagnostic[] = [];
  const reportAs =
    (code: string, file?: string): Reporter =>
    (path, problem, details) => {
      const place = path.length > 0 ? { file, path } : {};
      diagnostics.push({ severity: 'error', code, problem, ...place, ...details });
    };
  const isHelm = isChart(files.manifests);
  const { objects, isIncomplete } = readBundleObjects(
    files.manifests,
    isHelm ? () => undefined : reportAs('manifests'),
  );
  const isRegistryV1 = objects.some(({ kind }) => kind === csvKind);
  const mediaType = isHelm ? 'helm' : isRegistryV1 ? 'registry+v1' : 'plain';
  const present = files.manifests.length === 0 ? undefined : mediaType;
  // A file that does not parse may be the ClusterServiceVersion.
  const isUnknown = !isHelm && !isRegistryV1 && isIncomplete;
  const format = checkFormat(files, isUnknown ? 'unknown' : present, reportAs('format'));
  if (!isHelm) {
    diagnostics.push(...findDuplicates(files));
    const content: BundleContent = {
      name: '',
      csv: undefined,
      csvObject: undefined,
      objects,
      crds: [],
      isIncomplete,
      format,
      files: [...files.manifests, ...files.metadata].map((file) => file.content),
    };
    for (const name of files.folders ?? []) {
      const file = `manifests/${name}`;
      reportAs('manifests')([], `Unable to read file ${file} in supported types: is a directory`, { file });
    }
    throwIfCancelled(options.signal);
    checkContent(content, mediaType, reportAs);
    checkOpenShiftVersions(files.metadata, content.csv, reportAs(openShiftCode));
    for (const validator of new Set(options.optional)) {
      throwIfCancelled(options.signal);
      optionalChecks[validator](content, reportAs(validator, content.csvObject?.file), options);
    }
  }
  return locateFindings(diagnostics, files);
}

/** Returns each finding once, with its place, sorted by file and line. */
function locateFindings(diagnostics: readonly Diagnostic[], files: BundleFiles): ValidationDiagnostic[] {
  const findPlace = placesIn(files);
  const seen = new Set<string>();
  return diagnostics
    .map((diagnostic): ValidationDiagnostic => {
      const { severity, code, file, line, path = [] } = diagnostic;
      return {
        ...diagnostic,
        ...(line === undefined && file !== undefined && findPlace(file, path)),
        ...(severity === 'warning' && quiet.has(code) && { isUnreported: true }),
      };
    })
    .sort(compareFindings)
    .filter(({ severity, subject = '', problem, file = '', line = 0 }) => {
      const key = [severity, file, line, subject, problem].join('\0');
      return !seen.has(key) && seen.add(key);
    });
}

/** Returns an error for each duplicate key of the first documents, whose earlier values every reader loses. */
function findDuplicates(files: BundleFiles): ValidationDiagnostic[] {
  const within = (directory: 'manifests' | 'metadata'): ValidationDiagnostic[] =>
    files[directory].flatMap(({ name, content }) =>
      diagnoseDuplicates(findPlaces(decodeUtf8(content)), `${directory}/${name}`).map((fault) => ({
        ...fault,
        severity: 'error',
        isUnreported: true,
      })),
    );
  return [...within('manifests'), ...within('metadata')];
}

/** Validators whose warnings `opm` does not report. */
const quiet: ReadonlySet<string> = new Set(['csv', 'bundle', 'operatorhub', openShiftCode]);

function compareFindings(a: ValidationDiagnostic, b: ValidationDiagnostic): number {
  return (
    compareBytes(a.file ?? '', b.file ?? '') ||
    (a.line ?? 0) - (b.line ?? 0) ||
    compareBytes(a.severity, b.severity) ||
    compareBytes(a.problem, b.problem) ||
    compareBytes(a.code, b.code)
  );
}

/**
 * Returns a function that finds the line of a path, or of its nearest existing parent. It parses a file only for
 * findings about it, and keeps the latest, as large ones have many places.
 */
function placesIn(files: BundleFiles): (file: string, path: DocumentPath) => TextPosition | undefined {
  let latest: { file: string; placed: PlacedYaml | undefined } | undefined;
  return (file, path) => {
    if (latest?.file !== file) {
      const slash = file.indexOf('/');
      const part = file.slice(0, slash) === 'metadata' ? files.metadata : files.manifests;
      const content = part.find(({ name }) => name === file.slice(slash + 1))?.content;
      latest = { file, placed: content && findPlaces(decodeUtf8(content)) };
    }
    const { placed } = latest;
    return placed && (nearestPlace(placed, path) ?? { line: 1, column: 1 });
  };
}
