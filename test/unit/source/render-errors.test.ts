import { describe, expect, it } from 'vitest';
import { OpmateError } from '../../../src/core/errors.js';
import { inReference } from '../../../src/source/reference-error.js';

describe('source/render: errors', () => {
  it.each(['r.io/a:v1: manifest unknown', 'image reference "r.io/a:v1": no', 'render "r.io/a:v1": no', 'no'])(
    'names a reference once: %s',
    (message) => {
      const { message: shown } = inReference(new OpmateError('INVALID', message), 'r.io/a:v1') as OpmateError;
      expect(shown).toMatch(/^render reference "r\.io\/a:v1": (?:manifest unknown|no)$/);
    },
  );
});
