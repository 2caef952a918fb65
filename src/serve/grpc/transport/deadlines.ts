/** Something that ends when its time is over. */
interface Expiring {
  expire(): void;
}

const maxTimerMs = 2 ** 31 - 1;

/** Ends calls at their deadlines with one timer for all: nearly every call is over long before its own. */
export class Deadlines {
  /** When each ends, on the clock of `performance.now`. */
  readonly #ends = new Map<Expiring, number>();
  #timer: NodeJS.Timeout | undefined;
  /** When the timer fires; it is not moved when the call that it was set for is removed. */
  #firesAt = Infinity;

  /** Ends `call` after `ms`, unless it is removed first; never where a timer cannot be that long (24 days). */
  add(call: Expiring, ms: number): void {
    if (ms > maxTimerMs) return;
    const end = performance.now() + ms;
    this.#ends.set(call, end);
    if (end < this.#firesAt) this.#setTimer(end);
  }

  remove(call: Expiring): void {
    this.#ends.delete(call);
  }

  #setTimer(end: number): void {
    clearTimeout(this.#timer);
    this.#firesAt = end;
    this.#timer = setTimeout(() => this.#expire(), Math.max(0, Math.ceil(end - performance.now()))).unref();
  }

  #expire(): void {
    const now = performance.now();
    let next = Infinity;
    for (const [call, end] of this.#ends) {
      if (end > now) next = Math.min(next, end);
      else {
        this.#ends.delete(call);
        call.expire();
      }
    }
    this.#firesAt = Infinity;
    if (next < Infinity) this.#setTimer(next);
  }
}
