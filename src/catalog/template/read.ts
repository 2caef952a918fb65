import { addContext } from '../../core/diagnostics-error.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { type Diagnostic, createWarning } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import { nearestPlace } from '../../document/places.js';
import { decodeUtf8, getGoKind, quoteGo } from '../../document/go-json.js';
import { findFieldKeys } from '../../document/go-json-fold.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { parseYamlWithPlaces } from '../../document/yaml.js';
import type { YamlPath } from '../../document/yaml/full.js';
import { getList } from '../../document/json-fields.js';
import { findBlobLines } from '../blob-places.js';
import { decodeMeta } from '../blob.js';
import { type CatalogDocument, LineCounter, type OpenFile, readDocuments } from '../documents.js';
import { readAgain } from '../file-access.js';
import { MissingSchemaError, toMeta } from '../meta.js';
import { TemplateErrors, kindFault, rendering } from './template-errors.js';
import { readSemverTemplate } from './read-semver.js';
import {
  type BasicTemplate,
  type SubstitutesTemplate,
  type Substitution,
  type Template,
  type TemplateEntry,
  type TemplateType,
  templateSchemas,
} from './template.js';

/**
 * Reads a template from an open file, which stays open while lines are needed. Without a type, the schema of the
 * first document selects it. Of a basic or substitutes template the first document is read, unknown keys are
 * warnings, and the last duplicate key takes precedence; a semver template is strict about both. Throws OpmateError
 * INVALID, SYNTAX or LIMIT with all problems; several have an AggregateError as cause.
 */
export async function readTemplate(
  file: OpenFile,
  type: TemplateType | undefined,
  options: CancelOptions = {},
): Promise<Template> {
  if (type === 'semver') return readSemverTemplate(file);
  if (type !== undefined) {
    const context = type === 'basic' ? rendering : `${rendering}render: unable to parse template: `;
    const document = await readFirstDocument(file, `${context}decoding template schema`, options);
    return readEntriesTemplate(file, document, type);
  }
  const document = await readFirstDocument(
    file,
    'auto-detecting template type: decoding template input',
    options,
  );
  const detected = await detectType(file, document);
  return detected === 'semver' ? readSemverTemplate(file) : readEntriesTemplate(file, document, detected);
}

async function readFirstDocument(
  file: OpenFile,
  context: string,
  options: CancelOptions,
): Promise<CatalogDocument> {
  try {
    for await (const document of readDocuments(file, options)) return document;
  } catch (error) {
    if (!(error instanceof OpmateError) || error.code === 'CANCELLED') throw error;
    throw addContext(error, { subject: context, file: file.label, line: error.line });
  }
  throw new OpmateError('INVALID', 'EOF', {
    subject: context,
    hint: `add a schema to ${file.label}, one of ${schemaList}`,
  });
}

const emptyDocument = 'add a schema to the first document, which is empty, or remove a line --- before it';
const schemaList = Object.values(templateSchemas).join(', ');

async function detectType(file: OpenFile, document: CatalogDocument): Promise<TemplateType> {
  const { value } = document;
  const fail = async (problem: string, hint: string): Promise<OpmateError> => {
    const line = await lineFinder(file, document)(['schema']);
    const message = `auto-detecting template type: ${problem}`;
    return new OpmateError('INVALID', message, { file: file.label, line, hint });
  };
  const among = `set schema to one of ${schemaList}`;
  if (value !== null && !isJsonObject(value)) {
    const target = 'value of type struct { Schema string "json:\\"schema\\"" }';
    throw await fail(
      `unmarshalling template schema: json: cannot unmarshal ${getGoKind(value)} into Go ${target}`,
      among,
    );
  }
  const schema = value === null ? undefined : findField(value, 'schema')?.value;
  if (schema === undefined || schema === null || schema === '') {
    const hint = value === null ? emptyDocument : among;
    throw await fail("template input missing required 'schema' field", hint);
  }
  if (typeof schema !== 'string') {
    const problem = `cannot unmarshal ${getGoKind(schema)} into Go struct field .schema of type string`;
    throw await fail(`unmarshalling template schema: json: ${problem}`, among);
  }
  const match = (Object.keys(templateSchemas) as TemplateType[]).find(
    (type) => templateSchemas[type] === schema,
  );
  if (match !== undefined) return match;
  throw await fail(
    `unknown template schema: ${schema}`,
    /^olm\.(?:package|channel|bundle|deprecations)$/.test(schema)
      ? 'convert the catalog to a template with api.convertToTemplate'
      : among,
  );
}

