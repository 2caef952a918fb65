import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  createRegistryRepository,
  type RegistryRepository,
} from '../../../../src/oci/registry/registry-client.js';
import { mediaTypes } from '../../../../src/oci/image/types.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import { type FaultRegistry, startFaultRegistry } from '../../../support/fault-registry.js';
import {
  bytesOf,
  descriptorOf,
  indexOf,
  readAll,
  serveImage,
  smallImage,
  streamOf,
} from '../../../support/images.js';

let server: FaultRegistry;
let other: FaultRegistry;
let bench: Workbench;
beforeAll(async () => {
  other = await startFaultRegistry();
  bench = await openWorkbench();
});
afterAll(async () => {
  await bench.close();
  await other.close();
});
beforeEach(async () => {
  server = await startFaultRegistry();
  return () => server.close();
});

function open(options: { registriesConfFile?: string } = {}): RegistryRepository {
  const connection = bench.connect({ useHttp: true, maxAttempts: 3, ...options });
  return createRegistryRepository({ connection, registry: server.host, repository: 'ns/name' });
}

const name = (): string => `${server.host}/ns/name`;
const image = smallImage();
const { digest } = image.descriptor;
const big = randomBytes(3 * 1024 * 1024);
const bigBlob = descriptorOf(big);
const bigPath = `/v2/ns/name/blobs/${bigBlob.digest}`;

describe('oci/registry-client, a server that sends a byte at a time', () => {
  it('is given up once, for a manifest and for a blob', async () => {
    const drip = { bytes: 1, everyMs: 10 };
    server.on({ path: '/v2/ns/name/manifests/v1', respond: { body: image.bytes, drip } });
    server.on({ path: bigPath, respond: { body: big, drip } });
    const connection = bench.connect({ useHttp: true, idleTimeoutMs: 60 });
    const repository = createRegistryRepository({ connection, registry: server.host, repository: 'ns/name' });
    const tooSlow = {
      code: 'NETWORK',
      message: expect.stringMatching(/too slow: \d+ bytes in 0\.24 s/) as string,
    };
    expect(await failureOf(repository.getManifest('v1'))).toMatchObject(tooSlow);
    expect(await failureOf(repository.openBlob(bigBlob).then(readAll))).toMatchObject(tooSlow);
    expect(server.requests).toHaveLength(2);
  });
});

