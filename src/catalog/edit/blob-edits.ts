import { isDeepStrictEqual } from 'node:util';
import { OpmateError } from '../../core/errors.js';
import type { EncodableJson, JsonObject } from '../../document/json.js';
import { type CatalogFormat, type EncodableBlob, toRecord, encodeRecord } from '../../model/encode.js';
import { schemas } from '../../model/declarative-config.js';
import { checkPackagePath } from '../directory-writer.js';
import { changedText, replacedText, textBeside } from './blob-text.js';
import type { BlobPlace, EditableCatalog, EditableFile } from './editable-catalog.js';

/** One change to a blob of a catalog. */
export type BlobEdit =
  | { kind: 'change'; blob: BlobPlace; change: (value: JsonObject) => JsonObject }
  | { kind: 'replace'; blob: BlobPlace; by: EncodableBlob }
  | { kind: 'remove'; blob: BlobPlace }
  | { kind: 'insert'; package: string; item: EncodableBlob };

/** A range of a file to replace. */
export interface Splice {
  offset: number;
  length: number;
  text: string;
}

/** Change of one file. */
export type FileEdit =
  | { kind: 'change'; file: EditableFile; splices: Splice[]; blobs: number }
  | { kind: 'remove'; file: EditableFile }
  | { kind: 'create'; name: string; text: string; blobs: number };

/**
 * Plans the changes per file. A new blob follows those of its kind in its package, else the channels or the package
 * blob; deprecations are last. A new package gets `PACKAGE/catalog.json` or `.yaml`, whichever is more common in the
 * catalog, or the end of the only file. Files without blobs are removed. Throws OpmateError IO for a blob that moved.
 */
export async function planFiles(catalog: EditableCatalog, edits: readonly BlobEdit[]): Promise<FileEdit[]> {
  return new FilePlanner(catalog).plan(edits);
}

interface Insertion {
  anchor: BlobPlace;
  texts: string[];
}

class FilePlanner {
  readonly #catalog: EditableCatalog;
  readonly #removed = new Set<BlobPlace>();
  readonly #splices = new Map<EditableFile, Splice[]>();
  readonly #insertions = new Map<BlobPlace, Insertion>();
  readonly #created = new Map<string, { format: CatalogFormat; records: EncodableJson[] }>();

  constructor(catalog: EditableCatalog) {
    this.#catalog = catalog;
  }

  async plan(edits: readonly BlobEdit[]): Promise<FileEdit[]> {
    for (const edit of edits) if (edit.kind === 'remove') this.#removed.add(edit.blob);
    for (const edit of edits) await this.#plan(edit);
    for (const { anchor, texts } of this.#insertions.values()) {
      this.#splice(anchor.file, await this.#insertion(anchor, texts));
    }
    const touched = new Set([...this.#splices.keys(), ...[...this.#removed].map(({ file }) => file)]);
    const changes = this.#catalog.files
      .filter((file) => touched.has(file))
      .map((file): FileEdit => this.#fileEdit(file));
    const created = [...this.#created].map(([name, { format, records }]): FileEdit => ({
      kind: 'create',
      name,
      text: records.map((record) => encodeRecord(record, format)).join(''),
      blobs: records.length,
    }));
    return [...changes, ...created];
  }

  async #plan(edit: BlobEdit): Promise<void> {
    switch (edit.kind) {
      case 'remove':
        return;
      case 'insert':
        return this.#insert(edit.package, edit.item);
      case 'replace':
      case 'change': {
        const { origin, file } = edit.blob;
        const text = await this.#toText(edit);
        if (text !== undefined) this.#splice(file, { offset: origin.offset, length: origin.length, text });
      }
    }
  }

