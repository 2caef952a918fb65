import { type EvaluationLimits, Budget } from './budget.js';
import { TemplateFault, evaluationFault } from './fault.js';
import { type GoValue, GoStruct, getField, isGoMap, isTrue, getKeys, printValue } from './go-values.js';
import { type ParsedTemplate, parseTemplate } from './parse.js';
import type { Operand, Pipeline, TemplateNode } from './syntax.js';

/** Evaluator interface for functions. */
export interface CallContext {
  budget: Budget;
  /** Renders a named template. */
  include: (name: string, data: GoValue) => string;
  /** Renders text as a template. */
  renderText: (text: string, data: GoValue) => string;
}

/** A template function, which checks its arguments. Throws TemplateFault. */
export type TemplateFunction = (args: readonly GoValue[], context: CallContext) => GoValue;

interface TemplateSetOptions {
  functions: ReadonlyMap<string, TemplateFunction>;
  limits?: Partial<EvaluationLimits> | undefined;
}

/** Control flow out of a list of nodes. */
type Flow = 'next' | 'break' | 'continue';

interface Variable {
  name: string;
  value: GoValue;
}

/** Scope of an evaluation. */
interface Scope {
  template: string;
  variables: Variable[];
  output: string[];
}

/**
 * Templates that refer to each other by name, as those of a chart do. A later definition replaces an earlier one. All
 * evaluations share one budget. (Source: Go, text/template.)
 */
export class TemplateSet {
  readonly #options: TemplateSetOptions;
  readonly #named = new Map<string, { body: readonly TemplateNode[]; template: string }>();
  readonly #budget: Budget;
  readonly #context: CallContext;

