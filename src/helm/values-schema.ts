import type { ErrorObject, ValidateFunction } from 'ajv';
import { systemCode } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import type { EnabledChart, PreparedChart } from './chart-values.js';
import type { RenderChartOptions } from './render-chart.js';
import { compilePattern } from './template/functions/patterns.js';
import { type GoMap, getMapValue, isGoMap, toJsonValue } from './template/go-values.js';
import { runWithin } from '../kube/time-limit.js';

/** Problems of values and of their schemas. */
interface SchemaFaults {
  /** One phrase each, with the path of the value; any of them makes Helm reject the chart. */
  faults: string[];
  /** Reasons why values were not checked. */
  unchecked: string[];
}

/** Maximum bytes of a `values.schema.json`. */
const maxSchemaBytes = 4 * 1024 * 1024;
const maxFaults = 20;

/**
 * Checks the default values of a chart and its enabled sub-charts against their `values.schema.json`, drafts 4 and
 * later. Does not follow references to other documents or check `format`. (Source: Helm 3,
 * chartutil.ValidateAgainstSchema.)
 */
export async function checkValues(
  { root, values }: PreparedChart,
  { maxMilliseconds = 10_000 }: Pick<RenderChartOptions, 'maxMilliseconds'> = {},
): Promise<SchemaFaults> {
  const result: SchemaFaults = { faults: [], unchecked: [] };
  for (const { name, schema: text, values: own } of chartsWithSchema(root, values)) {
    const file = `${name}: values.schema.json`;
    const fault = (problem: string): void => {
      result.faults.push(`${file}: ${problem}`);
    };
    if (Buffer.byteLength(text) > maxSchemaBytes) {
      fault(`larger than ${maxSchemaBytes} bytes`);
      continue;
    }
    const schema = parseSchema(text);
    if (schema === undefined) {
      fault('not a JSON schema');
      continue;
    }
    const compile = await loadCompiler(schema.draft);
    let errors: readonly ErrorObject[] = [];
    try {
      const isDone = runWithin(maxMilliseconds, () => {
        const validate = compile(schema.document);
        if (!validate(toJsonValue(own))) errors = validate.errors ?? [];
      });
      if (!isDone) fault(`timed out after ${maxMilliseconds} ms`);
    } catch (error) {
      const reference = (error as { missingRef?: unknown }).missingRef;
      if (typeof reference === 'string')
        result.unchecked.push(
          `${file}: values not checked: unsupported reference ${quoteGo(reference.slice(0, 200))}`,
        );
      else if (error instanceof RangeError) fault('nested too deeply');
      else if (systemCode(error) === undefined && error instanceof Error)
        fault(`not a valid schema: ${error.message.slice(0, 300)}`);
      else throw error;
    }
    for (const errorObject of errors.slice(0, maxFaults))
      fault(`at ${quoteGo(errorObject.instancePath)}: ${getMessage(errorObject)}`);
    if (errors.length > maxFaults) fault(`and ${errors.length - maxFaults} more`);
  }
  return result;
}

function* chartsWithSchema(
  { chart: { name, schema }, charts }: EnabledChart,
  values: GoMap,
): Iterable<{ name: string; schema: string; values: GoMap }> {
  if (schema !== undefined) yield { name, schema, values };
  for (const inner of charts) {
    const own = getMapValue(values, inner.name);
    if (isGoMap(own)) yield* chartsWithSchema(inner, own);
  }
}

type Draft = '7' | '2019' | '2020';

/** Returns a schema without its draft; undefined for invalid schemas. */
function parseSchema(text: string): { document: JsonObject | boolean; draft: Draft } | undefined {
  try {
    const isDraft4 = /"\$schema"\s*:\s*"https?:\/\/json-schema\.org\/draft-04\//.test(text);
    const value: unknown = JSON.parse(text, isDraft4 ? upgradeDraft4 : undefined);
    if (typeof value === 'boolean') return { document: value, draft: '2020' };
    if (!isJsonObject(value as JsonObject)) return undefined;
    const { $schema = '', ...document } = value as JsonObject;
    const [, old, year] = /\/draft(?:-(0[4-7])|\/(2019-09))\//.exec(String($schema)) ?? [];
    return { document, draft: old !== undefined ? '7' : year !== undefined ? '2019' : '2020' };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Converts keywords of draft 4 that have another name or are booleans to draft 7. */
function upgradeDraft4(_key: string, value: unknown): unknown {
  if (!isJsonObject(value as JsonObject)) return value;
  const { id, exclusiveMinimum: above, exclusiveMaximum: below, ...rest } = value as JsonObject;
  const { minimum, maximum } = rest;
  if (above === true && minimum !== undefined) delete rest['minimum'];
  if (below === true && maximum !== undefined) delete rest['maximum'];
  return {
    ...rest,
    // A property may have the name of a keyword; its value is a schema then.
    ...(id !== undefined && (typeof id === 'string' ? { $id: id } : { id })),
    ...exclusiveBound('exclusiveMinimum', above, minimum),
    ...exclusiveBound('exclusiveMaximum', below, maximum),
  };
}

function exclusiveBound(
  key: string,
  switched: JsonValue | undefined,
  bound: JsonValue | undefined,
): JsonObject {
  if (switched === undefined || switched === false) return {};
  return { [key]: switched === true && bound !== undefined ? bound : switched };
}

type Compile = (schema: JsonObject | boolean) => ValidateFunction;

async function loadCompiler(draft: Draft): Promise<Compile> {
  const Validator =
    draft === '7'
      ? (await import('ajv')).Ajv
      : draft === '2019'
        ? (await import('ajv/dist/2019.js')).Ajv2019
        : (await import('ajv/dist/2020.js')).Ajv2020;
  const regExp = Object.assign(readPattern, { code: '' });
  const options = {
    allErrors: true,
    verbose: true,
    strict: false,
    logger: false,
    inlineRefs: false,
  } as const;
  const ajv = new Validator({ ...options, validateFormats: false, unicodeRegExp: false, code: { regExp } });
  return (schema) => ajv.compile(schema);
}

/** Compiles a pattern; one that only Go supports matches everything. */
function readPattern(pattern: string): RegExp {
  try {
    return compilePattern(pattern);
  } catch {
    return /(?:)/;
  }
}

function getMessage({ keyword, params, message = 'invalid', data }: ErrorObject): string {
  const { type, missingProperty, additionalProperty, allowedValues } = params as Record<string, unknown>;
  if (keyword === 'type') return `expected ${String(type)}, got ${getType(data)}`;
  if (keyword === 'required') return `missing ${quoteGo(String(missingProperty))}`;
  if (keyword === 'additionalProperties') return `unknown field ${quoteGo(String(additionalProperty))}`;
  if (keyword === 'enum') return `expected one of ${JSON.stringify(allowedValues).slice(0, 300)}`;
  return message.slice(0, 300);
}

function getType(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
