/** Conversion of catalog names to GraphQL names. (Source: catalogd, internal/catalogd/graphql.) */

/** Maximum cached names; keys repeat in every blob. */
const maxKept = 10_000;
const fieldNames = new Map<string, string>();

/** Returns the root field of a schema: `olm.bundle` → `olmbundles`. */
export function toRootField(schema: string): string {
  return `${schema.replaceAll(/[^A-Za-z0-9]/g, '').toLowerCase()}s`;
}

/** Returns the object type of a schema, or of a field: `olm.bundle` → `OlmBundle`, `relatedImages` → `Relatedimages`. */
export function toTypeName(text: string): string {
  const parts = text
    .replaceAll(/[^A-Za-z0-9]/g, '_')
    .replace(/^[0-9]+/, '')
    .split('_');
  return parts.map(capitalize).join('') || 'Unknown';
}

/** Returns the field of a key: `snake_case` → `snakeCase`, `URL` → `url`, empty → `value`. */
export function toFieldName(key: string): string {
  const known = fieldNames.get(key);
  if (known !== undefined) return known;
  const name = makeFieldName(key);
  if (fieldNames.size >= maxKept) fieldNames.clear();
  fieldNames.set(key, name);
  return name;
}

function makeFieldName(key: string): string {
  if (key === '') return 'value';
  // Go replaces each character, maybe two code units; they collapse anyway.
  const [first = '', ...rest] = key.split(/[^A-Za-z0-9]+/).filter((part) => part !== '');
  const isUpper = first.toUpperCase() === first;
  const start = isUpper ? first.toLowerCase() : first.slice(0, 1).toLowerCase() + first.slice(1);
  const name = start + rest.map(capitalize).join('');
  return /^[A-Za-z]/.test(name) ? name : `field_${name}`;
}

function capitalize(part: string): string {
  return part.slice(0, 1).toUpperCase() + part.slice(1).toLowerCase();
}
