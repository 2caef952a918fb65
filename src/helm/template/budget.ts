import { limitFault } from './fault.js';
import { type GoValue, isGoMap, requireTextLength } from './go-values.js';

/** Limits of the evaluation of a chart's templates. */
export interface EvaluationLimits {
  /** Maximum actions, function calls and loop iterations. */
  maxSteps: number;
  /** Maximum characters of output, including that of included templates each time. */
  maxOutput: number;
  /** Maximum nesting of included templates. */
  maxDepth: number;
  /** Maximum items of one list or map. */
  maxItems: number;
  /** Maximum characters of all values that functions return together: a chart can keep every one of them. */
  maxMade: number;
}

const defaultEvaluationLimits: EvaluationLimits = {
  maxSteps: 1_000_000,
  maxOutput: 64 * 1024 * 1024,
  maxDepth: 100,
  maxItems: 100_000,
  maxMade: 256 * 1024 * 1024,
};

/** Characters for which an item of a list or map counts. */
const itemLength = 32;

/** Counts the cost of an evaluation. Every method throws a TemplateFault of the kind `limit`. */
export class Budget {
  readonly limits: EvaluationLimits;
  #steps = 0;
  #output = 0;
  #depth = 0;
  #made = 0;

  constructor(limits: Partial<EvaluationLimits> = {}) {
    this.limits = { ...defaultEvaluationLimits, ...limits };
  }

  countSteps(steps: number): void {
    this.#steps += steps;
    if (this.#steps > this.limits.maxSteps) throw limitFault(`more than ${this.limits.maxSteps} steps`);
  }

  countOutput(length: number): void {
    this.#output += length;
    if (this.#output > this.limits.maxOutput)
      throw limitFault(`more than ${this.limits.maxOutput} characters of output`);
  }

  nested<T>(work: () => T): T {
    if (this.#depth >= this.limits.maxDepth)
      throw limitFault(`templates include each other more than ${this.limits.maxDepth} levels deep`);
    this.#depth++;
    try {
      return work();
    } finally {
      this.#depth--;
    }
  }

  /** Returns the result of a function, unless it is too large. */
  checkValue(value: GoValue): GoValue {
    if (typeof value === 'string') {
      this.requireLength(value.length);
      this.#countMade(value.length);
    } else if (Array.isArray(value)) this.requireItems(value.length);
    else if (isGoMap(value)) this.countSteps(1);
    return value;
  }

  #countMade(length: number): void {
    this.#made += length;
    if (this.#made > this.limits.maxMade)
      throw limitFault(`values of more than ${this.limits.maxMade} characters together`);
  }

  /** Throws LimitError before a text exceeds the budget. */
  requireLength(length: number): void {
    requireTextLength(length);
  }

  requireItems(items: number): void {
    if (items > this.limits.maxItems) throw limitFault(`a list of more than ${this.limits.maxItems} items`);
    this.countSteps(Math.ceil(items / 10));
    this.#countMade(items * itemLength);
  }
}
