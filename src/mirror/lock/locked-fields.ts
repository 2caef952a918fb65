import { parseReference } from '../../core/reference.js';
import { type Field, quoteShort } from '../../document/field.js';
import { isRepositoryName, isTag } from '../../oci/registry/registry-names.js';

type Reader<T> = (field: Field<never>) => T;

/** Readers of the fields of a lock. */
export const read = {
  text: (field: Field<never>) => field.text(),
  /** A text that may be empty. */
  anyText: (field: Field<never>) => field.anyText(),
  digest: (field: Field<never>) => field.digest(),
  boolean: (field: Field<never>) => field.boolean(),
  tag: (field: Field<never>) => field.matching(isTag, 'a tag'),
  repository: (field: Field<never>) => field.matching(isRepositoryName, 'a repository'),
  /** The text of a valid image reference. */
  reference: (field: Field<never>) => field.parsed((text) => parseReference(text).text),
};

/** Returns a reader that returns undefined for a missing field. */
export function optional<T>(reader: Reader<T>): Reader<T | undefined> {
  return (field) => (field.isPresent ? reader(field) : undefined);
}

/** Returns a reader of lists of at most `max` items. */
export function listOf<T>(reader: Reader<T>, max: number): Reader<T[]> {
  return (field) => field.list(max).map(reader);
}

/** Returns a reader of objects with exactly these fields. */
export function objectOf<T extends object>(readers: { readonly [K in keyof T]: Reader<T[K]> }): Reader<T> {
  const keys = Object.keys(readers) as (keyof T & string)[];
  return (field) => {
    const fields = field.object(keys);
    return Object.fromEntries(keys.map((key) => [key, readers[key](fields[key])])) as T;
  };
}

/** Returns a function that fails for a name that it got before. */
export function createUnique(): (name: string, field: Field<never>) => string {
  const seen = new Set<string>();
  return (name, field) => {
    if (seen.has(name)) return field.fail(`duplicate ${quoteShort(name)}`, { code: 'duplicate' });
    seen.add(name);
    return name;
  };
}
