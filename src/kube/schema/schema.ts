import type { JsonValue } from '../../document/json.js';

/** A rule of `x-kubernetes-validations`. */
export interface SchemaRule {
  readonly rule: string;
  readonly message?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
}

/** A structural schema of a custom resource definition, as it is written there. */
export interface SchemaSource {
  readonly type?: string;
  readonly format?: string;
  readonly nullable?: boolean;
  readonly default?: JsonValue;
  readonly properties?: Readonly<Record<string, SchemaSource>>;
  readonly additionalProperties?: SchemaSource | boolean;
  readonly items?: SchemaSource;
  readonly required?: readonly string[];
  readonly enum?: readonly JsonValue[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly allOf?: readonly SchemaSource[];
  readonly anyOf?: readonly SchemaSource[];
  readonly oneOf?: readonly SchemaSource[];
  readonly not?: SchemaSource;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: string;
  readonly 'x-kubernetes-validations'?: readonly SchemaRule[];
}

/** Reasons of the API server for refusing a field. */
export type CauseReason =
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueRequired'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid';

/** A refused field, as in `details.causes` of a response of the API server. */
export interface FieldCause {
  /** Path such as `spec.phases[0].name`; `<nil>` for the whole object. */
  field: string;
  reason: CauseReason;
  message: string;
}

/** Returns the path of a property; keys of maps are in brackets. */
export function childField(field: string, key: string, isMapKey = false): string {
  if (isMapKey) return `${field}[${key}]`;
  return field === '' ? key : `${field}.${key}`;
}

/** Returns the schema of a property; undefined if it is not declared. */
export function propertySchema(schema: SchemaSource, key: string): SchemaSource | undefined {
  const { properties, additionalProperties } = schema;
  if (properties !== undefined && Object.hasOwn(properties, key)) return properties[key];
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

/** Reports whether a key is one of a map, not a declared property. */
export function isMapKey({ properties, additionalProperties }: SchemaSource, key: string): boolean {
  return additionalProperties !== undefined && !(properties !== undefined && Object.hasOwn(properties, key));
}
