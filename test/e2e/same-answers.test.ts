import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DirectoryCatalog } from '../../src/catalog/catalog.js';
import type { BundleSuccessors } from '../../src/api/bundle/find-successors.js';
import { CatalogClient } from '../../src/client/catalog-client.js';
import type { Resolution } from '../../src/graph/resolve.js';
import { startRegistryServer } from '../../src/serve/grpc/server.js';
import { openCatalogQueries } from '../../src/serve/grpc/catalog-queries.js';
import { openCatalogView } from '../../src/view/catalog-view.js';
import { useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();

const bundle = (version: string): object => ({
  schema: 'olm.bundle',
  package: 'p',
  name: `p.v${version}`,
  image: `registry.test/p:${version.replace('+', '-')}`,
  properties: [{ type: 'olm.package', value: { packageName: 'p', version } }],
});

const blobs = [
  { schema: 'olm.package', name: 'p', defaultChannel: 'stable' },
  {
    schema: 'olm.channel',
    package: 'p',
    name: 'stable',
    entries: [
      { name: 'p.v1.0.0' },
      { name: 'p.v1.1.0-rc.1', replaces: 'p.v1.0.0' },
      { name: 'p.v1.1.0+2', replaces: 'p.v1.0.0', skips: ['p.v1.1.0-rc.1'], skipRange: '<1.1.0' },
    ],
  },
  { schema: 'olm.channel', package: 'p', name: 'old', entries: [{ name: 'p.v1.0.0' }] },
  ...['1.0.0', '1.1.0-rc.1', '1.1.0+2'].map(bundle),
  {
    schema: 'olm.deprecations',
    package: 'p',
    entries: [
      { reference: { schema: 'olm.package' }, message: 'package gone' },
      { reference: { schema: 'olm.channel', name: 'old' }, message: 'use stable' },
      { reference: { schema: 'olm.bundle', name: 'p.v1.1.0+2' }, message: 'head is bad' },
    ],
  },
];

describe('a question about a catalog', () => {
  it('has the same answer in lists, resolution, successors, gRPC and the page', async () => {
    await sandbox.write({ 'c/c.json': blobs.map((blob) => JSON.stringify(blob)).join('\n') });
    const run = async (...args: string[]): Promise<string> => (await sandbox.run(args)).stdout;
    const directory = path.join(sandbox.work, 'c');
    const catalog = new DirectoryCatalog(directory, 'c');
    const queries = await openCatalogQueries(catalog, {
      temporaryDirectory: sandbox.work,
      now: () => new Date(0),
    });
    onTestFinished(async () => {
      await queries.close();
      await catalog.close();
    });
    const view = await openCatalogView({ name: 'c', catalog });

    const channels = [
      { name: 'old', head: 'p.v1.0.0', deprecation: 'use stable' },
      { name: 'stable', head: 'p.v1.1.0+2', deprecation: undefined },
    ];
    const deprecatedHead = { name: 'p.v1.1.0+2', deprecation: 'head is bad' };
    const shown = await view.package('p');
    const pick = (list: readonly { name: string; head?: string; deprecation?: string }[]) =>
      list
        .map(({ name, head, deprecation }) => ({ name, head, deprecation }))
        .sort((a, b) => (a.name < b.name ? -1 : 1));
    expect(pick(shown.channels)).toEqual(channels);
    expect(shown.deprecation).toBe('package gone');
    expect((await view.bundle('p', 'p.v1.1.0+2')).deprecation).toBe('head is bad');

    const listed = (await run('list', 'channels', 'c', 'p')).split('\n').map((line) => line.split(/ {2,}/));
    expect(listed.slice(1, 3).map(([, name, head]) => ({ name, head }))).toEqual(
      channels.map(({ name, head }) => ({ name, head })),
    );

    const server = await startRegistryServer({ queries, host: '127.0.0.1', port: 0 });
    const client = CatalogClient.grpc(`127.0.0.1:${server.port}`);
    onTestFinished(async () => {
      client.close();
      await server.close();
    });
    const served = await client.getPackage('p');
    expect(pick(served.channels)).toEqual(channels);
    expect(served.deprecation).toBe('package gone');

    const options = ['--catalog', 'c', '-o', 'json'];
    const resolution = JSON.parse(
      await run('bundle', 'resolve', 'p', '--version', '>=1.1.0', ...options),
    ) as Resolution;
    expect(resolution.chosen).toMatchObject(deprecatedHead);
    expect(resolution.deprecations.map(({ message }) => message)).toEqual(['package gone', 'head is bad']);
    const successors = JSON.parse(
      await run('bundle', 'successors', 'p', 'p.v1.0.0', ...options),
    ) as BundleSuccessors;
    expect(successors.channels.map(({ channel, head }) => ({ name: channel, head }))).toEqual(
      channels.map(({ name, head }) => ({ name, head })),
    );
    expect(successors.channels[1]?.successors[0]).toMatchObject(deprecatedHead);
  });
});
