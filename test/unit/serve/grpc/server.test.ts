import { readdir } from 'node:fs/promises';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2';
import path from 'node:path';
import { ChannelCredentials } from '@grpc/grpc-js';
import { loadFileDescriptorSetFromBuffer, loadSync } from '@grpc/proto-loader';
import { describe, expect, it, onTestFinished } from 'vitest';
import { OpmateError } from '../../../../src/core/errors.js';
import type { LogFields, Logger } from '../../../../src/core/log.js';
import { bundleType, packageNameType } from '../../../../src/catalog/content/messages.js';
import { createReflection } from '../../../../src/serve/grpc/reflection.js';
import type { RegistryQueries } from '../../../../src/serve/grpc/registry-queries.js';
import {
  type RegistryServerOptions,
  startRegistryServer,
  type RegistryServer,
} from '../../../../src/serve/grpc/server.js';
import { createAuthority } from '../../../support/certificates.js';
import { projectRoot } from '../../../support/command-line.js';
import { registryClient } from '../../../support/registry-client.js';

const bundleOf = (name: string, size = 0): Buffer =>
  bundleType.encode({ csvName: name, csvJson: 'x'.repeat(size) });

/** Answers of a catalog that has nothing, but for what a test gives it. */
function answersOf(some: Partial<RegistryQueries>): RegistryQueries {
  const missing = (): never => {
    throw new OpmateError('NOT_FOUND', 'nothing is here');
  };
  return {
    listPackages: () => [],
    getPackage: missing,
    getBundle: async () => missing(),
    getBundleForChannel: async () => missing(),
    getBundleThatReplaces: async () => missing(),
    getDefaultBundleThatProvides: async () => missing(),
    getChannelEntriesThatReplace: missing,
    getChannelEntriesThatProvide: missing,
    getLatestChannelEntriesThatProvide: missing,
    async *listBundles() {},
    close: async () => undefined,
    ...some,
  };
}

async function start(
  some: Partial<RegistryQueries> = {},
  options: Partial<RegistryServerOptions> = {},
): Promise<RegistryServer> {
  const answers = answersOf(some);
  const server = await startRegistryServer({ queries: answers, host: '127.0.0.1', port: 0, ...options });
  onTestFinished(() => server.close());
  return server;
}

function clientOf(server: RegistryServer, options?: Parameters<typeof registryClient>[1]) {
  const client = registryClient(server.port, options);
  onTestFinished(() => client.close());
  return client;
}

/** Opens a call of the registry without a message. */
function request(session: ClientHttp2Session, method: string): ClientHttp2Stream {
  return session.request({
    ':method': 'POST',
    ':path': `/api.Registry/${method}`,
    'content-type': 'application/grpc',
    te: 'trailers',
  });
}

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
};