describe('oci/registry-client, manifests', () => {
  it('reads by tag and by digest', async () => {
    serveImage(server, 'ns/name', 'v1', image);
    const repository = open();
    expect(await repository.getManifest('v1')).toEqual({ descriptor: image.descriptor, bytes: image.bytes });
    expect(await repository.getManifest(digest)).toEqual({
      descriptor: image.descriptor,
      bytes: image.bytes,
    });
    expect(await repository.headManifest('v1')).toEqual(image.descriptor);
    expect(await repository.headManifest('v2')).toBeUndefined();
    expect(server.requests[0]?.headers.accept).toContain(mediaTypes.ociIndex);
  });

  it('computes the digest itself where the registry does not tell it', async () => {
    const headers = { 'content-type': mediaTypes.ociManifest };
    server.on({ method: 'GET', path: '/v2/ns/name/manifests/v1', respond: { headers, body: image.bytes } });
    expect((await open().getManifest('v1')).descriptor).toEqual(image.descriptor);
    expect(await open().headManifest('v1')).toEqual(image.descriptor);
  });

  it.each([
    ['another digest', `sha256:${'0'.repeat(64)}`],
    ['no digest', 'sha256:../../x'],
  ])('refuses an announcement of %s', async (_, announced) => {
    const headers = { 'content-type': mediaTypes.ociManifest, 'docker-content-digest': announced };
    server.on({ path: '/v2/ns/name/manifests/v1', respond: { headers, body: image.bytes } });
    const failure = await failureOf(open().getManifest('v1'));
    expect(failure.code).toBe('DIGEST');
    expect(failure.message).toContain(`${name()}:v1: content has digest ${digest}, the registry announced`);
  });

  it('refuses other content than was asked for by digest', async () => {
    server.on({
      path: `/v2/ns/name/manifests/${digest}`,
      respond: { body: bytesOf({ ...image.manifest, layers: [] }) },
    });
    const failure = await failureOf(open().getManifest(digest));
    expect(failure.code).toBe('DIGEST');
    expect(failure.message).toContain(`${name()}@${digest}: content has digest sha256:`);
  });

  it('understands sha512', async () => {
    const long = `sha512:${createHash('sha512').update(image.bytes).digest('hex')}`;
    server.on({ path: `/v2/ns/name/manifests/${long}`, respond: { body: image.bytes } });
    expect((await open().getManifest(long)).descriptor.digest).toBe(long);
  });

  it('stops at 4 MiB, announced or endless', async () => {
    const tooLong = Buffer.alloc(4 * 1024 * 1024 + 1, ' ');
    server.on({ path: '/v2/ns/name/manifests/long', respond: { body: tooLong } });
    server.on({
      path: '/v2/ns/name/manifests/endless',
      respond: { body: Buffer.alloc(65_536, ' '), endless: true },
    });
    expect(await failureOf(open().getManifest('long'))).toMatchObject({ code: 'LIMIT' });
    const failure = await failureOf(open().getManifest('endless'));
    expect(failure.message).toBe(`${name()}:endless: manifest is larger than 4194304 bytes`);
  });

  it('asks again when a manifest breaks off', async () => {
    serveImage(server, 'ns/name', 'v1', image);
    server.on({
      path: '/v2/ns/name/manifests/v1',
      times: 2,
      respond: { headers: { 'content-type': mediaTypes.ociManifest }, body: image.bytes, truncateAfter: 10 },
    });
    expect((await open().getManifest('v1')).bytes).toEqual(image.bytes);
  });

  it('refuses ambiguous documents and schema 1', async () => {
    server.serveManifest('ns/name', 'both', bytesOf({ ...image.manifest, manifests: [] }));
    server.serveManifest('ns/name', 'type', image.bytes, mediaTypes.dockerManifest);
    server.serveManifest(
      'ns/name',
      'old',
      '{"schemaVersion":1}',
      'application/vnd.docker.distribution.manifest.v1+prettyjws',
    );
    expect((await failureOf(open().getManifest('both'))).message).toContain(
      ':both: manifests: not allowed in',
    );
    expect((await failureOf(open().getManifest('type'))).message).toContain('differs from the announced');
    expect((await failureOf(open().getManifest('old'))).message).toContain(
      ':old: Docker schema 1 images are no longer supported',
    );
  });

  it('asks no registry for a reference that is none', async () => {
    for (const bad of [
      '',
      '../x',
      'a b',
      'sha256:../../x',
      `sha256:${'A'.repeat(64)}`,
      `sha256:${'a'.repeat(63)}`,
      'md5:x',
    ]) {
      expect(await failureOf(open().getManifest(bad))).toMatchObject({ code: 'INVALID' });
    }
    const bad = { ...image.descriptor, digest: 'sha256:../../x' };
    expect(await failureOf(open().openBlob(bad))).toMatchObject({ code: 'INVALID' });
    expect(await failureOf(open().putBlob(bad, () => Readable.from([])))).toMatchObject({ code: 'INVALID' });
    expect(server.requests).toEqual([]);
  });

  it.each([
    [404, 'MANIFEST_UNKNOWN', 'NOT_FOUND', 'not found$', 'check the name'],
    [404, 'NAME_UNKNOWN', 'NOT_FOUND', 'not found$', 'check the name'],
    [404, 'TOOMANYTAGS', 'NOT_FOUND', 'not found: it is', 'check the name'],
    [403, 'DENIED', 'AUTH', 'registry returned 403 Forbidden: it is', ': they do not allow pull here'],
    [400, 'TAG_INVALID', 'REGISTRY', 'registry returned 400 Bad Request: it is', undefined],
  ])('reports %s %s', async (status, code, expected, problem, hint) => {
    const body = JSON.stringify({ errors: [{ code, message: `it\nis\u001b[31m password=hunter2` }] });
    server.on({ path: '/v2/ns/name/manifests/v1', respond: { status, body } });
    const failure = await failureOf(open().getManifest('v1'));
    expect(failure).toMatchObject({ code: expected, status, registryCodes: [code] });
    expect(failure.message).toMatch(new RegExp(`^${name()}:v1: ${problem}`));
    expect(failure.message).not.toMatch(/hunter2|\n/);
    if (hint !== undefined) expect(failure.hint).toContain(hint);
  });

  it.each(['getManifest', 'headManifest'] as const)(
    '%s names the image of an unreachable registry',
    async (read) => {
      const repository = createRegistryRepository({
        connection: bench.connect({ useHttp: true, maxAttempts: 1 }),
        registry: '127.0.0.1:1',
        repository: 'ns/name',
      });
      const failure = await failureOf(repository[read]('v1'));
      expect(failure.message).toBe('127.0.0.1:1/ns/name:v1: connection refused');
      expect(failure.code).toBe('NETWORK');
    },
  );
});

