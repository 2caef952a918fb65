import type { JsonObject, JsonValue } from '../../document/json.js';
import { checkRules } from './check-rules.js';
import { checkValue } from './check-values.js';
import { objectMetaCauses } from './object-meta.js';
import { prepareObject, preparePart } from './prepare.js';
import type { CauseReason, FieldCause, SchemaSource } from './schema.js';

/** Response of the API server to a document of a custom resource. */
export interface ObjectValidation {
  /** As it is stored, with defaults; undefined if it is refused. */
  object: JsonObject | undefined;
  /** Paths of unknown fields, which strict field validation refuses before anything else is checked. */
  unknownFields: string[];
  /** Refused fields. */
  causes: FieldCause[];
}

/** Reasons that keep the API server from evaluating rules. */
const blocking: ReadonlySet<CauseReason> = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);

/**
 * Validates a document of a cluster-scoped custom resource as the API server does with strict field validation: unknown
 * fields, defaults, its schema, CEL rules, and with `old` the rules about changes of a stored object.
 */
export function validateObject(
  document: JsonObject,
  schema: SchemaSource,
  old?: JsonObject | undefined,
): ObjectValidation {
  const unknownFields: string[] = [];
  const object = prepareObject(document, schema, unknownFields);
  if (unknownFields.length > 0) return { object: undefined, unknownFields, causes: [] };
  const metaCauses = objectMetaCauses(object);
  const causes = findCauses(object, schema, '', { before: metaCauses, old });
  return { object: causes.length === 0 ? object : undefined, unknownFields, causes };
}

/** Validates a part of a custom resource, at a path, in the same way; `value` is undefined if it is refused. */
export function validatePart(
  part: JsonValue,
  schema: SchemaSource,
  path: string,
): { value: JsonValue | undefined; unknownFields: string[]; causes: FieldCause[] } {
  const unknownFields: string[] = [];
  const value = preparePart(part, schema, path, unknownFields);
  const causes = unknownFields.length > 0 ? [] : findCauses(value, schema, path);
  return {
    value: causes.length + unknownFields.length === 0 ? value : undefined,
    unknownFields,
    causes,
  };
}

/** Returns the causes of a value: those of its schema and, unless they exclude it, of its rules. */
function findCauses(
  value: JsonValue,
  schema: SchemaSource,
  path: string,
  { before = [], old }: { before?: readonly FieldCause[]; old?: JsonObject | undefined } = {},
): FieldCause[] {
  const causes = [...before, ...checkValue(value, schema, path, old)];
  if (causes.some(({ reason }) => blocking.has(reason))) {
    causes.unshift({
      field: '<nil>',
      reason: 'FieldValueInvalid',
      message:
        'Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
    });
  } else causes.push(...checkRules(value, schema, path, old));
  return causes;
}

/** A refused field of a document. */
interface RefusedField {
  /** Keys of the field. */
  path: (string | number)[];
  /** Field as the API server writes it: `spec.phases[0].name`. */
  field: string;
  code: 'unknown-field' | 'invalid-value';
  problem: string;
}

/** Returns the refused fields of a validation, with the keys of each. */
export function listRefusedFields({
  unknownFields,
  causes,
}: Pick<ObjectValidation, 'unknownFields' | 'causes'>): RefusedField[] {
  const refused = [
    ...unknownFields.map((field) => ({
      field,
      code: 'unknown-field' as const,
      problem: 'unknown field',
    })),
    ...causes
      .filter(({ field }) => field !== '<nil>')
      .map(({ field, message }) => ({ field, code: 'invalid-value' as const, problem: message })),
  ];
  return refused.map((item) => ({ ...item, path: splitPath(item.field) }));
}

function splitPath(field: string): (string | number)[] {
  return [...field.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([key, index]) =>
    index === undefined ? key : Number(index),
  );
}
