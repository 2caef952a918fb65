import { expect, it } from 'vitest';
import { findBase64Error } from '../../../../src/core/text/base64.js';

// Offsets recorded from opm, for the data of olm.bundle.object.
it.each<[string, number | undefined]>([
  ['', undefined],
  ['eyJh', undefined],
  ['eyJh\n', undefined],
  ['eyJ=', undefined],
  ['ey==', undefined],
  ['ey=\n=', undefined],
  ['eyJhIjo', 4],
  ['eyJ', 0],
  ['e', 0],
  ['eyJ\nhIj', 5],
  ['e!yJ', 1],
  ['eyJ_', 3],
  // The low byte of its last character is a digit.
  ['eyJh\u0141yJh', 4],
  ['=', 0],
  ['e=', 1],
  ['ey=', 3],
  ['ey=\n', 4],
  ['ey=a', 2],
  ['ey=\n\na', 4],
  ['ey==\nx', 5],
  ['eyJh=', 4],
  ['eyJhe===', 5],
  ['eyJhIj=', 7],
  ['eyJhIjo=x', 8],
  ['eyJhIjo\n=\nx', 10],
])('finds the error in %j where Go does', (text, offset) => {
  expect(findBase64Error(text)).toBe(offset);
});
