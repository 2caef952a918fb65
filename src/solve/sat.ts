import { LimitError } from '../core/errors.js';

/** A literal: a variable from 1, negated if negative. */
type Literal = number;

/** Bounds of all calls of one solver together. */
export interface SatLimits {
  /** Maximum number of propagated literals. */
  maxSteps: number;
  /** Maximum time since the solver was made, in milliseconds. */
  maxMs?: number;
}

/** Steps between two looks at the clock. */
const stepsPerLook = 4096;

/** Result of `solve`: a model, or assumptions that cannot hold together. */
type SatResult = { satisfiable: true } | { satisfiable: false; core: Literal[] };

interface Clause {
  /** The first two literals are watched. */
  literals: Literal[];
}

/** At most one of `members` is true while `selector` is true. */
interface AtMostOne {
  selector: Literal;
  members: readonly Literal[];
}

/**
 * A solver of boolean formulas with clauses and at-most-one rules: conflict-driven clause learning, decisions default to
 * false, so that a model has few true variables. Deterministic.
 */
export class SatSolver {
  readonly #limits: SatLimits;
  readonly #start = performance.now();
  #steps = 0;
  #isRefuted = false;
  /** Value by variable: 1 true, -1 false, 0 open. */
  readonly #values: number[] = [0];
  readonly #levels: number[] = [0];
  readonly #reasons: (readonly Literal[] | undefined)[] = [undefined];
  readonly #activity: number[] = [0];
  #increment = 1;
  readonly #watches = new Map<Literal, Clause[]>();
  readonly #groups = new Map<Literal, AtMostOne[]>();
  readonly #trail: Literal[] = [];
  readonly #levelStarts: number[] = [];
  #next = 0;
  /** Assumptions of the last question, one per level. */
  #assumed: readonly Literal[] = [];
  /** Variables below are assigned, or have been in a conflict. */
  #cursor = 1;
  /** Variables that have been in a conflict. */
  readonly #active = new Set<number>();
  /** Values of the last model, by variable. */
  #model: number[] = [];

  constructor(limits: SatLimits) {
    this.#limits = limits;
  }

  /** Returns a new variable. */
  addVariable(): number {
    this.#values.push(0);
    this.#levels.push(0);
    this.#reasons.push(undefined);
    this.#activity.push(0);
    return this.#values.length - 1;
  }

