import { OpmateError } from '../../core/errors.js';

/**
 * Kind of a template failure. `syntax`: does not parse, or calls an unknown function. `refused`: the template stops
 * rendering (`fail`, `required`). `evaluation`: a value of the wrong type. `unsupported`: a Helm function that this
 * evaluator lacks. `limit`: an exceeded limit.
 */
type TemplateFaultKind = 'syntax' | 'refused' | 'evaluation' | 'unsupported' | 'limit';

/** A failure in a template, with its place once known. */
export class TemplateFault extends OpmateError {
  override readonly name = 'TemplateFault';
  readonly kind: TemplateFaultKind;
  template: string | undefined;
  override line: number | undefined;

  constructor(kind: TemplateFaultKind, message: string, place: { template?: string; line?: number } = {}) {
    super(kind === 'limit' ? 'LIMIT' : 'INVALID', message);
    this.kind = kind;
    this.template = place.template;
    this.line = place.line;
  }

  /** Adds the innermost place; later calls have no effect. */
  at(template: string, line: number): this {
    this.template ??= template;
    this.line ??= line;
    return this;
  }
}

/** Returns the fault for an exceeded limit. */
export function limitFault(message: string): TemplateFault {
  return new TemplateFault('limit', message);
}

/** Returns the fault for a value of the wrong type. */
export function evaluationFault(message: string): TemplateFault {
  return new TemplateFault('evaluation', message);
}
