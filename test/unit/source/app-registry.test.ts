import { describe, expect, it } from 'vitest';
import { parseAppRegistryNamespace } from '../../../src/source/app-registry.js';

const parsed = (text: string, options?: Parameters<typeof parseAppRegistryNamespace>[1]): string[] => {
  const { endpoint, namespace, label } = parseAppRegistryNamespace(text, options);
  return [endpoint.href, namespace, label];
};

describe('source/app-registry', () => {
  it.each([
    ['community-operators', {}, 'https://quay.io/cnr', 'quay.io/community-operators'],
    ['quay.io/community-operators', {}, 'https://quay.io/cnr', 'quay.io/community-operators'],
    [
      'reg.example:8443/community-operators',
      {},
      'https://reg.example:8443/cnr',
      'reg.example:8443/community-operators',
    ],
    ['localhost/a/b/community-operators', {}, 'https://localhost/a/b', 'localhost/a/b/community-operators'],
    [
      'localhost/community-operators',
      { useHttp: true },
      'http://localhost/cnr',
      'localhost/community-operators',
    ],
    ['community-operators', { endpoint: 'http://a.b/x' }, 'http://a.b/x', 'a.b/community-operators'],
    ['quay.io/community-operators', { endpoint: 'a.b/x' }, 'https://a.b/x', 'quay.io/community-operators'],
  ])('reads %s with %o', (text, options, endpoint, label) => {
    expect(parsed(text, options)).toEqual([endpoint, 'community-operators', label]);
  });

  it.each(['', '/', 'a/b', 'quay.io/', 'quay.io//a', 'quay.io/..', '.', 'a b', 'quay.io/a?b'])(
    'refuses %j',
    (text) => {
      expect(() => parseAppRegistryNamespace(text)).toThrow('invalid app registry namespace');
    },
  );
});
