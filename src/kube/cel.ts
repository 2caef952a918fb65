import { Environment } from '@marcbachmann/cel-js';
import { OpmateError, getMessage } from '../core/errors.js';
import { toEngineText } from './cel-text.js';
import { compileGoPattern } from './go-pattern.js';
import { runWithin } from './time-limit.js';

/** A node of a parsed expression, as the library makes it; macros keep the form in which they were written. */
export interface CelNode {
  op: string;
  /** Operands, by operator: nodes, names, lists of nodes. */
  args: unknown;
  start: number;
  end: number;
  /** The whole expression. */
  input: string;
  /** Static type, after the expression was checked. */
  checkedType?: { name: string; kind?: string; valueType?: { name: string } };
}

/** A fault of an expression, and the zero-based offset of the character where it is. */
export interface CelFault {
  problem: string;
  offset: number;
}

/** An expression that does not compile. */
export class CelError extends OpmateError {
  override readonly name: string = 'CelError';
  constructor(problem: string) {
    super('INVALID', problem);
  }
}

/** A function that expressions can call; integers are bigint, doubles are number. Throws for an evaluation error. */
type CelFunction = (...args: never[]) => unknown;

/** Declares what expressions can use. */
interface CelOptions {
  /** Types by variable, such as `list<map<string, dyn>>`. */
  variables: Readonly<Record<string, string>>;
  /** Further functions by signature, such as `semver_compare(dyn, dyn): int`. */
  functions?: Readonly<Record<string, CelFunction>>;
  /** Names of functions and methods beyond the standard library; all that the engine has, if `all`. */
  extensions: readonly string[] | 'all';
  /** Allows `1 < 1.5`, as the API server does. */
  comparesAcrossTypes: boolean;
  /** Finds further static faults; returns the first. */
  check?: (root: CelNode) => CelFault | undefined;
}

/** A compiled expression. */
export interface CelProgram {
  /** Static type, such as `bool` or `dyn`. */
  type: string;
  /** Returns the value for variables. Throws CelError for an evaluation error, and at the time limit. */
  evaluate(variables: Readonly<Record<string, unknown>>): unknown;
}

/** Functions and methods of the standard library. (Source: CEL specification, standard definitions.) */
const standardNames: ReadonlySet<string> = new Set(
  (
    'bool bytes contains double duration dyn endsWith getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear ' +
    'getHours getMilliseconds getMinutes getMonth getSeconds int matches size startsWith string timestamp type uint ' +
    'has all exists exists_one filter map'
  ).split(' '),
);
/** Macros that declare a variable for each element. */
export const comprehensions: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'filter', 'map']);

/** Method that stands for `matches`, which the engine does not let replace. */
const patternMethod = 'matchesGoPattern';

const maxLength = 131_072;
const tooDeep = 'nested too deeply';
const maxInt = 2n ** 63n - 1n;
const maxMilliseconds = 1000;
const limits = { maxAstNodes: 20_000, maxDepth: 250, maxListElements: 1000, maxMapEntries: 1000 };

/**
 * Returns a compiler of expressions of the Common Expression Language. Its results equal those of cel-go, whose
 * regular expressions are translated to those of JavaScript. Expressions are limited in length, depth and time.
 */
