import { addContext, combineErrors } from '../../core/diagnostics-error.js';
import { type ErrorCode, OpmateError } from '../../core/errors.js';
import { getGoKind } from '../../document/go-json.js';
import type { JsonValue } from '../../document/json.js';
import type { YamlPath } from '../../document/yaml-full.js';

/** What the messages about the content of a template begin with. */
export const rendering = 'rendering template: ';

/** Collects what is wrong with a template. Its lines are counted when it is thrown. */
export class TemplateErrors {
  readonly #file: string;
  readonly #findLine: (path: YamlPath) => Promise<number>;
  readonly #reported: { path: YamlPath; error: OpmateError }[] = [];

  constructor(file: string, findLine: (path: YamlPath) => Promise<number>) {
    this.#file = file;
    this.#findLine = findLine;
  }

  /** Reports what is wrong with the value at `path`. */
  report(path: YamlPath, problem: string, hint?: string, code: ErrorCode = 'INVALID'): void {
    this.#reported.push({ path, error: new OpmateError(code, problem, { hint }) });
  }

  /** Throws all that was reported, as one error. */
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

/** Go's complaint about a value of the wrong kind. */
export function kindFault(value: JsonValue, target: string): string {
  return `json: cannot unmarshal ${getGoKind(value)} into Go ${target}`;
}
