import { Server, ServerCredentials, type ServerWritableStream, status } from '@grpc/grpc-js';
import { createServer as createSocketServer, type AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DirectoryCatalog } from '../../../src/catalog/catalog.js';
import { CatalogClient } from '../../../src/client/catalog-client.js';
import type { GrpcClientOptions } from '../../../src/client/grpc-catalog-client.js';
import { OpmateError } from '../../../src/core/errors.js';
import { openCatalogQueries } from '../../../src/serve/grpc/catalog-queries.js';
import { bundleType } from '../../../src/catalog/content/messages.js';
import { type RegistryServerOptions, startRegistryServer } from '../../../src/serve/grpc/server.js';
import { widgetCatalog } from '../../e2e/catalogs.js';
import { createAuthority } from '../../support/certificates.js';
import { directoryWith } from '../../support/temporary.js';

const custom =
  '{"schema":"example.notes","package":"widget","list":[1.5,true,null,"x",{"a":{}}]}\n' +
  '{"schema":"olm.deprecations","package":"widget","entries":[' +
  '{"reference":{"schema":"olm.channel","name":"beta"},"message":"use stable"}]}';

const quick = { maxAttempts: 2, retryDelayMs: 1 };

function clientOf(address: string, options: GrpcClientOptions = {}) {
  const client = CatalogClient.grpc(address, { ...quick, ...options });
  onTestFinished(() => client.close());
  return client;
}

async function widgets(options: Partial<RegistryServerOptions> = {}, clientOptions: GrpcClientOptions = {}) {
  const directory = await directoryWith({ 'a.json': widgetCatalog, 'b.json': custom });
  const catalog = new DirectoryCatalog(directory);
  const answers = await openCatalogQueries(catalog, {
    temporaryDirectory: directory,
    now: () => new Date(0),
  });
  const server = await startRegistryServer({ queries: answers, host: '127.0.0.1', port: 0, ...options });
  onTestFinished(async () => {
    await server.close();
    await answers.close();
    await catalog.close();
  });
  return { server, client: clientOf(`127.0.0.1:${server.port}`, clientOptions) };
}

type Answer = (call: ServerWritableStream<Buffer, Buffer>) => void;

/** A server that answers calls of these methods as a test wants. */
async function fakeServer(methods: Record<string, Answer>, options: GrpcClientOptions = {}) {
  const asIs = (bytes: Buffer): Buffer => bytes;
  const server = new Server();
  const definition = Object.fromEntries(
    Object.keys(methods).map((name) => [
      name,
      {
        path: `/api.Registry/${name}`,
        requestStream: false,
        responseStream: true,
        requestSerialize: asIs,
        requestDeserialize: asIs,
        responseSerialize: asIs,
        responseDeserialize: asIs,
      },
    ]),
  );
  server.addService(definition, methods);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  onTestFinished(() => server.forceShutdown());
  return clientOf(`127.0.0.1:${port}`, options);
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const failure = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof OpmateError)) throw new Error(`no OpmateError: ${String(error)}`);
  expect(error.message).not.toContain('\n');
  return `${error.code}: ${error.message}`;
};

const named = (name: string): Buffer => bundleType.encode({ csvName: name });

