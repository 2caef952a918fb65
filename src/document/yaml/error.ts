import { OpmateError } from '../../core/errors.js';

/**
 * Text is not valid YAML for Go's tools. The message starts with `yaml: ` and is Go's, line numbers included, which
 * are one short for some errors; `line` is the actual one, one-based.
 */
export class YamlError extends OpmateError {
  override readonly name: string = 'YamlError';
  /** Message without a line number, for text within another file. */
  readonly withoutLine: string;

  constructor(message: string, line?: number, withoutLine = message) {
    super('SYNTAX', message, { line });
    this.withoutLine = withoutLine;
  }
}
