import type { Diagnostic, DocumentPath } from '../../core/diagnostic.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import type { JsonValue } from '../../document/json.js';
import type { Conformed } from '../../kube/struct.js';

/** Reports a finding at a path of a manifest: an error of the manifest being checked, unless `details` differ. */
export type Tell = (
  path: DocumentPath,
  problem: string,
  details?: Partial<Pick<Diagnostic, 'severity' | 'file' | 'line'>>,
) => void;

/** Details of a warning. */
export const warning = { severity: 'warning' } as const;

/** Returns a function that reports problems with a text in front. */
export function prefixed(tell: Tell, prefix: string): Tell {
  return (path, problem, details) => tell(path, prefix + problem, details);
}

/** Reports the values of the wrong type; returns the value if there are none. */
export function soundValue<V>({ value, faults }: Conformed<V>, tell: Tell): V | undefined {
  for (const { message, path } of faults) tell(path, message);
  return faults.length === 0 ? value : undefined;
}

/** A field that reports its faults in the words of API servers. (Source: apimachinery, util/validation/field.) */
export class Spot {
  readonly #tell: Tell;
  readonly #path: DocumentPath;
  readonly #name: string;

  /** `name` is that in messages, which may differ from the path in the manifest. */
  constructor(tell: Tell, path: DocumentPath, name = path.join('.')) {
    this.#tell = tell;
    this.#path = path;
    this.#name = name;
  }

  /** Returns a nested field; `path` leads to it from this one. */
  child(key: string | number, path: DocumentPath = [key]): Spot {
    const name = typeof key === 'number' ? `[${key}]` : `.${key}`;
    return new Spot(this.#tell, [...this.#path, ...path], this.#name + name);
  }

  /** Returns an item of a list that messages name as a whole. */
  item(index: number): Spot {
    return new Spot(this.#tell, [...this.#path, index], this.#name);
  }

  fail(problem: string): void {
    this.#tell(this.#path, `${this.#name}: ${problem}`);
  }

  /** Reports an invalid value; `undefined` shows none. */
  invalid(value: JsonValue | undefined, detail: string): void {
    const text = typeof value === 'string' ? quoteGo(value) : encodeGoJson(value ?? null);
    this.fail(`Invalid value:${value === undefined ? '' : ` ${text}:`} ${detail}`);
  }

  /** Reports the faults of a value together. */
  invalidAs(value: string, faults: readonly string[], form = ''): void {
    if (faults.length > 0) this.invalid(value, form + faults.join(','));
  }

  required(detail = ''): void {
    this.fail(`Required value${detail === '' ? '' : `: ${detail}`}`);
  }

  /** Requires one of the accepted values. */
  oneOf(value: string, accepted: readonly string[]): void {
    if (value === '') this.required();
    else if (!accepted.includes(value)) {
      const values = accepted.map(quoteGo).join(', ');
      this.fail(`Unsupported value: ${quoteGo(value)}: supported values: ${values}`);
    }
  }
}
