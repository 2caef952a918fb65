import { describe, expect, it, onTestFinished } from 'vitest';
import { type CatalogSet, createCatalogSet } from '../../../../src/serve/catalogs/catalog-set.js';
import { NamedQueries } from '../../../../src/serve/grpc/named-queries.js';
import { type RegistryServer, startRegistryServer } from '../../../../src/serve/grpc/server.js';
import { catalogOf } from '../../../e2e/catalogs.js';
import { contentOf } from '../../../e2e/served-catalogs.js';
import { registryClient } from '../../../support/registry-client.js';
import { directoryWith } from '../../../support/temporary.js';

interface Setup {
  held: CatalogSet;
  answers: NamedQueries;
  put(name: string, packageName: string): Promise<void>;
  /** Packages under an authority, or the error. */
  packages(authority: string): Promise<unknown>;
}

async function setUp(maxOpen?: number): Promise<Setup> {
  const held = createCatalogSet();
  const temporaryDirectory = await directoryWith();
  const answers = new NamedQueries({ catalogs: held, temporaryDirectory, now: () => new Date(), maxOpen });
  const server: RegistryServer = await startRegistryServer({ queries: answers, host: '127.0.0.1', port: 0 });
  onTestFinished(async () => {
    await server.close();
    await answers.close();
    await held.close();
  });
  return {
    held,
    answers,
    async put(name, packageName) {
      const content = await contentOf({ 'c.json': catalogOf(packageName, [{ name: `${packageName}.v1` }]) });
      // The content before is closed when its last reader is done: not waited for.
      void held.put({ name, content, labels: {}, priority: 0 });
    },
    async packages(authority) {
      const client = registryClient(server.port, { authority });
      onTestFinished(() => client.close());
      try {
        return (await client.call('ListPackages')).map(({ name }) => name);
      } catch (error) {
        return (error as Error).message;
      }
    },
  };
}

describe('serve/grpc/named-queries', () => {
  it('serves each catalog under the host names that begin with its name', async () => {
    const { put, packages } = await setUp();
    await put('redhat', 'widget');
    expect(await packages('127.0.0.1')).toEqual(['widget']);
    await put('redhat.v4', 'gadget');
    expect(await packages('redhat.catalogs.svc:50051')).toEqual(['widget']);
    expect(await packages('REDHAT')).toEqual(['widget']);
    expect(await packages('redhat.v4.catalogs.svc')).toEqual(['gadget']);
    expect(await packages('redhat.v4')).toEqual(['gadget']);
    expect(await packages('127.0.0.1')).toBe('5 NOT_FOUND: catalog not found for host "127.0.0.1"');
    expect(await packages('redhatv4')).toContain('catalog not found for host');
  });

  it('distinguishes a catalog without content from an unknown one', async () => {
    const { held, packages } = await setUp();
    held.expect(['soon']);
    expect(await packages('soon.svc')).toBe('14 UNAVAILABLE: catalog soon has no content yet');
  });

  it('uses new content for new calls, while open calls keep the old content', async () => {
    const { held, answers, put, packages } = await setUp();
    await put('a', 'widget');
    const lease = await answers.lease('a');
    await put('a', 'gadget');
    expect(await packages('a')).toEqual(['gadget']);
    const bundle = await lease.queries.getBundle('widget', 'stable', 'widget.v1');
    expect(String(bundle)).toContain('widget.v1');
    lease.release();
    void held.remove('a');
    expect(await packages('a')).toContain('catalog not found for host');
  });

  it('keeps a few catalogs open, and opens others again', async () => {
    const { put, packages } = await setUp(1);
    for (const name of ['a', 'b', 'c']) await put(name, `widget-${name}`);
    for (const name of ['a', 'b', 'c', 'a', 'b']) expect(await packages(name)).toEqual([`widget-${name}`]);
  });

  it('returns the faults of an invalid catalog for each call', async () => {
    const { held, packages } = await setUp();
    const content = await contentOf({ 'c.json': '{"schema":"olm.package","name":"widget"}' });
    await held.put({ name: 'bad', content, labels: {}, priority: 0 });
    for (let i = 0; i < 2; i++) expect(await packages('bad')).toContain('widget');
  });
});
