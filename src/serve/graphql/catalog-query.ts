import { type ExecutionResult, GraphQLError, type GraphQLResolveInfo, execute, validate } from 'graphql';
import { takeTurn } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { createLimiter } from '../../core/limiter.js';
import { parseGoJson } from '../../document/go-json.js';
import type { JsonValue } from '../../document/json.js';
import { type ContentReader, type StoredContent, readSection } from '../catalogs/stored-content.js';
import type { MetasQuery, Section } from '../catalogs/content-index.js';
import { type CatalogSchema, type Page, type QueryContext, createCatalogSchema } from './catalog-schema.js';
import { readCatalogShape } from './catalog-shape.js';
import { checkIntrospection, parseQuery } from './query-limits.js';

export interface CatalogQuery {
  query: string;
  variables?: Readonly<Record<string, unknown>> | undefined;
  operationName?: string | undefined;
}

export interface QueryLimits {
  /** Approximate maximum bytes of a result; default 32 MiB. */
  maxResultBytes: number;
  /** Maximum milliseconds of a query; default 10,000. */
  maxMs: number;
}

const defaultLimits: QueryLimits = { maxResultBytes: 32 * 1024 * 1024, maxMs: 10_000 };

interface QueryResult {
  /** Pieces of JSON text. */
  body: Buffer[];
  /** The query has the same result for the same content. */
  isStable: boolean;
}

/** Maximum length of an error message; names in a query have any length. */
const maxMessage = 1_000;
/** Maximum errors of a result, and their total characters. */
const maxErrors = 1_000;
const maxErrorChars = 1024 * 1024;
/** Size of an object without its fields. */
const objectBytes = 64;
/** Elements of a large array that are written per turn. */
const elementsPerTurn = 100;
/** Names that are too long for suggestions of similar ones. */
const longName = /\w{100}/;
/** Characters per piece of a result. */
const pieceChars = 64 * 1024;

/** Schemas by content; creating one reads all blobs. */
const schemas = new WeakMap<StoredContent, Promise<CatalogSchema>>();
const readingOne = createLimiter(1);
/** Bounds the memory of executing queries by their number. */
const runningFew = createLimiter(4);

/**
 * Executes a query. Opens the content synchronously, so that it stays readable if it is replaced. Throws OpmateError
 * INVALID or LIMIT for a catalog without a valid schema.
 */
export async function queryCatalog(
  content: StoredContent,
  { query, variables, operationName }: CatalogQuery,
  limits: Partial<QueryLimits>,
  signal?: AbortSignal,
): Promise<QueryResult> {
  const reader = content.openReader();
  try {
    const { document, typenameBytes } = parseQuery(query);
    const { schema, size } = await readSchema(content, reader);
    const errors = validate(schema, document, undefined, { hideSuggestions: longName.test(query) });
    if (errors.length > 0) return await encode({ data: null, errors });
    checkIntrospection(document, size);
    const contextValue = new RunningQuery(
      content,
      reader,
      { ...defaultLimits, ...limits },
      typenameBytes,
      signal,
    );
    const result = await runningFew(async () =>
      execute({
        schema,
        document,
        contextValue,
        variableValues: variables ?? null,
        operationName: operationName ?? null,
      }),
    );
    const { failure, unreadable, unreported } = contextValue;
    if (unreadable !== undefined) throw unreadable;
    if (failure === undefined) return await encode(result, unreported);
    return { ...(await encode({ data: null, errors: [failure] })), isStable: false };
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    return await encode({ data: null, errors: [error] });
  } finally {
    reader.close();
  }
}

async function readSchema(content: StoredContent, reader: ContentReader): Promise<CatalogSchema> {
  let schema = schemas.get(content);
  if (schema === undefined) {
    schema = readingOne(async () => createCatalogSchema(await readCatalogShape(content, reader)));
    schemas.set(content, schema);
    // Faults of the catalog are permanent; failures of reading may not be.
    schema.catch((error: unknown) => {
      const isLasting = error instanceof OpmateError && ['INVALID', 'LIMIT'].includes(error.code);
      if (!isLasting) schemas.delete(content);
    });
  }
  return await schema;
}

/** A running query, which reads blobs and ends at its limits. */
class RunningQuery implements QueryContext {
  /** Limit that ended the query. */
  failure: GraphQLError | undefined;
  /** Failure of reading the content, no fault of the query. */
  unreadable: unknown;
  readonly #content: StoredContent;
  readonly #reader: ContentReader;
  readonly #limits: QueryLimits;
  readonly #typenameBytes: number;
  readonly #signal: AbortSignal | undefined;
  readonly #deadline: number;
  #errors = 0;
  #bytes = 0;

  constructor(
    content: StoredContent,
    reader: ContentReader,
    limits: QueryLimits,
    typenameBytes: number,
    signal: AbortSignal | undefined,
  ) {
    this.#content = content;
    this.#reader = reader;
    this.#limits = limits;
    this.#typenameBytes = typenameBytes;
    this.#signal = signal;
    this.#deadline = performance.now() + limits.maxMs;
  }

