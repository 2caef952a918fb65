import { OpmateError, getMessage } from '../../core/errors.js';
import { type VersionRange, parseRange } from '../../core/semver.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import { findField } from '../../document/go-json-fold.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { propertyTypes } from '../../model/declarative-config.js';
import { parseGvkProperty, parsePackageRequiredProperty } from '../../model/properties.js';
import { type RuleProperty, compilePropertyRule } from '../../model/property-rule.js';
import { readLabel } from './bundle-properties.js';
import type { ResolverEntry } from './resolver-types.js';
import type { ApiName } from '../../model/csv.js';

/** A requirement of a bundle, met by single bundles. */
export interface Predicate {
  /** Text as in OLM's messages. */
  text: string;
  test(entry: ResolverEntry): boolean;
  /** A package or API without which no bundle meets it. */
  index?: { package: string } | { api: ApiName };
}

const labelRequiredType = 'olm.label.required';
const maxConstraintBytes = 131_072;
const maxDepth = 1000;

/**
 * Returns the predicate of a property; undefined for one that requires nothing. Throws OpmateError INVALID in OLM's
 * words, which fails the whole namespace.
 */
export function readPredicate({ type, value }: RuleProperty): Predicate | undefined {
  switch (type) {
    case propertyTypes.gvkRequired:
      return apiPredicate(parseGvkProperty(value));
    case propertyTypes.packageRequired: {
      const { packageName, versionRange } = parsePackageRequiredProperty(value);
      return packagePredicate(packageName, versionRange);
    }
    case labelRequiredType: {
      const label = readLabel(value);
      if (label === undefined) throw new OpmateError('INVALID', `invalid value of ${labelRequiredType}`);
      return { text: `with label: ${label}`, test: ({ labels }) => labels.includes(label) };
    }
    case propertyTypes.constraint:
      return readConstraintProperty(value);
    default:
      return undefined;
  }
}

function apiPredicate({ group, version, kind }: ApiName): Predicate {
  return {
    text: `providing an API with group: ${group}, version: ${version}, kind: ${kind}`,
    test: ({ apis }) =>
      apis.some((api) => api.group === group && api.version === version && api.kind === kind),
    index: { api: { group, version, kind } },
  };
}

function packagePredicate(name: string, rangeText: string): Predicate {
  const range: VersionRange = parseRange(rangeText);
  return {
    text: `with package: ${name} and with version in range: ${rangeText}`,
    test: (entry) => hasPackage(entry, name) && isInRange(entry, range),
    index: { package: name },
  };
}

/** Reports whether an entry belongs to a package, by name or property. */
export function hasPackage({ packages, package: own }: ResolverEntry, name: string): boolean {
  return own === name || packages.some((property) => property.name === name);
}

function isInRange({ packages, version }: ResolverEntry, range: VersionRange): boolean {
  if (packages.some((property) => property.version !== undefined && range.contains(property.version)))
    return true;
  return version !== undefined && range.contains(version);
}

/** An `olm.constraint` after Go's decoder. */
interface Constraint {
  failureMessage: string;
  cel?: { rule: string };
  package?: { packageName: string; versionRange: string };
  gvk?: ApiName;
  all?: Constraint[];
  any?: Constraint[];
  not?: Constraint[];
}

function readConstraintProperty(value: JsonValue): Predicate {
  let constraint: Constraint;
  try {
    if (Buffer.byteLength(encodeGoJson(value)) > maxConstraintBytes) {
      const problem = `olm.constraint value is greater than max constraint size ${maxConstraintBytes} bytes`;
      throw new OpmateError('INVALID', problem);
    }
    constraint = parseConstraint(value, 0);
  } catch (error) {
    throw withPrefix('parse olm.constraint', error);
  }
  try {
    return convertConstraint(constraint);
  } catch (error) {
    throw withPrefix('convert olm.constraint to resolver predicate', error);
  }
}

function withPrefix(prefix: string, error: unknown): unknown {
  return error instanceof OpmateError ? new OpmateError('INVALID', `${prefix}: ${getMessage(error)}`) : error;
}

