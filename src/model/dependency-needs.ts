import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { type Version, parseRange } from '../core/semver.js';
import { type Property, propertyTypes } from './declarative-config.js';
import { parseGvkProperty, parsePackageRequiredProperty, getPropertyValue } from './properties.js';

/** The properties of a bundle on which others can depend. */
export interface Offer {
  package: string;
  /** Undefined if missing or invalid. */
  version: Version | undefined;
  /** Keys of provided APIs; see `readProvidedApi`. */
  apis: readonly string[];
}

/** A need that one bundle meets. */
export interface SingleNeed {
  kind: 'one';
  /** Continues a sentence that ends with `needs`. */
  text: string;
  /** Required package; undefined if `api` is set. */
  package: string | undefined;
  /** Key of the required API; undefined if `package` is set. */
  api: string | undefined;
  isMetBy(offer: Offer): boolean;
}

/** Several needs, of which all or one must be met. */
interface JoinedNeed {
  kind: 'every' | 'some';
  text: string;
  parts: readonly Need[];
}

/** A need that opmate cannot evaluate. */
interface UnclearNeed {
  kind: 'unclear';
  text: string;
  /** It is a valid CEL rule rather than a fault of the bundle. */
  isCel: boolean;
}

export type Need = SingleNeed | JoinedNeed | UnclearNeed;

type Test = (offer: Offer) => boolean;

/** A CEL rule within `not`. */
class ExcludedCelError extends OpmateError {}

/** Types of properties that express dependencies. */
export const dependencyTypes: ReadonlySet<string> = new Set([
  propertyTypes.packageRequired,
  propertyTypes.gvkRequired,
  propertyTypes.constraint,
]);

const maxDepth = 16;
const maxPartsNamed = 5;

/**
 * Returns the need that a property of a bundle expresses; undefined for other properties. `not` alone needs nothing;
 * within `all` it excludes bundles that would meet the rest. Never throws: an invalid property is unclear. (Source:
 * constraints of operator-framework/api; OLM's resolver.)
 */
export function readNeed(type: string, value: JsonValue): Need | undefined {
  try {
    switch (type) {
      case propertyTypes.packageRequired:
        return packageNeed(value, []);
      case propertyTypes.gvkRequired:
        return apiNeed(value, []);
      case propertyTypes.constraint:
        return readConstraint(value, [], 0);
      default:
        return undefined;
    }
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    const text = `what its ${type} does not say clearly (${error.message})`;
    return { kind: 'unclear', text, isCel: error instanceof ExcludedCelError };
  }
}

/** Returns the key of an API. Throws OpmateError INVALID. */
function getApiKey(value: JsonValue): string {
  const { group, version, kind } = parseGvkProperty(value);
  return `${group}/${version}/${kind}`;
}

/**
 * Returns the key of the API that a property provides; undefined for other properties and for an invalid one, which
 * validation reports.
 */
export function readProvidedApi({ type, value }: Pick<Property, 'type' | 'value'>): string | undefined {
  if (type !== propertyTypes.gvk) return undefined;
  try {
    return getApiKey(getPropertyValue(value));
  } catch (error) {
    if (error instanceof OpmateError) return undefined;
    throw error;
  }
}

function packageNeed(value: JsonValue, excluded: readonly Test[]): SingleNeed {
  const { packageName, versionRange } = parsePackageRequiredProperty(value);
  if (packageName === '') throw new OpmateError('INVALID', 'no package is named');
  const range = parseRange(versionRange);
  return {
    kind: 'one',
    text: `package ${quoteGo(packageName)} ${quoteGo(versionRange)}`,
    package: packageName,
    api: undefined,
    isMetBy: (offer) =>
      offer.package === packageName &&
      offer.version !== undefined &&
      range.contains(offer.version) &&
      !excluded.some((isExcluded) => isExcluded(offer)),
  };
}

function apiNeed(value: JsonValue, excluded: readonly Test[]): SingleNeed {
  const { group, version, kind } = parseGvkProperty(value);
  if (version === '' || kind === '') throw new OpmateError('INVALID', 'no API is named');
  const api = getApiKey(value);
  return {
    kind: 'one',
    text: `API ${quoteGo(kind)} of ${group === '' ? '' : `${group}/`}${version}`,
    package: undefined,
    api,
    isMetBy: (offer) => offer.apis.includes(api) && !excluded.some((isExcluded) => isExcluded(offer)),
  };
}

const constraintKinds = ['package', 'gvk', 'all', 'any', 'not', 'cel'] as const;

