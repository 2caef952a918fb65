import { type EvaluationLimits, Budget } from './budget.js';
import { TemplateFault, evaluationFault } from './fault.js';
import { type GoValue, GoStruct, getField, isGoMap, isTrue, getKeys, printValue } from './go-values.js';
import { type ParsedTemplate, parseTemplate } from './parse.js';
import type { ControlNode, Operand, Pipeline, TemplateNode } from './syntax.js';

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

/** Nodes of a template with the name of the template that defines them. */
interface Body {
  nodes: readonly TemplateNode[];
  template: string;
}

/**
 * Returns templates that refer to each other by name, as those of a chart do. A later definition replaces an earlier
 * one. All evaluations share one budget. (Source: Go, text/template.)
 */
export function createTemplateSet({ functions, limits }: TemplateSetOptions) {
  const named = new Map<string, Body>();
  const budget = new Budget(limits);

  const parse = (template: string, text: string): ParsedTemplate => {
    budget.countSteps(Math.ceil(text.length / 100));
    return parseTemplate(text, { name: template, isFunction: (item) => functions.has(item) });
  };

  const define = ({ defined }: ParsedTemplate, template: string): void => {
    for (const [name, nodes] of defined) named.set(name, { nodes, template });
  };

  /** Parses a template and adds its definitions. Throws TemplateFault of the kind `syntax` or `limit`. */
  const add = (name: string, text: string): void => {
    const parsed = parse(name, text);
    named.set(name, { nodes: parsed.body, template: name });
    define(parsed, name);
  };

  const include = (name: string, data: GoValue): string => {
    const body = named.get(name);
    if (body === undefined) throw evaluationFault(`no template ${JSON.stringify(name)}`);
    return budget.nested(() => new Evaluation(body, functions, context).run(data));
  };

  /** Renders a template. Throws TemplateFault with its place. */
  const render = (name: string, data: GoValue): string => withoutNil(include(name, data));

  /** Renders text with the templates of this set; its own definitions are private to it. Throws TemplateFault. */
  const renderText = (text: string, data: GoValue): string => {
    const template = 'tpl';
    const parsed = parse(template, text);
    const before = [...parsed.defined.keys()].map((key) => [key, named.get(key)] as const);
    define(parsed, template);
    try {
      const body = { nodes: parsed.body, template };
      return withoutNil(budget.nested(() => new Evaluation(body, functions, context).run(data)));
    } finally {
      for (const [key, value] of before)
        if (value === undefined) named.delete(key);
        else named.set(key, value);
    }
  };

  const context: CallContext = { budget, include, renderText };
  return { add, render, renderText };
}

/** Returns text without printed nils, which Helm removes from whole files and results of `tpl`, but not of `include`. */
function withoutNil(text: string): string {
  return text.replaceAll('<no value>', '');
}

/** Executes one template: its variables in scope and its output. */
class Evaluation {
  readonly #body: Body;
  readonly #functions: TemplateSetOptions['functions'];
  readonly #context: CallContext;
  readonly #budget: Budget;
  readonly #variables: { name: string; value: GoValue }[] = [];
  readonly #output: string[] = [];

  constructor(body: Body, functions: TemplateSetOptions['functions'], context: CallContext) {
    this.#body = body;
    this.#functions = functions;
    this.#context = context;
    this.#budget = context.budget;
  }

  run(data: GoValue): string {
    this.#variables.push({ name: '$', value: data });
    this.#runList(this.#body.nodes, data);
    return this.#output.join('');
  }