function findField(object: JsonObject, field: string): { key: string; value: JsonValue } | undefined {
  const key = findFieldKeys(object, field).at(-1);
  return key === undefined ? undefined : { key, value: object[key] as JsonValue };
}

/** Returns a function that finds the lines of parts of a document; it reads the document again on first use. */
function lineFinder(
  file: OpenFile,
  { offset, length, syntax }: Pick<CatalogDocument, 'offset' | 'length' | 'syntax'>,
): (path: YamlPath) => Promise<number> {
  const read = async (): Promise<(path: YamlPath) => number> => {
    const first = await new LineCounter(file.label).lineOf(file.handle, offset);
    const text = decodeUtf8(await readAgain(file.handle, { file: file.label, offset, length }));
    if (syntax === 'json') {
      const linesDownTo = findBlobLines(text, syntax);
      return (path) => first + linesDownTo(path);
    }
    const placed = parseYamlWithPlaces(text.endsWith('\n') ? text : `${text}\n`);
    return (path) => first + (nearestPlace(placed, path)?.line ?? 1) - 1;
  };
  let lines: Promise<(path: YamlPath) => number> | undefined;
  return async (path) => (await (lines ??= read()))(path);
}

type EntriesTemplateType = Exclude<TemplateType, 'semver'>;

/** Reads the template of a document; its value may be released, since lines are found in the file. */
async function readEntriesTemplate(
  file: OpenFile,
  { value, offset, length, syntax }: CatalogDocument,
  type: EntriesTemplateType,
): Promise<BasicTemplate | SubstitutesTemplate> {
  const findLine = lineFinder(file, { offset, length, syntax });
  return new EntriesTemplateReader(file.label, type, findLine).read(value);
}

/** Reads basic and substitutes templates; throws all problems of a step together. */
class EntriesTemplateReader {
  readonly #file: string;
  readonly #type: EntriesTemplateType;
  readonly #findLine: (path: YamlPath) => Promise<number>;
  readonly #errors: TemplateErrors;
  /** Start of messages about this template, and of those about its fields. */
  readonly #parsing: string;
  readonly #unmarshalling: string;

  constructor(file: string, type: EntriesTemplateType, findLine: (path: YamlPath) => Promise<number>) {
    this.#file = file;
    this.#type = type;
    this.#findLine = findLine;
    this.#errors = new TemplateErrors(file, findLine);
    this.#parsing = type === 'basic' ? rendering : `${rendering}render: unable to parse template: `;
    this.#unmarshalling = `${this.#parsing}unmarshalling template: `;
  }

  async read(value: JsonValue): Promise<BasicTemplate | SubstitutesTemplate> {
    const root = await this.#requireObject(value ?? {});
    const blobs = this.#readField(root, 'entries', 'array', '[]*declcfg.Meta');
    const schema = this.#readField(root, 'schema', 'string', 'string') ?? '';
    const substitutions = this.#type === 'basic' ? [] : this.#readSubstitutions(root);
    await this.#errors.throwIfAny();
    await this.#requireSchema(schema as string, value === null);
    const entries = await this.#readEntries(root, getList(blobs));
    const places = { file: this.#file, findLine: this.#findLine, warnings: this.#warnOfUnknownKeys(root) };
    return this.#type === 'basic'
      ? { type: this.#type, entries, ...places }
      : { type: this.#type, entries, substitutions, ...places };
  }

  async #requireObject(root: JsonValue): Promise<JsonObject> {
    if (isJsonObject(root)) return root;
    const target = `value of type ${this.#type}.${this.#struct}`;
    this.#errors.report([], `${this.#unmarshalling}${kindFault(root, target)}`);
    await this.#errors.throwIfAny();
    throw new OpmateError('INTERNAL', 'a fault was lost');
  }

  get #struct(): string {
    return this.#type === 'basic' ? 'BasicTemplateData' : 'SubstitutesTemplateData';
  }

  #readField(
    root: JsonObject,
    name: string,
    kind: 'string' | 'array',
    goType: string,
  ): JsonValue | undefined {
    const field = findField(root, name);
    if (field === undefined || field.value === null || getGoKind(field.value) === kind) return field?.value;
    const target = `struct field ${this.#struct}.${name} of type ${goType}`;
    this.#errors.report([field.key], `${this.#unmarshalling}${kindFault(field.value, target)}`);
    return undefined;
  }

