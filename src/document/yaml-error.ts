import { OpmateError } from '../core/errors.js';

/**
 * Text that is not the YAML that Go's tools read. The message begins with `yaml: ` and has Go's words
 * (its line numbers too, which are one short for some faults); `line` is the true one, from 1.
 */
export class YamlError extends OpmateError {
  override readonly name: string = 'YamlError';
  /** The message without a line number, for a text that is part of another. */
  readonly withoutLine: string;

  constructor(message: string, line?: number, withoutLine = message) {
    super('SYNTAX', message, { line });
    this.withoutLine = withoutLine;
  }
}