export function createCelCompiler(options: CelOptions): (text: string) => CelProgram {
  const environment = createEnvironment(options);
  const allowed =
    options.extensions === 'all' ? undefined : new Set([...standardNames, ...options.extensions]);
  for (const signature of Object.keys(options.functions ?? {}))
    allowed?.add(signature.replace(/\(.*/, '').replace(/^.*\./, ''));
  const compile = (written: string): CelProgram => {
    const text = toEngineText(written);
    const parsed = parse(environment, text);
    const unknown = allowed === undefined ? undefined : findUnknownName(parsed.ast as CelNode, allowed);
    if (unknown !== undefined) throw locate(unknown);
    // The engine accepts has() of names and fields only, and its methods cannot be replaced.
    const rewritten = rewrite(parsed.ast as CelNode, text);
    const program = rewritten === text ? parsed : parse(environment, rewritten);
    const checked = program.check();
    if (!checked.valid) throw describe(checked.error, rewritten === text);
    const root = program.ast as CelNode;
    const fault =
      findTypeFault(root) ??
      (options.comparesAcrossTypes ? undefined : findMixedComparison(root)) ??
      options.check?.(root);
    if (fault !== undefined) throw locate(fault);
    const evaluate = (variables: Readonly<Record<string, unknown>>): unknown => {
      try {
        return program({ ...variables });
      } catch (error) {
        throw describe(error, false);
      }
    };
    return { type: checked.type ?? 'dyn', evaluate: isCostly(root) ? withTimeLimit(evaluate) : evaluate };
  };
  return (text) => {
    if (text.length > maxLength) throw new CelError(`longer than ${maxLength} characters`);
    try {
      return compile(text);
    } catch (error) {
      throw error instanceof RangeError ? new CelError(tooDeep) : error;
    }
  };
}

function createEnvironment({ variables, functions = {} }: CelOptions): Environment {
  const environment = new Environment({ homogeneousAggregateLiterals: false, limits });
  for (const [name, type] of Object.entries(variables)) environment.registerVariable(name, type);
  const matches = (text: string, pattern: string): boolean => compileGoPattern(pattern).test(text);
  environment.registerFunction('matches(string, string): bool', matches);
  environment.registerFunction(`string.${patternMethod}(string): bool`, matches);
  environment.registerFunction('string(google.protobuf.Timestamp): string', (time: Date) =>
    time.toISOString().replace(/\.?0*Z$/, 'Z'),
  );
  environment.registerFunction('string(google.protobuf.Duration): string', String);
  for (const [signature, run] of Object.entries(functions)) environment.registerFunction(signature, run);
  return environment;
}

function parse(environment: Environment, text: string): ReturnType<Environment['parse']> {
  try {
    return environment.parse(text);
  } catch (error) {
    throw describe(error, true);
  }
}

/** Returns the error of the engine as ours; `isPlaced` if its offsets are those of the text. */
function describe(error: unknown, isPlaced: boolean): CelError {
  if (error instanceof RangeError) return new CelError(tooDeep);
  const { summary = getMessage(error), range } = error as { summary?: string; range?: { start: number } };
  const problem = summary.split('\n')[0] as string;
  return isPlaced && range !== undefined ? locate({ problem, offset: range.start }) : new CelError(problem);
}

function locate({ problem, offset }: CelFault): CelError {
  return new CelError(`${problem} at character ${offset + 1}`);
}

/** Calls `visit` for a node and all nodes in it, outer nodes first. */
function* walkCel(node: unknown): Generator<CelNode> {
  if (Array.isArray(node)) for (const item of node) yield* walkCel(item);
  else if (isNode(node)) {
    yield node;
    yield* walkCel(node.args);
  }
}

function isNode(value: unknown): value is CelNode {
  return typeof value === 'object' && value !== null && 'op' in value && 'start' in value;
}

/** Finds faults of static types that the engine does not report. */
function findTypeFault(root: CelNode): CelFault | undefined {
  for (const { op, args, start } of walkCel(root)) {
    const [target, key] = Array.isArray(args) ? (args as (CelNode | undefined)[]) : [];
    if (op === 'value' && typeof args === 'bigint' && args > maxInt) {
      const isNegated = args === maxInt + 1n && start > 0 && root.input[start - 1] === '-';
      if (!isNegated) return { problem: 'invalid int literal', offset: start };
    }
    const [targetType = '', keyType = ''] = [target?.checkedType?.name, key?.checkedType?.name];
    if (op === '[]' && targetType.startsWith('map<string,') && numbers.has(keyType))
      return { problem: `no such overload: ${targetType}[${keyType}]`, offset: start };
  }
  return undefined;
}

function findUnknownName(root: CelNode, allowed: ReadonlySet<string>): CelFault | undefined {
  for (const { op, args, start } of walkCel(root)) {
    const isCall = op === 'call' || op === 'rcall';
    const [name] = isCall ? (args as [string]) : [undefined];
    if (name !== undefined && !allowed.has(name))
      return { problem: `undeclared reference to '${name}' (in container '')`, offset: start };
    if (op === 'id' && args === 'cel' && !allowed.has('bind'))
      return { problem: "undeclared reference to 'cel' (in container '')", offset: start };
  }
  return undefined;
}

const orders: ReadonlySet<string> = new Set(['<', '<=', '>', '>=']);
const numbers: ReadonlySet<string> = new Set(['int', 'uint', 'double']);

/**
 * Finds an order of numbers of different types. cel-go forgets this restriction with the first comprehension that it
 * checks. (Source: cel-go, checker/env.go, enterScope.)
 */
function findMixedComparison(root: CelNode): CelFault | undefined {
  for (const node of walkChecked(root)) {
    const { op, args, start } = node;
    if (isComprehension(node)) return undefined;
    if (!orders.has(op)) continue;
    const types = (args as CelNode[]).map(({ checkedType }) => checkedType?.name ?? 'dyn');
    const [left, right] = types as [string, string];
    if (left !== right && numbers.has(left) && numbers.has(right))
      return { problem: `no such overload: ${left} ${op} ${right}`, offset: start };
  }
  return undefined;
}

/** Yields nodes as cel-go checks them: operands before what has them, the range of a comprehension before its steps. */
function* walkChecked(node: CelNode): Generator<CelNode> {
  const [range, ...steps] = childNodes(node.args);
  if (range !== undefined) yield* walkChecked(range);
  if (isComprehension(node)) yield node;
  for (const step of steps) yield* walkChecked(step);
  if (!isComprehension(node)) yield node;
}

function isComprehension({ op, args }: CelNode): boolean {
  return op === 'rcall' && comprehensions.has((args as [string])[0]);
}

/**
 * Returns the text of an expression with `has(E.f)`, where E is more than a name and fields, as
 * `[E].exists_one(v, has(v.f))`, and with methods `matches` renamed.
 */
function rewrite(root: CelNode, text: string): string {
  const variable = freeName(text);
  return text.slice(0, root.start) + rewriteNode(root, text, variable) + text.slice(root.end);
}

/** The range of a node may leave out parentheses: its text has a meaning only between those of its neighbors. */
function rewriteNode(node: CelNode, text: string, variable: string): string {
  const pieces: string[] = [];
  let end = node.start;
  for (const child of childNodes(node.args).sort((a, b) => a.start - b.start)) {
    pieces.push(text.slice(end, child.start), rewriteNode(child, text, variable));
    end = child.end;
  }
  pieces.push(text.slice(end, node.end));
  const [name] = node.op === 'call' || node.op === 'rcall' ? (node.args as [string]) : [undefined];
  // The third piece is between receiver and arguments.
  if (node.op === 'rcall' && name === 'matches')
    pieces[2] = (pieces[2] as string).replace('matches', patternMethod);
  const rewritten = pieces.join('');
  return node.op === 'call' && name === 'has' ? rewriteHas(node, rewritten, variable) : rewritten;
}

function rewriteHas({ args }: CelNode, text: string, variable: string): string {
  const [, [tested]] = args as [string, CelNode[]];
  const fields: string[] = [];
  let root = tested;
  while (root?.op === '.') {
    const [inner, field] = root.args as [CelNode, string];
    fields.unshift(field);
    root = inner;
  }
  if (root === undefined || root.op === 'id' || fields.length === 0) return text;
  const chain = fields.map((field) => `\\s*\\.\\s*${field}`).join('');
  const [, inner] = new RegExp(`^has\\s*\\(([^]*)${chain}\\s*\\)$`).exec(text) ?? [];
  if (inner === undefined) return text;
  return `[${inner}].exists_one(${variable}, has(${[variable, ...fields].join('.')}))`;
}

function childNodes(args: unknown): CelNode[] {
  if (Array.isArray(args)) return args.flatMap(childNodes);
  return isNode(args) ? [args] : [];
}

function freeName(text: string): string {
  let name = 'v';
  while (text.includes(name)) name += '_';
  return name;
}

function isCostly(root: CelNode): boolean {
  let count = 0;
  for (const { op, args } of walkCel(root)) {
    if (op !== 'call' && op !== 'rcall') continue;
    const [name] = args as [string];
    if (name === 'matches' || name === patternMethod) return true;
    if (comprehensions.has(name)) count++;
  }
  return count > 1;
}

function withTimeLimit<A, R>(run: (argument: A) => R): (argument: A) => R {
  return (argument) => {
    let result: { value: R } | undefined;
    const isDone = runWithin(maxMilliseconds, () => {
      result = { value: run(argument) };
    });
    if (!isDone || result === undefined) throw new CelError(`timed out after ${maxMilliseconds} ms`);
    return result.value;
  };
}