/** Returns the kind and value of a constraint. Throws OpmateError INVALID unless it has exactly one. */
function getConstraint(value: JsonValue): { kind: (typeof constraintKinds)[number]; value: JsonValue } {
  if (!isJsonObject(value)) throw new OpmateError('INVALID', 'a constraint is not an object');
  const kinds = constraintKinds.filter((kind) => Object.hasOwn(value, kind) && value[kind] !== null);
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    const problem =
      kind === undefined ? 'of none of the known kinds' : `of several kinds: ${kinds.join(', ')}`;
    throw new OpmateError('INVALID', `a constraint is ${problem}`);
  }
  return { kind, value: value[kind] as JsonValue };
}

function getParts(value: JsonValue): JsonValue[] {
  const parts = isJsonObject(value) ? (value as JsonObject)['constraints'] : undefined;
  if (Array.isArray(parts)) return parts;
  throw new OpmateError('INVALID', 'a constraint has no list of constraints');
}

function readConstraint(constraint: JsonValue, excluded: readonly Test[], depth: number): Need | undefined {
  if (depth > maxDepth) throw new OpmateError('INVALID', 'its constraints are nested too deeply');
  const { kind, value } = getConstraint(constraint);
  switch (kind) {
    case 'package':
      return packageNeed(value, excluded);
    case 'gvk':
      return apiNeed(value, excluded);
    case 'all':
      return readAll(getParts(value), excluded, depth);
    case 'any':
      return readAny(getParts(value), excluded, depth);
    case 'not':
      return undefined;
    case 'cel':
      return { kind: 'unclear', text: 'what a rule in CEL says', isCel: true };
  }
}

function readAll(parts: readonly JsonValue[], excluded: readonly Test[], depth: number): Need | undefined {
  const isNot = (part: JsonValue): boolean => getConstraint(part).kind === 'not';
  const tests = [...excluded, ...parts.filter(isNot).map((part) => notTest(part, depth))];
  const needs = parts
    .filter((part) => !isNot(part))
    .map((part) => readConstraint(part, tests, depth + 1))
    .filter((need) => need !== undefined);
  return joined('every', mergePackages(needs));
}

function readAny(parts: readonly JsonValue[], excluded: readonly Test[], depth: number): Need | undefined {
  const needs = parts.map((part) => readConstraint(part, excluded, depth + 1));
  // An alternative without need is always met.
  if (needs.includes(undefined)) return undefined;
  return joined('some', needs as Need[]);
}

function joined(kind: 'every' | 'some', parts: readonly Need[]): Need | undefined {
  const [first] = parts;
  if (first === undefined || parts.length === 1) return first;
  const more = parts.length - maxPartsNamed;
  const named = parts.slice(0, maxPartsNamed).map(({ text }) => text);
  if (more > 0) named.push(`${more} more`);
  return { kind, text: `${kind === 'every' ? 'all' : 'one'} of ${named.join('; ')}`, parts };
}

/** Merges needs for the same package, which one bundle must meet. */
function mergePackages(needs: readonly Need[]): Need[] {
  const merged = new Map<string, SingleNeed>();
  const all: Need[] = [];
  for (const need of needs) {
    const name = need.kind === 'one' ? need.package : undefined;
    const known = name === undefined ? undefined : merged.get(name);
    if (need.kind !== 'one' || name === undefined) all.push(need);
    else if (known === undefined) {
      const own = { ...need };
      merged.set(name, own);
      all.push(own);
    } else {
      const { isMetBy } = known;
      known.isMetBy = (offer) => isMetBy(offer) && need.isMetBy(offer);
      known.text += ` that is also ${need.text}`;
    }
  }
  return all;
}

/** Returns a test for the bundles that a `not` excludes. */
function notTest(part: JsonValue, depth: number): Test {
  const tests = getParts(getConstraint(part).value).map((item) => readTest(item, depth + 1));
  return (offer) => tests.some((test) => test(offer));
}

function readTest(constraint: JsonValue, depth: number): Test {
  if (depth > maxDepth) throw new OpmateError('INVALID', 'its constraints are nested too deeply');
  const { kind, value } = getConstraint(constraint);
  switch (kind) {
    case 'package':
      return packageNeed(value, []).isMetBy;
    case 'gvk':
      return apiNeed(value, []).isMetBy;
    case 'all':
    case 'any': {
      const tests = getParts(value).map((part) => readTest(part, depth + 1));
      const isMet = (offer: Offer) => (test: Test) => test(offer);
      return kind === 'all' ? (offer) => tests.every(isMet(offer)) : (offer) => tests.some(isMet(offer));
    }
    case 'not': {
      const test = notTest(constraint, depth);
      return (offer) => !test(offer);
    }
    case 'cel':
      throw new ExcludedCelError('UNSUPPORTED', 'what it excludes is a rule in CEL');
  }
}