describe('oci/registry-client, reading blobs', () => {
  const read = async (): Promise<Buffer> => readAll(await open().openBlob(bigBlob));

  it('streams a blob', async () => {
    server.serveBlob('ns/name', big);
    expect((await read()).equals(big)).toBe(true);
    expect(await open().hasBlob(bigBlob)).toBe(true);
    expect(await open().hasBlob({ ...bigBlob, size: 1 })).toBe(false);
    expect(await open().hasBlob(descriptorOf('not there'))).toBe(false);
  });

  it.each([
    ['other bytes', { body: Buffer.alloc(big.length) }, 'content has digest sha256:'],
    [
      'other bytes of another announced length',
      { body: Buffer.alloc(5) },
      `expected ${big.length} bytes, got 5`,
    ],
    ['more bytes, unannounced', { body: Buffer.concat([big, big]), chunked: true }, 'got more'],
    ['bytes without end', { body: big, endless: true }, 'got more'],
  ])('refuses %s', async (_, respond, problem) => {
    server.on({ path: bigPath, respond });
    const failure = await failureOf(read());
    expect(failure.code).toBe('DIGEST');
    expect(failure.message).toContain(`${name()}: blob ${bigBlob.digest}: `);
    expect(failure.message).toContain(problem);
  });

  it('goes on by range where a connection broke, again and again', async () => {
    server.serveBlob('ns/name', big);
    const cut = { truncateAfter: 1024 * 1024 };
    server.on({ path: bigPath, times: 1, respond: { body: big, headers: { etag: '"a"' }, ...cut } });
    server.on({
      path: bigPath,
      times: 10,
      respond: (request) => {
        const offset = Number(/bytes=(\d+)-/.exec(String(request.headers.range ?? 'bytes=0-'))?.[1]);
        const range = { 'content-range': `bytes ${offset}-${big.length - 1}/${big.length}`, etag: '"a"' };
        const body = big.subarray(offset);
        const status = offset === 0 ? 200 : 206;
        return { status, headers: range, body, ...(body.length > 700_000 ? { truncateAfter: 700_000 } : {}) };
      },
    });
    expect((await read()).equals(big)).toBe(true);
    const ranges = server.requests.map((request) => request.headers.range);
    expect(ranges[0]).toBeUndefined();
    expect(ranges.length).toBe(5);
    expect(server.requests[1]?.headers['if-range']).toBe('"a"');
  });

  it('goes on when a chunked answer ends too early', async () => {
    server.serveBlob('ns/name', big);
    server.on({ path: bigPath, times: 1, respond: { body: big.subarray(0, 1_000_000), chunked: true } });
    expect((await read()).equals(big)).toBe(true);
    expect(server.requests[1]?.headers.range).toBe('bytes=1000000-');
  });

  const whole = { body: big };
  it.each([
    ['ignores the range', [whole]],
    [
      'answers with another range',
      [{ status: 206, headers: { 'content-range': `bytes 0-9/${big.length}` }, body: big }, whole],
    ],
    ['answers without Content-Range', [{ status: 206, body: big }, whole]],
    ['does not satisfy the range', [{ status: 416 }, whole]],
    [
      'has another version',
      [
        {
          status: 206,
          headers: { etag: '"b"', 'content-range': `bytes 1000000-${big.length - 1}/${big.length}` },
          body: big.subarray(1_000_000),
        },
        whole,
      ],
    ],
  ])('begins anew when the server %s', async (_, answers) => {
    server.on({ path: bigPath, respond: answers });
    server.on({
      path: bigPath,
      times: 1,
      respond: { body: big, headers: { etag: '"a"' }, truncateAfter: 1_000_000 },
    });
    expect((await read()).equals(big)).toBe(true);
  });

  it('lets no wrong bytes through that come on resuming', async () => {
    const rest = { 'content-range': `bytes 1000000-${big.length - 1}/${big.length}` };
    server.on({
      path: bigPath,
      respond: { status: 206, headers: rest, body: Buffer.alloc(big.length - 1_000_000) },
    });
    server.on({ path: bigPath, times: 1, respond: { body: big, truncateAfter: 1_000_000 } });
    expect(await failureOf(read())).toMatchObject({ code: 'DIGEST' });
  });

  it('gives up when a server makes no progress', async () => {
    server.on({ path: bigPath, respond: { body: big, truncateAfter: 500_000 } });
    const failure = await failureOf(read());
    expect(failure.code).toBe('NETWORK');
    expect(failure.message).toContain(`connection cut after 500000 of ${big.length} bytes, 5 times`);
  });

  it('takes a size of petabytes for what it is: a promise', async () => {
    server.on({ path: bigPath, respond: { body: big, chunked: true } });
    const failure = await failureOf(readAll(await open().openBlob({ ...bigBlob, size: 2 ** 52 })));
    expect(failure.code).toBe('NETWORK');
  });

  it('does not fetch foreign layers from where they are', async () => {
    const foreign = { ...bigBlob, urls: [`${other.origin}/layer`] };
    const failure = await failureOf(open().openBlob(foreign));
    expect(failure).toMatchObject({
      code: 'NOT_FOUND',
      hint: expect.stringContaining(`${other.origin}/layer`),
    });
    expect(other.requests).toEqual([]);
  });

  it('stops when it is cancelled, while reading and before', async () => {
    server.on({ path: bigPath, respond: { body: big, drip: { bytes: 1000, everyMs: 5 } } });
    const controller = new AbortController();
    const stream = await open().openBlob(bigBlob, { signal: controller.signal });
    stream.once('data', () => controller.abort());
    expect(await failureOf(readAll(stream))).toMatchObject({ code: 'CANCELLED' });
    expect(await failureOf(open().openBlob(bigBlob, { signal: controller.signal }))).toMatchObject({
      code: 'CANCELLED',
    });
  });

  it('frees the connection when a stream is given up unread', async () => {
    server.serveBlob('ns/name', big);
    const stream = await open().openBlob(bigBlob);
    stream.destroy();
    await expect.poll(() => server.openConnections()).toBe(0);
  });
});

