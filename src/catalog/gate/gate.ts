import type { CatalogDiagnostic } from '../../model/catalog-diagnostic.js';

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

/** Collects the findings of a gate; each error is one failure. */
export class GateReport {
  readonly #gate: GateName;
  readonly #findings: CatalogDiagnostic[] = [];

  constructor(gate: GateName) {
    this.#gate = gate;
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