  constructor(options: TemplateSetOptions) {
    this.#options = options;
    this.#budget = new Budget(options.limits);
    this.#context = {
      budget: this.#budget,
      include: (name, data) => this.render(name, data),
      renderText: (text, data) => this.renderText(text, data),
    };
  }

  /** Parses a template and adds its definitions. Throws TemplateFault of the kind `syntax` or `limit`. */
  add(name: string, text: string): void {
    const parsed = this.#parse(name, text);
    this.#named.set(name, { body: parsed.body, template: name });
    this.#define(parsed, name);
  }

  #parse(name: string, text: string): ParsedTemplate {
    this.#budget.countSteps(Math.ceil(text.length / 100));
    return parseTemplate(text, { name, isFunction: (item) => this.#options.functions.has(item) });
  }

  #define({ defined }: ParsedTemplate, template: string): void {
    for (const [name, body] of defined) this.#named.set(name, { body, template });
  }

  /** Renders a template. Throws TemplateFault with its place. */
  render(name: string, data: GoValue): string {
    const body = this.#named.get(name);
    if (body === undefined) throw evaluationFault(`no template ${JSON.stringify(name)}`);
    return this.#evaluate(body.body, body.template, data);
  }

  /** Renders text with the templates of this set; its own definitions are private to it. Throws TemplateFault. */
  renderText(text: string, data: GoValue): string {
    const name = 'tpl';
    const parsed = this.#parse(name, text);
    const before = [...parsed.defined.keys()].map((key) => [key, this.#named.get(key)] as const);
    this.#define(parsed, name);
    try {
      return this.#evaluate(parsed.body, name, data);
    } finally {
      for (const [key, value] of before)
        if (value === undefined) this.#named.delete(key);
        else this.#named.set(key, value);
    }
  }

  #evaluate(body: readonly TemplateNode[], template: string, data: GoValue): string {
    return this.#budget.nested(() => {
      const scope: Scope = { template, variables: [{ name: '$', value: data }], output: [] };
      this.#list(body, data, scope);
      return scope.output.join('');
    });
  }

  #list(nodes: readonly TemplateNode[], dot: GoValue, scope: Scope): Flow {
    const mark = scope.variables.length;
    for (const node of nodes) {
      const flow = this.#node(node, dot, scope);
      if (flow !== 'next') {
        scope.variables.length = mark;
        return flow;
      }
    }
    scope.variables.length = mark;
    return 'next';
  }

  #node(node: TemplateNode, dot: GoValue, scope: Scope): Flow {
    if (node.kind === 'text') {
      this.#write(node.text, scope);
      return 'next';
    }
    try {
      this.#budget.countSteps(1);
      switch (node.kind) {
        case 'action': {
          const value = this.#pipeline(node.pipe, dot, scope);
          if (node.pipe.variables.length === 0) this.#write(value === null ? '' : printValue(value), scope);
          return 'next';
        }
        case 'if':
        case 'with': {
          const mark = scope.variables.length;
          const value = this.#pipeline(node.pipe, dot, scope);
          const isMet = isTrue(value);
          const flow = this.#list(
            isMet ? node.body : node.otherwise,
            isMet && node.kind === 'with' ? value : dot,
            scope,
          );
          scope.variables.length = mark;
          return flow;
        }
        case 'range':
          return this.#range(node.pipe, node.body, node.otherwise, dot, scope);
        case 'template': {
          const data = node.pipe === undefined ? null : this.#pipeline(node.pipe, dot, scope);
          this.#write(this.render(node.name, data), scope);
          return 'next';
        }
        default:
          return node.kind;
      }
    } catch (error) {
      throw placed(error, scope.template, node.line);
    }
  }

  #range(
    pipe: Pipeline,
    body: readonly TemplateNode[],
    otherwise: readonly TemplateNode[],
    dot: GoValue,
    scope: Scope,
  ): Flow {
    const mark = scope.variables.length;
    const names = pipe.isAssignment ? pipe.variables : [];
    const value = this.#commands(pipe, dot, scope);
    let count = 0;
    for (const [key, item] of iterateItems(value)) {
      count++;
      this.#budget.countSteps(1);
      const inner = scope.variables.length;
      const [first, second] = pipe.variables;
      const initial: Variable[] = [];
      if (second !== undefined)
        initial.push({ name: first as string, value: key }, { name: second, value: item });
      else if (first !== undefined) initial.push({ name: first, value: item });
      for (const variable of initial) {
        if (names.length > 0) setVariable(scope, variable);
        else scope.variables.push(variable);
      }
      const flow = this.#list(body, item, scope);
      scope.variables.length = inner;
      if (flow === 'break') break;
    }
    const flow = count === 0 ? this.#list(otherwise, dot, scope) : 'next';
    scope.variables.length = mark;
    return flow;
  }

  #pipeline(pipe: Pipeline, dot: GoValue, scope: Scope): GoValue {
    const value = this.#commands(pipe, dot, scope);
    for (const name of pipe.variables) {
      if (pipe.isAssignment) setVariable(scope, { name, value });
      else scope.variables.push({ name, value });
    }
    return value;
  }

  #commands(pipe: Pipeline, dot: GoValue, scope: Scope): GoValue {
    let value: GoValue | undefined;
    for (const command of pipe.commands) value = this.#command(command, value, dot, scope);
    return value ?? null;
  }

  /** Evaluates a command; `last` is the result of the previous one and becomes the last argument. */
  #command(command: readonly Operand[], last: GoValue | undefined, dot: GoValue, scope: Scope): GoValue {
    const [first, ...rest] = command as [Operand, ...Operand[]];
    this.#budget.countSteps(1);
    if (first.kind === 'function') return this.#call(first.name, rest, last, dot, scope);
    const args = (): GoValue[] => [
      ...rest.map((operand) => this.#operand(operand, dot, scope)),
      ...(last === undefined ? [] : [last]),
    ];
    if (first.kind === 'field') return this.#fields(dot, first.names, args());
    if (first.kind === 'variable' && first.names.length > 0)
      return this.#fields(getVariable(scope, first.name), first.names, args());
    if (first.kind === 'chain') return this.#fields(this.#operand(first.of, dot, scope), first.names, args());
    if (rest.length > 0 || last !== undefined) throw evaluationFault("can't give argument to non-function");
    if (first.kind === 'nil') throw evaluationFault('nil is not a command');
    return this.#operand(first, dot, scope);
  }

  /** Reads fields: all fields of nil are nil, but a nil on the path is an error. */
  #fields(value: GoValue, names: readonly string[], args: readonly GoValue[]): GoValue {
    if (value === null) return null;
    const path = names.slice(0, -1).reduce<GoValue>((value, name) => getField(value, name), value);
    return getField(path, names.at(-1) as string, args);
  }

  #call(
    name: string,
    operands: readonly Operand[],
    last: GoValue | undefined,
    dot: GoValue,
    scope: Scope,
  ): GoValue {
    if (name === 'and' || name === 'or') {
      // Operands after the deciding one are not evaluated.
      let value: GoValue = null;
      for (const operand of operands) {
        value = this.#operand(operand, dot, scope);
        if (isTrue(value) === (name === 'or')) return value;
      }
      return last ?? value;
    }
    const call = this.#options.functions.get(name) as TemplateFunction;
    const args = operands.map((operand) => this.#operand(operand, dot, scope));
    if (last !== undefined) args.push(last);
    try {
      return this.#budget.checkValue(call(args, this.#context));
    } catch (error) {
      if (error instanceof TemplateFault && error.kind === 'evaluation' && error.template === undefined)
        throw evaluationFault(`${name}: ${error.message}`);
      throw error;
    }
  }

  #operand(operand: Operand, dot: GoValue, scope: Scope): GoValue {
    switch (operand.kind) {
      case 'dot':
        return dot;
      case 'nil':
        return null;
      case 'literal':
        return operand.value;
      case 'function':
        return this.#call(operand.name, [], undefined, dot, scope);
      case 'field':
        return this.#fields(dot, operand.names, []);
      case 'variable': {
        const value = getVariable(scope, operand.name);
        return operand.names.length === 0 ? value : this.#fields(value, operand.names, []);
      }
      case 'chain':
        return this.#fields(this.#operand(operand.of, dot, scope), operand.names, []);
      case 'pipeline':
        return this.#pipeline(operand.pipe, dot, scope);
    }
  }

  #write(text: string, scope: Scope): void {
    this.#budget.countOutput(text.length);
    scope.output.push(text);
  }
}

