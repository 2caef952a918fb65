import { getMessage } from '../core/errors.js';
import { SemverError, compareVersions, parseTolerantVersion } from '../core/semver.js';
import { formatGoFloat } from '../document/go-float.js';
import { type JsonValue, isJsonObject } from '../document/json.js';
import {
  CelError,
  type CelFault,
  type CelNode,
  type CelProgram,
  comprehensions,
  createCelCompiler,
} from '../kube/cel.js';

/** A property of a bundle, with its value parsed. */
export interface RuleProperty {
  type: string;
  value: JsonValue;
}

/** A compiled rule of an `olm.constraint`. */
interface PropertyRule {
  /** Evaluates the rule for the properties of one bundle. An evaluation error does not hold. */
  evaluate(properties: readonly RuleProperty[]): { holds: boolean; error?: string };
}

let compile: ((text: string) => CelProgram) | undefined;

/**
 * Compiles a CEL rule over `properties`, a list of maps with `type` and `value`. Throws CelError unless it has type bool.
 * (Source: operator-framework/api, pkg/constraints.)
 */
export function compilePropertyRule(rule: string): PropertyRule {
  compile ??= createCelCompiler({
    variables: { properties: 'list<map<string, dyn>>' },
    functions: { 'semver_compare(dyn, dyn): int': compareSemver },
    extensions: [],
    comparesAcrossTypes: false,
    check: findUntypedRange,
  });
  const program = compile(rule);
  if (program.type !== 'bool') throw new CelError('cel expressions must have type Bool');
  return {
    evaluate: (properties) => {
      const values = properties.map(
        ({ type, value }) =>
          new Map([
            ['type', type],
            ['value', toCel(value)],
          ]),
      );
      try {
        return { holds: program.evaluate({ properties: values }) === true };
      } catch (error) {
        if (error instanceof CelError) return { holds: false, error: error.message };
        throw error;
      }
    },
  };
}

/** Returns the fault of a rule; undefined if it compiles. */
export function findRuleFault(rule: string): string | undefined {
  try {
    compilePropertyRule(rule);
    return undefined;
  } catch (error) {
    if (error instanceof CelError) return error.message;
    throw error;
  }
}

/** All numbers of JSON are doubles. The engine detects the type of a map by its `constructor`, a key that is left out. */
function toCel(value: JsonValue): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map(toCel);
  if (!isJsonObject(value)) return value;
  const map = Object.create(null) as Record<string, unknown>;
  for (const [key, item] of Object.entries(value)) if (key !== 'constructor') map[key] = toCel(item);
  return map;
}

function compareSemver(a: unknown, b: unknown): bigint {
  return BigInt(compareVersions(parsePrinted(a), parsePrinted(b)));
}

/** Returns a value as Go's `fmt` prints it; lists, maps and times, which are no versions, in brackets. */
function printGo(value: unknown): string {
  if (value === null) return 'NULL_VALUE';
  if (typeof value === 'number') return formatGoFloat(value);
  const isUnsigned = typeof value === 'object' && typeof value.valueOf() === 'bigint';
  return typeof value === 'object' && !isUnsigned ? '[]' : String(value);
}

function parsePrinted(value: unknown): ReturnType<typeof parseTolerantVersion> {
  const text = printGo(value);
  try {
    return parseTolerantVersion(text);
  } catch (error) {
    if (!(error instanceof SemverError)) throw error;
    throw new CelError(`unable to parse '${text}' to semver format: ${getMessage(error)}`);
  }
}

/** Part of `properties` that an expression returns: the list, one of its maps, a value of a map, a list of values. */
type Origin = 'list' | 'map' | 'value' | 'values' | undefined;

/**
 * Finds a comprehension over a property's value: it has type `any`, which cel-go does not accept as a range unless it is
 * wrapped in `dyn()`. The engine does not distinguish the two types.
 */
function findUntypedRange(root: CelNode): CelFault | undefined {
  let fault: CelFault | undefined;
  const visit = (node: unknown, scope: ReadonlyMap<string, Origin>): Origin => {
    if (Array.isArray(node)) for (const item of node) visit(item, scope);
    if (Array.isArray(node) || !isCelNode(node)) return undefined;
    const { op, args } = node;
    if (op === 'id') return scope.get(args as string);
    if (op === 'rcall') return visitMethod(node, scope);
    if (op === '.' || op === '[]') {
      const [target, key] = args as [CelNode, unknown];
      const origin = visit(target, scope);
      visit(key, scope);
      return origin === 'list' ? 'map' : origin === 'map' || origin === 'values' ? 'value' : undefined;
    }
    visit(args, scope);
    return undefined;
  };
  const visitMethod = ({ args }: CelNode, scope: ReadonlyMap<string, Origin>): Origin => {
    const [name, receiver, items] = args as [string, CelNode, CelNode[]];
    const origin = visit(receiver, scope);
    const [variable] = items;
    if (!comprehensions.has(name) || variable?.op !== 'id') {
      visit(items, scope);
      return undefined;
    }
    if (origin === 'value') {
      const problem = "expression of type 'any' cannot be range of a comprehension";
      fault ??= { problem, offset: receiver.start };
    }
    const element: Origin = origin === 'list' ? 'map' : origin === 'values' ? 'value' : undefined;
    const inner = new Map(scope).set(variable.args as string, element);
    const results = items.slice(1).map((item) => visit(item, inner));
    if (name === 'filter') return origin;
    if (name !== 'map') return undefined;
    const result = results.at(-1);
    return result === 'map' ? 'list' : result === 'value' ? 'values' : undefined;
  };
  visit(root, new Map([['properties', 'list']]));
  return fault;
}

function isCelNode(value: unknown): value is CelNode {
  return typeof value === 'object' && value !== null && 'op' in value;
}
