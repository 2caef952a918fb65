import type { DocumentPath } from '../../core/diagnostic.js';
import { joinNames } from '../../core/suggest.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { describeKind, findNearest, quoteShort } from '../../document/field.js';
import { encodeGoJson } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';

/** Expected form of a value; an object may have further keys unless it is closed. */
export type Shape =
  | { kind: 'text'; choices?: readonly string[] }
  | { kind: 'boolean' }
  | { kind: 'list'; items: Shape; isUnique?: boolean }
  | {
      kind: 'object';
      fields: Readonly<Record<string, Shape>>;
      required?: readonly string[];
      isClosed?: boolean;
    };

/** A value that does not have its shape. */
interface Violation {
  path: DocumentPath;
  problem: string;
  hint?: string | undefined;
}

const text: Shape = { kind: 'text' };
const boolean: Shape = { kind: 'boolean' };
const texts: Shape = { kind: 'list', items: text };
const uniqueTexts: Shape = { kind: 'list', items: text, isUnique: true };

/** Shape of `ci.yaml` of an operator. (Source: ci-schema.json of operator-pipelines.) */
export const ciShape: Shape = {
  kind: 'object',
  fields: {
    updateGraph: { kind: 'text', choices: ['replaces-mode', 'semver-mode'] },
    reviewers: texts,
    merge: boolean,
    cert_project_id: text,
    fbc: {
      kind: 'object',
      isClosed: true,
      fields: {
        enabled: boolean,
        version_promotion_strategy: { kind: 'text', choices: ['review-needed', 'always', 'never'] },
        catalog_mapping: {
          kind: 'list',
          items: {
            kind: 'object',
            required: ['template_name', 'catalog_names', 'type'],
            fields: {
              template_name: text,
              catalog_names: uniqueTexts,
              type: { kind: 'text', choices: ['olm.template.basic', 'olm.semver'] },
            },
          },
        },
      },
    },
  },
};

/** Shape of `release-config.yaml` of a bundle. (Source: release-config-schema.json of operator-pipelines.) */
export const releaseShape: Shape = {
  kind: 'object',
  isClosed: true,
  required: ['catalog_templates'],
  fields: {
    merge: boolean,
    catalog_templates: {
      kind: 'list',
      isUnique: true,
      items: {
        kind: 'object',
        required: ['template_name', 'channels'],
        fields: {
          template_name: text,
          channels: uniqueTexts,
          defaultChannel: text,
          replaces: text,
          skips: uniqueTexts,
          skipRange: text,
        },
      },
    },
  },
};

/** Returns all violations; lists have at least one item. */
export function findViolations(value: JsonValue, shape: Shape, path: DocumentPath = []): Violation[] {
  switch (shape.kind) {
    case 'boolean':
      return typeof value === 'boolean' ? [] : [mismatch(path, value, 'true or false')];
    case 'text':
      return checkText(value, shape, path);
    case 'list':
      return checkList(value, shape, path);
    case 'object':
      return isJsonObject(value) ? checkObject(value, shape, path) : [mismatch(path, value, 'an object')];
  }
}

function mismatch(path: DocumentPath, value: JsonValue, expected: string): Violation {
  return { path, problem: `expected ${expected}, got ${describeKind(value)}` };
}

function checkText(value: JsonValue, { choices }: Shape & { kind: 'text' }, path: DocumentPath): Violation[] {
  const violations: Violation[] = [];
  if (typeof value !== 'string') violations.push(mismatch(path, value, 'a string'));
  if (choices === undefined || (typeof value === 'string' && choices.includes(value))) return violations;
  const near = typeof value === 'string' ? findNearest(value, choices) : undefined;
  const hint = near === undefined ? `use one of ${joinNames(choices)}` : `use ${quoteGo(near)}`;
  const shown = typeof value === 'string' ? quoteShort(value) : describeKind(value);
  return [...violations, { path, problem: `unsupported value ${shown}`, hint }];
}

function checkList(
  value: JsonValue,
  { items, isUnique = false }: Shape & { kind: 'list' },
  path: DocumentPath,
): Violation[] {
  if (!Array.isArray(value)) return [mismatch(path, value, 'a list')];
  const violations = value.flatMap((item, index) => findViolations(item, items, [...path, index]));
  const isMapping = items.kind === 'object' && !isUnique;
  if (value.length === 0 && !isMapping) violations.push({ path, problem: 'expected at least one item' });
  const texts = new Set(value.map((item) => encodeGoJson(item)));
  if (isUnique && texts.size < value.length) violations.push({ path, problem: 'duplicate items' });
  return violations;
}

function checkObject(
  value: JsonObject,
  { fields, required = [], isClosed = false }: Shape & { kind: 'object' },
  path: DocumentPath,
): Violation[] {
  const violations: Violation[] = [];
  const unknown = Object.keys(value).filter((key) => !Object.hasOwn(fields, key));
  const [first] = unknown;
  if (isClosed && first !== undefined) {
    const near = findNearest(first, Object.keys(fields));
    const hint = near === undefined ? undefined : `use ${quoteGo(near)}`;
    violations.push({ path: [...path, first], problem: `unknown field ${joinNames(unknown)}`, hint });
  }
  for (const key of required) {
    if (Object.hasOwn(value, key)) continue;
    const near = findNearest(key, unknown);
    const hint = near === undefined ? undefined : `rename ${quoteGo(near)}`;
    violations.push({ path: [...path, key], problem: 'missing', hint });
  }
  for (const [key, shape] of Object.entries(fields)) {
    if (Object.hasOwn(value, key))
      violations.push(...findViolations(value[key] as JsonValue, shape, [...path, key]));
  }
  return violations;
}