  /** Number of omitted errors. */
  get unreported(): number {
    return Math.max(0, this.#errors - maxErrors);
  }

  report(error: GraphQLError): null {
    if (++this.#errors > maxErrors) return null;
    throw error;
  }

  async blobs(
    query: MetasQuery,
    { first, count }: Page,
    info: GraphQLResolveInfo,
  ): Promise<Generator<Promise<JsonValue>, void, undefined>> {
    await this.#takeQueryTurn();
    const sections: Section[] = [];
    let number = 0;
    for (const { section } of this.#content.blobs(query)) {
      if (number >= first + count) break;
      if (number++ >= first) sections.push(section);
    }
    return this.#readBlobs(sections, info);
  }

  *paced(elements: readonly JsonValue[]): Generator<JsonValue | Promise<JsonValue>, void, undefined> {
    let turn: Promise<void> | undefined;
    for (const [i, element] of elements.entries()) {
      if (i > 0 && i % elementsPerTurn === 0)
        turn = (turn ?? Promise.resolve()).then(() => this.#takeQueryTurn());
      yield turn === undefined ? element : turn.then(() => (this.failure === undefined ? element : null));
    }
  }

  async #takeQueryTurn(): Promise<void> {
    await takeTurn();
    if (performance.now() > this.#deadline)
      this.#fail(`query exceeds maximum time of ${this.#limits.maxMs} ms`);
    if (this.#signal?.aborted === true) this.#fail('the client has gone away');
  }

  /** Records the limit without throwing: each remaining value would become an error. */
  #fail(message: string): void {
    this.failure ??= new GraphQLError(message);
  }

  spendValue(size: number, { path }: GraphQLResolveInfo): void {
    this.#bytes += size + String(path.key).length;
    if (this.#bytes <= this.#limits.maxResultBytes) return;
    this.#fail(
      `result exceeds maximum size of ${this.#limits.maxResultBytes} bytes: select fewer fields, or a lower limit`,
    );
  }

  spendObjects(count: number, info: GraphQLResolveInfo): void {
    this.spendValue(count * (objectBytes + this.#typenameBytes), info);
  }

  async #readBlob(section: Section, info: GraphQLResolveInfo): Promise<JsonValue> {
    await this.#takeQueryTurn();
    this.spendObjects(1, info);
    if (this.failure !== undefined) return null;
    try {
      return parseGoJson(String(await readSection(this.#reader, section)));
    } catch (error) {
      this.unreadable ??= error;
      throw error;
    }
  }

  /** The library requests all promises at once, and writes each object before the next promise resolves. */
  *#readBlobs(
    sections: readonly Section[],
    info: GraphQLResolveInfo,
  ): Generator<Promise<JsonValue>, void, undefined> {
    let last: Promise<unknown> = Promise.resolve();
    for (const section of sections) {
      const next = last.then(() => this.#readBlob(section, info));
      yield next;
      last = next;
    }
  }
}

/** Writes a result as JSON, long lists element by element. */
async function encode({ data, errors }: ExecutionResult, unreported = 0): Promise<QueryResult> {
  const body: Buffer[] = [];
  let text = '{"data":';
  const write = async (more: string): Promise<void> => {
    text += more;
    if (text.length < pieceChars) return;
    body.push(Buffer.from(text));
    text = '';
    await takeTurn();
  };
  if (data === null || data === undefined) text += 'null';
  else {
    let separator = '{';
    for (const [name, value] of Object.entries(data)) {
      await write(`${separator}${JSON.stringify(name)}:`);
      separator = ',';
      if (!Array.isArray(value)) {
        await write(JSON.stringify(value));
        continue;
      }
      for (const [i, element] of value.entries()) {
        await write(`${i === 0 ? '[' : ','}${JSON.stringify(element)}`);
      }
      await write(value.length === 0 ? '[]' : ']');
    }
    await write(separator === '{' ? '{}' : '}');
  }
  if (errors !== undefined && errors.length > 0) await write(`,"errors":${encodeErrors(errors, unreported)}`);
  text += '}\n';
  body.push(Buffer.from(text));
  return { body, isStable: true };
}

function encodeErrors(errors: readonly GraphQLError[], unreported: number): string {
  const texts: string[] = [];
  let length = 0;
  for (const { message, locations = [], path } of errors) {
    const shown = message.length > maxMessage ? `${message.slice(0, maxMessage)}…` : message;
    const text = JSON.stringify({ message: shown, locations, path });
    length += text.length;
    if (length > maxErrorChars) break;
    texts.push(text);
  }
  const more = errors.length - texts.length + unreported;
  if (more > 0) texts.push(JSON.stringify({ message: `${more} more errors`, locations: [] }));
  return `[${texts.join(',')}]`;
}