  /** Returns the new text of a blob; undefined if unchanged. */
  async #toText(edit: Exclude<BlobEdit, { kind: 'remove' | 'insert' }>): Promise<string | undefined> {
    const { origin } = edit.blob;
    const { catalog } = this.#catalog;
    const old = (await catalog.readText(origin)).toString();
    if (edit.kind === 'replace') {
      const text = replacedText(old, origin.syntax, toRecord(edit.by));
      return text === old ? undefined : text;
    }
    const value = await catalog.read(origin);
    const after = edit.change(value);
    return isDeepStrictEqual(after, value) ? undefined : changedText(old, origin.syntax, value, after);
  }

  #splice(file: EditableFile, splice: Splice): void {
    const list = this.#splices.get(file);
    if (list === undefined) this.#splices.set(file, [splice]);
    else list.push(splice);
  }

  async #insert(packageName: string, item: EncodableBlob): Promise<void> {
    const record = toRecord(item);
    const anchor = this.#findAnchor(packageName, item.kind) ?? this.#endOfOnlyFile();
    if (anchor === undefined) {
      this.#create(packageName, record);
      return;
    }
    const neighbour = (await this.#catalog.catalog.readText(anchor.origin)).toString();
    const text = textBeside(neighbour, anchor.origin.syntax, record);
    const known = this.#insertions.get(anchor);
    if (known === undefined) this.#insertions.set(anchor, { anchor, texts: [text] });
    else known.texts.push(text);
  }

  /** Returns the blob after which one of this kind is inserted. */
  #findAnchor(packageName: string, kind: EncodableBlob['kind']): BlobPlace | undefined {
    const kept = this.#catalog.files
      .flatMap(({ blobs }) => blobs)
      .filter((blob) => blob.package === packageName && !this.#removed.has(blob));
    const last = (schema: string): BlobPlace | undefined =>
      kept.filter((place) => place.schema === schema).at(-1);
    const own = last(schemas.package);
    if (own === undefined) return undefined;
    if (kind === 'deprecations') return kept.filter(({ file }) => file === own.file).at(-1);
    const bundle = kind === 'bundle' ? last(schemas.bundle) : undefined;
    return bundle ?? last(schemas.channel) ?? own;
  }

  /** Returns the end of the only file, if it holds several packages. */
  #endOfOnlyFile(): BlobPlace | undefined {
    const [file, ...others] = this.#catalog.files.filter(({ blobs }) => blobs.length > 0);
    if (file === undefined || others.length > 0 || file.facts.packages.length < 2) return undefined;
    return file.blobs.filter((blob) => !this.#removed.has(blob)).at(-1);
  }

  #create(packageName: string, record: EncodableJson): void {
    checkPackagePath(packageName);
    const syntaxes = this.#catalog.files.flatMap(({ blobs }) => blobs[0]?.origin.syntax ?? []);
    const json = syntaxes.filter((syntax) => syntax === 'json').length;
    const format = json * 2 > syntaxes.length ? 'json' : 'yaml';
    const name = `${packageName}/catalog.${format}`;
    const known = this.#created.get(name);
    if (known === undefined) this.#created.set(name, { format, records: [record] });
    else known.records.push(record);
  }

  async #insertion({ origin }: BlobPlace, texts: readonly string[]): Promise<Splice> {
    const offset = origin.offset + origin.length;
    const neighbour = await this.#catalog.catalog.readText(origin);
    const end = neighbour.includes('\r\n') ? '\r\n' : '\n';
    if (origin.syntax === 'json')
      return { offset, length: 0, text: texts.map((text) => `${end}${text}`).join('') };
    const ends = neighbour.at(-1) === 0x0a;
    const text = texts.map((name) => `---${end}${name}`).join('');
    return { offset, length: 0, text: ends ? text : `${end}${text.replace(/\r?\n$/, '')}` };
  }

  #fileEdit(file: EditableFile): FileEdit {
    const splices = this.#splices.get(file) ?? [];
    const added = [...this.#insertions.values()]
      .filter(({ anchor }) => anchor.file === file)
      .reduce((sum, { texts }) => sum + texts.length, 0);
    const gone = file.blobs.filter((blob) => this.#removed.has(blob));
    const left = file.blobs.length - gone.length;
    if (left === 0 && added === 0) return { kind: 'remove', file };
    return {
      kind: 'change',
      file,
      splices: disjoint([...splices, ...gone.map((blob) => toRemoval(blob))]),
      blobs: left + added,
    };
  }
}

/**
 * Returns the bytes to remove with a blob: its separator from the previous one or, for the first in JSON, from the
 * next.
 */
function toRemoval({ origin, file }: BlobPlace): Splice {
  const index = file.blobs.findIndex((blob) => blob.origin === origin);
  const before = file.blobs[index - 1]?.origin;
  const end = origin.offset + origin.length;
  if (before !== undefined) {
    const offset = before.offset + before.length;
    return { offset, length: end - offset, text: '' };
  }
  const next = file.blobs[index + 1]?.origin;
  const to = origin.syntax === 'json' ? (next?.offset ?? end) : end;
  return { offset: origin.offset, length: to - origin.offset, text: '' };
}

/** Sorts splices; overlapping removals are merged. */
function disjoint(splices: readonly Splice[]): Splice[] {
  const sorted = [...splices].sort((a, b) => a.offset - b.offset || a.length - b.length);
  const result: Splice[] = [];
  for (const splice of sorted) {
    const last = result.at(-1);
    const end = last === undefined ? 0 : last.offset + last.length;
    if (last === undefined || splice.offset >= end) {
      result.push({ ...splice });
      continue;
    }
    if (last.text !== '' || splice.text !== '') {
      throw new OpmateError('INTERNAL', `edits of the bytes from ${splice.offset} on overlap`);
    }
    last.length = Math.max(end, splice.offset + splice.length) - last.offset;
  }
  return result;
}