  #write(text: string): void {
    this.#budget.countOutput(text.length);
    this.#output.push(text);
  }

  #findVariable(name: string): { value: GoValue } {
    const variable = this.#variables.findLast((item) => item.name === name);
    if (variable === undefined) throw evaluationFault(`undefined variable ${name}`);
    return variable;
  }

  #setVariable(name: string, value: GoValue, isAssignment: boolean): void {
    if (isAssignment) this.#findVariable(name).value = value;
    else this.#variables.push({ name, value });
  }

  #runList(nodes: readonly TemplateNode[], dot: GoValue): Flow {
    const mark = this.#variables.length;
    let flow: Flow = 'next';
    for (const node of nodes) {
      flow = this.#runNode(node, dot);
      if (flow !== 'next') break;
    }
    this.#variables.length = mark;
    return flow;
  }

  #runNode(node: TemplateNode, dot: GoValue): Flow {
    if (node.kind === 'text') {
      this.#write(node.text);
      return 'next';
    }
    try {
      this.#budget.countSteps(1);
      switch (node.kind) {
        case 'action': {
          const value = this.#getValue(node.pipe, dot);
          if (node.pipe.variables.length === 0) this.#write(printValue(value));
          return 'next';
        }
        case 'if':
        case 'with': {
          const mark = this.#variables.length;
          const value = this.#getValue(node.pipe, dot);
          const flow = isTrue(value)
            ? this.#runList(node.body, node.kind === 'with' ? value : dot)
            : this.#runList(node.otherwise, dot);
          this.#variables.length = mark;
          return flow;
        }
        case 'range':
          return this.#runRange(node, dot);
        case 'template':
          this.#write(
            this.#context.include(node.name, node.pipe === undefined ? null : this.#getValue(node.pipe, dot)),
          );
          return 'next';
        default:
          return node.kind;
      }
    } catch (error) {
      throw placed(error, this.#body.template, node.line);
    }
  }

  #runRange({ pipe, body, otherwise }: ControlNode, dot: GoValue): Flow {
    const mark = this.#variables.length;
    const value = this.#runCommands(pipe, dot);
    // Variables of the pipeline are visible in all rounds.
    const inner = this.#variables.length;
    let isEmpty = true;
    for (const [key, item] of iterateItems(value)) {
      isEmpty = false;
      this.#budget.countSteps(1);
      const values = pipe.variables.length > 1 ? [key, item] : [item];
      for (const [i, name] of pipe.variables.entries())
        this.#setVariable(name, values[i] as GoValue, pipe.isAssignment);
      const flow = this.#runList(body, item);
      this.#variables.length = inner;
      if (flow === 'break') break;
    }
    const flow = isEmpty ? this.#runList(otherwise, dot) : 'next';
    this.#variables.length = mark;
    return flow;
  }

  #getValue(pipe: Pipeline, dot: GoValue): GoValue {
    const value = this.#runCommands(pipe, dot);
    for (const name of pipe.variables) this.#setVariable(name, value, pipe.isAssignment);
    return value;
  }

  #runCommands({ commands }: Pipeline, dot: GoValue): GoValue {
    let value: GoValue | undefined;
    for (const command of commands) value = this.#runCommand(command, value, dot);
    return value ?? null;
  }

  /** Evaluates a command; `last` is the result of the previous one and becomes the last argument. */
  #runCommand(command: readonly Operand[], last: GoValue | undefined, dot: GoValue): GoValue {
    const [first, ...rest] = command as [Operand, ...Operand[]];
    this.#budget.countSteps(1);
    if (first.kind === 'function') return this.#call(first.name, rest, last, dot);
    const takesArguments = 'names' in first && first.names.length > 0;
    if (!takesArguments && (rest.length > 0 || last !== undefined))
      throw evaluationFault("can't give argument to non-function");
    if (first.kind === 'nil') throw evaluationFault('nil is not a command');
    return this.#getOperand(first, dot, () => this.#getArguments(rest, last, dot));
  }

  #getArguments(operands: readonly Operand[], last: GoValue | undefined, dot: GoValue): GoValue[] {
    const args = operands.map((operand) => this.#getOperand(operand, dot));
    return last === undefined ? args : [...args, last];
  }

  #call(name: string, operands: readonly Operand[], last: GoValue | undefined, dot: GoValue): GoValue {
    if (name === 'and' || name === 'or') {
      // Operands after the deciding one are not evaluated.
      let value: GoValue = null;
      for (const operand of operands) {
        value = this.#getOperand(operand, dot);
        if (isTrue(value) === (name === 'or')) return value;
      }
      return last ?? value;
    }
    const args = this.#getArguments(operands, last, dot);
    try {
      return this.#budget.checkValue((this.#functions.get(name) as TemplateFunction)(args, this.#context));
    } catch (error) {
      if (error instanceof TemplateFault && error.kind === 'evaluation' && error.template === undefined)
        throw evaluationFault(`${name}: ${error.message}`);
      throw error;
    }
  }

  #getOperand(operand: Operand, dot: GoValue, getArgs = (): GoValue[] => []): GoValue {
    switch (operand.kind) {
      case 'dot':
        return dot;
      case 'nil':
        return null;
      case 'literal':
        return operand.value;
      case 'function':
        return this.#call(operand.name, [], undefined, dot);
      case 'field':
        return getFields(dot, operand.names, getArgs());
      case 'variable': {
        const { value } = this.#findVariable(operand.name);
        return operand.names.length === 0 ? value : getFields(value, operand.names, getArgs());
      }
      case 'chain':
        return getFields(this.#getOperand(operand.of, dot), operand.names, getArgs());
      case 'pipeline':
        return this.#getValue(operand.pipe, dot);
    }
  }
}

/** Reads fields: all fields of nil are nil, but a nil on the path is an error. */
function getFields(value: GoValue, names: readonly string[], args: readonly GoValue[]): GoValue {
  if (value === null) return null;
  const path = names.slice(0, -1).reduce<GoValue>((value, name) => getField(value, name), value);
  return getField(path, names.at(-1) as string, args);
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
