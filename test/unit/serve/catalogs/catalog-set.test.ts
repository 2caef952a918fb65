import { describe, expect, it } from 'vitest';
import { type ServedCatalog, createCatalogSet } from '../../../../src/serve/catalogs/catalog-set.js';
import type { StoredContent } from '../../../../src/serve/catalogs/stored-content.js';

function held(name: string): { catalog: ServedCatalog; closed: () => number } {
  let closed = 0;
  const close = () => {
    closed++;
    return Promise.resolve();
  };
  const content = { hash: name, close } as unknown as StoredContent;
  return { catalog: { name, content, labels: {}, priority: 0 }, closed: () => closed };
}

describe('serve/catalogs/catalog-set', () => {
  it('lists by name, finds, and closes removed catalogs', async () => {
    const set = createCatalogSet();
    const [b, a, other] = [held('b'), held('a'), held('a')] as const;
    await set.put(b.catalog);
    await set.put(a.catalog);
    expect(set.list().map(({ name }) => name)).toEqual(['a', 'b']);
    await set.put({ ...a.catalog, priority: 5 });
    expect(set.find('a')?.priority).toBe(5);
    expect(a.closed()).toBe(0);
    const before = set.list();
    await set.put(other.catalog);
    expect([a.closed(), other.closed()]).toEqual([1, 0]);
    expect(set.find('a')?.content).toBe(other.catalog.content);
    await set.remove('b');
    await set.remove('b');
    expect([b.closed(), set.find('b'), set.list().length, before.length]).toEqual([1, undefined, 1, 2]);
    await set.close();
    expect([other.closed(), set.list()]).toEqual([1, []]);
  });

  it('is ready once marked, until it is closed', async () => {
    const set = createCatalogSet();
    expect(set.isReady()).toBe(false);
    set.markReady();
    expect(set.isReady()).toBe(true);
    await set.close();
    expect(set.isReady()).toBe(false);
  });
});
