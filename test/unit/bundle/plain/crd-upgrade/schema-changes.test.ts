import { describe, expect, it } from 'vitest';
import { schemaChanges } from '../../../../../src/bundle/plain/crd-upgrade/schema-changes.js';
import type { JsonObject } from '../../../../../src/document/json.js';

describe('bundle/plain/crd-upgrade/schema-changes', () => {
  it.each<[JsonObject, JsonObject, string[]]>([
    [{ type: 'string' }, { type: 'string', description: 'new' }, []],
    [{ type: 'string' }, { type: 'integer' }, ['type: changed: "string" -> "integer"']],
    [{ type: 'string', default: 'a' }, {}, ['default: removed: "a"', 'type: removed: "string" -> none']],
    [{}, { default: false }, ['default: added: false']],
    [{ default: { a: 1, b: 2 } }, { default: { b: 2, a: 1 } }, []],
    [{ default: 1 }, { default: 2 }, ['default: changed: 1 -> 2']],
    [{ enum: ['a', 'b'] }, { enum: ['b', 'c'] }, ['enum: values removed: "a"']],
    [{}, { enum: ['a'] }, ['enum: added where any value was allowed: "a"']],
    [{ required: ['a'] }, { required: ['b', 'a'] }, ['required: newly required: b']],
    [{ required: ['a'] }, {}, []],
    [{ maximum: 5 }, { maximum: 4 }, ['maximum: decreased: 5 -> 4']],
    [{ maxLength: 5 }, { maxLength: 6 }, []],
    [{ maxItems: 5 }, {}, []],
    [{}, { maxProperties: 5 }, ['maxProperties: added: 5']],
    [{ minimum: 0 }, { minimum: 1 }, ['minimum: increased: 0 -> 1']],
    [{ minLength: 2 }, { minLength: 1 }, []],
    [{}, { minItems: 0 }, ['minItems: added: 0']],
    [{ pattern: 'a' }, { pattern: 'b' }, ['pattern: changed: "a" -> "b"']],
    [{ pattern: 'a' }, {}, ['pattern: removed: "a" -> none']],
    [{}, { nullable: true }, ['nullable: added']],
    [{ nullable: true }, {}, ['nullable: removed']],
    [{}, { oneOf: [{ required: ['a'] }] }, ['oneOf: added where there was none: 1 schemas']],
    [
      { oneOf: [{ type: 'string' }, { type: 'integer' }] },
      { oneOf: [{ type: 'string', description: 'x' }, { type: 'boolean' }] },
      ['oneOf: schemas removed: {"type":"integer"}', 'oneOf: schemas added: {"type":"boolean"}'],
    ],
    [
      { format: 'int32', additionalProperties: { description: 'a' } },
      { format: 'int64', additionalProperties: { description: 'b' } },
      [
        'unhandled: additionalProperties {"description":"a"} -> {"description":"b"}; format "int32" -> "int64"',
      ],
    ],
    // What lies below is compared under its own path.
    [{ properties: { a: {} }, items: { type: 'string' } }, { properties: {}, items: {} }, []],
  ])('%j to %j', (old, next, expected) => {
    expect(schemaChanges(old, next).map(({ check, detail }) => `${check}: ${detail}`)).toEqual(expected);
  });

  it('shortens large values', () => {
    const [change] = schemaChanges({ default: 'x'.repeat(1000) }, {});
    expect(change?.detail.length).toBeLessThan(100);
  });
});
