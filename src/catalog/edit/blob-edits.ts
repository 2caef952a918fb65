import { isDeepStrictEqual } from 'node:util';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd, pushTo } from '../../core/groups.js';
import { type EncodableJson, type JsonObject } from '../../document/json.js';
import {
  type CatalogFormat,
  type EncodableBlob,
  toRecord,
  encodeRecord,
  jsonIndent,
} from '../../model/encode.js';
import { schemas } from '../../model/declarative-config.js';
import { checkPackagePath } from '../directory-writer.js';
import type { BlobPlace, EditableCatalog, EditableFile } from './editable-catalog.js';
import { encodeGoJson } from '../../document/go-json.js';
import { encodeYaml } from '../../document/yaml.js';
import { changeYaml, rewrittenYaml } from './yaml-text.js';

/** One change to a blob of a catalog. */
export type BlobEdit =
  | { kind: 'change'; blob: BlobPlace; change: (value: JsonObject) => JsonObject }
  | { kind: 'replace'; blob: BlobPlace; by: EncodableBlob }
  | { kind: 'remove'; blob: BlobPlace }
  | { kind: 'insert'; package: string; item: EncodableBlob }
  /** A new file, with a slash-separated path relative to the catalog. */
  | { kind: 'create'; name: string; item: EncodableBlob };

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
  return new FilePlanner(catalog, edits).plan();
}

/** Changes of the files of a catalog, as edits add to them. */
class FilePlanner {
  readonly #catalog: EditableCatalog;
  readonly #edits: readonly BlobEdit[];
  readonly #removed = new Set<BlobPlace>();
  readonly #splicesByFile = new Map<EditableFile, Splice[]>();
  readonly #insertions = new Map<BlobPlace, string[]>();
  readonly #newFiles = new Map<string, { format: CatalogFormat; records: EncodableJson[] }>();

  constructor(catalog: EditableCatalog, edits: readonly BlobEdit[]) {
    this.#catalog = catalog;
    this.#edits = edits;
  }

  async plan(): Promise<FileEdit[]> {
    for (const edit of this.#edits) if (edit.kind === 'remove') this.#removed.add(edit.blob);
    for (const edit of this.#edits) await this.#planEdit(edit);
    for (const [anchor, texts] of this.#insertions) {
      pushTo(this.#splicesByFile, anchor.file, await this.#insertion(anchor, texts));
    }
    const touched = new Set([...this.#splicesByFile.keys(), ...[...this.#removed].map(({ file }) => file)]);
    const changes = this.#catalog.files
      .filter((file) => touched.has(file))
      .map((file) => this.#fileEdit(file));
    const created = [...this.#newFiles].map(([name, { format, records }]): FileEdit => ({
      kind: 'create',
      name,
      text: records.map((record) => encodeRecord(record, format)).join(''),
      blobs: records.length,
    }));
    return [...changes, ...created];
  }

  async #planEdit(edit: BlobEdit): Promise<void> {
    switch (edit.kind) {
      case 'remove':
        return;
      case 'insert':
        return this.#insert(edit.package, edit.item);
      case 'create': {
        const format: CatalogFormat = edit.name.endsWith('.json') ? 'json' : 'yaml';
        getOrAdd(this.#newFiles, edit.name, () => ({ format, records: [] })).records.push(
          toRecord(edit.item),
        );
        return;
      }
      case 'replace':
      case 'change': {
        const { origin, file } = edit.blob;
        const text = await this.#toText(edit);
        const { offset, length } = origin;
        if (text !== undefined) pushTo(this.#splicesByFile, file, { offset, length, text });
      }
    }
  }

  /** Returns the new text of a blob; undefined if unchanged. */
  async #toText(
    edit: Exclude<BlobEdit, { kind: 'remove' | 'insert' | 'create' }>,
  ): Promise<string | undefined> {
    const { origin } = edit.blob;
    const old = (await this.#catalog.catalog.readText(origin)).toString();
    if (edit.kind === 'replace') {
      const text = replacedText(old, origin.syntax, toRecord(edit.by));
      return text === old ? undefined : text;
    }
    const value = await this.#catalog.catalog.read(origin);
    const after = edit.change(value);
    return isDeepStrictEqual(after, value) ? undefined : changedText(old, origin.syntax, value, after);
  }

  async #insert(packageName: string, item: EncodableBlob): Promise<void> {
    const record = toRecord(item);
    const anchor = this.#findAnchor(packageName, item.kind) ?? this.#endOfOnlyFile();
    if (anchor === undefined) {
      this.#create(packageName, record);
      return;
    }
    const neighbour = (await this.#catalog.catalog.readText(anchor.origin)).toString();
    pushTo(this.#insertions, anchor, textBeside(neighbour, anchor.origin.syntax, record));
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
    const format: CatalogFormat = json * 2 > syntaxes.length ? 'json' : 'yaml';
    const name = `${packageName}/catalog.${format}`;
    getOrAdd(this.#newFiles, name, () => ({ format, records: [] })).records.push(record);
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
    const splices = this.#splicesByFile.get(file) ?? [];
    const added = [...this.#insertions].flatMap(([anchor, texts]) =>
      anchor.file === file ? texts : [],
    ).length;
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

/** Returns the text of a changed blob in its existing style. */
function changedText(text: string, syntax: CatalogFormat, before: JsonObject, after: JsonObject): string {
  return syntax === 'yaml' ? changeYaml(text, before, after) : jsonLike(text, after);
}

/** Returns the text of a blob that replaces another, in its style. */
function replacedText(text: string, syntax: CatalogFormat, value: EncodableJson): string {
  return syntax === 'yaml' ? rewrittenYaml(text, value) : jsonLike(text, value);
}

/** Returns the text of a new blob next to another, in its style; YAML without the separator line. */
function textBeside(neighbour: string, syntax: CatalogFormat, value: EncodableJson): string {
  if (syntax === 'json') return jsonLike(neighbour, value);
  const text = encodeYaml(value);
  return neighbour.includes('\r\n') ? text.replaceAll('\n', '\r\n') : text;
}

/** Returns JSON with the indentation and line endings of another text. */
function jsonLike(model: string, value: EncodableJson): string {
  const [, ends = '', indent] = /^\s*\{(\r?\n)([ \t]*)/.exec(model) ?? [];
  if (indent === undefined) return encodeGoJson(value);
  const isTabs = indent.startsWith('\t');
  const width = isTabs ? 1 : indent.length === 0 ? jsonIndent : indent.length;
  let text = encodeGoJson(value, { indent: width });
  if (isTabs) text = text.replace(/^ +/gm, (spaces) => '\t'.repeat(spaces.length));
  return ends === '\r\n' ? text.replaceAll('\n', '\r\n') : text;
}
