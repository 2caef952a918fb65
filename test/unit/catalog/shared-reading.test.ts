import { describe, expect, it } from 'vitest';
import { type Catalog, DirectoryCatalog, type MetasOptions } from '../../../src/catalog/catalog.js';
import type { DecodedBlob } from '../../../src/catalog/blob.js';
import { addFacts } from '../../../src/catalog/facts.js';
import { type SharedReader, shareReading } from '../../../src/catalog/shared-reading.js';
import { CancelledError } from '../../../src/core/errors.js';
import { type CatalogFacts, emptyFacts } from '../../../src/model/facts.js';
import { directoryWith } from '../../support/temporary.js';

const blob = (name: string): string => `{"schema":"olm.package","name":"${name}"}\n`;

/** Opens a catalog that counts its passes. */
async function openCounted(files: Record<string, string>): Promise<Catalog & { passes: number }> {
  const catalog = new DirectoryCatalog(await directoryWith(files), 'c');
  const metas = catalog.metas.bind(catalog);
  return Object.assign(catalog, {
    passes: 0,
    metas(this: { passes: number }, options: MetasOptions) {
      this.passes++;
      return metas(options);
    },
  });
}

async function readNames({ metas }: Pick<Catalog, 'metas'>, options?: MetasOptions): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of metas(options)) names.push(name);
  return names;
}

describe('catalog/shared-reading', () => {
  it('reads the catalog once for all readers, and again for each later reading', async () => {
    const catalog = await openCounted({ 'a.json': blob('a') + blob('b'), 'c.json': blob('c') });
    const readers = shareReading(catalog, 3, {});
    const names = ['a', 'b', 'c'];
    expect(await Promise.all(readers.map((reader) => readNames(reader.catalog)))).toEqual([
      names,
      names,
      names,
    ]);
    expect(catalog.passes).toBe(1);
    expect(await readNames(readers[0]?.catalog as Catalog)).toEqual(names);
    expect(catalog.passes).toBe(2);
  });

  it('decodes each blob once for all readers', async () => {
    const catalog = await openCounted({ 'a.json': blob('a') + blob('b') });
    const readers = shareReading(catalog, 2, {});
    const decode = async (reader: SharedReader): Promise<[DecodedBlob[], CatalogFacts]> => {
      const facts = emptyFacts();
      const decoded: DecodedBlob[] = [];
      for await (const meta of reader.catalog.metas()) decoded.push(addFacts(facts, meta));
      return [decoded, facts];
    };
    const [[blobs, facts], [others, otherFacts]] = (await Promise.all(readers.map(decode))) as [
      [DecodedBlob[], CatalogFacts],
      [DecodedBlob[], CatalogFacts],
    ];
    expect(blobs).toHaveLength(2);
    expect(blobs.every((item, index) => item === others[index])).toBe(true);
    expect(otherFacts).toEqual(facts);
  });

  it('passes faults to readers that collect them, and ends others', async () => {
    const catalog = await openCounted({
      'a.json': blob('a'),
      'b.json': '{"name":"x"}\n',
      'c.json': blob('c'),
    });
    const [collecting, strict] = shareReading(catalog, 2, {});
    const faults: string[] = [];
    const onFault = ({ message }: Error): unknown => faults.push(message);
    const [collected, failed] = await Promise.allSettled([
      readNames(collecting?.catalog as Catalog, { onFault }),
      readNames(strict?.catalog as Catalog),
    ]);
    expect(collected).toEqual({ status: 'fulfilled', value: ['a', 'c'] });
    expect(faults).toHaveLength(1);
    expect(failed).toMatchObject({ status: 'rejected', reason: { message: faults[0], line: 1 } });
    expect(catalog.passes).toBe(1);
  });

  it('goes on without readers that skip, stop early or read without manifests', async () => {
    const catalog = await openCounted({ 'a.json': blob('a') + blob('b') + blob('c') });
    const [whole, first, skipping, light] = shareReading(catalog, 4, {});
    const stopEarly = async (): Promise<string> => {
      for await (const { name } of first?.catalog.metas() ?? []) return name;
      return '';
    };
    const lightly = readNames(light?.catalog as Catalog, { withoutManifests: true });
    skipping?.skip();
    const reading = Promise.all([readNames(whole?.catalog as Catalog), stopEarly(), lightly]);
    await lightly;
    light?.skip();
    expect(await reading).toEqual([['a', 'b', 'c'], 'a', ['a', 'b', 'c']]);
  });

  it('ends a reader that is cancelled', async () => {
    const catalog = await openCounted({ 'a.json': blob('a') + blob('b') });
    const [whole, cancelled] = shareReading(catalog, 2, {});
    const signal = AbortSignal.abort();
    const [names, failure] = await Promise.allSettled([
      readNames(whole?.catalog as Catalog),
      readNames(cancelled?.catalog as Catalog, { signal }),
    ]);
    expect(names).toEqual({ status: 'fulfilled', value: ['a', 'b'] });
    expect(failure).toMatchObject({ status: 'rejected', reason: expect.any(CancelledError) as Error });
  });
});