  /** Adds a clause: one of the literals is true. */
  addClause(literals: readonly Literal[]): void {
    this.#backTo(0);
    const unique = [...new Set(literals)];
    if (unique.some((literal) => unique.includes(-literal))) return;
    const open = unique.filter((literal) => this.#valueOf(literal) !== -1);
    if (unique.some((literal) => this.#valueOf(literal) === 1)) return;
    if (open.length === 0) this.#isRefuted = true;
    else if (open.length === 1) this.#isRefuted ||= !this.#assign(open[0] as Literal, undefined);
    else this.#watch({ literals: open });
  }

  /** Adds a rule: while `selector` is true, at most one member is true; a member that is listed twice is false. */
  addAtMostOne(selector: Literal, members: readonly Literal[]): void {
    const seen = new Set<Literal>();
    for (const member of members) {
      if (seen.has(member)) this.addClause([-selector, -member]);
      seen.add(member);
    }
    const group: AtMostOne = { selector, members: [...seen] };
    for (const literal of [...seen, selector]) {
      const groups = this.#groups.get(literal);
      if (groups === undefined) this.#groups.set(literal, [group]);
      else groups.push(group);
    }
    this.#backTo(0);
    this.#next = 0;
  }

  /** Reports whether a literal is true in the last model. */
  isTrue(literal: Literal): boolean {
    const value = this.#model[Math.abs(literal)] ?? 0;
    return literal > 0 ? value === 1 : value !== 1;
  }

  /** Finds a model in which all assumptions are true. Throws LimitError at the limit of steps. */
  solve(assumptions: readonly Literal[]): SatResult {
    // What equal assumptions led to stays: questions of one search differ in their last ones.
    const differing = assumptions.findIndex((literal, index) => literal !== this.#assumed[index]);
    this.#backTo(differing < 0 ? Math.min(assumptions.length, this.#assumed.length) : differing);
    this.#assumed = assumptions;
    if (this.#isRefuted) return { satisfiable: false, core: [] };
    for (;;) {
      const conflict = this.#propagate();
      if (conflict !== undefined) {
        if (this.#levelStarts.length === 0) {
          this.#isRefuted = true;
          return { satisfiable: false, core: [] };
        }
        this.#learn(conflict);
        continue;
      }
      const level = this.#levelStarts.length;
      const assumption = assumptions[level];
      if (assumption !== undefined) {
        if (this.#valueOf(assumption) === -1)
          return { satisfiable: false, core: this.#explain(assumption, assumptions) };
        this.#levelStarts.push(this.#trail.length);
        if (this.#valueOf(assumption) === 0) this.#assign(assumption, undefined);
        continue;
      }
      const decision = this.#decide();
      if (decision === undefined) {
        this.#model = [...this.#values];
        return { satisfiable: true };
      }
      this.#levelStarts.push(this.#trail.length);
      this.#assign(decision, undefined);
    }
  }

  #valueOf(literal: Literal): number {
    const value = this.#values[Math.abs(literal)] as number;
    return literal > 0 ? value : -value;
  }

  /** Makes a literal true; false if it is false already. */
  #assign(literal: Literal, reason: readonly Literal[] | undefined): boolean {
    const value = this.#valueOf(literal);
    if (value !== 0) return value === 1;
    const variable = Math.abs(literal);
    this.#values[variable] = Math.sign(literal);
    this.#levels[variable] = this.#levelStarts.length;
    this.#reasons[variable] = reason;
    this.#trail.push(literal);
    return true;
  }

  #backTo(level: number): void {
    if (this.#levelStarts.length <= level) return;
    const start = this.#levelStarts[level] as number;
    for (const literal of this.#trail.splice(start)) this.#values[Math.abs(literal)] = 0;
    this.#cursor = 1;
    this.#levelStarts.length = level;
    this.#next = Math.min(this.#next, start);
  }

  #watch(clause: Clause): void {
    for (const literal of clause.literals.slice(0, 2)) {
      const watches = this.#watches.get(literal);
      if (watches === undefined) this.#watches.set(literal, [clause]);
      else watches.push(clause);
    }
  }

  /** Throws LimitError beyond a limit. */
  #countStep(): void {
    const { maxSteps, maxMs = Infinity } = this.#limits;
    if (++this.#steps > maxSteps) throw new LimitError(`more than ${maxSteps} steps`);
    if (this.#steps % stepsPerLook === 0 && performance.now() - this.#start > maxMs)
      throw new LimitError(`longer than ${maxMs / 1000} s`);
  }

  /** Returns the false literals of a violated clause or rule. */
  #propagate(): readonly Literal[] | undefined {
    while (this.#next < this.#trail.length) {
      const literal = this.#trail[this.#next++] as Literal;
      this.#countStep();
      const conflict = this.#propagateClauses(-literal) ?? this.#propagateGroups(literal);
      if (conflict !== undefined) return conflict;
    }
    return undefined;
  }

  #propagateClauses(falseLiteral: Literal): readonly Literal[] | undefined {
    const watches = this.#watches.get(falseLiteral);
    if (watches === undefined) return undefined;
    let kept = 0;
    for (let index = 0; index < watches.length; index++) {
      const clause = watches[index] as Clause;
      const { literals } = clause;
      if (literals[0] === falseLiteral) [literals[0], literals[1]] = [literals[1] as Literal, falseLiteral];
      const other = literals[0] as Literal;
      if (this.#valueOf(other) !== 1) {
        const at = literals.findIndex((literal, i) => i > 1 && this.#valueOf(literal) !== -1);
        if (at > 0) {
          [literals[1], literals[at]] = [literals[at] as Literal, falseLiteral];
          const others = this.#watches.get(literals[1] as Literal);
          if (others === undefined) this.#watches.set(literals[1] as Literal, [clause]);
          else others.push(clause);
          continue;
        }
        if (!this.#assign(other, literals)) {
          while (index < watches.length) watches[kept++] = watches[index++] as Clause;
          watches.length = kept;
          return literals;
        }
      }
      watches[kept++] = clause;
    }
    watches.length = kept;
    return undefined;
  }

  #propagateGroups(literal: Literal): readonly Literal[] | undefined {
    for (const { selector, members } of this.#groups.get(literal) ?? []) {
      if (this.#valueOf(selector) !== 1) {
        // Two true members make the selector false.
        if (literal === selector) continue;
        const second = members.find((member) => member !== literal && this.#valueOf(member) === 1);
        if (second === undefined) continue;
        const reason = [-selector, -literal, -second];
        if (!this.#assign(-selector, reason)) return reason;
        continue;
      }
      const chosen = literal === selector ? members.find((member) => this.#valueOf(member) === 1) : literal;
      if (chosen === undefined) continue;
      for (const member of members) {
        if (member === chosen || this.#valueOf(member) === -1) continue;
        const reason = [-member, -chosen, -selector];
        if (!this.#assign(-member, reason)) return reason;
      }
    }
    return undefined;
  }

  /** Learns the clause of the first unique implication point of a conflict, and goes back to where it is unit. */
  #learn(conflict: readonly Literal[]): void {
    const level = this.#levelStarts.length;
    const seen = new Set<number>();
    const learned: Literal[] = [];
    let open = 0;
    let reason = conflict;
    let index = this.#trail.length;
    let point: Literal = 0;
    do {
      for (const literal of reason) {
        const variable = Math.abs(literal);
        if (literal === point || seen.has(variable)) continue;
        const at = this.#levels[variable] as number;
        if (at === 0) continue;
        seen.add(variable);
        this.#bump(variable);
        if (at === level) open++;
        else learned.push(literal);
      }
      do index--;
      while (!seen.has(Math.abs(this.#trail[index] as Literal)));
      point = this.#trail[index] as Literal;
      reason = this.#reasons[Math.abs(point)] ?? [];
      open--;
    } while (open > 0);
    this.#increment *= 1.05;
    learned.sort((a, b) => (this.#levels[Math.abs(b)] as number) - (this.#levels[Math.abs(a)] as number));
    const [second] = learned;
    this.#backTo(second === undefined ? 0 : (this.#levels[Math.abs(second)] as number));
    const literals = [-point, ...learned];
    if (literals.length > 1) this.#watch({ literals });
    if (!this.#assign(-point, literals)) this.#isRefuted = true;
  }

  #bump(variable: number): void {
    const activity = (this.#activity[variable] as number) + this.#increment;
    this.#activity[variable] = activity;
    this.#active.add(variable);
    if (activity < 1e100) return;
    for (const [index, value] of this.#activity.entries()) this.#activity[index] = value * 1e-100;
    this.#increment *= 1e-100;
  }

  /** Returns the negation of an open variable: of the most active one, then of others in their order. */
  #decide(): Literal | undefined {
    let best: number | undefined;
    for (const variable of this.#active) {
      if (this.#values[variable] !== 0) continue;
      if (best === undefined || (this.#activity[variable] as number) > (this.#activity[best] as number))
        best = variable;
    }
    if (best !== undefined) return -best;
    while (this.#cursor < this.#values.length && this.#values[this.#cursor] !== 0) this.#cursor++;
    return this.#cursor < this.#values.length ? -this.#cursor : undefined;
  }

  /** Returns the assumptions that make another one false, with it. */
  #explain(refuted: Literal, assumptions: readonly Literal[]): Literal[] {
    const assumed = new Set(assumptions);
    const core = new Set<Literal>([refuted]);
    const seen = new Set<number>([Math.abs(refuted)]);
    for (const literal of this.#trail.toReversed()) {
      const variable = Math.abs(literal);
      if (!seen.has(variable) || this.#levels[variable] === 0) continue;
      const reason = this.#reasons[variable];
      if (reason === undefined) {
        if (assumed.has(literal)) core.add(literal);
      } else for (const other of reason) seen.add(Math.abs(other));
    }
    return [...core];
  }
}
