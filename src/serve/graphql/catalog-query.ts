/** Answers GraphQL queries about a catalog from its stored content. */
import { type ExecutionResult, GraphQLError, type GraphQLResolveInfo, execute, validate } from 'graphql';
import { takeTurn } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { createLimiter } from '../../core/limiter.js';
import { parseGoJson } from '../../document/go-json.js';
import type { JsonValue } from '../../document/json.js';
import type { ContentReader, StoredContent } from '../catalogs/stored-content.js';
import type { MetasQuery, Section } from '../catalogs/content-index.js';
import { type CatalogSchema, type Page, type QueryContext, makeCatalogSchema } from './catalog-schema.js';
import { readCatalogShape } from './catalog-shape.js';
import { checkIntrospection, parseQuery } from './query-limits.js';

export interface CatalogQuery {
  query: string;
  variables?: Readonly<Record<string, unknown>> | undefined;
  operationName?: string | undefined;
}

export interface QueryLimits {
  /** Bytes of one result, about; 32 MiB. */
  maxResultBytes: number;
  /** Milliseconds that one query may run; 10,000. */
  maxMs: number;
}

export const defaultQueryLimits: QueryLimits = { maxResultBytes: 32 * 1024 * 1024, maxMs: 10_000 };

interface QueryResult {
  /** JSON text, in pieces. */
  body: Buffer[];
  /** The same query of the same content has the same result. */
  isStable: boolean;
}

/** Longest message of an error; a query can have names of any length. */
const maxMessage = 1_000;
/** Errors that a result has, and the characters that they may have together. */
const maxErrors = 1_000;
const maxErrorChars = 1024 * 1024;
/** What an object counts beside its fields. */
const objectBytes = 64;
/** Elements of a large array that are written in one go. */
const elementsPerTurn = 100;
/** Names longer than this are not compared with each other for a hint. */
const longName = /\w{100}/;
/** Characters of a result that become one piece. */
const pieceChars = 64 * 1024;

/** A schema needs all blobs of its catalog once. */
const schemas = new WeakMap<StoredContent, Promise<CatalogSchema>>();
const readingOne = createLimiter(1);
/** What executing queries hold in memory is bounded by their number. */
const runningFew = createLimiter(4);

/**
 * Executes a query. Opens the content at once, so that it is read to its end though it is replaced meanwhile. Throws
 * OpmateError INVALID or LIMIT for a catalog of which no schema can be made.
 */
export async function queryCatalog(
  content: StoredContent,
  { query, variables, operationName }: CatalogQuery,
  limits: QueryLimits,
  signal?: AbortSignal,
): Promise<QueryResult> {
  const reader = content.openReader();
  try {
    const { document, typenameBytes } = parseQuery(query);
    const { schema, size } = await readSchema(content, reader);
    const errors = validate(schema, document, undefined, { hideSuggestions: longName.test(query) });
    if (errors.length > 0) return await encode({ data: null, errors });
    checkIntrospection(document, size);
    const contextValue = new RunningQuery({ content, reader, limits, signal, typenameBytes });
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
    schema = readingOne(async () => makeCatalogSchema(await readCatalogShape(content, reader)));
    schemas.set(content, schema);
    // What is wrong with the catalog stays wrong; what is wrong with reading it may not.
    schema.catch((error: unknown) => {
      const isLasting = error instanceof OpmateError && ['INVALID', 'LIMIT'].includes(error.code);
      if (!isLasting) schemas.delete(content);
    });
  }
  return await schema;
}

interface RunOptions {
  content: StoredContent;
  reader: ContentReader;
  limits: QueryLimits;
  signal: AbortSignal | undefined;
  typenameBytes: number;
}

class RunningQuery implements QueryContext {
  readonly #options: RunOptions;
  readonly #deadline: number;
  #bytes = 0;
  #errors = 0;
  /** The limit that ended the query. */
  failure: GraphQLError | undefined;
  /** Why the content could not be read: no fault of the query. */
  unreadable: unknown;

  constructor(options: RunOptions) {
    this.#options = options;
    this.#deadline = performance.now() + options.limits.maxMs;
  }

  /** Errors that the result does not have. */
  get unreported(): number {
    return Math.max(0, this.#errors - maxErrors);
  }

  spendObjects(count: number, info: GraphQLResolveInfo): void {
    this.spendValue(count * (objectBytes + this.#options.typenameBytes), info);
  }

  spendValue(bytes: number, { path }: GraphQLResolveInfo): void {
    this.#bytes += bytes + String(path.key).length;
    const { maxResultBytes } = this.#options.limits;
    if (this.#bytes <= maxResultBytes) return;
    this.#fail(
      `result exceeds maximum size of ${maxResultBytes} bytes: select fewer fields, or a lower limit`,
    );
  }

  report(error: GraphQLError): null {
    if (++this.#errors > maxErrors) return null;
    throw error;
  }

  async blobs(
    query: MetasQuery,
    { first, count }: Page,
    info: GraphQLResolveInfo,
  ): Promise<Iterable<Promise<JsonValue>>> {
    await this.#takeTurn();
    const sections: Section[] = [];
    let number = 0;
    for (const { section } of this.#options.content.blobs(query)) {
      if (number >= first + count) break;
      if (number++ >= first) sections.push(section);
    }
    return this.#read(sections, info);
  }

  /** The library takes all promises at once, and writes each object before the next promise goes on. */
  *#read(
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

  async #readBlob(section: Section, info: GraphQLResolveInfo): Promise<JsonValue> {
    await this.#takeTurn();
    this.spendObjects(1, info);
    if (this.failure !== undefined) return null;
    const buffer = Buffer.allocUnsafe(section.length);
    try {
      await this.#options.reader.read(buffer, section.offset);
      return parseGoJson(buffer.toString());
    } catch (error) {
      this.unreadable ??= error;
      throw error;
    }
  }

  *paced(elements: readonly JsonValue[]): Generator<JsonValue | Promise<JsonValue>, void, undefined> {
    let turn: Promise<void> | undefined;
    for (const [i, element] of elements.entries()) {
      if (i > 0 && i % elementsPerTurn === 0) turn = (turn ?? Promise.resolve()).then(() => this.#takeTurn());
      yield turn === undefined ? element : turn.then(() => (this.failure === undefined ? element : null));
    }
  }

  async #takeTurn(): Promise<void> {
    await takeTurn();
    const { limits, signal } = this.#options;
    if (performance.now() > this.#deadline) this.#fail(`query exceeds maximum time of ${limits.maxMs} ms`);
    if (signal?.aborted === true) this.#fail('the client has gone away');
  }

  /** Nothing is thrown: each value that is left would make an error. */
  #fail(message: string): void {
    this.failure ??= new GraphQLError(message);
  }
}

/** Writes a result as JSON; of a long list element by element. */
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
