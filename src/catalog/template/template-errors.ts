import { addContext, combineErrors } from '../../core/diagnostics-error.js';
import { type ErrorCode, OpmateError } from '../../core/errors.js';
import { getGoKind } from '../../document/go-json.js';
import type { JsonValue } from '../../document/json.js';
import type { YamlPath } from '../../document/yaml/full.js';

/** Start of messages about the content of a template. */
export const rendering = 'rendering template: ';

/** Collects the problems of a template. Lines are counted when it throws. */
export class TemplateErrors {
  readonly #file: string;
  readonly #findLine: (path: YamlPath) => Promise<number>;
  readonly #reported: { path: YamlPath; error: OpmateError }[] = [];

  constructor(file: string, findLine: (path: YamlPath) => Promise<number>) {
    this.#file = file;
    this.#findLine = findLine;
  }

  /** Reports a problem of the value at `path`. */
  report(path: YamlPath, problem: string, hint?: string, code: ErrorCode = 'INVALID'): void {
    this.#reported.push({ path, error: new OpmateError(code, problem, { hint }) });
  }

  /** Throws all reported problems as one error. */
  async throwIfAny(): Promise<void> {
    if (this.#reported.length === 0) return;
    const file = this.#file;
    const errors: OpmateError[] = [];
    for (const { path, error } of this.#reported) {
      errors.push(addContext(error, { file, line: await this.#findLine(path) }));
    }
    throw combineErrors(errors);
  }
}

/** Returns Go's message for a value of the wrong kind. */
export function kindFault(value: JsonValue, target: string): string {
  return `json: cannot unmarshal ${getGoKind(value)} into Go ${target}`;
}
