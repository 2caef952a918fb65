import { Writable } from 'node:stream';
import type { CommandContext } from './context.js';
import { encodeJsonLine } from './reports/json-line.js';

const maxLine = 1024 * 1024;

/**
 * Converts text for stderr to JSON lines, for `--log-format json`. JSON objects are kept; a `hint:` line is added to the
 * line before it.
 */
export class JsonLines extends Writable {
  readonly #target: CommandContext['stderr'];
  readonly #now: () => Date;
  #rest = '';

  constructor({ stderr, now }: Pick<CommandContext, 'stderr' | 'now'>) {
    super({ decodeStrings: false });
    this.#target = stderr;
    this.#now = now;
  }

  override _write(chunk: string | Buffer, _encoding: string, done: () => void): void {
    const text = this.#rest + String(chunk);
    const end = text.length > maxLine ? text.length : text.lastIndexOf('\n') + 1;
    this.#rest = text.slice(end);
    const lines = this.#encode(text.slice(0, end).split('\n'));
    this.#write(lines, done);
  }

  override _final(done: () => void): void {
    this.#write(this.#encode([this.#rest]), done);
  }

  /** Writes an unfinished line. */
  flush(): void {
    this.#write(this.#encode([this.#rest]), () => undefined);
    this.#rest = '';
  }

  #write(lines: string, done: () => void): void {
    if (lines === '') done();
    else this.#target.write(lines, () => done());
  }

  #encode(lines: readonly string[]): string {
    const entries: (string | { level: string; message: string; hint?: string })[] = [];
    for (const line of lines) {
      const last = entries.at(-1);
      const hint = /^\s*hint: (.*)$/s.exec(line)?.[1];
      if (line.trim() === '') continue;
      // An error, unless `warning` follows its position.
      const level = /^(?:[^ ]+: )?warn(?:ing)?: /.test(line) ? 'warn' : 'error';
      if (line.startsWith('{')) entries.push(line);
      else if (hint !== undefined && typeof last === 'object') last.hint = hint;
      else entries.push({ level, message: line.replace(/^(?:warn|warning|error): /, '') });
    }
    const time = this.#now().toISOString();
    return entries
      .map((item) => (typeof item === 'string' ? item : encodeJsonLine({ time, ...item })))
      .map((line) => `${line}\n`)
      .join('');
  }
}
