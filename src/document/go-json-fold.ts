/**
 * The form in which Go's JSON decoder compares a key with the ASCII name of a field: two that have the same
 * are the same field. Folding is by single characters: beside capitals only the long s and the Kelvin sign
 * stand for ASCII letters; `ß` is not `ss`. (Source: encoding/json, foldName.)
 */
export function foldFieldName(key: string): string {
  return key.toLowerCase().replaceAll('ſ', 's');
}