describe('serve/grpc/server', () => {
  it('is healthy for every service, and has no other health calls, as upstream', async () => {
    const client = clientOf(await start(), { service: 'grpc.health.v1.Health' });
    expect(await client.call('Check', { service: '' })).toEqual([{ status: 'SERVING' }]);
    expect(await client.call('Check', { service: 'anything' })).toEqual([{ status: 'SERVING' }]);
    expect(await client.failure('Watch')).toMatch(/^12: /);
    expect(await client.failure('List')).toMatch(/^12: /);
  });

  it('does no work for cancelled calls, and little for unread ones', async () => {
    let [begun, atWork] = [0, 0];
    async function* listBundles(): AsyncGenerator<Uint8Array> {
      begun++;
      atWork++;
      try {
        for (let i = 0; i < 100; i++) yield bundleOf('b', 100_000);
      } finally {
        atWork--;
      }
    }
    const server = await start({ listBundles });
    const session = connectHttp2(`http://127.0.0.1:${server.port}`);
    onTestFinished(() => session.destroy());
    session.on('error', () => undefined);
    const open = () => {
      const stream = request(session, 'ListBundles');
      stream.on('error', () => undefined);
      stream.end(Buffer.alloc(5));
      return stream;
    };
    const held = Array.from({ length: 60 }, open);
    await until(() => begun === 16);
    for (let i = 0; i < 100; i++) {
      const stream = open();
      await new Promise((resolve) => setImmediate(resolve));
      stream.close(8);
    }
    expect(begun).toBe(16);
    for (const stream of held) stream.close(8);
    await until(() => atWork === 0);
    // The connection is as good as before.
    const last = open();
    last.resume();
    await new Promise((resolve) => last.once('end', resolve));
    expect(atWork).toBe(0);
  });

  it('omits the experimental service for a catalog without blobs', async () => {
    const client = clientOf(await start(), { service: 'api.ExperimentalRegistry' });
    expect(await client.failure('ExperimentalListPackageCustomSchemas')).toMatch(/^12: /);
  });

  it('reports internal errors as INTERNAL, and missing entries as UNKNOWN', async () => {
    const server = await start({
      getPackage: () => {
        throw new OpmateError('IO', 'catalog.json: changed');
      },
      getBundle: () => Promise.reject(new TypeError('x is undefined')),
    });
    const client = clientOf(server);
    expect(await client.failure('GetPackage')).toBe('13: catalog.json: changed');
    expect(await client.failure('GetBundle')).toBe('13: x is undefined');
    expect(await client.failure('GetBundleForChannel')).toBe('2: nothing is here');
    expect(await client.failure('GetChannelEntriesThatReplace')).toBe('2: nothing is here');
  });

  it('refuses requests of more than 4 MiB, and truncates long names in messages', async () => {
    const server = await start({
      getPackage: (name) => {
        throw new OpmateError('NOT_FOUND', `package ${name} not found`);
      },
    });
    const client = clientOf(server);
    expect(await client.failure('GetPackage', { name: 'x'.repeat(5 * 1024 * 1024) })).toMatch(/^8: /);
    // Looking for secrets in what is said of such a name once took days.
    expect(await client.failure('GetPackage', { name: 'y'.repeat(4_000_000) })).toMatch(/^2: package yyy/);
    const said = await client.failure('GetPackage', { name: '😀'.repeat(100_000) });
    expect(said).toMatch(/^2: package 😀/u);
    expect(said.length).toBeLessThan(3000);
  });

  const framed = (message: Buffer): Buffer => {
    const head = Buffer.alloc(5);
    head.writeUInt32BE(message.length, 1);
    return Buffer.concat([head, message]);
  };

  it.each([
    ['of an unknown format', Buffer.from([2, 0, 0, 0, 0])],
    ['shorter than its length', Buffer.from([0, 0, 0, 0, 10, 1, 2, 3])],
    ['cut off', framed(Buffer.from([0x0a, 0x05, 0x61]))],
    ['of a group', framed(Buffer.from([0x0b]))],
    ['with text that is no UTF-8', framed(Buffer.from([0x0a, 0x01, 0xff]))],
    ['with an endless number', framed(Buffer.alloc(20, 0xff))],
  ])('refuses a message that is %s', async (_what, message) => {
    const server = await start({ getPackage: (name) => packageNameType.encode({ name }) });
    const session = connectHttp2(`http://127.0.0.1:${server.port}`);
    onTestFinished(() => session.destroy());
    const status = await new Promise((resolve, reject) => {
      const stream = request(session, 'GetPackage');
      stream.on('error', reject);
      stream.on(
        'response',
        (headers) => headers['grpc-status'] !== undefined && resolve(headers['grpc-status']),
      );
      stream.on('trailers', (headers) => resolve(headers['grpc-status']));
      stream.resume();
      stream.end(message);
    });
    expect(status).toBe('13');
  });

  it('reads ahead within the limit for a slow client, and stops for one that disconnects', async () => {
    let made = 0;
    let isOver = false;
    const server = await start({
      async *listBundles() {
        try {
          for (; made < 2000; made++) yield bundleOf(`b${made}`, 100_000);
        } finally {
          isOver = true;
        }
      },
    });
    const session = connectHttp2(`http://127.0.0.1:${server.port}`);
    onTestFinished(() => session.destroy());
    const stream = request(session, 'ListBundles');
    stream.on('error', () => undefined);
    stream.end(Buffer.alloc(5));
    await new Promise((resolve) => stream.once('response', resolve));
    stream.pause();
    await until(() => made > 0);
    // Other callers are served in the meantime, and the list does not grow for long.
    const client = clientOf(server);
    for (let i = 0; i < 50; i++) await client.call('ListPackages');
    expect(made).toBeLessThan(30);
    stream.close(8);
    await until(() => isOver);
    expect(made).toBeLessThan(30);
  });

  it('creates few replies for a connection that does not read, and all of them once it does', async () => {
    let made = 0;
    const server = await start({
      getBundle: (packageName) => {
        made++;
        return Promise.resolve(bundleOf(packageName, 300_000));
      },
    });
    const session = connectHttp2(`http://127.0.0.1:${server.port}`, { settings: { initialWindowSize: 0 } });
    onTestFinished(() => session.destroy());
    const streams = Array.from({ length: 60 }, () => {
      const stream = request(session, 'GetBundle');
      stream.on('error', () => undefined);
      stream.end(Buffer.alloc(5));
      return stream;
    });
    await until(() => made === 16);
    const client = clientOf(server);
    for (let i = 0; i < 50; i++) await client.call('GetBundle');
    expect(made).toBe(16 + 50);
    // Some are not wanted any more; the others are read.
    for (const stream of streams.slice(0, 20)) stream.close(8);
    const statuses = streams.slice(20).map(
      (stream) =>
        new Promise((resolve) => {
          stream.on('trailers', (headers) => resolve(headers['grpc-status']));
          stream.resume();
        }),
    );
    session.settings({ initialWindowSize: 65_535 });
    expect(new Set(await Promise.all(statuses))).toEqual(new Set(['0']));
    expect(made).toBeLessThanOrEqual(60 + 50);
  });

  it('serves many more streams of one connection than it works on at the same time', async () => {
    let open = 0;
    let most = 0;
    const server = await start({
      async *listBundles() {
        most = Math.max(most, ++open);
        await new Promise((resolve) => setImmediate(resolve));
        yield bundleOf('one');
        open--;
      },
    });
    const session = connectHttp2(`http://127.0.0.1:${server.port}`);
    session.setMaxListeners(0);
    onTestFinished(() => session.destroy());
    await new Promise((resolve) => session.once('remoteSettings', resolve));
    const ask = (): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const stream = request(session, 'ListBundles');
        stream.on('error', reject);
        stream.on('trailers', (headers) => resolve(headers['grpc-status']));
        stream.resume();
        stream.end(Buffer.alloc(5));
      });
    const statuses = await Promise.all(Array.from({ length: 500 }, ask));
    expect(new Set(statuses)).toEqual(new Set(['0']));
    expect(most).toBeLessThanOrEqual(16);
  });

  it('refuses more than 20,000 open calls in all, and goes on', async () => {
    let isOpen = true;
    const server = await start({
      async *listBundles() {
        while (isOpen) await new Promise((resolve) => setTimeout(resolve, 100));
        yield bundleOf('late');
      },
    });
    const statuses: unknown[] = [];
    const sessions = Array.from({ length: 201 }, () => connectHttp2(`http://127.0.0.1:${server.port}`));
    onTestFinished(() => sessions.forEach((session) => void session.destroy()));
    for (const session of sessions) {
      session.setMaxListeners(0);
      await new Promise((resolve) => session.once('remoteSettings', resolve));
      for (let i = 0; i < 100; i++) {
        const stream = request(session, 'ListBundles');
        stream.on('error', () => undefined);
        stream.on('response', (headers) => statuses.push(headers['grpc-status']));
        stream.end(Buffer.alloc(5));
      }
    }
    await until(() => statuses.length >= 99);
    expect(statuses).toEqual(Array(99).fill('8'));
    // Another connection has one call at a time.
    const client = clientOf(server);
    expect(await client.failure('GetPackage', { name: 'one' })).toMatch(/^\d+: nothing is here/);
    isOpen = false;
  });

  it('sends bundles of any size', async () => {
    const client = clientOf(await start({ getBundle: async (name) => bundleOf(name, 20_000_000) }));
    const [bundle] = await client.call('GetBundle', { pkgName: 'big' });
    expect((bundle?.['csvJson'] as string).length).toBe(20_000_000);
  });

  it('logs each call with id, method, code and duration, without request or reply', async () => {
    const lines: [string, string, LogFields | undefined][] = [];
    const logger: Logger = {
      log: (level, message, fields) => void lines.push([level, message, fields]),
      progress: () => undefined,
    };
    const server = await start({ getBundle: async () => bundleOf('secret') }, { logger });
    const client = clientOf(server);
    await client.call('GetBundle', { pkgName: 'secret' }, { authorization: 'Bearer secret' });
    await client.failure('GetPackage', { name: 'secret' });
    await clientOf(server, { service: 'grpc.health.v1.Health' }).call('Check');
    await until(() => lines.length === 3);
    expect(lines.map(([level, , fields]) => [level, fields?.['method'], fields?.['code']])).toEqual([
      ['info', '/api.Registry/GetBundle', 'OK'],
      ['info', '/api.Registry/GetPackage', 'UNKNOWN'],
      ['debug', '/grpc.health.v1.Health/Check', 'OK'],
    ]);
    expect(lines[0]?.[2]?.['durationMs']).toBeTypeOf('number');
    expect(new Set(lines.map(([, , fields]) => fields?.['id'])).size).toBe(3);
    expect(JSON.stringify(lines)).not.toContain('secret');
  });

  it('names the port that is in use', async () => {
    const { port } = await start();
    await expect(start({}, { port })).rejects.toMatchObject({
      code: 'IO',
      message: `listen 127.0.0.1:${port}: address already in use`,
    });
    await expect(start({}, { host: '203.0.113.1' })).rejects.toMatchObject({ code: 'IO' });
  });

  it('listens on all addresses, IPv4 and IPv6', async () => {
    const { port } = await startRegistryServer({ queries: answersOf({}), port: 0 }).then((server) => {
      onTestFinished(() => server.close());
      return server;
    });
    const client = registryClient(port);
    onTestFinished(() => client.close());
    expect(await client.call('ListPackages')).toEqual([]);
  });

  it('finishes open calls when it is closed, and refuses new ones', async () => {
    let onRequest: (finish: () => void) => void = () => undefined;
    const requested = new Promise<() => void>((resolve) => (onRequest = resolve));
    const server = await start({
      getBundle: (name) => new Promise((resolve) => onRequest(() => resolve(bundleOf(name)))),
    });
    const answer = clientOf(server).call('GetBundle', { pkgName: 'late' });
    const finish = await requested;
    const closed = server.close();
    expect(await clientOf(server).failure('ListPackages')).toMatch(/^14: /);
    finish();
    expect((await answer)[0]).toMatchObject({ csvName: 'late' });
    await closed;
  });

  it('serves TLS, and a replaced certificate to new connections', async () => {
    const [before, after] = [createAuthority('before'), createAuthority('after')];
    const pair = ({ cert, key }: { cert: string; key: string }) => ({
      cert: Buffer.from(cert),
      key: Buffer.from(key),
    });
    const server = await start({}, { certificate: pair(before.issue()) });
    const trusting = (cert: string) =>
      clientOf(server, { credentials: ChannelCredentials.createSsl(Buffer.from(cert)) });
    expect(await trusting(before.cert).call('ListPackages')).toEqual([]);
    expect(await trusting(after.cert).failure('ListPackages')).toMatch(/^14: /);
    expect(await clientOf(server).failure('ListPackages')).toMatch(/^14: /);
    const mixed = { ...pair(after.issue()), key: Buffer.from(before.issue().key) };
    expect(() => server.replaceCertificate(mixed)).toThrow();
    expect(await trusting(before.cert).call('ListPackages')).toEqual([]);
    server.replaceCertificate(pair(after.issue()));
    expect(await trusting(after.cert).call('ListPackages')).toEqual([]);
  });
});

