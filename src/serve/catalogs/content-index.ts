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

/** Query of blobs; an empty or missing field matches all. */
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

/** Distinct texts of one field, the empty one first, and the blobs with each. */
type Column = ReturnType<typeof createColumn>;

/** `ids` has the position of each blob's text. */
function createColumn(texts: readonly string[], ids: Uint32Array) {
  const idOf = new Map<string, number>();
  for (const [id, text] of texts.entries()) idOf.set(text, id);
  /** Start of each text's blobs in `members`. */
  const starts = new Uint32Array(texts.length + 1);
  for (const id of ids) (starts[id + 1] as number)++;
  for (let id = 0; id < texts.length; id++) (starts[id + 1] as number) += starts[id] as number;
  const next = starts.slice();
  const members = new Uint32Array(ids.length);
  for (const [blob, id] of ids.entries()) members[(next[id] as number)++] = blob;
  return {
    texts,
    ids,
    findId: (text: string) => idOf.get(text),
    /** Returns the blobs with a text, ascending. */
    getMembers: (id: number) => members.subarray(starts[id], starts[id + 1]),
    getText: (blob: number) => texts[ids[blob] as number] as string,
  };
}

/** Index of `catalog.jsonl`; about 40 bytes per blob in addition to its name. */
export class ContentIndex {
  /** Schemas, packages and names. */
  readonly #columns: readonly [Column, Column, Column];
  /** Number of blobs. */
  readonly count: number;
  /** Start of each blob, and the end of the last one. */
  readonly #offsets: Float64Array;
  /** Size of `catalog.jsonl` in bytes. */
  readonly size: number;
  /** Package names, sorted. */
  readonly packages: string[];

  /** Creates an index from the columns of schemas, packages and names, and the length of each blob. */
  constructor(columns: readonly [Column, Column, Column], lengths: ArrayLike<number>) {
    const [, packages, names] = columns;
    this.#columns = columns;
    this.count = lengths.length;
    this.#offsets = new Float64Array(this.count + 1);
    for (let i = 0; i < this.count; i++)
      this.#offsets[i + 1] = (this.#offsets[i] as number) + (lengths[i] as number);
    this.size = this.#offsets[this.count] as number;
    const packageNames = new Set(packages.texts);
    for (const blob of this.#findMatching({ schema: 'olm.package' })) {
      packageNames.add(names.getText(blob));
    }
    packageNames.delete('');
    this.packages = sortedByBytes(packageNames);
  }

  *#findMatching(query: Partial<MetasQuery>): Generator<number, void, undefined> {
    const criteria: { ids: Uint32Array; id: number; members: Uint32Array }[] = [];
    for (const [i, field] of fields.entries()) {
      const text = query[field] ?? '';
      if (text === '') continue;
      const { ids, findId, getMembers } = this.#columns[i] as Column;
      const id = findId(text);
      if (id === undefined) return;
      criteria.push({ ids, id, members: getMembers(id) });
    }
    const [fewest, ...others] = criteria.sort((a, b) => a.members.length - b.members.length);
    if (fewest === undefined) for (let blob = 0; blob < this.count; blob++) yield blob;
    else {
      for (const blob of fewest.members) if (others.every(({ ids, id }) => ids[blob] === id)) yield blob;
    }
  }

  #getSection(blob: number): Section {
    const offset = this.#offsets[blob] as number;
    return { offset, length: (this.#offsets[blob + 1] as number) - offset };
  }

  /** Returns the sections of matching blobs, in order, adjacent ones joined. */
  find(query: Partial<MetasQuery> = {}): Section[] {
    if (fields.every((field) => !query[field]))
      return this.size === 0 ? [] : [{ offset: 0, length: this.size }];
    const sections: Section[] = [];
    let last: Section | undefined;
    for (const blob of this.#findMatching(query)) {
      const { offset, length } = this.#getSection(blob);
      if (last !== undefined && last.offset + last.length === offset) last.length += length;
      else sections.push((last = { offset, length }));
    }
    return sections;
  }

  /** Yields matching blobs, in order. */
  *blobs(query: Partial<MetasQuery> = {}): Generator<ContentBlob, void, undefined> {
    const [schemas, packages, names] = this.#columns;
    for (const blob of this.#findMatching(query)) {
      yield {
        schema: schemas.getText(blob),
        package: packages.getText(blob),
        name: names.getText(blob),
        section: this.#getSection(blob),
      };
    }
  }

  /** Encodes the index file: a line with the digest of the rest, and the rest. */
  encode({ hash, storedAt }: ContentState): string {
    const blobs: number[] = [];
    for (let blob = 0; blob < this.count; blob++) {
      for (const { ids } of this.#columns) blobs.push(ids[blob] as number);
      blobs.push(this.#getSection(blob).length);
    }
    const [schemas, packages, names] = this.#columns;
    const texts = { schemas: schemas.texts, packages: packages.texts, names: names.texts };
    const body = `${JSON.stringify({ version, hash, size: this.size, storedAt: storedAt.toISOString(), ...texts, blobs })}\n`;
    return `${computeDigest(body)}\n${body}`;
  }
}

/** Returns the builder of an index from blobs in stored order. */
export function createIndexBuilder() {
  const known = fields.map((field) => ({ field, ids: new Map([['', 0]]), blobs: [] as number[] }));
  const lengths: number[] = [];
  return {
    /** `length` is the length of the line with its line break. */
    add(blob: MetasQuery, length: number): void {
      for (const { field, ids, blobs } of known) {
        let id = ids.get(blob[field]);
        if (id === undefined) ids.set(blob[field], (id = ids.size));
        blobs.push(id);
      }
      lengths.push(length);
    },
    finish(): ContentIndex {
      const columns = known.map(({ ids, blobs }) => createColumn([...ids.keys()], Uint32Array.from(blobs)));
      return new ContentIndex(columns as [Column, Column, Column], lengths);
    },
  };
}

/** Parses an index file. Throws OpmateError INVALID for a damaged one or another version. */
export function parseContentIndex(text: string): { index: ContentIndex; state: ContentState } {
  const lineEnd = text.indexOf('\n');
  const body = text.slice(lineEnd + 1);
  if (lineEnd < 0 || computeDigest(body) !== text.slice(0, lineEnd)) throw invalid('damaged');
  const value = parseJson(body);
  if (!isJsonObject(value)) throw invalid('damaged');
  if (value['version'] !== version) throw invalid('unsupported version');
  const { hash, size, storedAt, blobs } = value;
  if (typeof hash !== 'string' || typeof storedAt !== 'string' || !isCounts(blobs)) throw invalid('damaged');
  const count = blobs.length / 4;
  const columns = ['schemas', 'packages', 'names'].map((key, field) => {
    const texts = value[key];
    if (!isTexts(texts)) throw invalid('damaged');
    const ids = Uint32Array.from({ length: count }, (_, blob) => blobs[blob * 4 + field] as number);
    if (ids.some((id) => id >= texts.length)) throw invalid('damaged');
    return createColumn(texts, ids);
  });
  const lengths = Float64Array.from({ length: count }, (_, blob) => blobs[blob * 4 + 3] as number);
  const index = new ContentIndex(columns as [Column, Column, Column], lengths);
  const date = new Date(storedAt);
  if (index.size !== size || Number.isNaN(date.getTime())) throw invalid('damaged');
  return { index, state: { hash, storedAt: date } };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid('damaged');
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

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value[0] === '' && value.every((item) => typeof item === 'string');
}

function invalid(problem: string): OpmateError {
  return new OpmateError('INVALID', `index: ${problem}`);
}
