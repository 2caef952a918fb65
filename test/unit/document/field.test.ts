import { describe, expect, it } from 'vitest';
import { DiagnosticsError } from '../../../src/core/diagnostics-error.js';
import { OpmateError } from '../../../src/core/errors.js';
import { openValue, readDocument } from '../../../src/document/document.js';
import type { Field } from '../../../src/document/field.js';
import { messagesThrown } from '../../support/diagnostics.js';

/** What reading a YAML text reports, hints in parentheses. */
function reported(text: string, read: (root: Field) => unknown): string[] {
  return messagesThrown(
    () => {
      const { root, diagnostics } = readDocument(text, 'x.yaml', { maxLength: 10_000, noun: 'list' });
      read(root);
      diagnostics.throwIfErrors();
    },
    { hints: true },
  );
}

describe('document/field', () => {
  it.each<[string, string, (root: Field) => unknown, string]>([
    [
      'a wrong type',
      'a: 1',
      (root) => root.field('a').text(),
      'x.yaml:1:1: a: expected a string, got the number 1 (quote the value)',
    ],
    [
      'an object for a string',
      'a: {}',
      (root) => root.field('a').text(),
      'x.yaml:1:1: a: expected a string, got an object',
    ],
    ['a missing field', 'b: 1', (root) => root.field('a').text(), 'x.yaml:1:1: a: missing'],
    [
      'an empty string where text is required',
      "a: ''",
      (root) => root.field('a').text(),
      'x.yaml:1:1: a: missing',
    ],
    [
      'a typo',
      'nmae: x',
      (root) => root.object(['name', 'other']),
      'x.yaml:1:1: nmae: unknown field (use "name")',
    ],
    [
      'a key in another case',
      'Name: x',
      (root) => root.object(['name']),
      'x.yaml:1:1: Name: unknown field (use "name")',
    ],
    [
      'a key of no resemblance',
      'zzz: x',
      (root) => root.object(['alpha', 'beta']),
      'x.yaml:1:1: zzz: unknown field (use one of alpha, beta)',
    ],
    [
      'a duplicate key',
      'a: 1\na: 2',
      () => undefined,
      'x.yaml:2:1: a: duplicate key, first defined on line 1 (keep one of them)',
    ],
    [
      'a second document',
      'a: 1\n---\nb: 1',
      () => undefined,
      'x.yaml:2:1: unexpected second document (use one list per file)',
    ],
    [
      'an unsupported value',
      'a: Keep',
      (root) => root.field('a').choice(['keep', 'drop']),
      'x.yaml:1:1: a: unsupported value "Keep" (use "keep")',
    ],
    [
      'a number out of range',
      'a: 7',
      (root) => root.field('a').integer(1, 5),
      'x.yaml:1:1: a: expected an integer from 1 to 5, got 7',
    ],
    [
      'a list with too many entries',
      'a: [1, 2]',
      (root) => root.field('a').list(1),
      'x.yaml:1:1: a: more than the maximum of 1 entries',
    ],
    [
      'a long string',
      'a: abcdef',
      (root) => root.field('a').text(5),
      'x.yaml:1:1: a: longer than the maximum of 5 characters',
    ],
    [
      'exclusive fields',
      'a: 1\nb: 2',
      (root) => root.exclusive(['a', 'b']),
      'x.yaml:2:1: b: cannot be combined with a (keep one of them)',
    ],
    [
      'another constant',
      'kind: Other',
      (root) => root.field('kind').constant('Wanted'),
      'x.yaml:1:1: kind: expected Wanted, got "Other" (use kind: Wanted)',
    ],
  ])('reports %s', (_, text, read, message) => {
    expect(reported(text, read)).toEqual([message]);
  });

  it('reports everything, in the order of the text', () => {
    const messages = reported('list:\n- name: 1\n- nmae: x\nother: no', (root) => {
      root.field('other').text();
      for (const item of root.field('list').optionalList()) item.object(['name'])?.name.text();
    });
    expect(messages).toEqual([
      'x.yaml:2:3: list[0].name: expected a string, got the number 1 (quote the value)',
      'x.yaml:3:3: list[1].nmae: unknown field (use "name")',
      'x.yaml:3:3: list[1].name: missing',
      'x.yaml:4:1: other: expected a string, got the boolean false (quote the value)',
    ]);
  });

  it('quotes keys with dots in paths', () => {
    const messages = reported('labels:\n  app.kubernetes.io/name: 1', (root) =>
      root
        .field('labels')
        .entries(10)
        ?.map(([, value]) => value.text()),
    );
    expect(messages[0]).toContain('labels["app.kubernetes.io/name"]: expected a string');
  });

  it('reports the error of a parser with its hint', () => {
    const parse = (): never => {
      throw new OpmateError('INVALID', 'invalid range "x"', { hint: 'write >=1.0.0' });
    };
    expect(reported('a: x', (root) => root.field('a').parsed(parse))).toEqual([
      'x.yaml:1:1: a: invalid range "x" (write >=1.0.0)',
    ]);
  });

  it('throws at the first error of a document that does not collect', () => {
    const root = openValue({ digest: 'nope' }, { name: 'lock.json' });
    expect(() => root.field('digest').digest()).toThrow(DiagnosticsError);
    expect(() => root.field('digest').digest()).toThrow('lock.json: digest: invalid digest "nope"');
  });

  it('does not read inherited properties as fields', () => {
    const root = openValue({}, { name: 'x' });
    expect(root.field('constructor').isPresent).toBe(false);
    expect(root.field('__proto__').isPresent).toBe(false);
  });

  it('counts the errors beyond a maximum', () => {
    const text = Array.from({ length: 30 }, (_, i) => `k${i}: 1`).join('\n');
    const messages = messagesThrown(() => {
      const { root, diagnostics } = readDocument(text, 'x.yaml', { maxLength: 10_000 });
      root.object([]);
      diagnostics.throwIfErrors(20);
    });
    expect(messages).toHaveLength(21);
    expect(messages.at(-1)).toBe('x.yaml: and 10 more');
  });
});
