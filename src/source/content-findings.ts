import { type Finding, describeFinding } from '../bundle/plain/finding.js';
import { OpmateError } from '../core/errors.js';

/**
 * All that is wrong with sources, or with the documents that content is read from. `message` is the first finding; the
 * command line tells them all.
 */
export class ContentFindingsError extends OpmateError {
  override readonly name: string = 'ContentFindingsError';
  readonly findings: readonly Finding[];
  constructor(findings: readonly Finding[]) {
    const errors = findings.map((finding) => new OpmateError('INVALID', describeFinding(finding)));
    const hint = findings.find((finding) => finding.hint !== undefined)?.hint;
    super('INVALID', errors[0]?.message ?? '', { hint, cause: new AggregateError(errors) });
    this.findings = findings;
  }
}
