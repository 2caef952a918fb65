import { sortedByBytes } from '../../core/order.js';
import { quoteGo } from '../../document/go-json.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../document/json.js';
import { deploymentConfigFields } from '../../kube/pod-types.js';
import type { Type } from '../../kube/struct.js';
import { maxLabelLength } from '../../kube/names.js';

/*
 * Faults of `spec.config.inline` of a ClusterExtension in the words of operator-controller, which validates it with
 * a JSON schema made from the install modes of the bundle, and flattens the tree of errors of its validator.
 */

/** A node of that tree. */
interface Fault {
  text: string;
  causes?: readonly Fault[];
  /** Stands for a schema that is defined elsewhere; with one cause the cause is not reported. */
  isReference?: boolean;
}

interface ConfigSchema {
  /** Supported install modes. */
  modes: readonly string[];
  installNamespace: string;
  /** False where the feature gate of `deploymentConfig` is off. */
  hasDeploymentConfig: boolean;
}

/** Returns the faults of a configuration in the words of operator-controller; none if it is valid. */
export function findConfigFaults(config: JsonValue, schema: ConfigSchema): string[] {
  if (!isJsonObject(config)) return [`invalid type: ${typeFault(config, 'object')}`];
  const { modes, hasDeploymentConfig } = schema;
  const watches = modes.includes('OwnNamespace') || modes.includes('SingleNamespace');
  const isRequired = watches && !modes.includes('AllNamespaces');
  const known = [
    ...(watches ? ['watchNamespace'] : []),
    ...(hasDeploymentConfig ? ['deploymentConfig'] : []),
  ];
  const faults = [...unknownFields(config, known)];
  if (isRequired && !Object.hasOwn(config, 'watchNamespace')) {
    faults.push({ text: 'required field "watchNamespace" is missing' });
  }
  if (watches && Object.hasOwn(config, 'watchNamespace')) {
    faults.push(...watchNamespaceFaults(config['watchNamespace'] as JsonValue, isRequired, schema));
  }
  if (hasDeploymentConfig && Object.hasOwn(config, 'deploymentConfig')) {
    faults.push(...deploymentConfigFaults(config['deploymentConfig'] as JsonValue));
  }
  const [only] = faults;
  return flatten({ text: '', causes: faults.length === 1 ? ungroup(only) : faults });
}

const groupText = 'validation failed';

/** Several faults of one value become one with these causes. */
function group(faults: readonly Fault[]): readonly Fault[] {
  return faults.length < 2 ? faults : [{ text: groupText, causes: faults }];
}

function ungroup(fault: Fault | undefined): readonly Fault[] {
  if (fault === undefined) return [];
  const isGroup = fault.text === groupText && fault.isReference !== true;
  return isGroup ? (fault.causes ?? []) : [fault];
}

function flatten({ causes = [] }: Fault): string[] {
  return causes.flatMap((cause) =>
    cause.isReference === true && cause.causes?.length === 1 ? [cause.text] : [cause.text, ...flatten(cause)],
  );
}

/** Of several unknown fields only one is reported: upstream a random one, here the first by name. */
function unknownFields(object: JsonObject, known: readonly string[]): Fault[] {
  const [first] = sortedByBytes(Object.keys(object).filter((key) => !known.includes(key)));
  return first === undefined ? [] : [{ text: `unknown field ${quoteGo(first)}` }];
}

function jsonType(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'bigint' ? 'number' : typeof value;
}

function typeFault(value: JsonValue, wanted: string): string {
  return `got ${jsonType(value)}, want ${wanted}`;
}

/** Returns the fault of a value that is of the wrong type; a null reads as a missing field. */
function wrongType(value: JsonValue, wanted: string, field: string): Fault {
  return value === null
    ? { text: `required field ${quoteGo(field)} is missing` }
    : { text: `invalid type for field ${quoteGo(field)}: ${typeFault(value, wanted)}` };
}

function watchNamespaceFaults(value: JsonValue, isRequired: boolean, schema: ConfigSchema): readonly Fault[] {
  if (!isRequired && value === null) return [];
  const faults = group(namespaceFaults(value, schema));
  if (isRequired || faults.length === 0) return faults;
  const field = 'watchNamespace';
  return [
    {
      text: `invalid value for field ${quoteGo(field)}`,
      causes: [wrongType(value, 'null', field), ...faults],
    },
  ];
}

const namespacePattern = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$';

function namespaceFaults(value: JsonValue, { modes, installNamespace }: ConfigSchema): Fault[] {
  const field = '"watchNamespace"';
  if (typeof value !== 'string') return [wrongType(value, 'string', 'watchNamespace')];
  const format = namespaceFormatFault(value, modes, installNamespace);
  if (format !== undefined) return [{ text: `invalid format for field ${field}: ${format}` }];
  const length = [...value].length;
  const faults: Fault[] = [];
  if (length < 1) faults.push({ text: `field ${field} must have minimum length of 1 (len=0)` });
  if (length > maxLabelLength) {
    faults.push({ text: `field ${field} must have maximum length of ${maxLabelLength} (len=${length})` });
  }
  if (!new RegExp(namespacePattern).test(value)) {
    faults.push({ text: `field ${field} must match pattern ${quoteGo(namespacePattern)}` });
  }
  return faults;
}

