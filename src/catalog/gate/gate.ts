import type { CancelOptions } from '../../core/concurrency.js';
import { createFault } from '../../core/diagnostic.js';
import type { CatalogDiagnostic } from '../../model/catalog-diagnostic.js';
import type { BlobOrigin, CatalogFacts } from '../../model/facts.js';
import type { Catalog } from '../catalog.js';
import { placeDiagnostics } from '../locate.js';
import type { GateContent } from './gate-content.js';

/** Gates by name. (Source of the first three: tasks of konflux-ci/konflux-operator-tasks.) */
export const gateNames = ['validate-fbc', 'pruning', 'fips', 'breaking'] as const;
export type GateName = (typeof gateNames)[number];

/** Verdict of a gate. */
export interface GateVerdict {
  gate: GateName;
  result: 'SUCCESS' | 'FAILURE' | 'WARNING';
  successes: number;
  failures: number;
  warnings: number;
  findings: CatalogDiagnostic[];
}

/**
 * Returns verdicts with file and line of their findings in the fragment: of the channel that a finding names, else of its
 * bundle or package. Findings about other things have none.
 */
export async function placeVerdicts(
  catalog: Pick<Catalog, 'lineOf'>,
  { packages, channels, bundles }: CatalogFacts,
  verdicts: readonly GateVerdict[],
  options: CancelOptions,
): Promise<GateVerdict[]> {
  const origins = new Map<string, BlobOrigin | undefined>();
  const getKey = (kind: string, owner = '', name = ''): string => `${kind}\0${owner}\0${name}`;
  for (const { name, origin } of packages) origins.set(getKey('package', name), origin);
  for (const { package: owner, name, origin } of channels)
    origins.set(getKey('channel', owner, name), origin);
  for (const { package: owner, name, origin } of bundles) origins.set(getKey('bundle', owner, name), origin);
  const findOrigin = (finding: CatalogDiagnostic): BlobOrigin | undefined =>
    finding.origin ??
    origins.get(getKey('channel', finding.package, finding.channel)) ??
    origins.get(getKey('bundle', finding.package, finding.bundle)) ??
    origins.get(getKey('package', finding.package));
  const placed: GateVerdict[] = [];
  // One after the other: a catalog has one file open at a time.
  for (const verdict of verdicts) {
    const findings = verdict.findings.map((finding) =>
      finding.file === undefined ? { ...finding, origin: findOrigin(finding) } : finding,
    );
    placed.push({ ...verdict, findings: await placeDiagnostics(catalog, findings, options) });
  }
  return placed;
}

/** Returns the finding for a fragment without packages. */
export function missingPackage(): CatalogDiagnostic {
  return createFault('package', 'no olm.package', { hint: 'add an olm.package blob' });
}

/** Returns why a fragment cannot be compared with an index: errors in its blobs, or no packages. */
export function findUncomparable({ facts, faults }: GateContent): CatalogDiagnostic[] {
  const findings: CatalogDiagnostic[] = faults.map(({ message, file, line }) => ({
    ...createFault('unreadable', `the fragment is unreadable: ${message}`, { hint: 'run api.validate' }),
    file,
    line,
  }));
  if (findings.length === 0 && facts.packages.length === 0) findings.push(missingPackage());
  return findings;
}

/** Collects the findings of a gate; each error is one failure. */
export class GateReport {
  readonly #gate: GateName;
  readonly #findings: CatalogDiagnostic[] = [];

  constructor(gate: GateName) {
    this.#gate = gate;
  }

  /** Adds findings, each with the name of the gate in its code. */
  addAll(findings: readonly CatalogDiagnostic[]): this {
    for (const finding of findings) this.add(finding);
    return this;
  }

  add(finding: CatalogDiagnostic): void {
    this.#findings.push({ ...finding, code: `${this.#gate}-${finding.code}` });
  }

  /** Returns the verdict; `checks` is the number of checks, of which failed ones are no successes. */
  verdict(checks: number): GateVerdict {
    const failures = this.#findings.filter(({ severity }) => severity === 'error').length;
    const warnings = this.#findings.filter(({ severity }) => severity === 'warning').length;
    return {
      gate: this.#gate,
      result: failures > 0 ? 'FAILURE' : 'SUCCESS',
      successes: Math.max(0, checks - failures),
      failures,
      warnings,
      findings: this.#findings,
    };
  }
}