describe('serve/grpc/reflection', () => {
  const schemas = path.join(projectRoot, 'schemas');
  const ask = (field: number, value: string): Buffer =>
    createReflection(['b.B', 'a.A'])(lengthDelimited(field, Buffer.from(value)));

  it('describes every file as @grpc/proto-loader does', async () => {
    const files = (await readdir(schemas, { recursive: true })).filter(
      (name) => name.endsWith('.proto') && !name.startsWith('google'),
    );
    expect(files.length).toBeGreaterThan(2);
    for (const name of files) {
      // The members of a message that hold files have the numbers that a set of descriptors has.
      const answer = ask(3, name);
      const set = readMessages(readMessages(answer, 4)[0] as Buffer, 1);
      const reread = loadFileDescriptorSetFromBuffer(
        Buffer.concat(set.map((file) => lengthDelimited(1, file))),
        { keepCase: true },
      );
      const expected = loadSync(name, { includeDirs: [schemas], keepCase: true });
      for (const [symbol, definition] of Object.entries(expected)) {
        // That library has a copy of its own of these.
        if (symbol.startsWith('google.')) continue;
        expect(shapeOf(reread[symbol]), symbol).toEqual(shapeOf(definition));
      }
    }
  });

  it('sends a file with its imports, under their import names', () => {
    const [response] = readMessages(ask(4, 'api.Registry.ListBundles'), 4);
    const names = readMessages(response as Buffer, 1).map((file) => readMessages(file, 1).toString());
    expect(names).toEqual(['registry.proto', 'google/protobuf/struct.proto']);
  });

  it('lists services in order', () => {
    const [list] = readMessages(ask(7, ''), 6);
    expect(readMessages(list as Buffer, 1).map((one) => String(readMessages(one, 1)[0]))).toEqual([
      'a.A',
      'b.B',
    ]);
  });

  it.each([
    [3, 'nope.proto'],
    [4, 'api.Nope'],
    [6, 'api.Nope'],
  ])('says what it does not know (field %i)', (field, name) => {
    const [error] = readMessages(ask(field, name), 7);
    expect(String(readMessages(error as Buffer, 2)[0])).toBe(`${name} not found`);
  });

  it('marks deprecated calls', () => {
    const [response] = readMessages(ask(3, 'registry.proto'), 4);
    const [service] = readMessages(readMessages(response as Buffer, 1)[0] as Buffer, 6);
    const deprecated = readMessages(service as Buffer, 2).filter((call) => readMessages(call, 4).length > 0);
    expect(deprecated.map((call) => readMessages(call, 1).toString())).toEqual(['GetBundleForChannel']);
  });
});

