/** Positions in a list, `to` excluded. */
export interface Interval {
  from: number;
  to: number;
}

/** Values by the intervals that they have; each is taken once by the first position in them. */
export class IntervalIndex<T> {
  readonly #size: number;
  /** Values by node of a binary tree over the positions. */
  readonly #values = new Map<number, T[]>();

  constructor(size: number) {
    this.#size = size;
  }

  add({ from, to }: Interval, value: T): void {
    for (const node of coveringNodes(from, to, this.#size)) {
      const values = this.#values.get(node);
      if (values === undefined) this.#values.set(node, [value]);
      else values.push(value);
    }
  }

  /** Removes and returns the values of the intervals with a position; values of several intervals may return again. */
  take(position: number): T[] {
    const taken: T[] = [];
    for (let node = position + this.#size; node >= 1; node >>>= 1) {
      for (const value of this.#values.get(node) ?? []) taken.push(value);
      this.#values.delete(node);
    }
    return taken;
  }
}

/** Numbers by position, with their maximum in an interval. */
export class Maxima {
  readonly #size: number;
  readonly #numbers: Int32Array;
  /** First position of the maximum by node of a binary tree; −1 where no number is set. */
  readonly #first: Int32Array;

  constructor(size: number) {
    this.#size = size;
    this.#numbers = new Int32Array(size);
    this.#first = new Int32Array(2 * size).fill(-1);
  }

  set(position: number, number: number): void {
    this.#numbers[position] = number;
    let node = position + this.#size;
    this.#first[node] = position;
    while ((node >>>= 1) >= 1) {
      this.#first[node] = this.#better(this.#first[2 * node] as number, this.#first[2 * node + 1] as number);
    }
  }

  get(position: number): number | undefined {
    return this.#first[position + this.#size] === -1 ? undefined : this.#numbers[position];
  }

  /** Returns the first position with the maximum; undefined if no number is set there. */
  find({ from, to }: Interval): number | undefined {
    let best = -1;
    for (const node of coveringNodes(from, to, this.#size))
      best = this.#better(best, this.#first[node] as number);
    return best === -1 ? undefined : best;
  }

  #better(a: number, b: number): number {
    if (a === -1 || b === -1) return Math.max(a, b);
    const order = (this.#numbers[a] as number) - (this.#numbers[b] as number);
    return order === 0 ? Math.min(a, b) : order > 0 ? a : b;
  }
}

/** Returns the nodes whose leaves are the positions of an interval, in a binary tree with its leaves from `size` on. */
function coveringNodes(from: number, to: number, size: number): number[] {
  const nodes: number[] = [];
  let low = from + size;
  let high = to + size;
  while (low < high) {
    if (low % 2 === 1) nodes.push(low++);
    if (high % 2 === 1) nodes.push(--high);
    low >>>= 1;
    high >>>= 1;
  }
  return nodes;
}
