// Collects what matched, and prints one line per answer folder with the first difference of each answer.
import { readFileSync } from 'node:fs';

const exceptions = new Map(
  JSON.parse(readFileSync(new URL('./exceptions.json', import.meta.url), 'utf8')).map((one) => [
    one.answer,
    one.reason,
  ]),
);

export class Report {
  passed = 0;
  failed = 0;
  justified = 0;
  #failures = [];
  #matched = 0;
  #unneeded = new Set(exceptions.keys());

  /** Records one answer; `difference` is undefined when it matches. */
  check(answer, difference) {
    if (difference === undefined) {
      this.#matched++;
      return;
    }
    const reason = exceptions.get(answer);
    this.#unneeded.delete(answer);
    if (reason === undefined) this.#failures.push(`  ${answer}: ${difference}`);
    else this.justified++;
  }

  /** Prints the line of a folder and starts the next. */
  folder(name, seconds) {
    const justified = this.justified > 0 ? `, ${this.justified} justified differences` : '';
    const total = this.#matched + this.#failures.length + this.justified;
    console.log(`${name}: ${this.#matched} of ${total} match${justified} (${seconds.toFixed(1)} s)`);
    for (const failure of this.#failures) console.log(failure);
    this.passed += this.#matched + this.justified;
    this.failed += this.#failures.length;
    this.justified = 0;
    this.#matched = 0;
    this.#failures = [];
  }

  /** Exceptions that nothing needed: they must be removed from the list. */
  unneeded() {
    return [...this.#unneeded];
  }
}

/** Where two texts first differ, in a few words; undefined when they are the same. */
export function differenceOf(actual, expected) {
  if (actual === expected) return undefined;
  const a = actual.split('\n');
  const b = expected.split('\n');
  let line = 0;
  while (line < a.length && line < b.length && a[line] === b[line]) line++;
  const show = (text) => (text === undefined ? 'end of output' : JSON.stringify(text.slice(0, 160)));
  return `line ${line + 1}: got ${show(a[line])}, wanted ${show(b[line])}`;
}