  #readSubstitutions(root: JsonObject): Substitution[] {
    const list = this.#readField(root, 'substitutions', 'array', '[]substitutes.Substitute');
    if (!Array.isArray(list)) return [];
    const key = findField(root, 'substitutions')?.key as string;
    return readSubstitutions(list, key, this.#unmarshalling, this.#errors);
  }

  async #requireSchema(schema: string, isEmpty: boolean): Promise<void> {
    const wanted = templateSchemas[this.#type];
    if (schema === wanted) return;
    const problem = `template has unknown schema (${quoteGo(schema)}), should be ${quoteGo(wanted)}`;
    const hint = isEmpty ? emptyDocument : 'use the type of its schema';
    this.#errors.report(['schema'], this.#parsing + problem, hint);
    await this.#errors.throwIfAny();
  }

  async #readEntries(root: JsonObject, blobs: readonly JsonValue[]): Promise<TemplateEntry[]> {
    const entries = readEntries(blobs, findField(root, 'entries')?.key ?? 'entries', {
      file: this.#file,
      type: this.#type,
      unmarshalling: this.#unmarshalling,
      errors: this.#errors,
    });
    await this.#errors.throwIfAny();
    return entries;
  }

  #warnOfUnknownKeys(root: JsonObject): Diagnostic[] {
    const fields = ['schema', 'entries', ...(this.#type === 'substitutes' ? ['substitutions'] : [])];
    const used = fields.map((name) => findField(root, name)?.key);
    return Object.keys(root)
      .filter((key) => !used.includes(key))
      .map((key) => {
        const problem = `unknown key ${quoteGo(key)} has no effect`;
        return createWarning('unknown-field', problem, { file: this.#file, path: [key] });
      });
  }
}

interface EntriesContext {
  file: string;
  type: EntriesTemplateType;
  unmarshalling: string;
  errors: TemplateErrors;
}

function readEntries(
  values: readonly JsonValue[],
  key: string,
  { file, type, unmarshalling, errors }: EntriesContext,
): TemplateEntry[] {
  const loading =
    type === 'basic' ? rendering : `${rendering}render: unable to create declarative config from entries: `;
  const entries: TemplateEntry[] = [];
  for (const [index, value] of values.entries()) {
    const path = [key, index];
    let context = unmarshalling;
    try {
      // In memory, where a blob has only its index as place.
      const meta = toMeta(value, 'json', { file, offset: index, length: 0, syntax: 'json' });
      context = loading;
      const blob = decodeMeta(meta);
      if (type === 'basic' && blob.kind === 'bundle' && !isNamedOnly(blob.blob)) {
        throw new OpmateError('INVALID', 'unexpected fields present in basic template bundle', {
          hint: 'remove it: a bundle here has only schema and image',
        });
      }
      entries.push({ blob, path });
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      const prefix = error instanceof MissingSchemaError ? loading : context;
      const hint = error instanceof MissingSchemaError ? 'add a schema to every entry' : error.hint;
      errors.report(path, prefix + error.message, hint);
    }
  }
  return entries;
}

function isNamedOnly(blob: {
  image: string;
  package: string;
  properties: readonly unknown[];
  relatedImages: readonly unknown[];
}): boolean {
  const { image, properties, relatedImages } = blob;
  return image !== '' && blob.package === '' && properties.length === 0 && relatedImages.length === 0;
}

function readSubstitutions(
  values: readonly JsonValue[],
  key: string,
  context: string,
  errors: TemplateErrors,
): Substitution[] {
  const substitutions: Substitution[] = [];
  for (const [index, value] of values.entries()) {
    const path = [key, index];
    const substitution: Substitution = { name: '', base: '', path };
    substitutions.push(substitution);
    if (value === null) continue;
    if (!isJsonObject(value)) {
      const target = 'struct field SubstitutesTemplateData.substitutions of type substitutes.Substitute';
      errors.report(path, context + kindFault(value, target));
      continue;
    }
    for (const field of ['name', 'base'] as const) {
      const member = findField(value, field);
      if (member === undefined || member.value === null) continue;
      if (typeof member.value === 'string') substitution[field] = member.value;
      else {
        const target = `struct field Substitute.substitutions.${field} of type string`;
        errors.report([...path, member.key], context + kindFault(member.value, target));
      }
    }
  }
  return substitutions;
}