function getVariable({ variables }: Scope, name: string): GoValue {
  const variable = variables.findLast((item) => item.name === name);
  if (variable === undefined) throw evaluationFault(`undefined variable ${name}`);
  return variable.value;
}

function setVariable({ variables }: Scope, { name, value }: Variable): void {
  const variable = variables.findLast((item) => item.name === name);
  if (variable === undefined) throw evaluationFault(`undefined variable ${name}`);
  variable.value = value;
}

function* iterateItems(value: GoValue): Generator<[GoValue, GoValue]> {
  const content = value instanceof GoStruct ? value.content : value;
  if (content === null) return;
  if (Array.isArray(content)) {
    // Items appended in the body are not visited, as in Go.
    const items = [...content];
    for (const [i, item] of items.entries()) yield [BigInt(i), item];
  } else if (isGoMap(content)) {
    for (const key of getKeys(content)) yield [key, content[key] as GoValue];
  } else if (typeof content === 'bigint') {
    for (let i = 0n; i < content; i++) yield [i, i];
  } else throw evaluationFault(`range can't iterate over ${printValue(content).slice(0, 100)}`);
}

/**
 * Adds the place of an error. Errors of the engine are limits: the stack may end before the budget for oddly nested
 * values.
 */
function placed(error: unknown, template: string, line: number): unknown {
  if (error instanceof TemplateFault) return error.at(template, line);
  if (error instanceof RangeError) return new TemplateFault('limit', 'nested too deeply', { template, line });
  return error;
}
