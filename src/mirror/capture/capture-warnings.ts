import { type Diagnostic, createWarning } from '../../core/diagnostic.js';

/** Objects of a cluster that were not mapped, or need review. */
export class CaptureWarnings {
  readonly list: Diagnostic[];

  /** Starts with the faults of the documents. */
  constructor(faults: readonly Diagnostic[]) {
    this.list = [...faults];
  }

  add(subject: string, problem: string, hint?: string, code = 'needs-review'): void {
    this.list.push(createWarning(code, problem, { subject, ...(hint !== undefined && { hint }) }));
  }

  /** Warns about an object that is left out. */
  addUnmapped(subject: string, problem: string, hint?: string): void {
    this.add(subject, `not mapped: ${problem}`, hint, 'not-mapped');
  }
}
