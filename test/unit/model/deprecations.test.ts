import { expect, test } from 'vitest';
import { deprecationKey, readDeprecations } from '../../../src/model/deprecations.js';
import { schemas } from '../../../src/model/declarative-config.js';

test('deprecations of a package are those of all its blobs, the first of duplicates', () => {
  const entry = (schema: string, name: string, message: string) => ({ reference: { schema, name }, message });
  const messages = readDeprecations([
    { entries: [entry(schemas.bundle, 'a', 'one'), entry(schemas.bundle, 'a', 'two')] },
    { entries: [entry(schemas.package, 'any', 'three'), entry(schemas.bundle, 'a', 'four')] },
  ]);
  expect(messages.get(deprecationKey(schemas.bundle, 'a'))).toBe('one');
  expect(messages.get(deprecationKey(schemas.package))).toBe('three');
  expect(messages.has(deprecationKey(schemas.channel, 'a'))).toBe(false);
});