describe('oci/registry-client, mirrors', () => {
  async function withMirror(): Promise<string> {
    return bench.file(
      'registries.conf',
      `[[registry]]\nlocation = "${server.host}"\n[[registry.mirror]]\nlocation = "${other.host}"\n`,
    );
  }

  it('reads from a mirror, and from the registry what the mirror lacks', async () => {
    const registriesConfFile = await withMirror();
    other.serveManifest('ns/name', 'v1', image.bytes);
    server.serveManifest('ns/name', 'v2', image.bytes);
    const repository = open({ registriesConfFile });
    await repository.getManifest('v1');
    expect(server.requests).toEqual([]);
    await repository.getManifest('v2');
    expect(server.requests.length).toBe(1);
    other.on({ path: /v3/, respond: { status: 403 } });
    server.serveManifest('ns/name', 'v3', image.bytes);
    await repository.getManifest('v3');
    const failure = await failureOf(repository.getManifest('v4'));
    expect(failure.message).toBe(`${name()}:v4: not found`);
  });

  it('does not look elsewhere when a mirror lies, and names it', async () => {
    const registriesConfFile = await withMirror();
    other.on({ path: `/v2/ns/name/manifests/${digest}`, respond: { body: '{}' } });
    server.serveManifest('ns/name', undefined, image.bytes);
    const repository = open({ registriesConfFile });
    const named = expect.stringContaining(`(at its mirror ${other.host}/ns/name)`) as string;
    const failure = await failureOf(repository.getManifest(digest));
    expect(failure).toMatchObject({ code: 'DIGEST', message: named });
    for (const body of [big.subarray(1), Buffer.alloc(big.length)]) {
      other.on({ path: bigPath, times: 3, respond: { body } });
      const wrong = await failureOf(repository.openBlob(bigBlob).then(readAll));
      expect(wrong).toMatchObject({ code: 'DIGEST', message: named });
    }
  });
});

