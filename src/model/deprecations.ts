import { type DeprecationEntry, schemas } from './declarative-config.js';

/** Returns the key of a deprecation; `name` is a bundle or channel. */
export function deprecationKey(schema: string, name = ''): string {
  return schema === schemas.package ? schema : `${schema}\0${name}`;
}

/** Returns the messages of deprecations of a package by `deprecationKey`, the first of duplicates. */
export function readDeprecations(
  blobs: readonly { entries: readonly DeprecationEntry[] }[],
): Map<string, string> {
  const messages = new Map<string, string>();
  for (const { reference, message } of blobs.flatMap(({ entries }) => entries)) {
    const key = deprecationKey(reference.schema, reference.name);
    if (!messages.has(key)) messages.set(key, message);
  }
  return messages;
}
