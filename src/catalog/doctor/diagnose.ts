import { takeTurn, type CancelOptions } from '../../core/concurrency.js';
import { notFound } from '../../core/suggest.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { OpenShiftVersion } from '../../core/openshift-version.js';
import { compareBytes } from '../../core/order.js';
import { type Severity, severities } from '../../core/diagnostic.js';
import { type CatalogDiagnostic, diagnoseFaults } from '../../model/catalog-diagnostic.js';
import { type BundleFacts, type CatalogFacts, emptyFacts } from '../../model/facts.js';
import { detach } from '../../model/describe.js';
import { lifecycleSchema } from '../../model/lifecycle.js';
import { validateInTurns } from '../../graph/validate.js';
import { addToFacts, decodeMeta } from '../blob.js';
import type { Catalog, MetasOptions } from '../catalog.js';
import { placeDiagnostics, readLocated } from '../locate.js';
import type { Meta } from '../meta.js';
import { readPackages } from '../../graph/package-model.js';
import { type CheckName, checkNames } from './checks.js';
import { type BundleTraits, examineBundle } from './examine-bundle.js';
import { examineFields } from './examine-fields.js';
import { createImageCheck } from './examine-images.js';
import { createLifecycleCheck } from './examine-lifecycle.js';
import { examinePackage } from './examine-package.js';
import { FindingList } from './finding-list.js';
import { examineIcon } from './icon.js';
import { readBundleVersion } from '../../graph/bundle-version.js';
import { OfferIndex } from '../../graph/offer-index.js';

/** Selection of checks and packages. */
export interface DiagnoseOptions extends Pick<MetasOptions, 'signal' | 'logger'> {
  /** Checks to run; default: all. See `chooseChecks`. */
  checks?: ReadonlySet<CheckName> | undefined;
  /** Restrict findings to these packages. Dependencies are resolved in the whole catalog. */
  packages?: ReadonlySet<string> | undefined;
  /** Minimum severity; default: all. */
  severity?: Severity | undefined;
  /** OpenShift version of the catalog. */
  openshift?: OpenShiftVersion | undefined;
  /** Packages without a lifecycle blob are findings too. */
  requireLifecycles?: boolean | undefined;
}

/**
 * Examines a catalog for errors, and for valid content that causes failures later. Findings are sorted worst first,
 * then by package, independently of the form of the catalog. Reads the catalog once, and blobs again only for the
 * lines of findings. Unreadable blobs are findings too; checks of the whole catalog are then skipped. Throws
 * OpmateError for an unreadable catalog, NOT_FOUND for unknown packages.
 */
export async function examineCatalog(
  catalog: Catalog,
  options: DiagnoseOptions = {},
): Promise<CatalogDiagnostic<CheckName>[]> {
  const list = new FindingList(options.checks ?? new Set(checkNames), options.packages);
  const facts = emptyFacts();
  const records = new Map<BundleFacts, BundleTraits>();
  const described = new Set<string>();
  const compareImages = createImageCheck(list);
  const lifecycles = createLifecycleCheck(list);
  const examineBlob = (meta: Meta): void => {
    const { origin } = meta;
    examineFields(meta, list);
    const decoded = decodeMeta(meta);
    const bundle = addToFacts(facts, decoded, origin);
    if (decoded.kind === 'package') {
      const name = detach(decoded.blob.name);
      if (decoded.blob.description.trim() !== '') described.add(name);
      examineIcon(decoded.blob, { package: name, origin }, list);
    } else if (decoded.kind === 'bundle' && bundle !== undefined) {
      records.set(bundle, examineBundle(decoded.blob, origin, list));
      compareImages(decoded.blob, origin);
    } else if (meta.schema === lifecycleSchema) lifecycles.add(meta);
  };
  const { signal, logger, openshift } = options;
  const faults: OpmateError[] = [];
  const onFault = (fault: OpmateError): void => void faults.push(fault);
  await readLocated(catalog, { signal, logger, onFault }, (meta) => {
    throwIfCancelled(signal);
    list.lookAt(meta);
    examineBlob(meta);
  });
  list.lookAt(undefined);
  // Unreadable content is reported whichever packages are selected: its package is unknown.
  for (const fault of diagnoseFaults(faults)) list.push(fault);
  if (faults.length === 0) {
    requirePackages(facts, options.packages);
    const { problems, warnings } = await validateInTurns(facts, options);
    for (const diagnostic of [...problems, ...warnings]) {
      if (!list.wantsPackage(diagnostic.package ?? '')) continue;
      // Valid, but nothing that can be released.
      const isEmpty = diagnostic.code === 'empty-catalog';
      list.push(isEmpty ? { ...diagnostic, severity: 'error' } : diagnostic);
    }
    const packages = readPackages(facts);
    lifecycles.finish(packages, options);
    for (const [name, model] of packages) {
      throwIfCancelled(signal);
      if (!list.wantsPackage(name)) continue;
      await examinePackage(model, { records, isDescribed: described.has(name), openshift }, list);
      await takeTurn();
    }
    examineDependencies(records, list, options);
  }
  const limit = getRank(options.severity ?? 'notice');
  const findings = list.all.filter(({ severity }) => getRank(severity) <= limit);
  return (await placeDiagnostics(catalog, findings, options)).sort(compareFindings);
}

/** Requires the packages: an unknown name is a typo, not a healthy package. */
function requirePackages({ packages, channels, bundles }: CatalogFacts, wanted: Iterable<string> = []): void {
  const known = new Set(packages.map(({ name }) => name));
  for (const { package: name } of [...channels, ...bundles]) known.add(name);
  const missing = [...wanted].filter((name) => !known.has(name));
  if (missing.length > 0) throw notFound('package', missing, known);
}

const getRank = (severity: Severity): number => severities.indexOf(severity);

function compareFindings(a: CatalogDiagnostic, b: CatalogDiagnostic): number {
  return (
    getRank(a.severity) - getRank(b.severity) ||
    compareBytes(a.package ?? '', b.package ?? '') ||
    compareBytes(a.code, b.code) ||
    compareBytes(a.channel ?? '', b.channel ?? '') ||
    compareBytes(a.file ?? '', b.file ?? '') ||
    (a.line ?? 0) - (b.line ?? 0) ||
    compareBytes(a.bundle ?? '', b.bundle ?? '') ||
    compareBytes(a.problem, b.problem)
  );
}

/** Finds dependencies that no bundle of the catalog provides. */
function examineDependencies(
  records: ReadonlyMap<BundleFacts, BundleTraits>,
  findings: FindingList,
  { signal }: CancelOptions,
): void {
  if (!findings.wants('dependency-unmet')) return;
  const offers = new OfferIndex({ meetsUnclear: true });
  for (const [bundle, { apis }] of records) {
    offers.add({ package: bundle.package, version: readBundleVersion(bundle), apis });
  }
  for (const [bundle, { needs }] of records) {
    throwIfCancelled(signal);
    for (const { need, path } of needs) {
      for (const part of offers.unmetParts(need)) {
        const isKnown = part.kind === 'one' && part.package !== undefined && offers.hasPackage(part.package);
        const subject = { package: bundle.package, bundle: bundle.name, origin: bundle.origin, path };
        const hint = isKnown
          ? 'add a matching version to the catalog, or require an available one'
          : 'ignore this if another catalog on the cluster provides it';
        const message = `depends on ${part.text}, which no bundle of the catalog provides`;
        findings.add('dependency-unmet', subject, message, hint, isKnown ? 'warning' : 'notice');
      }
    }
  }
}
