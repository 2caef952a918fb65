import { type Manifest, titleOf } from '../kube/manifests.js';
import type { Finding } from '../kube/finding.js';
import { quoteGo } from '../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { describeKind } from '../document/field.js';

/** Where something stands in a document. */
export type DocumentPath = readonly (string | number)[];

/** `spec.sources[0].image`. */
export function showPath(path: DocumentPath): string {
  return path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`))
    .join('')
    .replace(/^\./, '');
}

/** The text of a line of a file. */
export type LineAt = (file: string, line: number) => string;

/** Reads the fields of one document, and keeps what is wrong with them, with file and line. */
export class DocumentReader {
  readonly manifest: Manifest;
  readonly title: string;
  readonly findings: Finding[] = [];
  readonly warnings: Finding[] = [];

  readonly #lineAt: LineAt;

  /** `lineAt` gives the text of lines, for texts that YAML takes for something else. */
  constructor(manifest: Manifest, lineAt: LineAt) {
    this.manifest = manifest;
    this.#lineAt = lineAt;
    this.title = titleOf(manifest);
  }

  find(path: DocumentPath, message: string, hint?: string): void {
    this.findings.push(this.#finding(path, message, hint));
  }

  warn(path: DocumentPath, message: string, hint?: string): void {
    this.warnings.push(this.#finding(path, message, hint));
  }

  #finding(path: DocumentPath, message: string, hint: string | undefined): Finding {
    const { file } = this.manifest;
    const text = `${this.title}: ${message}`;
    return { message: text, file, line: this.manifest.lineOf(path), ...(hint !== undefined && { hint }) };
  }

  /** An object; undefined where it is left out or null. */
  object(value: JsonValue | undefined, path: DocumentPath): JsonObject | undefined {
    if (value === undefined || value === null) return undefined;
    if (isJsonObject(value)) return value;
    this.find(path, `${showPath(path)} must be an object, not ${describeKind(value)}`);
    return undefined;
  }

  list(value: JsonValue | undefined, path: DocumentPath): JsonValue[] | undefined {
    if (value === undefined || value === null) return undefined;
    if (Array.isArray(value)) return value;
    this.find(path, `${showPath(path)} must be a list, not ${describeKind(value)}`);
    return undefined;
  }

  /** A text that is not empty; undefined where it is left out, null or empty. */
  text(value: JsonValue | undefined, path: DocumentPath): string | undefined {
    if (value === undefined || value === null || value === '') return undefined;
    if (typeof value === 'string') return value;
    const written = typeof value === 'object' ? undefined : this.#asWritten(path);
    if (written !== undefined) {
      this.warn(
        path,
        `${showPath(path)}: ${written} is ${describeKind(value)} in YAML, and read as a text`,
        `write it in quotes: ${quoteGo(written)}`,
      );
      return written;
    }
    this.find(path, `${showPath(path)} must be a string, not ${describeKind(value)}`);
    return undefined;
  }

  /** A plain scalar as it stands in its line, as `n`, which YAML takes for false, or a commit of digits only. */
  #asWritten(path: DocumentPath): string | undefined {
    const line = this.manifest.lineOf(path);
    const key = path.at(-1);
    if (line === undefined || typeof key !== 'string') return undefined;
    const text = this.#lineAt(this.manifest.file, line);
    const pattern = new RegExp(`(?:^|[\\s{,])["']?${key}["']?\\s*:\\s*([\\w.+-]+)\\s*(?:$|[,}#])`, 'm');
    return pattern.exec(text)?.[1];
  }

  boolean(value: JsonValue | undefined, path: DocumentPath): boolean {
    if (value === undefined || value === null) return false;
    if (typeof value === 'boolean') return value;
    this.find(path, `${showPath(path)} must be true or false, not ${describeKind(value)}`);
    return false;
  }

  /** A text that must be there. */
  required(value: JsonValue | undefined, path: DocumentPath, hint?: string): string {
    const found = this.findings.length;
    const text = this.text(value, path);
    if (text === undefined && this.findings.length === found) {
      this.find(path, `${showPath(path)} is missing`, hint);
    }
    return text ?? '';
  }

  /** Tells fields that are not known: as mistakes where they look like one of those that are. */
  known(object: JsonObject, path: DocumentPath, fields: readonly string[]): void {
    for (const field of Object.keys(object)) {
      if (fields.includes(field)) continue;
      const meant = fields.find((known) => isMisspelt(field, known));
      const message = `unknown field ${showPath([...path, field])}`;
      if (meant !== undefined) this.find([...path, field], message, `is ${quoteGo(meant)} meant?`);
      else this.warn([...path, field], `${message}, passed over`, `known are ${fields.join(', ')}`);
    }
  }
}

/** Whether one text is the other but for its case, or one or two letters. */
function isMisspelt(text: string, known: string): boolean {
  const [a, b] = [text.toLowerCase(), known.toLowerCase()];
  if (a === b) return true;
  const most = Math.min(a.length, b.length) < 5 ? 1 : 2;
  if (Math.abs(a.length - b.length) > most) return false;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return (row[b.length] as number) <= most;
}
