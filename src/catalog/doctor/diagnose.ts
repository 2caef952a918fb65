import { takeTurn } from '../../core/concurrency.js';
import { notFound } from '../../core/suggest.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { type Severity, severities } from '../../core/diagnostic.js';
import { type CatalogDiagnostic, diagnoseFaults } from '../../model/catalog-diagnostic.js';
import { type BundleFacts, emptyFacts } from '../../model/facts.js';
import { detach } from '../../model/describe.js';
import { lifecycleSchema } from '../../model/lifecycle.js';
import { validateInTurns } from '../../graph/validate.js';
import { addToFacts, decodeMeta } from '../blob.js';
import type { Catalog, MetasOptions } from '../catalog.js';
import { placeDiagnostics, readLocated } from '../locate.js';
import type { Meta } from '../meta.js';
import { readPackages } from '../../graph/package-model.js';
import { type CheckName, checkNames } from './checks.js';
import { type BundleRecord, examineBundle } from './examine-bundle.js';
import { examineDependencies } from './examine-dependencies.js';
import { ImageExamination } from './examine-images.js';
import { LifecycleExamination } from './examine-lifecycle.js';
import { examinePackage } from './examine-package.js';
import { FindingList } from './finding-list.js';
import { examineIcon } from './icon.js';
import type { OpenShiftVersion } from './openshift.js';

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
}

/**
 * Examines a catalog for errors, and for valid content that causes failures later. Findings are sorted worst first,
 * then by package, independently of the form of the catalog. Reads the catalog once, and blobs again only for the
 * lines of findings. Unreadable blobs are findings too; checks of the whole catalog are then skipped. Throws
 * OpmateError for an unreadable catalog, NOT_FOUND for unknown packages.
 */
export async function diagnoseCatalog(
  catalog: Catalog,
  options: DiagnoseOptions = {},
): Promise<CatalogDiagnostic<CheckName>[]> {
  const list = new FindingList(options.checks ?? new Set(checkNames), options.packages);
  await new Diagnosis(catalog, list, options).run();
  const limit = getRank(options.severity ?? 'notice');
  const findings = list.all.filter(({ severity }) => getRank(severity) <= limit);
  return (await placeDiagnostics(catalog, findings, options)).sort(compareFindings);
}

class Diagnosis {
  readonly #catalog: Catalog;
  readonly #list: FindingList;
  readonly #options: DiagnoseOptions;
  readonly #facts = emptyFacts();
  readonly #records = new Map<BundleFacts, BundleRecord>();
  readonly #described = new Set<string>();
  readonly #images: ImageExamination;
  readonly #lifecycles: LifecycleExamination;

  constructor(catalog: Catalog, list: FindingList, options: DiagnoseOptions) {
    this.#catalog = catalog;
    this.#list = list;
    this.#options = options;
    this.#images = new ImageExamination(list);
    this.#lifecycles = new LifecycleExamination(list);
  }

  async run(): Promise<void> {
    const { signal, logger } = this.#options;
    const faults: OpmateError[] = [];
    const onFault = (fault: OpmateError): void => void faults.push(fault);
    await readLocated(this.#catalog, { signal, logger, onFault }, (meta) => {
      throwIfCancelled(signal);
      this.#list.lookAt(meta);
      this.#examineBlob(meta);
    });
    this.#list.lookAt(undefined);
    if (faults.length === 0) this.#requirePackages();
    this.#reportFaults(faults);
    if (faults.length > 0) return;
    await this.#validate();
    const packages = readPackages(this.#facts);
    this.#lifecycles.finish(packages);
    for (const [name, model] of packages) {
      throwIfCancelled(signal);
      if (!this.#list.wantsPackage(name)) continue;
      const { openshift } = this.#options;
      const context = { records: this.#records, isDescribed: this.#described.has(name), openshift };
      await examinePackage(model, context, this.#list);
      await takeTurn();
    }
    examineDependencies(this.#records, this.#list, this.#options);
  }

  #examineBlob(meta: Meta): void {
    const { origin } = meta;
    const decoded = decodeMeta(meta);
    const bundle = addToFacts(this.#facts, decoded, origin);
    if (decoded.kind === 'package') {
      const name = detach(decoded.blob.name);
      if (decoded.blob.description.trim() !== '') this.#described.add(name);
      examineIcon(decoded.blob, { package: name, origin }, this.#list);
    } else if (decoded.kind === 'bundle' && bundle !== undefined) {
      this.#records.set(bundle, examineBundle(decoded.blob, origin, this.#list));
      this.#images.add(decoded.blob, origin);
    } else if (meta.schema === lifecycleSchema) this.#lifecycles.add(meta);
  }

  /** Requires the packages: an unknown name is a typo, not a healthy package. */
  #requirePackages(): void {
    const known = new Set(this.#facts.packages.map(({ name }) => name));
    for (const { package: name } of [...this.#facts.channels, ...this.#facts.bundles]) known.add(name);
    const missing = [...(this.#options.packages ?? [])].filter((name) => !known.has(name));
    if (missing.length === 0) return;
    throw notFound('package', missing, known);
  }

  /** Reports unreadable content, whichever packages are selected: its package is unknown. */
  #reportFaults(faults: readonly OpmateError[]): void {
    for (const fault of diagnoseFaults(faults)) this.#list.push(fault);
  }

  async #validate(): Promise<void> {
    const { problems, warnings } = await validateInTurns(this.#facts, this.#options);
    for (const diagnostic of [...problems, ...warnings]) {
      if (this.#list.wantsPackage(diagnostic.package ?? '')) this.#list.push(diagnostic);
    }
  }
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
