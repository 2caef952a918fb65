import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseImageTemplate } from '../../../src/bundle/image-template.js';
import { OpmateError } from '../../../src/core/errors.js';

const data = { Package: 'pkg', Name: 'name.v1', Version: '1.2.3-a+b' };

/** What Go's text/template answered for `in`: `out`, or an error when parsing or when executing. */
interface Vector {
  in: string;
  out?: string;
  parse?: string;
  exec?: string;
}

const vectors = readFileSync(
  join(import.meta.dirname, '../../../fixtures/bundles/image-template.jsonl'),
  'utf8',
)
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Vector);

/** Fields, comments and trim markers, which are all that an image reference needs. */
const supported = /^(?:[^{]|\{\{(?:- )?\s*(?:\.\w+|\/\*[^*]*\*\/)?\s*(?: -)?\}\})*(?:\{\{(?:\.\w+)?)?$/;

function answer(template: string): Vector {
  let render;
  try {
    render = parseImageTemplate(template);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return { in: template, parse: error.message };
  }
  try {
    return { in: template, out: render(data) };
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return { in: template, exec: error.message };
  }
}

describe('bundle/image-template', () => {
  it.each(vectors.filter((vector) => supported.test(vector.in)))('answers as Go: $in', (vector) => {
    const got = answer(vector.in);
    expect(Object.keys(got).sort()).toEqual(Object.keys(vector).sort());
    if (vector.out !== undefined) expect(got.out).toBe(vector.out);
  });

  it('reports the line, and the fields that exist', () => {
    expect(answer('a\n{{.Package').parse).toBe(
      'invalid image reference template: template: image-ref-template:2: unclosed action',
    );
    expect(answer('{{.Tag}}').exec).toBe("template: image-ref-template:1: can't evaluate field Tag");
    expect(() => parseImageTemplate('{{nope}}')).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('{{.Package}}, {{.Name}} and {{.Version}}') }),
    );
  });

  it.each(vectors.filter((vector) => !supported.test(vector.in)))(
    'refuses or answers as Go: $in',
    (vector) => {
      const got = answer(vector.in);
      if (got.parse === undefined) expect(got.out).toBe(vector.out);
      else expect(got.parse).toMatch(/: unsupported action|: unclosed action/);
    },
  );

  it('never fails with anything but its own errors', () => {
    const word = fc.constantFrom(
      '{{',
      '}}',
      '.Name',
      '-',
      ' ',
      '(',
      ')',
      '|',
      '"a"',
      'if',
      'else',
      'end',
      'with',
      '$x',
      ':=',
      'print',
      '1',
      '/*',
      '*/',
      '.',
    );
    fc.assert(fc.property(fc.array(word, { maxLength: 20 }), (words) => void answer(words.join(''))));
    fc.assert(fc.property(fc.string(), (text) => void answer(`{{${text}}}`)));
  });

  it('keeps text without actions', () => {
    fc.assert(
      fc.property(
        fc.string().filter((text) => !text.includes('{{')),
        (text) => answer(text).out === text,
      ),
    );
  });
});
