import fc from 'fast-check';

const PIECES = [
  ...'abyn01 -?:,[]{}#&*!|>\'"%@`\\~=<.+_/',
  ...'\t\n\r\0\u0007\u001b\u007f\u0085\u00a0\u2028\u2029\ufeff\ufffe',
  ...['é', '漢', '😀', '\n\n', '  ', ': ', ' #', '- ', '? ', '---', '...', '<<', 'yes', 'null', '0x', '1e3'],
  ...['1:30', '2001-12-14', 'word '.repeat(20), 'x'.repeat(90), '__proto__'],
];

/** Texts that YAML has its troubles with. */
export const oddText = fc.oneof(
  fc.array(fc.constantFrom(...PIECES), { maxLength: 12 }).map((pieces) => pieces.join('')),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.lorem({ maxCount: 30 }),
);

/** Texts that no tool would put in quotes for more than what they resolve to. */
export const plainText = fc.stringMatching(/^[a-z0-9][a-z0-9./-]{0,12}( [a-z0-9.:/-]{0,11}[a-z0-9]){0,30}$/);
