import { foldFieldName } from '../../document/go-json-fold.js';
import { findNearest } from '../../document/field.js';
import { quoteGo } from '../../document/go-json.js';
import { type JsonValue, isJsonObject } from '../../document/json.js';
import { schemas } from '../../model/declarative-config.js';
import type { Meta } from '../meta.js';
import type { FindingList } from './finding-list.js';

/** Fields of an object, or of each object of a list; null for values of any other kind. */
interface Fields {
  readonly [name: string]: Fields | null;
}

const shared = { schema: null, package: null, properties: { type: null, value: null } };

const fieldsOfSchemas: ReadonlyMap<string, Fields> = new Map(
  Object.entries({
    [schemas.package]: {
      schema: null,
      name: null,
      defaultChannel: null,
      description: null,
      icon: { base64data: null, mediatype: null },
      properties: shared.properties,
    },
    [schemas.channel]: {
      ...shared,
      name: null,
      entries: { name: null, replaces: null, skips: null, skipRange: null },
    },
    [schemas.bundle]: { ...shared, name: null, image: null, relatedImages: { name: null, image: null } },
    [schemas.deprecations]: {
      schema: null,
      package: null,
      entries: { reference: { schema: null, name: null }, message: null },
    },
  }),
);

/** Examines the field names of a blob: `opm` ignores unknown ones, and so a misspelled one. */
export function examineFields(meta: Meta, findings: FindingList): void {
  const { schema, name, origin } = meta;
  const fields = fieldsOfSchemas.get(schema);
  if (fields === undefined || !findings.wants('misspelled-field')) return;
  const subject = {
    package: schema === schemas.package ? name : meta.package,
    ...(schema === schemas.channel && { channel: name }),
    ...(schema === schemas.bundle && { bundle: name }),
    origin,
  };
  visit(meta.value, fields, []);

  function visit(value: JsonValue, known: Fields, path: (string | number)[]): void {
    if (Array.isArray(value)) value.forEach((item, index) => visit(item, known, [...path, index]));
    if (!isJsonObject(value)) return;
    for (const [key, child] of Object.entries(value)) {
      const name = Object.hasOwn(known, key) ? key : findFolded(key, known);
      const inner = name === undefined ? undefined : known[name];
      if (inner != null) visit(child, inner, [...path, key]);
      const near = name === undefined ? findNearest(key, Object.keys(known)) : undefined;
      if (near === undefined) continue;
      const place = { ...subject, path: [...path, key] };
      findings.add('misspelled-field', place, `unknown field ${quoteGo(key)}`, `use ${quoteGo(near)}`);
    }
  }
}

/** Returns the field that a key of another case is read as. */
function findFolded(key: string, known: Fields): string | undefined {
  const folded = foldFieldName(key);
  return Object.keys(known).find((name) => foldFieldName(name) === folded);
}