describe('oci/registry-client, writing', () => {
  /** A registry that takes uploads in one session and keeps their bytes. */
  function acceptUploads(location = '/v2/ns/name/blobs/uploads/1?_state=a%2Fb'): void {
    server.on({ method: 'POST', path: /uploads/, respond: { status: 202, headers: { location } } });
    server.on({ method: 'DELETE', path: /uploads/, respond: { status: 204 } });
    server.on({ method: 'PUT', path: /uploads/, respond: { status: 201 } });
  }
  const seen = (): string[] =>
    server.requests.map(({ method, path }) => `${method} ${path.replace('/v2/ns/name', '')}`);

  it('sends a blob in one request', async () => {
    acceptUploads();
    await open().putBlob(bigBlob, () => streamOf(big));
    expect(seen()).toEqual([
      `HEAD /blobs/${bigBlob.digest}`,
      'POST /blobs/uploads/',
      `PUT /blobs/uploads/1?_state=a%2Fb&digest=${encodeURIComponent(bigBlob.digest)}`,
    ]);
    expect(server.requests[2]?.body.equals(big)).toBe(true);
    expect(server.requests[2]?.headers['content-length']).toBe(String(big.length));
  });

  it('does not send what is there', async () => {
    server.serveBlob('ns/name', big);
    await open().putBlob(bigBlob, () => {
      throw new Error('opened');
    });
    expect(seen()).toEqual([`HEAD /blobs/${bigBlob.digest}`]);
  });

  it('sends a blob where asking for it is refused', async () => {
    acceptUploads();
    server.on({ method: 'HEAD', path: bigPath, respond: { status: 403 } });
    await open().putBlob(bigBlob, () => streamOf(big));
    expect(seen().at(-1)).toContain('PUT');
  });

  it.each([
    ['elsewhere', () => `${other.origin}/upload/1`],
    ['at another port', () => `http://127.0.0.1:1/v2/ns/name/blobs/uploads/1`],
    ['on another scheme', () => `https://${server.host}/v2/ns/name/blobs/uploads/1`],
  ])('refuses to go on %s', async (_, location) => {
    acceptUploads(location());
    const failure = await failureOf(open().putBlob(bigBlob, () => streamOf(big)));
    expect(failure.code).toBe('UNSAFE');
    expect(other.requests.filter(({ path }) => path.startsWith('/upload'))).toEqual([]);
  });

  it('begins anew when the registry has lost the upload', async () => {
    acceptUploads();
    const body = '{"errors":[{"code":"BLOB_UPLOAD_UNKNOWN"}]}';
    server.on({
      method: 'PUT',
      path: /uploads/,
      times: 2,
      respond: [{ reset: true }, { status: 404, body }],
    });
    let opened = 0;
    await open().putBlob(bigBlob, () => {
      opened++;
      return streamOf(big);
    });
    expect(opened).toBe(3);
    expect(seen().filter((line) => line.startsWith('POST')).length).toBe(2);
  });

  it('passes on what the source fails with, and cancels the upload', async () => {
    acceptUploads();
    const broken = async function* (): AsyncGenerator<Buffer> {
      yield big.subarray(0, 1000);
      throw new Error('disk on fire');
    };
    const failure = await failureOf(open().putBlob(bigBlob, () => Readable.from(broken())));
    expect(failure.message).toBe('disk on fire');
    expect(seen().at(-1)).toBe('DELETE /blobs/uploads/1?_state=a%2Fb');
    const short = await failureOf(open().putBlob(bigBlob, () => streamOf(big.subarray(1))));
    expect(short.message).toContain(`expected ${big.length} bytes, got ${big.length - 1}`);
    const long = await failureOf(open().putBlob({ ...bigBlob, size: 5 }, () => streamOf(big)));
    expect(long.message).toContain('expected 5 bytes, got more');
    const unopened = await failureOf(open().putBlob(bigBlob, () => Promise.reject(new Error('gone'))));
    expect(unopened.message).toBe('gone');
  });

  it('cancels the upload when the caller cancels', async () => {
    acceptUploads();
    server.on({ method: 'PUT', path: /uploads/, respond: { hang: true } });
    const controller = new AbortController();
    const watch = setInterval(() => {
      if (seen().some((request) => request.startsWith('PUT'))) controller.abort();
    }, 5);
    const failure = await failureOf(
      open().putBlob(bigBlob, () => streamOf(big), { signal: controller.signal }),
    ).finally(() => clearInterval(watch));
    expect(failure.code).toBe('CANCELLED');
    expect(seen().at(-1)).toContain('DELETE');
  });

  it('reports a refusal with what was to be done', async () => {
    const body = '{"errors":[{"code":"DENIED","message":"requested access is denied"}]}';
    server.on({ method: 'POST', path: /uploads/, respond: { status: 403, body } });
    const failure = await failureOf(open().putBlob(bigBlob, () => streamOf(big)));
    expect(failure.message).toBe(
      `${name()}: blob ${bigBlob.digest}: push failed: registry returned 403 Forbidden: requested access is denied`,
    );
    expect(failure.hint).toBe(`check the credentials for ${server.host}: they do not allow push here`);
  });

  it.each([
    [403, 'DENIED', 'storage limit of 10 MiB reached'],
    [403, 'DENIED', 'adding 5 MiB of storage resource will exceed the configured upper limit'],
    [403, 'DENIED', 'Quota has been exceeded on namespace'],
    [507, 'DENIED', 'no space left on device'],
  ])(
    'does not suggest other credentials where a registry is full (%i %s: %s)',
    async (status, code, message) => {
      const body = JSON.stringify({ errors: [{ code, message }] });
      server.on({ method: 'POST', path: /uploads/, respond: { status, body } });
      const failure = await failureOf(open().putBlob(bigBlob, () => streamOf(big)));
      expect(failure.code).toBe('REGISTRY');
      expect(failure.hint).toBe(`free space at ${server.host}, or raise its storage limit`);
    },
  );

  it('mounts a blob, and cleans up when that does not work', async () => {
    server.on({
      method: 'POST',
      path: /mount=/,
      respond: [{ status: 201 }, { status: 202, headers: { location: '/v2/ns/name/blobs/uploads/9' } }],
    });
    server.on({ method: 'DELETE', path: /uploads/, respond: { status: 204 } });
    expect(await open().mountBlob(bigBlob, 'ns/other')).toBe(true);
    expect(await open().mountBlob(bigBlob, 'ns/other')).toBe(false);
    expect(seen()).toEqual([
      `POST /blobs/uploads/?mount=${encodeURIComponent(bigBlob.digest)}&from=ns%2Fother`,
      `POST /blobs/uploads/?mount=${encodeURIComponent(bigBlob.digest)}&from=ns%2Fother`,
      'DELETE /blobs/uploads/9',
    ]);
  });

  it('stores a manifest, and notices when the registry stored another', async () => {
    server.on({
      method: 'PUT',
      path: /manifests/,
      respond: { status: 201, headers: { 'docker-content-digest': digest } },
    });
    server.serveManifest('ns/name', 'v1', image.bytes);
    expect(await open().putManifest('v1', image.bytes, mediaTypes.ociManifest)).toEqual(image.descriptor);
    expect(server.requests[0]?.headers['content-type']).toBe(mediaTypes.ociManifest);
    expect(server.requests[0]?.body.equals(image.bytes)).toBe(true);
    const changed = bytesOf({ ...image.manifest, layers: [] });
    expect(await failureOf(open().putManifest('v1', changed, mediaTypes.ociManifest))).toMatchObject({
      code: 'DIGEST',
    });
    expect(await failureOf(open().putManifest(digest, changed, mediaTypes.ociManifest))).toMatchObject({
      code: 'DIGEST',
    });
  });

  it.each([
    ['by tag', 'v1', { 'docker-content-digest': digest }],
    ['by digest, without its digest in the response', digest, {}],
  ])('notices that an accepted manifest is not stored, %s', async (_name, reference, headers) => {
    server.on({ method: 'PUT', path: /manifests/, respond: { status: 201, headers } });
    const put = () => open().putManifest(reference, image.bytes, mediaTypes.ociManifest);
    expect((await failureOf(put())).message).toContain('accepted the manifest, but does not have it');
    // One that has another under the tag.
    if (reference === 'v1') {
      server.serveManifest('ns/name', 'v1', bytesOf({ ...image.manifest, layers: [] }));
      expect(await failureOf(put())).toMatchObject({ code: 'DIGEST' });
    }
  });

  it('finds an accepted manifest that is readable a moment later, and trusts where nothing may be read', async () => {
    server.on({ method: 'PUT', path: /manifests/, respond: { status: 201 } });
    server.serveManifest('ns/name', 'v1', image.bytes);
    server.on({ path: '/v2/ns/name/manifests/v1', method: 'HEAD', times: 1, respond: { status: 404 } });
    const put = () => open().putManifest('v1', image.bytes, mediaTypes.ociManifest);
    expect(await put()).toEqual(image.descriptor);
    server.on({ path: '/v2/ns/name/manifests/v1', method: 'GET', respond: { status: 403 } });
    expect(await put()).toEqual(image.descriptor);
  });

  it.each([405, 501])('finds a blob by its first byte where HEAD is answered by %s', async (status) => {
    server.serveBlob('ns/name', big);
    server.serveBlob('ns/name', '');
    server.on({ method: 'HEAD', path: /blobs/, respond: { status } });
    expect(await open().hasBlob(bigBlob)).toBe(true);
    expect(await open().hasBlob({ ...bigBlob, size: 7 })).toBe(false);
    expect(await open().hasBlob(descriptorOf(Buffer.alloc(0)))).toBe(true);
    expect(await open().hasBlob(descriptorOf(Buffer.from('none')))).toBe(false);
    const requests = server.requests.length;
    await open().putBlob(bigBlob, () => streamOf(big));
    expect(server.requests.slice(requests).map(({ method }) => method)).toEqual(['HEAD', 'GET']);
    expect(server.requests.at(-1)?.headers.range).toBe('bytes=0-0');
  });
});

