/**
 * Why a template could not be evaluated. `syntax`: it does not parse, or calls a function that Helm does not have.
 * `refused`: the template itself ends the rendering (`fail`, `required`). `evaluation`: a value has another type than a
 * step needs. `unsupported`: a function of Helm that this evaluator lacks. `limit`: a cap was reached.
 */
type TemplateFaultKind = 'syntax' | 'refused' | 'evaluation' | 'unsupported' | 'limit';

/** A fault in a template, with its place once that is known. */
export class TemplateFault extends Error {
  override readonly name = 'TemplateFault';
  readonly kind: TemplateFaultKind;
  template: string | undefined;
  line: number | undefined;

  constructor(kind: TemplateFaultKind, message: string, place: { template?: string; line?: number } = {}) {
    super(message);
    this.kind = kind;
    this.template = place.template;
    this.line = place.line;
  }

  /** Adds the innermost place; a later call changes nothing. */
  at(template: string, line: number): this {
    this.template ??= template;
    this.line ??= line;
    return this;
  }
}

/** Returns the fault for a value that a step cannot work with. */
export function evaluationFault(message: string): TemplateFault {
  return new TemplateFault('evaluation', message);
}