describe('client/grpc-catalog-client', () => {
  it('lists packages, channels, entries and bundles', async () => {
    const { client } = await widgets();
    expect(await client.listPackages()).toEqual(['widget']);
    expect(await client.getPackage('widget')).toEqual({
      name: 'widget',
      defaultChannel: 'stable',
      channels: [
        { name: 'beta', head: 'widget.v1.3.0', deprecation: 'use stable' },
        { name: 'stable', head: 'widget.v1.3.0' },
      ],
    });
    const bundles = await collect(client.bundles());
    expect(bundles).toHaveLength(8);
    const entries = await client.listEntries('widget');
    expect(entries.map(({ channel, name }) => `${channel} ${name}`)).toEqual(
      ['beta', 'stable'].flatMap((channel) => [0, 1, 2, 3].map((minor) => `${channel} widget.v1.${minor}.0`)),
    );
    expect(entries.map(({ replaces }) => replaces).slice(0, 2)).toEqual(['', 'widget.v1.0.0']);
    const key = { package: 'widget', channel: 'stable', name: 'widget.v1.1.0' };
    const bundle = await client.getBundle(key);
    expect(bundle).toMatchObject({
      csvName: 'widget.v1.1.0',
      packageName: 'widget',
      channelName: 'stable',
      bundlePath: 'quay.io/example/widget-bundle:v1.1.0',
      version: '1.1.0',
      providedApis: [{ group: 'example.com', version: 'v1', kind: 'Widget', plural: '' }],
    });
    expect(bundle.properties.map(({ type }) => type)).toContain('olm.gvk');
    expect((await client.getBundleForChannel('widget', 'beta')).csvName).toBe('widget.v1.3.0');
    expect((await client.getBundleThatReplaces(key)).csvName).toBe('widget.v1.2.0');
  });

  it('lists bundles that provide an API or replace a bundle', async () => {
    const { client } = await widgets();
    const api = { group: 'example.com', version: 'v1', kind: 'Widget' };
    expect((await client.getDefaultBundleThatProvides(api)).channelName).toBe('stable');
    expect((await client.getEntriesThatProvide(api)).length).toBeGreaterThan(0);
    expect((await client.getLatestEntriesThatProvide(api)).map(({ name }) => name)).toContain(
      'widget.v1.3.0',
    );
    expect(await client.getEntriesThatReplace('widget.v1.0.0')).toContainEqual({
      package: 'widget',
      channel: 'stable',
      name: 'widget.v1.1.0',
      replaces: 'widget.v1.0.0',
    });
  });

  it('yields blobs of custom schemas', async () => {
    const { client } = await widgets();
    expect(await collect(client.customBlobs({ schema: 'example.notes', package: 'widget' }))).toEqual([
      { schema: 'example.notes', package: 'widget', list: [1.5, true, null, 'x', { a: {} }] },
    ]);
  });

  it('reports missing content with the message of the server', async () => {
    const { server, client } = await widgets();
    const address = `127.0.0.1:${server.port}`;
    expect(await failure(client.getPackage('x'))).toBe(`NOT_FOUND: ${address}: package "x" not found`);
    expect(await failure(client.listEntries('x'))).toBe(`NOT_FOUND: ${address}: package "x" not found`);
    const key = { package: 'widget', channel: 'stable', name: 'x' };
    expect(await failure(client.getBundle(key))).toMatch(/^NOT_FOUND: .*bundle "x" not found$/);
    expect(await failure(client.getEntriesThatReplace('x'))).toMatch(/^NOT_FOUND: .*that replace x$/);
    expect(await failure(client.getBundleForChannel('x', 'y'))).toMatch(/^NOT_FOUND: /);
  });

  it('uses TLS with the certificate authority of the option', async () => {
    const authority = createAuthority();
    const { cert, key } = authority.issue();
    const certificate = { cert: Buffer.from(cert), key: Buffer.from(key) };
    const { server, client } = await widgets({ certificate }, { ca: authority.cert });
    expect(await client.listPackages()).toEqual(['widget']);
    const distrusting = clientOf(`127.0.0.1:${server.port}`, { tls: true });
    expect(await failure(distrusting.listPackages())).toMatch(/^NETWORK: .*certificate/);
    expect(() => CatalogClient.grpc('a:1', { ca: 'none' })).toThrow('option ca: invalid certificate');
  });

  it.each(['', 'host', 'http://host:1', 'host:99999', 'unix:/tmp/x', 'dns:///host:1'])(
    'refuses the address %j',
    (address) => {
      expect(() => CatalogClient.grpc(address)).toThrow('invalid server address');
    },
  );

  it('stops when its signal is aborted, and makes no calls once closed', async () => {
    const { client } = await widgets();
    const cancel = new AbortController();
    const reading = (async () => {
      for await (const { csvName } of client.bundles({ signal: cancel.signal })) if (csvName) cancel.abort();
    })();
    expect(await failure(reading)).toMatch(/^CANCELLED: /);
    expect(await failure(client.listPackages({ signal: cancel.signal }))).toMatch(/^CANCELLED: /);
    for await (const { csvName } of client.bundles()) if (csvName) break;
    expect(await client.listPackages()).toEqual(['widget']);
    client.close();
    expect(await failure(client.listPackages())).toMatch(/^USAGE: .*the client is closed/);
  });
});

