import { OpmateError } from '../core/errors.js';

/**
 * Text that is not the YAML that Go's tools read. The message begins with `yaml: ` and has Go's words
 * (its line numbers too, which are one short for some faults); `line` is the true one, from 1.
 */
export class YamlError extends OpmateError {
  override readonly name: string = 'YamlError';
  constructor(message: string, line?: number) {
    super('SYNTAX', message, { line });
  }
}
