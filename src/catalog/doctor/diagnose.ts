import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { compareBytes } from '../../core/order.js';
import {
  describeBundle,
  describeChannel,
  describeDeprecations,
  describePackage,
} from '../../model/describe.js';
import type { BundleFacts, CatalogFacts, Problem } from '../../model/facts.js';
import { validateCatalog } from '../../graph/validate.js';
import { decodeMeta } from '../blob.js';
import { type Catalog, type MetasOptions, isFault } from '../catalog.js';
import { findLines, locate } from '../locate.js';
import type { Meta } from '../meta.js';
import { readPackages } from '../../graph/package-model.js';
import { type CheckName, type Severity, checkNames, severities } from './checks.js';
import { type BundleRecord, examineBundle } from './examine-bundle.js';
import { examineDependencies } from './examine-dependencies.js';
import { ImageExamination } from './examine-images.js';
import { examinePackage } from './examine-package.js';
import { type Finding, FindingList, type PlacedFinding } from './finding.js';
import { examineIcon } from './icon.js';
import type { OpenShiftVersion } from './openshift.js';

/** What is looked for, and where. */
export interface DiagnoseOptions extends Pick<MetasOptions, 'signal' | 'logger'> {
  /** All where it is left out; see `chooseChecks`. */
  checks?: ReadonlySet<CheckName> | undefined;
  /** Findings about these packages only. Dependencies are looked for in the whole catalog. */
  packages?: ReadonlySet<string> | undefined;
  /** Leave out findings below this severity; none where it is left out. */
  severity?: Severity | undefined;
  /** The version of OpenShift that the catalog is for. */
  openshift?: OpenShiftVersion | undefined;
}

/**
 * Finds what is wrong with a catalog, and what is valid but leads to failures later: the worst first, then by
 * package, in an order that only the content of the catalog decides. Reads the catalog once, and a blob again only to tell the line of
 * a finding. Blobs that cannot be read are findings too, and nothing that depends on the whole is told then. Throws
 * OpmateError where the catalog cannot be read at all, NOT_FOUND for packages that it does not have.
 */
export async function diagnoseCatalog(catalog: Catalog, options: DiagnoseOptions = {}): Promise<Finding[]> {
  const list = new FindingList(options.checks ?? new Set(checkNames), options.packages);
  await new Diagnosis(catalog, list, options).run();
  const limit = rankOf(options.severity ?? 'notice');
  const found = list.found.filter(({ finding }) => rankOf(finding.severity) <= limit);
  return placeFindings(catalog, found, options);
}

class Diagnosis {
  readonly #catalog: Catalog;
  readonly #list: FindingList;
  readonly #options: DiagnoseOptions;
  readonly #facts: CatalogFacts = { packages: [], channels: [], bundles: [], deprecations: [] };
  readonly #records = new Map<BundleFacts, BundleRecord>();
  readonly #described = new Set<string>();
  readonly #images: ImageExamination;

  constructor(catalog: Catalog, list: FindingList, options: DiagnoseOptions) {
    this.#catalog = catalog;
    this.#list = list;
    this.#options = options;
    this.#images = new ImageExamination(list);
  }

