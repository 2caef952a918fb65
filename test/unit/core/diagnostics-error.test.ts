import { describe, expect, it } from 'vitest';
import { DiagnosticsError, addContext, combineErrors } from '../../../src/core/diagnostics-error.js';
import { OpmateError, RegistryError } from '../../../src/core/errors.js';

describe('core/diagnostics-error', () => {
  it('keeps the name of a file on the line of its message', () => {
    const file = 'a\u001b[31m\ninfo: b.yaml';
    const diagnostic = { severity: 'error', code: 'syntax', problem: 'no', file, line: 1 } as const;
    expect(new DiagnosticsError([diagnostic])).toMatchObject({
      file,
      message: 'a\\x1b[31m\\x0ainfo: b.yaml:1: no',
    });
  });

  it('keeps class, code and fields of an error that gains context', () => {
    const error = new RegistryError('manifest unknown', { status: 404, registryCodes: ['MANIFEST_UNKNOWN'] });
    const told = addContext(error, {
      subject: 'quay.io/a/b:v1',
      file: 'set.yaml',
      line: 3,
      hint: 'check the tag',
    });
    expect(told).toBeInstanceOf(RegistryError);
    expect(told).toMatchObject({
      message: 'quay.io/a/b:v1: manifest unknown',
      name: 'RegistryError',
      code: 'REGISTRY',
      status: 404,
      registryCodes: ['MANIFEST_UNKNOWN'],
      file: 'set.yaml',
      line: 3,
      hint: 'check the tag',
    });
    expect(told.cause).toBe(error);
    expect(told.stack).toBe(error.stack);
  });

  it('does not replace what the error has already', () => {
    const error = new OpmateError('INVALID', 'bad', { subject: 'a', file: 'a', line: 1, hint: 'own' });
    expect(addContext(error, { subject: 'a', file: 'b', line: 2, hint: 'other' })).toMatchObject({
      message: 'a: bad',
      file: 'a',
      line: 1,
      hint: 'own',
    });
  });

  it('adds the subject to each diagnostic', () => {
    const error = new DiagnosticsError([
      { severity: 'error', code: 'x', subject: 'a', problem: 'missing' },
      { severity: 'error', code: 'x', problem: 'broken' },
    ]);
    expect(addContext(error, { subject: 'unit' }).diagnostics).toMatchObject([
      { subject: 'unit: a', problem: 'missing' },
      { subject: 'unit', problem: 'broken' },
    ]);
  });

  it('adds the file to each diagnostic without one', () => {
    const error = new DiagnosticsError([
      { severity: 'error', code: 'x', problem: 'one' },
      { severity: 'error', code: 'x', problem: 'two', file: 'g', line: 7 },
    ]);
    expect(addContext(error, { file: 'f', line: 3 }).diagnostics).toMatchObject([
      { problem: 'one', file: 'f', line: 3 },
      { problem: 'two', file: 'g', line: 7 },
    ]);
  });

  it('keeps all diagnostics of errors that are combined', () => {
    const several = new DiagnosticsError([
      { severity: 'error', code: 'x', problem: 'one', file: 'f', line: 1 },
      { severity: 'error', code: 'x', problem: 'two', file: 'f', line: 2, hint: 'mend it' },
    ]);
    const combined = combineErrors([several, new OpmateError('NOT_FOUND', 'three', { hint: 'look' })]);
    expect(combined.message).toBe('f:1: one; f:2: two (mend it); three (look)');
    expect(combined.diagnostics).toHaveLength(3);
  });

  it('states a hint of all combined errors once', () => {
    const [a, b] = ['a', 'b'].map((text) => new OpmateError('NOT_FOUND', text, { hint: 'look' }));
    const combined = combineErrors([a, b] as OpmateError[]);
    expect(combined).toMatchObject({ message: 'a; b', hint: 'look' });
    const mixed = combineErrors([a, new OpmateError('NOT_FOUND', 'c', { hint: 'wait' })] as OpmateError[]);
    expect(mixed).toMatchObject({ message: 'a (look); c (wait)', hint: undefined });
  });

  it('returns a single error as it is', () => {
    const error = new OpmateError('IO', 'x');
    expect(combineErrors([error])).toBe(error);
  });
});
