import { describe, expect, it } from 'vitest';
import { withoutBodies } from '../../../src/bundle/parse.js';

function fileOf(name: string, kind: string | undefined, size: number) {
  const metadata = { name, labels: { a: 'b' } };
  const object = { ...(kind !== undefined && { kind }), apiVersion: 'v1', metadata, data: 'x'.repeat(size) };
  return { name, content: Buffer.from(JSON.stringify(object)) };
}

describe('bundle/without-bodies', () => {
  it('keeps a small bundle', () => {
    const files = { manifests: [fileOf('a', 'ConfigMap', 100_000)], metadata: [] };
    expect(withoutBodies(files)).toBe(files);
  });

  it('reduces large objects of a large bundle to kind and metadata', () => {
    const large = 33 * 1024 * 1024;
    const files = {
      manifests: [
        fileOf('a', 'ConfigMap', large),
        fileOf('b', 'ClusterServiceVersion', 100_000),
        fileOf('c', 'CustomResourceDefinition', 100_000),
        fileOf('d', undefined, 100_000),
        { name: 'e', content: Buffer.from(`a: [${' '.repeat(100_000)}`) },
        fileOf('f', 'ConfigMap', 100),
      ],
      metadata: [{ name: 'annotations.yaml', content: Buffer.from('a: b') }],
    };
    const cut = withoutBodies(files);
    expect(String(cut.manifests[0]?.content)).toBe(
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"a":"b"}}}',
    );
    expect(cut.manifests.slice(1)).toEqual(files.manifests.slice(1));
    expect(cut.metadata).toBe(files.metadata);
  });
});
