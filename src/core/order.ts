/**
 * Compares two strings by their UTF-8 bytes, as Go does. Differs from the UTF-16 order of `<` for characters beyond
 * U+FFFF only.
 */
export function compareBytes(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) {
      // A surrogate is part of a character beyond U+FFFF, which sorts last.
      const xRank = x >= 0xd800 && x <= 0xdfff ? x + 0x10000 : x;
      const yRank = y >= 0xd800 && y <= 0xdfff ? y + 0x10000 : y;
      return xRank < yRank ? -1 : 1;
    }
  }
  return a.length - b.length;
}

/** Returns how many items precede a point in a sorted list; `precedes` holds for them only. */
export function countLeading<T>(sorted: readonly T[], precedes: (item: T) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (precedes(sorted[middle] as T)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns a copy sorted in byte order. */
export function sortedByBytes(strings: Iterable<string>): string[] {
  return [...strings].sort(compareBytes);
}

/**
 * Sorts like `sort.Slice` of Go, whose order of equal items is neither stable nor random: a pattern-defeating quicksort
 * with fixed choices. (Source: sort/zsortfunc.go of Go 1.19 and later.)
 */
export function sortLikeGo<T>(items: readonly T[], compare: (a: T, b: T) => number): T[] {
  const sorted = [...items];
  const { length } = sorted;
  new GoSort(sorted, (a, b) => compare(a, b) < 0).sort(0, length, bitLength(length));
  return sorted;
}

/** Maximum length of a part that is sorted by insertion. */
const maxInsertion = 12;

type Hint = 'unknown' | 'increasing' | 'decreasing';

function bitLength(value: number): number {
  return value === 0 ? 0 : 32 - Math.clz32(value);
}

class GoSort<T> {
  readonly #items: T[];
  readonly #less: (a: T, b: T) => boolean;

  constructor(items: T[], less: (a: T, b: T) => boolean) {
    this.#items = items;
    this.#less = less;
  }

  #isLess(i: number, j: number): boolean {
    return this.#less(this.#items[i] as T, this.#items[j] as T);
  }

  #swap(i: number, j: number): void {
    const kept = this.#items[i] as T;
    this.#items[i] = this.#items[j] as T;
    this.#items[j] = kept;
  }

  /** Sorts from `a` to before `b`; after `limit` bad pivots with a heap. */
  sort(from: number, to: number, limit: number): void {
    let [a, b, bad] = [from, to, limit];
    let [wasBalanced, wasPartitioned] = [true, true];
    for (;;) {
      const length = b - a;
      if (length <= maxInsertion) return this.#insertionSort(a, b);
      if (bad === 0) return this.#heapSort(a, b);
      if (!wasBalanced) {
        this.#breakPatterns(a, b);
        bad--;
      }
      let [pivot, hint] = this.#choosePivot(a, b);
      if (hint === 'decreasing') {
        this.#reverse(a, b);
        pivot = b - 1 - (pivot - a);
        hint = 'increasing';
      }
      if (wasBalanced && wasPartitioned && hint === 'increasing' && this.#partialInsertionSort(a, b)) return;
      // Items before `a` are not greater than any from here on: those equal to the pivot need no sorting.
      if (a > 0 && !this.#isLess(a - 1, pivot)) {
        a = this.#partitionEqual(a, b, pivot);
        continue;
      }
      const [middle, alreadyPartitioned] = this.#partition(a, b, pivot);
      wasPartitioned = alreadyPartitioned;
      const [left, right] = [middle - a, b - middle];
      wasBalanced = Math.min(left, right) >= Math.floor(length / 8);
      if (left < right) {
        this.sort(a, middle, bad);
        a = middle + 1;
      } else {
        this.sort(middle + 1, b, bad);
        b = middle;
      }
    }
  }

  #insertionSort(a: number, b: number): void {
    for (let i = a + 1; i < b; i++) {
      for (let j = i; j > a && this.#isLess(j, j - 1); j--) this.#swap(j, j - 1);
    }
  }

  #heapSort(first: number, b: number): void {
    const high = b - first;
    for (let i = Math.floor((high - 1) / 2); i >= 0; i--) this.#siftDown(i, high, first);
    for (let i = high - 1; i >= 0; i--) {
      this.#swap(first, first + i);
      this.#siftDown(0, i, first);
    }
  }

  #siftDown(low: number, high: number, first: number): void {
    let root = low;
    for (;;) {
      let child = 2 * root + 1;
      if (child >= high) return;
      if (child + 1 < high && this.#isLess(first + child, first + child + 1)) child++;
      if (!this.#isLess(first + root, first + child)) return;
      this.#swap(first + root, first + child);
      root = child;
    }
  }

  #partition(a: number, b: number, pivot: number): [middle: number, alreadyPartitioned: boolean] {
    this.#swap(a, pivot);
    let [i, j] = [a + 1, b - 1];
    const skip = (): void => {
      while (i <= j && this.#isLess(i, a)) i++;
      while (i <= j && !this.#isLess(j, a)) j--;
    };
    skip();
    if (i > j) {
      this.#swap(j, a);
      return [j, true];
    }
    this.#swap(i++, j--);
    for (;;) {
      skip();
      if (i > j) break;
      this.#swap(i++, j--);
    }
    this.#swap(j, a);
    return [j, false];
  }

  /** Moves items equal to the pivot to the front, and returns the index of the first greater one. */
  #partitionEqual(a: number, b: number, pivot: number): number {
    this.#swap(a, pivot);
    let [i, j] = [a + 1, b - 1];
    for (;;) {
      while (i <= j && !this.#isLess(a, i)) i++;
      while (i <= j && this.#isLess(a, j)) j--;
      if (i > j) return i;
      this.#swap(i++, j--);
    }
  }

  /** Sorts a part that is nearly sorted; false if it gave up. */
  #partialInsertionSort(a: number, b: number): boolean {
    let i = a + 1;
    for (let step = 0; step < 5; step++) {
      while (i < b && !this.#isLess(i, i - 1)) i++;
      if (i === b) return true;
      if (b - a < 50) return false;
      this.#swap(i, i - 1);
      if (i - a >= 2) {
        for (let j = i - 1; j >= 1 && this.#isLess(j, j - 1); j--) this.#swap(j, j - 1);
      }
      if (b - i >= 2) {
        for (let j = i + 1; j < b && this.#isLess(j, j - 1); j++) this.#swap(j, j - 1);
      }
    }
    return false;
  }

  /** Scatters some items, so that patterns do not lead to unbalanced partitions. */
  #breakPatterns(a: number, b: number): void {
    const length = b - a;
    if (length < 8) return;
    const mask = 2n ** 64n - 1n;
    let random = BigInt(length);
    const modulus = 2 ** bitLength(length);
    const first = a + Math.floor(length / 4) * 2 - 1;
    for (let i = 0; i < 3; i++) {
      random ^= (random << 13n) & mask;
      random ^= random >> 7n;
      random ^= (random << 17n) & mask;
      let other = Number(random & BigInt(modulus - 1));
      if (other >= length) other -= length;
      this.#swap(first + i, a + other);
    }
  }

  #choosePivot(a: number, b: number): [pivot: number, hint: Hint] {
    const length = b - a;
    const quarter = Math.floor(length / 4);
    let [i, j, k] = [a + quarter, a + quarter * 2, a + quarter * 3];
    let swaps = 0;
    const order = (x: number, y: number): [number, number] => {
      if (!this.#isLess(y, x)) return [x, y];
      swaps++;
      return [y, x];
    };
    const median = (x: number, y: number, z: number): number => {
      const [low, middle] = order(x, y);
      const [higher] = order(middle, z);
      return order(low, higher)[1];
    };
    if (length >= 8) {
      if (length >= 50) {
        i = median(i - 1, i, i + 1);
        j = median(j - 1, j, j + 1);
        k = median(k - 1, k, k + 1);
      }
      j = median(i, j, k);
    }
    if (swaps === 0) return [j, 'increasing'];
    return [j, swaps === 12 ? 'decreasing' : 'unknown'];
  }

  #reverse(a: number, b: number): void {
    for (let i = a, j = b - 1; i < j; i++, j--) this.#swap(i, j);
  }
}
