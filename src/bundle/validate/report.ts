import type { Diagnostic, DocumentPath } from '../../core/diagnostic.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import type { JsonValue } from '../../document/json.js';
import type { Conformed } from '../../kube/struct.js';

/** Reports a finding at a path of a manifest: an error of the manifest being checked, unless `details` differ. */
export type Reporter = (
  path: DocumentPath,
  problem: string,
  details?: Partial<Pick<Diagnostic, 'severity' | 'file' | 'line' | 'hint'>>,
) => void;

/** Details of a warning. */
export const warning = { severity: 'warning' } as const;

/** Returns a function that reports problems with a text in front. */
export function prefixed(report: Reporter, prefix: string): Reporter {
  return (path, problem, details) => report(path, prefix + problem, details);
}

/** Reports the values of the wrong type; returns the value if there are none. */
export function soundValue<V>({ value, faults }: Conformed<V>, report: Reporter): V | undefined {
  for (const { message, path, hint } of faults) report(path, message, { hint });
  return faults.length === 0 ? value : undefined;
}

/** Field that reports its faults in the words of API servers. (Source: apimachinery, util/validation/field.) */
export class CheckedField {
  readonly #report: Reporter;
  readonly #path: DocumentPath;
  readonly #name: string;

  /** `name` is that in messages, which may differ from the path in the manifest. */
  constructor(report: Reporter, path: DocumentPath, name = path.join('.')) {
    this.#report = report;
    this.#path = path;
    this.#name = name;
  }

  /** Returns a nested field; `path` leads to it from this one. */
  child(key: string | number, path: DocumentPath = [key]): CheckedField {
    const name = typeof key === 'number' ? `[${key}]` : `.${key}`;
    return new CheckedField(this.#report, [...this.#path, ...path], this.#name + name);
  }

  /** Returns an item of a list that messages name as a whole. */
  item(index: number): CheckedField {
    return new CheckedField(this.#report, [...this.#path, index], this.#name);
  }

  fail(problem: string): void {
    this.#report(this.#path, `${this.#name}: ${problem}`);
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
