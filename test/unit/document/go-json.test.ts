import { Buffer } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  GoJsonError,
  decodeUtf8,
  encodeGoJson,
  getGoKind,
  parseGoJson,
  quoteGo,
  sortKeysDeep,
} from '../../../src/document/go-json.js';
import { type EncodableJson, type JsonValue, RawJson } from '../../../src/document/json.js';

/** A value that JSON can hold exactly and whose keys JavaScript leaves where they are. */
const ordinaryValue = fc
  .jsonValue({ noUnicodeString: false })
  .filter((value) => !/"\d+":|-0\b|\\ud|\d{16}|[\u2028\u2029]/.test(JSON.stringify(value)))
  .map((value) => JSON.parse(JSON.stringify(value)) as JsonValue);

function errorOf(text: string): { message: string; offset: number } | undefined {
  try {
    parseGoJson(text);
    return undefined;
  } catch (error) {
    if (!(error instanceof GoJsonError)) throw error;
    return { message: error.message, offset: error.offset };
  }
}

function nested(depth: number, open = '[', close = ']'): string {
  return open.repeat(depth) + close.repeat(depth);
}

describe('parseGoJson', () => {
  it.each<[string, JsonValue]>([
    ['9007199254740991', 9007199254740991],
    ['9007199254740993', 9007199254740993n],
    ['-9007199254740993', -9007199254740993n],
    ['[18446744073709551615]', [18446744073709551615n]],
    ['{"a":9007199254740993.0}', { a: 9007199254740992 }],
    ['1e300', 1e300],
    ['1e-400', 0],
    ['-0', -0],
    [' \t\r\n{"a":1}\n', { a: 1 }],
    ['{"a":1,"a":2}', { a: 2 }],
    ['"\\ud83d\\ude00"', '\u{1f600}'],
    ['"\\ud83d x \\ude00"', '\ufffd x \ufffd'],
    ['{"\\uD800":"\\\\ud800"}', { '\ufffd': '\\ud800' }],
    ['["\\b\\f\\n\\r\\t\\/\\"\\\\", 12345678901234567890]', ['\b\f\n\r\t/"\\', 12345678901234567890n]],
    ['[[], {}, [{}], 12345678901234567890]', [[], {}, [{}], 12345678901234567890n]],
    ['"\u2028\u007f"', '\u2028\u007f'],
  ])('reads %s', (text, value) => {
    expect(parseGoJson(text)).toEqual(value);
  });

  it('keeps a key named __proto__ as data', () => {
    for (const text of ['{"__proto__":{"a":1}}', '{"__proto__":{"a":12345678901234567890}}']) {
      const value = parseGoJson(text);
      expect(Object.keys(value as object)).toEqual(['__proto__']);
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
      expect(encodeGoJson(value)).toBe(text);
      expect(encodeGoJson(sortKeysDeep(value))).toBe(text);
    }
  });

  it.each([
    ['', 'unexpected end of JSON input', 0],
    ['{"a":1', 'unexpected end of JSON input', 6],
    ['"abc', 'unexpected end of JSON input', 4],
    ['tru', 'unexpected end of JSON input', 3],
    ['-', 'unexpected end of JSON input', 1],
    ['x', "invalid character 'x' looking for beginning of value", 0],
    ['[1,]', "invalid character ']' looking for beginning of value", 3],
    ['{"a":}', "invalid character '}' looking for beginning of value", 5],
    ['{,}', "invalid character ',' looking for beginning of object key string", 1],
    ['{"a":1,}', "invalid character '}' looking for beginning of object key string", 7],
    ['{"a"}', "invalid character '}' after object key", 4],
    ['{"a":1 "b":2}', `invalid character '"' after object key:value pair`, 7],
    ['[1 2]', "invalid character '2' after array element", 3],
    ['{} {}', "invalid character '{' after top-level value", 3],
    ['01', "invalid character '1' after top-level value", 1],
    ["'a'", "invalid character '\\'' looking for beginning of value", 0],
    ['"a\nb"', "invalid character '\\n' in string literal", 2],
    ['"\u0001"', "invalid character '\\x01' in string literal", 1],
    ['"\\x"', "invalid character 'x' in string escape code", 2],
    ['"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape", 5],
    ['trux', "invalid character 'x' in literal true (expecting 'e')", 3],
    ['fAlse', "invalid character 'A' in literal false (expecting 'a')", 1],
    ['nul]', "invalid character ']' in literal null (expecting 'l')", 3],
    ['-x', "invalid character 'x' in numeric literal", 1],
    ['1.x', "invalid character 'x' after decimal point in numeric literal", 2],
    ['1e+x', "invalid character 'x' in exponent of numeric literal", 3],
    ['\ufeff{}', "invalid character 'ï' looking for beginning of value", 0],
    ['[\u{1f600}]', "invalid character 'ð' looking for beginning of value", 1],
    ['[1e400]', 'json: cannot unmarshal number 1e400 into Go value of type float64', 1],
  ])('refuses %j as Go does', (text, message, offset) => {
    expect(errorOf(text)).toEqual({ message, offset });
  });

  it('allows a depth of 10,000 and no more', () => {
    for (const text of [nested(10_000), nested(10_000, '{"a":', '}').replace(':}', ':1}')]) {
      const value = parseGoJson(text);
      expect(encodeGoJson(value)).toBe(text);
      expect(encodeGoJson(sortKeysDeep(value))).toBe(text);
    }
    expect(errorOf(nested(10_001))).toEqual({ message: 'exceeded max depth', offset: 10_000 });
    expect(errorOf('['.repeat(2_000_000))?.message).toBe('exceeded max depth');
  });

  it('reads what JSON.parse reads, by both of its ways', () => {
    fc.assert(
      fc.property(ordinaryValue, fc.integer({ min: 0, max: 4 }), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(parseGoJson(text)).toEqual(value);
        // The long integer makes the exact parser read the rest too.
        expect(parseGoJson(`[12345678901234567890,${text}]`)).toEqual([12345678901234567890n, value]);
      }),
    );
  });

  it('accepts and refuses the same texts as JSON.parse', () => {
    const text = fc.string({ unit: fc.constantFrom(...'{}[]",:\\u0019eE+-. \ntrufalsn'), maxLength: 12 });
    fc.assert(
      fc.property(text, (candidate) => {
        let expected: unknown;
        try {
          expected = { value: JSON.parse(candidate) };
        } catch {
          expected = undefined;
        }
        const failure = errorOf(candidate);
        expect(failure === undefined).toBe(expected !== undefined);
        if (failure !== undefined) expect(failure.offset).toBeLessThanOrEqual(candidate.length);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('decodeUtf8', () => {
  it.each([
    [[0x61, 0xc3, 0xa9], 'aé'],
    [[0xff, 0x61, 0xfe], '\ufffda\ufffd'],
    [[0xe2, 0x82], '\ufffd\ufffd'],
    [[0xe2, 0x82, 0x41], '\ufffd\ufffdA'],
    [[0xed, 0xa0, 0x80], '\ufffd\ufffd\ufffd'],
    [[0xc0, 0x80], '\ufffd\ufffd'],
    [[0xf0, 0x9f, 0x98, 0x80, 0x80], '\u{1f600}\ufffd'],
    [[0xef, 0xbb, 0xbf, 0x61], '\ufeffa'],
    [[], ''],
  ])('replaces each bad byte of %j', (bytes, text) => {
    expect(decodeUtf8(Uint8Array.from(bytes))).toBe(text);
  });

  it('decodes a part of a larger buffer', () => {
    expect(decodeUtf8(Buffer.from('xxabcxx').subarray(2, 5))).toBe('abc');
  });
});

describe('encodeGoJson', () => {
  it.each<[string, EncodableJson, string]>([
    ['line separators', 'a\u2028b\u2029', '"a\\u2028b\\u2029"'],
    ['control characters', '\b\f\n\r\t\v\u0000\u001f\u007f', '"\\b\\f\\n\\r\\t\\u000b\\u0000\\u001f\u007f"'],
    ['markup', '</a>&"\\', '"</a>&\\"\\\\"'],
    ['half pairs', 'x\ud83dy\ude00 \\ud800', '"x\\ufffdy\\ufffd \\\\ud800"'],
    ['whole pairs', '\u{1f600}', '"\u{1f600}"'],
    ['negative zero', [-0, 0], '[-0,0]'],
    [
      'large integers',
      [18446744073709551615n, 1e21, 1e-7, 123456789012345680000],
      '[18446744073709551615,1e+21,1e-7,123456789012345680000]',
    ],
    ['keys like indexes', { b: 1, 10: 2, 9: 3, a: { x: 1 } }, '{"10":2,"9":3,"a":{"x":1},"b":1}'],
    ['keys in the order given', { b: 1, a: 2 }, '{"b":1,"a":2}'],
    [
      'raw parts',
      { a: new RawJson(' { "z" : [ 1.0 , 1e2 ] , "y":{ } ,"s":" {,}\\" " } ') },
      '{"a":{"z":[1.0,1e2],"y":{},"s":" {,}\\" "}}',
    ],
    ['line separators in raw parts', new RawJson('"\u2028<"'), '"\u2028<"'],
  ])('writes %s', (_what, value, text) => {
    expect(encodeGoJson(value)).toBe(text);
  });

  it('escapes HTML on demand, raw parts included', () => {
    const value = { 'a<': '>&\u2028', raw: new RawJson('"<\u2029"') };
    expect(encodeGoJson(value, { escapeHtml: true })).toBe(
      '{"a\\u003c":"\\u003e\\u0026\\u2028","raw":"\\u003c\\u2029"}',
    );
  });

  it('indents values and raw parts alike', () => {
    const value = { a: [], b: {}, c: [1, { d: 2n }], e: [[]] };
    const text =
      '{\n    "a": [],\n    "b": {},\n    "c": [\n        1,\n        {\n            "d": 2\n        }\n    ],\n' +
      '    "e": [\n        []\n    ]\n}';
    expect(encodeGoJson(value, { indent: 4 })).toBe(text);
    const raw = new RawJson('{"a":[ ],"b":{\n},"c":[1,{"d":2}],"e":[[]]}');
    expect(encodeGoJson(raw, { indent: 4 })).toBe(text);
    expect(encodeGoJson([raw], { indent: 4 })).toBe(`[\n    ${text.replaceAll('\n', '\n    ')}\n]`);
  });

  it('refuses numbers that are not finite', () => {
    expect(() => encodeGoJson([Number.NaN])).toThrow('json: unsupported value: NaN');
    expect(() => encodeGoJson({ a: Number.POSITIVE_INFINITY })).toThrow('json: unsupported value');
  });

  it('finds what has to be escaped in long strings too', () => {
    const base64 = 'QUJD'.repeat(1000);
    expect(encodeGoJson([base64, `${base64}QQ==`])).toBe(`["${base64}","${base64}QQ=="]`);
    for (const special of ['"AAA', 'A\\AA', 'AA\nA', 'AAA\u2028', 'AAA"QUI=', '"QQ=', '"Q==']) {
      const text = base64 + special;
      expect(encodeGoJson([text])).toBe(JSON.stringify([text]).replace('\u2028', '\\u2028'));
    }
    expect(encodeGoJson(`${base64}AAA\ud841`)).toBe(`"${base64}AAA\\ufffd"`);
    expect(encodeGoJson(`${base64}<>&A`, { escapeHtml: true })).toBe(`"${base64}\\u003c\\u003e\\u0026A"`);
  });

  it('writes what JSON.stringify writes, by both of its ways', () => {
    fc.assert(
      fc.property(ordinaryValue, fc.constantFrom(0, 1, 4), (value, indent) => {
        const expected = JSON.stringify(value, null, indent);
        expect(encodeGoJson(value, { indent })).toBe(expected);
        expect(encodeGoJson(new RawJson(JSON.stringify(value, null, 3)), { indent })).toBe(expected);
        // The bigint keeps JSON.stringify out.
        expect(encodeGoJson([7n, value], { indent })).toBe(JSON.stringify([7, value], null, indent));
      }),
    );
  });

  it('writes what it can read again', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), fc.bigInt(), (value, integer) => {
        const text = encodeGoJson([value, integer] as JsonValue, { indent: 2 });
        expect(encodeGoJson(parseGoJson(text), { indent: 2 })).toBe(text);
      }),
    );
  });
});

describe('sortKeysDeep', () => {
  it('sorts by bytes at every depth', () => {
    const sorted = sortKeysDeep({ b: [{ d: 1, c: 2 }], a: 1, '\u{1f600}': 1, '\uff5e': 2 });
    expect(encodeGoJson(sorted)).toBe('{"a":1,"b":[{"c":2,"d":1}],"\uff5e":2,"\u{1f600}":1}');
  });

  it('returns the same value when nothing has to move, and never changes its input', () => {
    const value = { a: [{ b: 1, c: [1, 2] }], d: { e: null } };
    expect(sortKeysDeep(value)).toBe(value);
    const mixed = { a: value, b: { z: 1, y: 2 } };
    const sorted = sortKeysDeep(mixed) as typeof mixed;
    expect(sorted.a).toBe(value);
    expect(Object.keys(mixed.b)).toEqual(['z', 'y']);
    expect(Object.keys(sorted.b)).toEqual(['y', 'z']);
  });
});

describe('quoteGo', () => {
  it.each([
    ['plain é 日本 \u{1f600}', '"plain é 日本 \u{1f600}"'],
    ['"\\', '"\\"\\\\"'],
    ['\u0007\b\f\n\r\t\v\u0000\u007f', '"\\a\\b\\f\\n\\r\\t\\v\\x00\\x7f"'],
    ['\u00a0\u200b\u2028\ufeff\u00ad', '"\\u00a0\\u200b\\u2028\\ufeff\\u00ad"'],
    ['\u{e0001}', '"\\U000e0001"'],
    ['\ud800\ufffd', '"\ufffd\ufffd"'],
  ])('quotes %j', (text, quoted) => {
    expect(quoteGo(text)).toBe(quoted);
  });
});

describe('goKindOf', () => {
  it.each<[string, JsonValue]>([
    ['object', {}],
    ['array', []],
    ['string', ''],
    ['number', 1],
    ['number', 1n],
    ['bool', true],
    ['null', null],
  ])('knows what is called %s', (kind, value) => {
    expect(getGoKind(value)).toBe(kind);
  });
});
