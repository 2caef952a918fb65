import { computeDigest } from '../../core/digest.js';
import { OpmateError } from '../../core/errors.js';
import { isJsonObject } from '../../document/json.js';
import { sortedByBytes } from '../../core/order.js';

const version = 1;
const fields = ['schema', 'package', 'name'] as const;

/** A range of bytes of `catalog.jsonl`. */
export interface Section {
  offset: number;
  length: number;
}

/** Query of blobs; an empty field matches all. */
export interface MetasQuery {
  schema: string;
  package: string;
  name: string;
}

/** A blob with its line, line break included. */
export interface ContentBlob extends MetasQuery {
  section: Section;
}

/** State of the content that an index belongs to. */
export interface ContentState {
  /** `sha256:…` of `catalog.jsonl`. */
  hash: string;
  storedAt: Date;
}

/** Distinct texts of one field, and the blobs with each. */
class Column {
  /** Distinct texts; the empty one first. */
  readonly texts: string[];
  /** Position of each blob's text. */
  readonly ids: Uint32Array;
  readonly #idOf = new Map<string, number>();
  /** Start of each text's blobs in `members`. */
  readonly #starts: Uint32Array;
  readonly #members: Uint32Array;

  constructor(texts: string[], ids: Uint32Array) {
    this.texts = texts;
    this.ids = ids;
    for (const [id, text] of texts.entries()) this.#idOf.set(text, id);
    this.#starts = new Uint32Array(texts.length + 1);
    for (const id of ids) (this.#starts[id + 1] as number)++;
    for (let id = 0; id < texts.length; id++) {
      (this.#starts[id + 1] as number) += this.#starts[id] as number;
    }
    const next = this.#starts.slice();
    this.#members = new Uint32Array(ids.length);
    for (const [blob, id] of ids.entries()) this.#members[(next[id] as number)++] = blob;
  }

  findId(text: string): number | undefined {
    return this.#idOf.get(text);
  }

  /** Returns the blobs with a text, ascending. */
  getMembers(id: number): Uint32Array {
    return this.#members.subarray(this.#starts[id], this.#starts[id + 1]);
  }
}

/** Index of `catalog.jsonl`; about 40 bytes per blob in addition to its name. */
export class ContentIndex {
  readonly #columns: readonly [Column, Column, Column];
  /** Start of each blob, and the end of the last one. */
  readonly #offsets: Float64Array;
  readonly packages: readonly string[];

  /** `texts` are distinct per field, the empty one first; `ids` and `lengths` have one entry per blob. */
  constructor(
    texts: readonly [string[], string[], string[]],
    ids: readonly [Uint32Array, Uint32Array, Uint32Array],
    lengths: ArrayLike<number>,
  ) {
    this.#columns = [
      new Column(texts[0], ids[0]),
      new Column(texts[1], ids[1]),
      new Column(texts[2], ids[2]),
    ];
    this.#offsets = new Float64Array(lengths.length + 1);
    for (let i = 0; i < lengths.length; i++) {
      this.#offsets[i + 1] = (this.#offsets[i] as number) + (lengths[i] as number);
    }
    const packages = new Set(texts[1]);
    for (const blob of this.#matching({ schema: 'olm.package', package: '', name: '' })) {
      packages.add(this.#text(2, blob));
    }
    packages.delete('');
    this.packages = sortedByBytes(packages);
  }

  get count(): number {
    return this.#offsets.length - 1;
  }

  get size(): number {
    return this.#offsets[this.count] as number;
  }

  /** Returns the sections of matching blobs, in order, adjacent ones joined. */
  find(query: MetasQuery): Section[] {
    if (query.schema === '' && query.package === '' && query.name === '') {
      return this.size === 0 ? [] : [{ offset: 0, length: this.size }];
    }
    const sections: Section[] = [];
    let last: Section | undefined;
    for (const blob of this.#matching(query)) {
      const { offset, length } = this.#section(blob);
      if (last !== undefined && last.offset + last.length === offset) last.length += length;
      else sections.push((last = { offset, length }));
    }
    return sections;
  }

  *blobs(query: MetasQuery): Generator<ContentBlob, void, undefined> {
    for (const blob of this.#matching(query)) {
      yield {
        schema: this.#text(0, blob),
        package: this.#text(1, blob),
        name: this.#text(2, blob),
        section: this.#section(blob),
      };
    }
  }

  *#matching(query: MetasQuery): Generator<number, void, undefined> {
    const criteria: { column: Column; id: number; members: Uint32Array }[] = [];
    for (const [i, field] of fields.entries()) {
      if (query[field] === '') continue;
      const column = this.#columns[i] as Column;
      const id = column.findId(query[field]);
      if (id === undefined) return;
      criteria.push({ column, id, members: column.getMembers(id) });
    }
    const [fewest, ...others] = criteria.sort((a, b) => a.members.length - b.members.length);
    if (fewest === undefined) for (let blob = 0; blob < this.count; blob++) yield blob;
    else {
      for (const blob of fewest.members) {
        if (others.every(({ column, id }) => column.ids[blob] === id)) yield blob;
      }
    }
  }

  #text(field: 0 | 1 | 2, blob: number): string {
    const { texts, ids } = this.#columns[field];
    return texts[ids[blob] as number] as string;
  }