describe('client/grpc-catalog-client and servers that do not behave', () => {
  it('retries temporary failures until the first message', async () => {
    let calls = 0;
    const flaky = await fakeServer({
      ListPackages: (call) => {
        if (++calls === 1) call.emit('error', { code: status.UNAVAILABLE, details: 'later' });
        else call.write(named('a'), () => call.end());
      },
      ListBundles: (call) => {
        calls++;
        call.write(named('a'), () => call.emit('error', { code: status.UNAVAILABLE, details: 'later' }));
      },
    });
    expect(await flaky.listPackages()).toEqual(['a']);
    expect(calls).toBe(2);
    expect(await failure(collect(flaky.bundles()))).toMatch(/^NETWORK: .*: later$/);
    expect(calls).toBe(3);
  });

  it('fails for a silent or unreachable server', async () => {
    const silent = await fakeServer({ ListPackages: () => undefined }, { idleTimeoutMs: 50 });
    expect(await failure(silent.listPackages())).toMatch(/^NETWORK: .*nothing received for 0.05 s$/);
    const mute = createSocketServer(() => undefined);
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void mute.close());
    const { port } = mute.address() as AddressInfo;
    const waiting = clientOf(`127.0.0.1:${port}`, { idleTimeoutMs: 50 });
    expect(await failure(waiting.listPackages())).toMatch(/^NETWORK: .*nothing received for 0.05 s$/);
    expect(await failure(clientOf('127.0.0.1:1').listPackages())).toMatch(
      /^NETWORK: 127\.0\.0\.1:1: connection refused \(after 2 attempts\)$/,
    );
  });

  it('refuses invalid, oversized and excess messages', async () => {
    const sending =
      (...messages: Buffer[]): Answer =>
      (call) => {
        for (const message of messages) call.write(message);
        call.end();
      };
    const nested = (depth: number): Buffer =>
      bundleType.encode(depth === 0 ? { csvName: 'x' } : { packageName: nested(depth - 1) });
    const client = await fakeServer(
      {
        ListPackages: sending(Buffer.from([0x0a, 0x7f, 0x00])),
        GetPackage: sending(nested(3), nested(3)),
        GetBundle: sending(),
        ListBundles: sending(Buffer.from([0x08, 0x05])),
        GetBundleForChannel: sending(Buffer.from([0x0a, 0x01, 0xff])),
        GetBundleThatReplaces: sending(named('x'.repeat(2000))),
        GetChannelEntriesThatReplace: sending(Buffer.alloc(50, 0xff)),
      },
      { maxMessageBytes: 1000 },
    );
    const key = { package: 'a', channel: 'b', name: 'c' };
    const malformed = /^SYNTAX: 127\.0\.0\.1:\d+: invalid protocol buffers message$/;
    expect(await failure(client.listPackages())).toMatch(malformed);
    expect(await failure(collect(client.bundles()))).toMatch(malformed);
    expect(await failure(client.getEntriesThatReplace('a'))).toMatch(malformed);
    expect(await failure(client.getBundleForChannel('a', 'b'))).toMatch(
      /^SYNTAX: .*invalid UTF-8 in a message$/,
    );
    expect(await failure(client.getPackage('a'))).toMatch(
      /^INVALID: .*more than one message in the response$/,
    );
    expect(await failure(client.getBundle(key))).toMatch(/^INVALID: .*no message in the response$/);
    expect(await failure(client.getBundleThatReplaces(key))).toMatch(/^LIMIT: .*larger than/);
  });

  it.each([
    [status.UNKNOWN, 'database is gone\nand more', /^REGISTRY: .*: database is gone and more$/],
    [status.UNKNOWN, 'no entry found for a b c', /^NOT_FOUND: /],
    [status.UNIMPLEMENTED, 'no', /^UNSUPPORTED: /],
    [status.PERMISSION_DENIED, 'password=hunter2', /^AUTH: .*password=\*\*\*$/],
    [status.INVALID_ARGUMENT, 'no', /^USAGE: /],
    [status.INTERNAL, 'broken', /^REGISTRY: /],
    [status.CANCELLED, 'stopped', /^CANCELLED: /],
  ])('tells status %i, %j', async (code, details, message) => {
    const client = await fakeServer({ GetPackage: (call) => void call.emit('error', { code, details }) });
    expect(await failure(client.getPackage('a'))).toMatch(message);
  });
});
