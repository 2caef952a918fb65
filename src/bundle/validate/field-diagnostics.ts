import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import type { JsonValue } from '../../document/json.js';
import type { DocumentPath } from '../../core/diagnostic.js';
import { type CheckDiagnostic, errorAt } from './diagnostic.js';

/** Faults of fields in the words of API servers. (Source: apimachinery, util/validation/field.) */

/** A field. */
export interface Place {
  /** Name in messages of API servers. */
  field: string;
  /** Path in the manifest, which may differ from the name. */
  path: DocumentPath;
}

/** Returns a nested field. */
export function child({ field, path }: Place, ...names: (string | number)[]): Place {
  let text = field;
  for (const name of names) text += typeof name === 'number' ? `[${name}]` : `.${name}`;
  return { field: text, path: [...path, ...names] };
}

/** Returns the fault of an invalid value; `undefined` shows none. */
export function invalid(
  { field, path }: Place,
  value: JsonValue | undefined,
  detail: string,
): CheckDiagnostic {
  const shown = value === undefined ? '' : ` ${showValue(value)}:`;
  return errorAt(path, `${field}: Invalid value:${shown} ${detail}`);
}

/** Returns the fault of a missing value. */
export function required({ field, path }: Place, detail = ''): CheckDiagnostic {
  return errorAt(path, `${field}: Required value${detail === '' ? '' : `: ${detail}`}`);
}

/** Returns the fault of a value that must be absent. */
export function forbidden({ field, path }: Place, detail: string): CheckDiagnostic {
  return errorAt(path, `${field}: Forbidden: ${detail}`);
}

/** Returns the fault of a value other than the accepted ones. */
export function notSupported(
  { field, path }: Place,
  value: string,
  accepted: readonly string[],
): CheckDiagnostic {
  const values = accepted.map(quoteGo).join(', ');
  return errorAt(path, `${field}: Unsupported value: ${quoteGo(value)}: supported values: ${values}`);
}

function showValue(value: JsonValue): string {
  return typeof value === 'string' ? quoteGo(value) : encodeGoJson(value);
}