  #section(blob: number): Section {
    const offset = this.#offsets[blob] as number;
    return { offset, length: (this.#offsets[blob + 1] as number) - offset };
  }

  /** Encodes the index file: a line with the digest of the rest, and the rest. */
  encode(state: ContentState): string {
    const blobs: number[] = [];
    for (let blob = 0; blob < this.count; blob++) {
      for (const { ids } of this.#columns) blobs.push(ids[blob] as number);
      blobs.push(this.#section(blob).length);
    }
    const [schemas, packages, names] = this.#columns;
    const body = `${JSON.stringify({
      version,
      hash: state.hash,
      size: this.size,
      storedAt: state.storedAt.toISOString(),
      schemas: schemas.texts,
      packages: packages.texts,
      names: names.texts,
      blobs,
    })}\n`;
    return `${computeDigest(body)}\n${body}`;
  }
}

/** Builds an index from blobs in stored order. */
export class ContentIndexBuilder {
  readonly #texts: [string[], string[], string[]] = [[''], [''], ['']];
  readonly #known = fields.map(() => new Map([['', 0]]));
  readonly #ids: [number[], number[], number[]] = [[], [], []];
  readonly #lengths: number[] = [];

  /** `length` is the length of the line with its line break. */
  add(blob: MetasQuery, length: number): void {
    for (const i of [0, 1, 2] as const) {
      const text = blob[fields[i]];
      const known = this.#known[i] as Map<string, number>;
      let id = known.get(text);
      if (id === undefined) {
        id = this.#texts[i].push(text) - 1;
        known.set(text, id);
      }
      this.#ids[i].push(id);
    }
    this.#lengths.push(length);
  }

  finish(): ContentIndex {
    const [schemas, packages, names] = this.#ids;
    const ids = [Uint32Array.from(schemas), Uint32Array.from(packages), Uint32Array.from(names)] as const;
    return new ContentIndex(this.#texts, ids, this.#lengths);
  }
}

/** Parses an index file. Throws OpmateError INVALID for a damaged one or another version. */
export function parseContentIndex(text: string): { index: ContentIndex; state: ContentState } {
  const lineEnd = text.indexOf('\n');
  const body = text.slice(lineEnd + 1);
  if (lineEnd < 0 || computeDigest(body) !== text.slice(0, lineEnd)) throw invalid('damaged');
  const value: unknown = parseOrUndefined(body);
  if (!isJsonObject(value)) throw invalid('damaged');
  if (value['version'] !== version) throw invalid('unsupported version');
  const { hash, size, storedAt, blobs } = value;
  if (typeof hash !== 'string' || typeof storedAt !== 'string' || !isCounts(blobs)) throw invalid('damaged');
  const texts = [toTexts(value['schemas']), toTexts(value['packages']), toTexts(value['names'])] as const;
  const count = blobs.length / 4;
  const ids = texts.map(({ length }, field) => {
    const column = new Uint32Array(count);
    for (let blob = 0; blob < count; blob++) {
      const id = blobs[blob * 4 + field] as number;
      if (id >= length) throw invalid('damaged');
      column[blob] = id;
    }
    return column;
  }) as [Uint32Array, Uint32Array, Uint32Array];
  const lengths = Float64Array.from({ length: count }, (_, blob) => blobs[blob * 4 + 3] as number);
  const index = new ContentIndex([...texts], ids, lengths);
  const date = new Date(storedAt);
  if (index.size !== size || Number.isNaN(date.getTime())) throw invalid('damaged');
  return { index, state: { hash, storedAt: date } };
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Reports whether a value has three text positions and a positive length for each blob. */
function isCounts(value: unknown): value is number[] {
  return (
    Array.isArray(value) &&
    value.length % 4 === 0 &&
    value.every((item, i) => Number.isSafeInteger(item) && item >= (i % 4 === 3 ? 1 : 0))
  );
}

function toTexts(value: unknown): string[] {
  const isValid = Array.isArray(value) && value[0] === '' && value.every((item) => typeof item === 'string');
  if (!isValid) throw invalid('damaged');
  return value as string[];
}

function invalid(problem: string): OpmateError {
  return new OpmateError('INVALID', `index: ${problem}`);
}
