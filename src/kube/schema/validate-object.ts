import type { JsonObject } from '../../document/json.js';
import { checkRules } from './check-rules.js';
import { checkValue } from './check-values.js';
import { objectMetaCauses } from './object-meta.js';
import { prepareObject } from './prepare.js';
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
  const causes = [...objectMetaCauses(object), ...checkValue(object, schema, '', old)];
  if (causes.some(({ reason }) => blocking.has(reason))) {
    causes.unshift({
      field: '<nil>',
      reason: 'FieldValueInvalid',
      message:
        'Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
    });
  } else causes.push(...checkRules(object, schema, '', old));
  return { object: causes.length === 0 ? object : undefined, unknownFields, causes };
}