const texts = (...names: string[]): ReadonlySet<string> => new Set(names);
const fieldsByKind = {
  constraint: texts('failureMessage', 'cel', 'package', 'gvk', 'all', 'any', 'not'),
  cel: texts('rule'),
  package: texts('packageName', 'versionRange'),
  gvk: texts('group', 'version', 'kind'),
  compound: texts('constraints'),
};

/** Decodes like Go's decoder with unknown fields refused. */
function parseConstraint(value: JsonValue, depth: number): Constraint {
  if (depth > maxDepth) throw new OpmateError('INVALID', 'exceeded max depth');
  if (value === null) return { failureMessage: '' };
  const object = expectObject(value, 'constraint');
  const constraint: Constraint = { failureMessage: textField(object, 'failureMessage') };
  const cel = objectField(object, 'cel', 'cel');
  if (cel !== undefined) constraint.cel = { rule: textField(cel, 'rule') };
  const required = objectField(object, 'package', 'package');
  if (required !== undefined)
    constraint.package = {
      packageName: textField(required, 'packageName'),
      versionRange: textField(required, 'versionRange'),
    };
  const gvk = objectField(object, 'gvk', 'gvk');
  if (gvk !== undefined)
    constraint.gvk = {
      group: textField(gvk, 'group'),
      version: textField(gvk, 'version'),
      kind: textField(gvk, 'kind'),
    };
  for (const kind of ['all', 'any', 'not'] as const) {
    const compound = objectField(object, kind, 'compound');
    if (compound === undefined) continue;
    const parts = findField(compound, 'constraints') ?? [];
    if (!Array.isArray(parts)) throw mismatch('constraints');
    constraint[kind] = parts.map((part) => parseConstraint(part, depth + 1));
  }
  return constraint;
}

function expectObject(value: JsonValue, kind: keyof typeof fieldsByKind): JsonObject {
  if (!isJsonObject(value)) throw mismatch(kind);
  const known = [...fieldsByKind[kind]].map((name) => name.toLowerCase());
  const unknown = Object.keys(value).find((key) => !known.includes(key.toLowerCase()));
  if (unknown !== undefined) throw new OpmateError('INVALID', `json: unknown field ${quoteGo(unknown)}`);
  return value;
}

function objectField(
  object: JsonObject,
  name: string,
  kind: keyof typeof fieldsByKind,
): JsonObject | undefined {
  const value = findField(object, name) ?? null;
  return value === null ? undefined : expectObject(value, kind);
}

function textField(object: JsonObject, name: string): string {
  const value = findField(object, name) ?? '';
  if (typeof value !== 'string') throw mismatch(name);
  return value;
}

function mismatch(name: string): OpmateError {
  return new OpmateError('INVALID', `json: cannot unmarshal value of ${quoteGo(name)}`);
}

/** The first kind that a constraint has applies, in this order. */
function convertConstraint(constraint: Constraint): Predicate {
  if (constraint.gvk !== undefined) return apiPredicate(constraint.gvk);
  if (constraint.package !== undefined)
    return packagePredicate(constraint.package.packageName, constraint.package.versionRange);
  const join = (parts: readonly Predicate[], by: string): string => parts.map(({ text }) => text).join(by);
  if (constraint.all !== undefined) {
    const parts = constraint.all.map(convertConstraint);
    const index = parts.find((part) => part.index !== undefined)?.index;
    const test = (entry: ResolverEntry): boolean => parts.every((part) => part.test(entry));
    return { text: join(parts, ' and '), test, ...(index && { index }) };
  }
  if (constraint.any !== undefined) {
    const parts = constraint.any.map(convertConstraint);
    return { text: join(parts, ' or '), test: (entry) => parts.some((part) => part.test(entry)) };
  }
  if (constraint.not !== undefined) {
    const parts = constraint.not.map(convertConstraint);
    return { text: join(parts, ' and not '), test: (entry) => !parts.some((part) => part.test(entry)) };
  }
  if (constraint.cel === undefined) throw new OpmateError('INVALID', 'constraint is empty');
  const { rule } = constraint.cel;
  const compiled = compilePropertyRule(rule);
  return {
    text: `with constraint: ${quoteGo(rule)} and message: ${quoteGo(constraint.failureMessage)}`,
    test: ({ properties }) => compiled.evaluate(properties).holds,
  };
}
