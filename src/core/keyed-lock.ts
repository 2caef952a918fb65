/** Runs work on the same key in order of arrival, one at a time; other keys do not wait. */
export class KeyedLock {
  readonly #last = new Map<string, Promise<void>>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    let release = (): void => undefined;
    const mine = new Promise<void>((resolve) => (release = resolve));
    this.#last.set(key, mine);
    try {
      await before;
      return await work();
    } finally {
      release();
      if (this.#last.get(key) === mine) this.#last.delete(key);
    }
  }
}
