import { describe, expect, it } from 'vitest';
import { findCatalogNameFault } from '../../../../src/serve/http/catalog-names.js';

describe('serve/http/catalog-names', () => {
  it.each(['a', '0', 'operatorhubio', 'a-b.c-d.9', 'a'.repeat(253)])('takes %j', (name) => {
    expect(findCatalogNameFault(name)).toBeUndefined();
  });

  it.each([
    '',
    '.',
    '..',
    'A',
    'a_b',
    '-a',
    'a-',
    'a..b',
    'a.-b',
    'a/b',
    '../a',
    'a\n',
    'é',
    'a%2fb',
    `${'a-'.repeat(50_000)}_`,
    'a'.repeat(254),
  ])('refuses %j', (name) => {
    expect(findCatalogNameFault(name)).toMatch(/^must be/);
  });
});
