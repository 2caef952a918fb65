interface Expiring {
  expire(): void;
}

const maxTimerMs = 2 ** 31 - 1;

/** Ends calls at their deadlines with a single timer: nearly all calls end long before. */
export class Deadlines {
  /** Deadlines on the clock of `performance.now`. */
  readonly #ends = new Map<Expiring, number>();
  #timer: NodeJS.Timeout | undefined;
  /** Time at which the timer fires; removing a call does not move it. */
  #firesAt = Infinity;

  /** Ends `call` after `ms` unless it is removed first; never if `ms` exceeds the maximum of timers, 24 days. */
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