/** A field of text, bytes or a message. */
function lengthDelimited(field: number, content: Uint8Array): Buffer {
  const size: number[] = [];
  let rest = content.length;
  for (; rest >= 128; rest = Math.floor(rest / 128)) size.push((rest % 128) | 128);
  return Buffer.concat([Buffer.from([field * 8 + 2, ...size, rest]), content]);
}

/** The embedded messages of a field. */
function readMessages(bytes: Buffer, field: number): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const number = (): number => {
      let value = 0;
      for (let shift = 1; ; shift *= 128) {
        const byte = bytes[at++] as number;
        value += (byte & 127) * shift;
        if (byte < 128) return value;
      }
    };
    const tag = number();
    const size = number();
    if (tag % 8 === 0) continue;
    if (tag >> 3 === field) found.push(bytes.subarray(at, at + size));
    at += size;
  }
  return found;
}

/** What a definition says, without where it comes from. */
function shapeOf(definition: unknown): unknown {
  const text = JSON.stringify(definition, (key, value: unknown) =>
    ['fileDescriptorProtos', 'options', 'jsonName', 'visibility'].includes(key) ? undefined : value,
  );
  // One writes types as they are named in the file, the other in full; entries of maps have names of their own.
  return text.replace(/"typeName":"[^"]*?([^".]+)"/g, '"typeName":"$1"').replaceAll('Entry"', '"');
}