describe('oci/registry-client, lists', () => {
  it.each([
    ['alone', 'rel="next"'],
    ['after a quoted comma', 'title="a, b"; rel="next"'],
    [
      'after a quoted bracket and another link',
      'title="<x>; rel=\\"prev\\""; rel="last", </x>; rel="prev"',
      'rel=next',
    ],
    ['among others', 'REL="last next"; type=json'],
  ])('goes through the pages of tags, with rel %s', async (_name, ...parameters) => {
    server.on({
      path: /tags\/list/,
      respond: (request) => {
        if (request.path.includes('last=b')) return { body: '{"tags":["c","a10","a9"]}' };
        const [first = '', second] = parameters;
        const page = '</v2/ns/name/tags/list?n=2&last=b>';
        const link = second === undefined ? `${page}; ${first}` : `</y>; ${first}, ${page}; ${second}`;
        return { headers: { link }, body: '{"tags":["b","a"]}' };
      },
    });
    expect(await open().listTags()).toEqual(['a', 'a10', 'a9', 'b', 'c']);
  });

  it.each([
    ['a circle', '</v2/ns/name/tags/list?n=1000>; rel="next"', 'links back to an earlier page'],
    [
      'another origin',
      '<http://127.0.0.1:1/x>; rel="next"',
      'next page at another origin (http://127.0.0.1:1) refused',
    ],
  ])('refuses pages that lead to %s', async (_, link, problem) => {
    server.on({ path: /tags\/list/, respond: { headers: { link }, body: '{"tags":[]}' } });
    expect((await failureOf(open().listTags())).message).toContain(problem);
  });

  it('takes null for no tags and refuses what is no list', async () => {
    server.on({
      path: /tags\/list/,
      respond: [{ body: '{"tags":null}' }, { body: '{"tags":[1]}' }, { body: '<html>' }],
    });
    expect(await open().listTags()).toEqual([]);
    expect((await failureOf(open().listTags())).message).toContain('not a list of tags');
    expect((await failureOf(open().listTags())).message).toContain('not a list of tags');
  });

  const signature = { ...descriptorOf('s', mediaTypes.ociManifest), artifactType: 'application/x-sig' };
  const sbom = { ...descriptorOf('b', mediaTypes.ociManifest), artifactType: 'application/x-sbom' };

  it('lists referrers, filtered here where the registry does not', async () => {
    const { bytes } = indexOf([signature, sbom]);
    const headers = { 'content-type': mediaTypes.ociIndex };
    server.on({ path: `/v2/ns/name/referrers/${digest}`, respond: { headers, body: bytes } });
    expect(await open().listReferrers(digest)).toEqual([signature, sbom]);
    expect(await open().listReferrers(digest, { artifactType: 'application/x-sbom' })).toEqual([sbom]);
    expect(server.requests.at(-1)?.path).toContain('?artifactType=application%2Fx-sbom');
  });

  it.each([
    ['404', { status: 404 }],
    ['a web page', { headers: { 'content-type': 'text/html' }, body: '<html>' }],
  ])('falls back to the tag when the API answers %s', async (_, respond) => {
    server.on({ path: `/v2/ns/name/referrers/${digest}`, respond });
    expect(await open().listReferrers(digest)).toEqual([]);
    server.serveManifest(
      'ns/name',
      digest.replace(':', '-'),
      indexOf([signature]).bytes,
      mediaTypes.ociIndex,
    );
    expect(await open().listReferrers(digest)).toEqual([signature]);
  });

  it('falls back to the tag at once when the API redirects to a host that limits requests', async () => {
    const location = `${other.origin}/limited`;
    server.on({ path: `/v2/ns/name/referrers/${digest}`, respond: { status: 307, headers: { location } } });
    other.on({ path: '/limited', respond: { status: 429 } });
    expect(await open().listReferrers(digest)).toEqual([]);
    expect(other.requests.filter(({ path }) => path === '/limited')).toHaveLength(1);
  });

  it('keeps the tag of referrers up to date only where there is no API', async () => {
    const tag = digest.replace(':', '-');
    const artifact = { ...image.manifest, artifactType: 'application/x-sig', subject: image.descriptor };
    server.serveManifest('ns/name', 'sig', bytesOf(artifact));
    server.on({
      method: 'PUT',
      path: /manifests/,
      respond: [{ status: 201, headers: { 'oci-subject': digest } }, { status: 201 }],
    });
    await open().putManifest('sig', bytesOf(artifact), mediaTypes.ociManifest);
    expect(server.requests.map(({ method }) => method)).toEqual(['PUT', 'HEAD']);
    await open().putManifest('sig', bytesOf(artifact), mediaTypes.ociManifest);
    const { method, path, body } = server.requests.at(-1) ?? {};
    expect(`${method} ${path}`).toBe(`PUT /v2/ns/name/manifests/${tag}`);
    const { digest: of, size } = descriptorOf(bytesOf(artifact));
    expect(JSON.parse(String(body))).toEqual({
      schemaVersion: 2,
      mediaType: mediaTypes.ociIndex,
      manifests: [{ mediaType: mediaTypes.ociManifest, digest: of, size, artifactType: 'application/x-sig' }],
    });
  });
});