  async run(): Promise<void> {
    const { signal, logger } = this.#options;
    const faults: OpmateError[] = [];
    const onFault = (fault: OpmateError): unknown => faults.push(fault);
    for await (const meta of this.#catalog.metas({ signal, logger, onFault })) {
      throwIfCancelled(signal);
      this.#list.lookAt(meta);
      try {
        this.#examineBlob(meta);
      } catch (error) {
        const located = await locate(this.#catalog, meta.origin, error);
        if (!isFault(located)) throw located;
        onFault(located);
      }
    }
    this.#list.lookAt(undefined);
    if (faults.length === 0) this.#requirePackages();
    this.#tellFaults(faults);
    if (faults.length > 0) return;
    this.#validate();
    for (const [name, model] of readPackages(this.#facts)) {
      throwIfCancelled(signal);
      if (!this.#list.wantsPackage(name)) continue;
      const { openshift } = this.#options;
      const context = { records: this.#records, isDescribed: this.#described.has(name), openshift };
      examinePackage(model, context, this.#list);
    }
    examineDependencies(this.#records, this.#list, this.#options);
  }

  #examineBlob(meta: Meta): void {
    const { origin } = meta;
    const decoded = decodeMeta(meta);
    switch (decoded.kind) {
      case 'package': {
        const facts = describePackage(decoded.blob, origin);
        this.#facts.packages.push(facts);
        if (decoded.blob.description.trim() !== '') this.#described.add(facts.name);
        examineIcon(decoded.blob, { package: facts.name, origin }, this.#list);
        break;
      }
      case 'channel':
        this.#facts.channels.push(describeChannel(decoded.blob, origin));
        break;
      case 'bundle': {
        const facts = describeBundle(decoded.blob, origin);
        this.#facts.bundles.push(facts);
        this.#records.set(facts, examineBundle(decoded.blob, origin, this.#list));
        this.#images.add(decoded.blob, origin);
        break;
      }
      case 'deprecations':
        this.#facts.deprecations.push(describeDeprecations(decoded.blob, origin));
        break;
      case 'other':
        this.#facts.otherCount = (this.#facts.otherCount ?? 0) + 1;
        break;
    }
  }

  /** A package that is not there is a slip of the pen, not a healthy package. */
  #requirePackages(): void {
    const known = new Set(this.#facts.packages.map(({ name }) => name));
    for (const { package: name } of [...this.#facts.channels, ...this.#facts.bundles]) known.add(name);
    const missing = [...(this.#options.packages ?? [])].filter((name) => !known.has(name));
    if (missing.length === 0) return;
    throw new OpmateError('NOT_FOUND', `package ${missing.map(quoteGo).join(', ')} is not in the catalog`, {
      hint: 'opmate list packages tells what there is',
    });
  }

  /** What cannot be read belongs to no package that is known, so it is told whichever are asked for. */
  #tellFaults(faults: readonly OpmateError[]): void {
    if (!this.#list.wants('invalid')) return;
    for (const { message, file, line, hint } of faults) {
      this.#list.found.push({
        finding: { check: 'invalid', severity: 'error', message, file, line, hint },
      });
    }
  }

  #validate(): void {
    const { problems, warnings } = validateCatalog(this.#facts);
    for (const problem of problems) this.#addProblem('invalid', problem);
    for (const warning of warnings) if (warning.kind !== undefined) this.#addProblem(warning.kind, warning);
  }

  #addProblem(
    check: CheckName,
    { message, hint = '', package: packageName, channel, bundle, origin, path }: Problem,
  ): void {
    this.#list.add(check, { package: packageName, channel, bundle, origin, path }, message, hint);
  }
}

/** Finds the lines, and sorts. */
async function placeFindings(
  catalog: Catalog,
  found: readonly PlacedFinding[],
  options: DiagnoseOptions,
): Promise<Finding[]> {
  const lines = await findLines(catalog, found, options);
  return found
    .map(({ finding, origin, down = 0 }, index): Finding => {
      if (origin === undefined) return finding;
      const line = lines[index];
      return { ...finding, file: origin.file, line: line === undefined ? undefined : line + down };
    })
    .sort(compareFindings);
}

const rankOf = (severity: Severity): number => severities.indexOf(severity);

function compareFindings(a: Finding, b: Finding): number {
  return (
    rankOf(a.severity) - rankOf(b.severity) ||
    compareBytes(a.package ?? '', b.package ?? '') ||
    compareBytes(a.check, b.check) ||
    compareBytes(a.channel ?? '', b.channel ?? '') ||
    compareBytes(a.file ?? '', b.file ?? '') ||
    (a.line ?? 0) - (b.line ?? 0) ||
    compareBytes(a.bundle ?? '', b.bundle ?? '') ||
    compareBytes(a.message, b.message)
  );
}
