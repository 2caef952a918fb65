import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import type { JsonValue } from '../../document/json.js';
import { type CheckDiagnostic, errorAt } from './diagnostic.js';

/**
 * Faults of fields, in the words in which an API server tells them. (Source: apimachinery, util/validation/field.)
 */
type Path = readonly (string | number)[];

/** A field as API servers name it, and where it is written, which may be elsewhere. */
export interface Place {
  field: string;
  path: Path;
}

/** A field of a field. */
export function child({ field, path }: Place, ...names: (string | number)[]): Place {
  let text = field;
  for (const name of names) text += typeof name === 'number' ? `[${name}]` : `.${name}`;
  return { field: text, path: [...path, ...names] };
}

/** A value that must not be as it is. Lists and objects are not shown. */
export function invalid(
  { field, path }: Place,
  value: JsonValue | undefined,
  detail: string,
): CheckDiagnostic {
  const shown = value === undefined ? '' : ` ${showValue(value)}:`;
  return errorAt(path, `${field}: Invalid value:${shown} ${detail}`);
}

/** A value that is not there. */
export function required({ field, path }: Place, detail = ''): CheckDiagnostic {
  return errorAt(path, `${field}: Required value${detail === '' ? '' : `: ${detail}`}`);
}

/** A value that must not be there. */
export function forbidden({ field, path }: Place, detail: string): CheckDiagnostic {
  return errorAt(path, `${field}: Forbidden: ${detail}`);
}

/** A value that is none of those that there are. */
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
