import { type Finding, describeFinding } from '../kube/finding.js';
import { DiagnosticsError } from '../core/diagnostics-error.js';

/** All that is wrong with sources, or with the documents that content is read from. */
export class ContentFindingsError extends DiagnosticsError {
  override readonly name: string = 'ContentFindingsError';
  readonly findings: readonly Finding[];
  constructor(findings: readonly Finding[]) {
    super(
      findings.map((finding) => ({
        severity: 'error',
        code: 'content',
        problem: describeFinding(finding),
        hint: finding.hint,
      })),
    );
    this.findings = findings;
  }
}