function namespaceFormatFault(
  value: string,
  modes: readonly string[],
  installNamespace: string,
): string | undefined {
  const isOwn = modes.includes('OwnNamespace');
  const isSingle = modes.includes('SingleNamespace');
  if (isOwn === isSingle || installNamespace === '') return undefined;
  const matches = value === installNamespace;
  if (matches === isOwn) return undefined;
  const [format, reason] = isOwn
    ? [
        'ownNamespaceInstallMode',
        `must be ${quoteGo(installNamespace)} (the namespace where the operator is installed) because this operator only supports OwnNamespace install mode`,
      ]
    : [
        'singleNamespaceInstallMode',
        `must be different from ${quoteGo(installNamespace)} (the install namespace) because this operator uses SingleNamespace install mode to watch a different namespace`,
      ];
  const shown = `'${quoteGo(value)
    .slice(1, -1)
    .replaceAll('\\"', '"')
    .replaceAll("'", String.raw`\'`)}'`;
  return `${shown} is not valid ${format}: invalid value ${quoteGo(value)}: ${reason}`;
}

/** Fields of `deploymentConfig` that are lists of a type, maps of strings, or of a type themselves. */
const listFields = ['env', 'envFrom', 'tolerations', 'volumeMounts', 'volumes'] as const;
const mapFields = ['annotations', 'nodeSelector'] as const;
const structFields = ['affinity', 'resources'] as const;

function deploymentConfigFaults(config: JsonValue): readonly Fault[] {
  if (!isJsonObject(config)) return [wrongType(config, 'object', 'deploymentConfig')];
  const types: Readonly<Record<string, Type>> = Object.fromEntries(
    Object.entries(deploymentConfigFields).map(([name, type]) => [name.replace(/\?$/, ''), type]),
  );
  const known = [...listFields, ...mapFields, ...structFields];
  const faults: Fault[] = unknownFields(config, known);
  for (const field of known) {
    if (!Object.hasOwn(config, field)) continue;
    const value = config[field] as JsonValue;
    faults.push(...group(fieldFaults(value, field, types[field] as Type)));
  }
  return group(faults);
}

function fieldFaults(value: JsonValue, field: string, type: Type): Fault[] {
  const path = `deploymentConfig.${field}`;
  if ((structFields as readonly string[]).includes(field)) {
    return fitsSchema(value, type) ? [] : [referenceFault];
  }
  if ((mapFields as readonly string[]).includes(field)) {
    if (!isJsonObject(value)) return [wrongType(value, 'object', path)];
    return Object.entries(value)
      .filter(([, item]) => typeof item !== 'string')
      .map(([key, item]) => wrongType(item, 'string', `${path}.${key}`));
  }
  if (!Array.isArray(value)) return [wrongType(value, 'array', path)];
  const itemType = (type as { list: Type }).list;
  return value.filter((item) => !fitsSchema(item, itemType)).map(() => referenceFault);
}

const referenceFault: Fault = { text: groupText, isReference: true, causes: [{ text: '' }] };

/** Reports whether a value fits the OpenAPI schema of a Go type; unlike in Go, null fits none. */
function fitsSchema(value: JsonValue, type: Type): boolean {
  if (typeof type === 'string') return fitsScalar(value, type);
  if ('list' in type) return Array.isArray(value) && value.every((item) => fitsSchema(item, type.list));
  if ('map' in type) {
    return isJsonObject(value) && Object.values(value).every((item) => fitsSchema(item, type.map));
  }
  if ('pointer' in type) return fitsSchema(value, type.pointer);
  if ('later' in type) return fitsSchema(value, type.later());
  if ('choose' in type) {
    const chosen = type.choose(value);
    return chosen !== undefined && fitsSchema(value, chosen);
  }
  if ('read' in type)
    return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint';
  if (!isJsonObject(value)) return false;
  return [...type.fields].every(([name, field]) => {
    const isPresent = Object.hasOwn(value, name);
    return isPresent ? fitsSchema(value[name] as JsonValue, field.type) : field.optional;
  });
}

function fitsScalar(value: JsonValue, type: string): boolean {
  if (type === 'string') return typeof value === 'string';
  if (type === 'bool') return typeof value === 'boolean';
  if (type === 'int32' || type === 'int64') return typeof value === 'bigint' || Number.isInteger(value);
  if (type === 'float') return typeof value === 'number' || typeof value === 'bigint';
  return true;
}
