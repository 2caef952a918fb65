import { describe, expect, it } from 'vitest';
import { OpmateError } from '../../../src/core/errors.js';
import { parseReference } from '../../../src/core/reference.js';
import { inReference } from '../../../src/source/reference-error.js';

describe('source/render: errors', () => {
  it.each([undefined, 'r.io/a:v1', 'image reference "r.io/a:v1"', 'render "r.io/a:v1"'])(
    'names a reference once: subject %s',
    (subject) => {
      const { message } = inReference(
        new OpmateError('INVALID', 'no', { subject }),
        'r.io/a:v1',
      ) as OpmateError;
      expect(message).toBe('render reference "r.io/a:v1": no');
    },
  );

  it('names a reference once that is too long for the error of its syntax', () => {
    const long = `r.io/${'a'.repeat(300)}:v1:v1`;
    const error = (() => {
      try {
        return parseReference(long);
      } catch (thrown) {
        return thrown;
      }
    })();
    const { message } = inReference(error, long) as OpmateError;
    expect(message).toBe(`render reference "${long}": invalid reference format`);
  });
});
