import { OpmateError } from '../../core/errors.js';
import { goKindOf } from '../../document/go-json.js';
import type { JsonValue } from '../../document/json.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import type { YamlPath } from '../../document/yaml.js';

/** What the messages about the content of a template begin with. */
export const rendering = 'rendering template: ';

/** Collects faults with their places. */
export class FaultList {
  readonly #file: string;
  readonly #lineOf: (path: YamlPath) => Promise<number>;
  readonly #faults: OpmateError[] = [];

  constructor(file: string, lineOf: (path: YamlPath) => Promise<number>) {
    this.#file = file;
    this.#lineOf = lineOf;
  }

  /** Notes a fault of what stands at `path`. */
  async add(path: YamlPath, message: string, hint?: string): Promise<void> {
    const line = await this.#lineOf(path);
    this.#faults.push(new OpmateError('INVALID', message, { file: this.#file, line, hint }));
  }

  /** Throws all that was noted, as one error. */
  throwIfAny(): void {
    if (this.#faults.length > 0) throw combineErrors(this.#faults);
  }
}

/** Go's complaint about a value of the wrong kind. */
export function kindFault(value: JsonValue, target: string): string {
  return `json: cannot unmarshal ${goKindOf(value)} into Go ${target}`;
}
