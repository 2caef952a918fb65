import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openLayout } from '../../../src/oci/layout/layout.js';
import { type Descriptor, mediaTypes } from '../../../src/oci/image/types.js';
import { type Registry, startRegistry } from '../../../src/serve/registry/registry.js';
import { createAuthority } from '../../support/certificates.js';
import { foreignName } from '../../support/dead-process.js';

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

const agent = new Agent({ keepAlive: true });
let root: string;
let registry: Registry;

async function call(
  method: string,
  path: string,
  options: { headers?: Record<string, string | number>; body?: Buffer | Buffer[] } = {},
): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const { body } = options;
    const headers = { ...options.headers };
    // A list of buffers goes out in pieces, without a Content-Length.
    if (!Array.isArray(body)) headers['Content-Length'] ??= body?.length ?? 0;
    const outgoing = request(new URL(path, registry.url), { method, headers, agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      );
      response.on('error', reject);
    });
    outgoing.on('error', reject);
    for (const chunk of Array.isArray(body) ? body : []) outgoing.write(chunk);
    outgoing.end(Array.isArray(body) ? undefined : body);
  });
}

type Algorithm = 'sha256' | 'sha512';
const digestOf = (bytes: Buffer, algorithm: Algorithm = 'sha256') =>
  `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;
const codesOf = (answer: Answer) =>
  (JSON.parse(answer.body.toString()) as { errors: { code: string }[] }).errors.map((error) => error.code);
const jsonOf = (answer: Answer) => JSON.parse(answer.body.toString()) as Record<string, unknown>;
const locationOf = (answer: Answer) => answer.headers.location as string;
const octets = { 'Content-Type': 'application/octet-stream' };

async function startUpload(repository: string, query = ''): Promise<string> {
  const answer = await call('POST', `/v2/${repository}/blobs/uploads/${query}`);
  expect(answer.status).toBe(202);
  return locationOf(answer);
}

/** The ways in which a blob can be pushed; each returns the last answer. */
const pushMethods: Record<string, (repository: string, blob: Buffer, digest: string) => Promise<Answer>> = {
  'one POST': (repository, blob, digest) =>
    call('POST', `/v2/${repository}/blobs/uploads/?digest=${digest}`, { headers: octets, body: blob }),
  'POST and PUT': async (repository, blob, digest) =>
    call('PUT', `${await startUpload(repository)}?digest=${digest}`, { headers: octets, body: blob }),
  'POST with the algorithm, and PUT': async (repository, blob, digest) => {
    const location = await startUpload(
      repository,
      `?digest-algorithm=${digest.slice(0, digest.indexOf(':'))}`,
    );
    return await call('PUT', `${location}?digest=${digest}`, { headers: octets, body: blob });
  },
  'a stream': async (repository, blob, digest) => {
    const half = blob.length >> 1;
    const body = [blob.subarray(0, half), blob.subarray(half)].filter((part) => part.length > 0);
    const answer = await call('PATCH', await startUpload(repository), { headers: octets, body });
    expect(answer.status).toBe(202);
    return await call('PUT', `${locationOf(answer)}?digest=${digest}`);
  },
  'chunks, the last in the PUT': async (repository, blob, digest) => {
    let location = await startUpload(repository);
    const cut = Math.ceil(blob.length / 3);
    for (const start of [0, cut]) {
      const body = blob.subarray(start, start + cut);
      if (body.length === 0) continue;
      const range = `${start}-${start + body.length - 1}`;
      const answer = await call('PATCH', location, { headers: { ...octets, 'Content-Range': range }, body });
      expect(answer.status).toBe(202);
      expect(answer.headers.range).toBe(`0-${start + body.length - 1}`);
      location = locationOf(answer);
    }
    const body = blob.subarray(2 * cut);
    const headers =
      body.length === 0 ? octets : { ...octets, 'Content-Range': `${2 * cut}-${blob.length - 1}` };
    return await call('PUT', `${location}?digest=${digest}`, { headers, body });
  },
};

async function pushBlob(
  repository: string,
  blob: Buffer,
  algorithm: Algorithm = 'sha256',
): Promise<Descriptor> {
  const digest = digestOf(blob, algorithm);
  const answer = await (pushMethods['one POST'] as (typeof pushMethods)[string])(repository, blob, digest);
  expect(answer.status).toBe(201);
  return { mediaType: mediaTypes.ociLayerGzip, digest, size: blob.length };
}

async function putManifest(
  repository: string,
  reference: string | undefined,
  document: object,
  algorithm: Algorithm = 'sha256',
): Promise<{ answer: Answer; descriptor: Descriptor; bytes: Buffer }> {
  const bytes = Buffer.from(JSON.stringify(document));
  const { mediaType } = document as { mediaType: string };
  const digest = digestOf(bytes, algorithm);
  const path = `/v2/${repository}/manifests/${reference ?? digest}`;
  const query = algorithm === 'sha256' || reference === undefined ? '' : `?digest=${digest}`;
  const answer = await call('PUT', path + query, { headers: { 'Content-Type': mediaType }, body: bytes });
  return { answer, descriptor: { mediaType, digest, size: bytes.length }, bytes };
}

async function imageOf(repository: string, algorithm: Algorithm, extra: object = {}): Promise<object> {
  const config = await pushBlob(
    repository,
    Buffer.from(`{"salt":"${randomBytes(8).toString('hex')}"}`),
    algorithm,
  );
  const layer = await pushBlob(repository, randomBytes(300), algorithm);
  return {
    schemaVersion: 2,
    mediaType: mediaTypes.ociManifest,
    config: { ...config, mediaType: mediaTypes.ociConfig },
    layers: [layer],
    ...extra,
  };
}

const indexOf = (manifests: Descriptor[], extra: object = {}) => ({
  schemaVersion: 2,
  mediaType: mediaTypes.ociIndex,
  manifests,
  ...extra,
});

async function pushImage(repository: string, algorithm: Algorithm, extra: object = {}): Promise<Descriptor> {
  const { answer, descriptor } = await putManifest(
    repository,
    undefined,
    await imageOf(repository, algorithm, extra),
    algorithm,
  );
  expect(answer.status).toBe(201);
  return descriptor;
}

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'opmate-registry-'));
  registry = await startRegistry({ directory: join(root, 'shared') });
});

afterAll(async () => {
  await registry.close();
  agent.destroy();
  await rm(root, { recursive: true, force: true });
});

describe('serve/registry: base', () => {
  it('answers the version check', async () => {
    const answer = await call('GET', '/v2/');
    expect(answer.status).toBe(200);
    expect(answer.headers['docker-distribution-api-version']).toBe('registry/2.0');
  });

  it.each([
    ['GET', '/v2/unknown/tags/list', 404, 'NAME_UNKNOWN'],
    ['GET', '/v2/unknown/manifests/v1', 404, 'NAME_UNKNOWN'],
    ['GET', `/v2/unknown/blobs/${digestOf(Buffer.from('nothing'))}`, 404, 'BLOB_UNKNOWN'],
    ['DELETE', `/v2/unknown/blobs/${digestOf(Buffer.from('nothing'))}`, 404, 'BLOB_UNKNOWN'],
    ['DELETE', `/v2/unknown/manifests/${digestOf(Buffer.from('nothing'))}`, 404, 'NAME_UNKNOWN'],
    ['GET', '/v2/Upper/tags/list', 400, 'NAME_INVALID'],
    ['GET', '/v2/a/../../etc/tags/list', 400, 'NAME_INVALID'],
    ['GET', '/v2/a%2F..%2F..%2Fetc/tags/list', 400, 'NAME_INVALID'],
    ['GET', `/v2/${'a'.repeat(256)}/tags/list`, 400, 'NAME_INVALID'],
    ['GET', '/v2/a/blobs/sha256:baddigest', 400, 'DIGEST_INVALID'],
    ['GET', '/v2/a/blobs/sha256:..%2F..%2Findex.json', 404, 'UNSUPPORTED'],
    ['GET', `/v2/a/blobs/md5:${'a'.repeat(32)}`, 400, 'DIGEST_INVALID'],
    ['GET', '/v2/a/manifests/sha256:totallywrong', 400, 'DIGEST_INVALID'],
    ['PUT', '/v2/a/manifests/sha256:totallywrong', 400, 'DIGEST_INVALID'],
    ['GET', '/v2/a/manifests/.tag', 404, 'NAME_UNKNOWN'],
    ['PUT', '/v2/a/manifests/.tag', 400, 'MANIFEST_INVALID'],
    ['GET', '/v2/a/referrers/sha256:bad', 400, 'DIGEST_INVALID'],
    ['POST', '/v2/a/blobs/uploads/?digest=sha256:bad', 400, 'DIGEST_INVALID'],
    ['POST', '/v2/a/blobs/uploads/?mount=bad&from=b', 400, 'DIGEST_INVALID'],
    ['POST', '/v2/a/blobs/uploads/?digest-algorithm=md5', 400, 'DIGEST_INVALID'],
    ['GET', '/v2/a/blobs/uploads/no-such-upload', 404, 'BLOB_UPLOAD_UNKNOWN'],
    ['PATCH', '/v2/a/blobs/uploads/..', 404, 'BLOB_UPLOAD_UNKNOWN'],
    ['POST', '/v2/a/tags/list', 405, 'UNSUPPORTED'],
    ['GET', '/v2/%zz/tags/list', 400, 'UNSUPPORTED'],
    ['GET', '/elsewhere', 404, 'UNSUPPORTED'],
  ])('answers %s %s with %i', async (method, path, status, code) => {
    // Not through `new URL`, which would resolve the dots.
    const answer = await new Promise<Answer>((resolve, reject) => {
      const { hostname, port } = new URL(registry.url);
      const outgoing = request({ hostname, port, path, method, agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks),
          }),
        );
      });
      outgoing.on('error', reject);
      outgoing.end();
    });
    expect([answer.status, codesOf(answer)]).toEqual([status, [code]]);
  });
});

describe.each(['sha256', 'sha512'] as const)('serve/registry: blobs by %s', (algorithm) => {
  describe.each(Object.keys(pushMethods))('pushed with %s', (name) => {
    const push = pushMethods[name] as (typeof pushMethods)[string];

    it.each([
      ['of some bytes', 3071],
      ['that is empty', 0],
    ])('takes a blob %s', async (_, size) => {
      const blob = randomBytes(size);
      const digest = digestOf(blob, algorithm);
      const answer = await push('blobs/one', blob, digest);
      expect(answer.status).toBe(201);
      expect(answer.headers['docker-content-digest']).toBe(digest);
      const got = await call('GET', locationOf(answer));
      expect([got.status, got.body.equals(blob), got.headers['docker-content-digest']]).toEqual([
        200,
        true,
        digest,
      ]);
      const head = await call('HEAD', `/v2/blobs/one/blobs/${digest}`);
      expect([head.status, head.headers['content-length'], head.body.length]).toEqual([200, String(size), 0]);
    });

    it('refuses content that has another digest, and keeps none of it', async () => {
      const blob = randomBytes(2000);
      const digest = digestOf(randomBytes(2000), algorithm);
      const answer = await push('blobs/one', blob, digest);
      expect([answer.status, codesOf(answer)]).toEqual([400, ['DIGEST_INVALID']]);
      expect((await call('HEAD', `/v2/blobs/one/blobs/${digest}`)).status).toBe(404);
      expect((await call('HEAD', `/v2/blobs/one/blobs/${digestOf(blob, algorithm)}`)).status).toBe(404);
    });
  });

  it('deletes a blob at once', async () => {
    const { digest } = await pushBlob('blobs/deleted', randomBytes(50), algorithm);
    const path = `/v2/blobs/deleted/blobs/${digest}`;
    expect((await call('DELETE', path)).status).toBe(202);
    expect((await call('HEAD', path)).status).toBe(404);
    expect((await call('DELETE', path)).status).toBe(404);
  });

  it('mounts a blob from a named repository or from any, and deletes it from one only', async () => {
    const blob = randomBytes(50);
    const { digest } = await pushBlob('mount/source', blob, algorithm);
    expect((await call('HEAD', `/v2/mount/named/blobs/${digest}`)).status).toBe(404);
    for (const [target, from] of [
      ['mount/named', '&from=mount/source'],
      ['mount/any', ''],
    ]) {
      const answer = await call('POST', `/v2/${target}/blobs/uploads/?mount=${digest}${from}`);
      expect([answer.status, answer.headers['docker-content-digest']]).toEqual([201, digest]);
      expect((await call('GET', locationOf(answer))).body.equals(blob)).toBe(true);
    }
    for (const name of ['mount/source', 'mount/named', 'mount/any']) {
      expect((await call('GET', `/v2/${name}/blobs/${digest}`)).body.equals(blob)).toBe(true);
      expect((await call('DELETE', `/v2/${name}/blobs/${digest}`)).status).toBe(202);
      expect((await call('HEAD', `/v2/${name}/blobs/${digest}`)).status).toBe(404);
    }
    expect((await call('POST', `/v2/mount/named/blobs/uploads/?mount=${digest}`)).status).toBe(202);
  });

  it('answers a mount that is not possible with an upload', async () => {
    const digest = digestOf(randomBytes(10), algorithm);
    const answer = await call('POST', `/v2/mount/other/blobs/uploads/?mount=${digest}&from=mount/nowhere`);
    expect([answer.status, locationOf(answer)]).toEqual([
      202,
      expect.stringMatching(/^\/v2\/mount\/other\/blobs\/uploads\/.+/),
    ]);
  });
});

describe('serve/registry: uploads', () => {
  it('refuses chunks out of order without losing what it has', async () => {
    const blob = randomBytes(3000);
    const location = await startUpload('chunks/one');
    const patch = (start: number, end: number) =>
      call('PATCH', location, {
        headers: { ...octets, 'Content-Range': `${start}-${end - 1}` },
        body: blob.subarray(start, end),
      });
    expect((await patch(1000, 2000)).status).toBe(416);
    expect((await patch(0, 1000)).status).toBe(202);
    const late = await patch(2000, 3000);
    expect([late.status, late.headers.range]).toEqual([416, '0-999']);
    expect((await patch(0, 1000)).status).toBe(416);
    const status = await call('GET', location);
    expect([status.status, status.headers.range, locationOf(status)]).toEqual([204, '0-999', location]);
    expect((await patch(1000, 2000)).headers.range).toBe('0-1999');
    const put = (start: number) =>
      call('PUT', `${location}?digest=${digestOf(blob)}`, {
        headers: { ...octets, 'Content-Range': `${start}-${start + 999}` },
        body: blob.subarray(start, start + 1000),
      });
    expect((await put(1000)).status).toBe(416);
    expect((await put(2000)).status).toBe(201);
    expect((await call('GET', `/v2/chunks/one/blobs/${digestOf(blob)}`)).body.equals(blob)).toBe(true);
  });

  it.each(['bytes 0-9/10', '9-0', '0-', 'x'])('refuses the Content-Range %s', async (range) => {
    const location = await startUpload('chunks/one');
    const answer = await call('PATCH', location, {
      headers: { 'Content-Range': range },
      body: randomBytes(10),
    });
    expect([answer.status, codesOf(answer)]).toEqual([400, ['BLOB_UPLOAD_INVALID']]);
  });

  it('refuses a chunk whose length is not that of its range', async () => {
    const location = await startUpload('chunks/one');
    const answer = await call('PATCH', location, {
      headers: { 'Content-Range': '0-99' },
      body: randomBytes(10),
    });
    expect([answer.status, codesOf(answer)]).toEqual([400, ['SIZE_INVALID']]);
    expect(
      (await call('PATCH', location, { headers: { 'Content-Range': '0-9' }, body: randomBytes(10) })).status,
    ).toBe(202);
  });

  it('forgets a cancelled upload', async () => {
    const location = await startUpload('chunks/cancelled');
    await call('PATCH', location, { body: randomBytes(10) });
    expect((await call('DELETE', location)).status).toBe(204);
    expect((await call('GET', location)).status).toBe(404);
    expect((await call('PUT', `${location}?digest=${digestOf(Buffer.alloc(0))}`)).status).toBe(404);
  });

  it('knows an upload in its own repository only', async () => {
    const location = await startUpload('chunks/one');
    expect((await call('GET', location.replace('chunks/one', 'chunks/two'))).status).toBe(404);
  });

  it('keeps what a connection that broke has sent', async () => {
    const blob = randomBytes(100_000);
    const location = await startUpload('chunks/broken');
    await new Promise<void>((resolve) => {
      const outgoing = request(new URL(location, registry.url), {
        method: 'PATCH',
        headers: { 'Content-Length': blob.length },
      });
      outgoing.on('error', () => resolve());
      outgoing.write(blob.subarray(0, 50_000), () =>
        setTimeout(() => outgoing.destroy(new Error('cut')), 50),
      );
    });
    const received = Number(((await call('GET', location)).headers.range as string).slice(2)) + 1;
    expect(received).toBeLessThan(blob.length);
    const rest = blob.subarray(received);
    const headers = { 'Content-Range': `${received}-${blob.length - 1}` };
    const done = await call('PUT', `${location}?digest=${digestOf(blob)}`, { headers, body: rest });
    expect(done.status).toBe(201);
  });
});

describe('serve/registry: ranges of blobs', () => {
  const blob = randomBytes(2048);
  const big = randomBytes(200_000);
  beforeAll(async () => {
    await pushBlob('ranges', blob);
    await pushBlob('ranges', big);
  });

  it.each([
    ['bytes=500-1499', 500, 1499],
    ['bytes=500-', 500, 2047],
    ['bytes=-500', 1548, 2047],
    ['bytes=-5000', 0, 2047],
    ['bytes=2000-5000', 2000, 2047],
    ['bytes=0-0', 0, 0],
  ])('answers %s', async (range, start, end) => {
    const answer = await call('GET', `/v2/ranges/blobs/${digestOf(blob)}`, { headers: { Range: range } });
    expect([answer.status, answer.headers['content-range']]).toEqual([206, `bytes ${start}-${end}/2048`]);
    expect(answer.headers['content-length']).toBe(String(end - start + 1));
    expect(answer.body.equals(blob.subarray(start, end + 1))).toBe(true);
  });

  it.each(['bytes=500-0', 'bytes=5000-10000', 'bytes=2048-', 'bytes=-0'])('refuses %s', async (range) => {
    const answer = await call('GET', `/v2/ranges/blobs/${digestOf(blob)}`, { headers: { Range: range } });
    expect([answer.status, answer.headers['content-range']]).toEqual([416, 'bytes */2048']);
  });

  it('streams a range of a large blob', async () => {
    const answer = await call('GET', `/v2/ranges/blobs/${digestOf(big)}`, {
      headers: { Range: 'bytes=100000-' },
    });
    expect([answer.status, answer.body.equals(big.subarray(100_000))]).toEqual([206, true]);
  });

  it.each(['bytes=0-1,5-6', 'lines=1-2'])('answers %s with the whole blob', async (range) => {
    const answer = await call('GET', `/v2/ranges/blobs/${digestOf(blob)}`, { headers: { Range: range } });
    expect([answer.status, answer.body.length]).toEqual([200, 2048]);
  });
});

describe.each(['sha256', 'sha512'] as const)('serve/registry: manifests by %s', (algorithm) => {
  const repository = `manifests/${algorithm}`;
  const emptyConfig = { mediaType: mediaTypes.ociEmpty, size: 2 };
  const empty = async () => ({
    ...emptyConfig,
    digest: (await pushBlob(repository, Buffer.from('{}'), algorithm)).digest,
  });
  const nowhere = (): Descriptor => ({
    mediaType: mediaTypes.ociManifest,
    digest: digestOf(randomBytes(9), algorithm),
    size: 9,
  });

  const documents: [string, () => Promise<object>][] = [
    ['an image', () => imageOf(repository, algorithm)],
    ['an image of Docker', () => imageOf(repository, algorithm, { mediaType: mediaTypes.dockerManifest })],
    ['an image without layers', () => imageOf(repository, algorithm, { layers: [] })],
    [
      'an image with fields of its own',
      () => imageOf(repository, algorithm, { 'org.example': { a: [1, 2] } }),
    ],
    [
      'an image with inline data',
      async () => {
        const config = await empty();
        return imageOf(repository, algorithm, { config: { ...config, data: 'e30=' } });
      },
    ],
    [
      'an image with a layer that must not be distributed',
      () =>
        imageOf(repository, algorithm, {
          layers: [
            { ...nowhere(), mediaType: 'application/vnd.oci.image.layer.nondistributable.v1.tar+gzip' },
          ],
        }),
    ],
    [
      'a large image',
      () =>
        imageOf(repository, algorithm, {
          annotations: Object.fromEntries(
            Array.from({ length: 390 }, (_, i) => [`key${i}`, 'x'.repeat(10_000)]),
          ),
        }),
    ],
    [
      'an artifact',
      async () =>
        imageOf(repository, algorithm, { artifactType: 'application/x.test', config: await empty() }),
    ],
    [
      'an index',
      async () => indexOf([await pushImage(repository, algorithm), await pushImage(repository, algorithm)]),
    ],
    [
      'an index in an index',
      async () => {
        const inner = indexOf([await pushImage(repository, algorithm)]);
        return indexOf([(await putManifest(repository, undefined, inner, algorithm)).descriptor]);
      },
    ],
    ['an empty index', async () => indexOf([])],
    [
      'an index with an artifact type',
      async () =>
        indexOf([], {
          artifactType: 'application/x.list',
          annotations: { a: randomBytes(4).toString('hex') },
        }),
    ],
    [
      'an image with a subject',
      async () => imageOf(repository, algorithm, { subject: await pushImage(repository, algorithm) }),
    ],
    ['an image whose subject is missing', () => imageOf(repository, algorithm, { subject: nowhere() })],
    ['an index with a subject', async () => indexOf([], { subject: await pushImage(repository, algorithm) })],
  ];

  it.each(documents)('takes %s, by digest and by tag, and gives the same bytes back', async (title, make) => {
    const document = await make();
    const tag = title.replace(/\W+/g, '-');
    for (const reference of [undefined, tag]) {
      const { answer, descriptor, bytes } = await putManifest(repository, reference, document, algorithm);
      expect([answer.status, answer.headers['docker-content-digest']]).toEqual([201, descriptor.digest]);
      const subject = (document as { subject?: Descriptor }).subject?.digest;
      expect(answer.headers['oci-subject']).toBe(subject);
      for (const path of [
        locationOf(answer),
        `/v2/${repository}/manifests/${reference ?? descriptor.digest}`,
      ]) {
        const got = await call('GET', path);
        expect([got.status, got.headers['content-type'], got.headers['docker-content-digest']]).toEqual([
          200,
          descriptor.mediaType,
          descriptor.digest,
        ]);
        expect(got.body.equals(bytes)).toBe(true);
        const head = await call('HEAD', path);
        expect([head.status, head.headers['content-length'], head.body.length]).toEqual([
          200,
          String(bytes.length),
          0,
        ]);
      }
    }
  });

  it('refuses an image whose blobs are missing', async () => {
    for (const extra of [{ layers: [nowhere()] }, { config: nowhere() }]) {
      const { answer } = await putManifest(
        repository,
        'sparse',
        await imageOf(repository, algorithm, extra),
        algorithm,
      );
      expect([answer.status, codesOf(answer)]).toEqual([400, ['MANIFEST_BLOB_UNKNOWN']]);
    }
    expect((await call('GET', `/v2/${repository}/manifests/sparse`)).status).toBe(404);
  });

  it('refuses an image that names a blob with another size', async () => {
    const stored = await pushBlob(repository, randomBytes(20), algorithm);
    for (const size of [19, 21]) {
      for (const extra of [{ layers: [{ ...stored, size }] }, { config: { ...stored, size } }]) {
        const image = await imageOf(repository, algorithm, extra);
        const { answer } = await putManifest(repository, 'resized', image, algorithm);
        expect([answer.status, codesOf(answer)]).toEqual([400, ['MANIFEST_INVALID']]);
        expect(answer.body.toString()).toContain(
          `blob ${stored.digest}: size is 20 bytes, but the manifest has ${size}`,
        );
      }
    }
    expect((await call('GET', `/v2/${repository}/manifests/resized`)).status).toBe(404);
    const foreign = {
      ...stored,
      size: 21,
      mediaType: 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip',
    };
    const image = await imageOf(repository, algorithm, { layers: [foreign] });
    expect((await putManifest(repository, 'foreign', image, algorithm)).answer.status).toBe(201);
  });

  it('takes an index without some of its images, and each of them later', async () => {
    const late = await imageOf(repository, algorithm);
    const bytes = Buffer.from(JSON.stringify(late));
    const digest = digestOf(bytes, algorithm);
    const missing = { mediaType: mediaTypes.ociManifest, digest, size: bytes.length };
    const index = indexOf([await pushImage(repository, algorithm), missing]);
    expect((await putManifest(repository, 'partial', index, algorithm)).answer.status).toBe(201);
    expect((await call('GET', `/v2/${repository}/manifests/partial`)).status).toBe(200);
    expect((await call('GET', `/v2/${repository}/manifests/${digest}`)).status).toBe(404);
    expect((await putManifest(repository, undefined, late, algorithm)).answer.status).toBe(201);
    expect((await call('GET', `/v2/${repository}/manifests/${digest}`)).status).toBe(200);
  });

  it('refuses a manifest under the digest of another', async () => {
    const body = Buffer.from(JSON.stringify(await imageOf(repository, algorithm)));
    const digest = digestOf(Buffer.from('other'), algorithm);
    const headers = { 'Content-Type': mediaTypes.ociManifest };
    for (const path of [digest, `tag?digest=${digest}`]) {
      const answer = await call('PUT', `/v2/${repository}/manifests/${path}`, { headers, body });
      expect([answer.status, codesOf(answer)]).toEqual([400, ['DIGEST_INVALID']]);
    }
  });

  it('takes several tags at once', async () => {
    const body = Buffer.from(JSON.stringify(await imageOf(repository, algorithm)));
    const digest = digestOf(body, algorithm);
    const headers = { 'Content-Type': mediaTypes.ociManifest };
    const answer = await call('PUT', `/v2/${repository}/manifests/${digest}?tag=many-1&tag=many-2`, {
      headers,
      body,
    });
    expect([answer.status, answer.headers['oci-tag']]).toEqual([201, 'many-1, many-2']);
    for (const tag of ['many-1', 'many-2']) {
      expect(
        (await call('HEAD', `/v2/${repository}/manifests/${tag}`)).headers['docker-content-digest'],
      ).toBe(digest);
    }
  });

  it('deletes a tag without its manifest, and a manifest with its tags, at once', async () => {
    const document = await imageOf(repository, algorithm);
    const { descriptor } = await putManifest(repository, 'gone-1', document, algorithm);
    await putManifest(repository, 'gone-2', document, algorithm);
    await putManifest(`${repository}/other`, 'kept', document, algorithm);
    const path = (reference: string) => `/v2/${repository}/manifests/${reference}`;
    expect((await call('DELETE', path('gone-1'))).status).toBe(202);
    expect((await call('HEAD', path('gone-1'))).status).toBe(404);
    expect((await call('HEAD', path('gone-2'))).status).toBe(200);
    expect((await call('HEAD', path(descriptor.digest))).status).toBe(200);
    expect((await call('DELETE', path('gone-1'))).status).toBe(404);
    expect((await call('DELETE', path(descriptor.digest))).status).toBe(202);
    expect((await call('HEAD', path(descriptor.digest))).status).toBe(404);
    expect((await call('HEAD', path('gone-2'))).status).toBe(404);
    expect((await call('DELETE', path(descriptor.digest))).status).toBe(404);
    expect((await call('HEAD', `/v2/${repository}/other/manifests/kept`)).status).toBe(200);
  });

  it('deletes a manifest that an index lists', async () => {
    const child = await pushImage(repository, algorithm);
    const { descriptor } = await putManifest(repository, 'parent', indexOf([child]), algorithm);
    for (const { digest } of [child, descriptor]) {
      expect((await call('DELETE', `/v2/${repository}/manifests/${digest}`)).status).toBe(202);
      expect((await call('HEAD', `/v2/${repository}/manifests/${digest}`)).status).toBe(404);
    }
  });

  it('lists referrers, and those of one artifact type', async () => {
    const subject = await pushImage(repository, algorithm);
    const annotations = { 'org.example.note': 'a' };
    const typed = await pushImage(repository, algorithm, {
      subject,
      artifactType: 'application/x.sbom',
      annotations,
    });
    const byConfig = await pushImage(repository, algorithm, { subject });
    const list = (
      await putManifest(repository, undefined, indexOf([], { subject, annotations: { n: '1' } }), algorithm)
    ).descriptor;
    const path = `/v2/${repository}/referrers/${subject.digest}`;
    const answer = await call('GET', path);
    expect([answer.status, answer.headers['content-type']]).toEqual([200, mediaTypes.ociIndex]);
    const expected = [
      { ...typed, artifactType: 'application/x.sbom', annotations },
      { ...byConfig, artifactType: mediaTypes.ociConfig },
      { ...list, annotations: { n: '1' } },
    ].sort((a, b) => (a.digest < b.digest ? -1 : 1));
    expect(jsonOf(answer)).toEqual({ schemaVersion: 2, mediaType: mediaTypes.ociIndex, manifests: expected });
    const filtered = await call('GET', `${path}?artifactType=application/x.sbom`);
    expect(filtered.headers['oci-filters-applied']).toBe('artifactType');
    expect((jsonOf(filtered).manifests as Descriptor[]).map((item) => item.digest)).toEqual([typed.digest]);
    await call('DELETE', `/v2/${repository}/manifests/${typed.digest}`);
    expect(jsonOf(await call('GET', `${path}?artifactType=application/x.sbom`)).manifests).toEqual([]);
  });

  it('lists referrers of a subject that is missing, and none of one that nothing names', async () => {
    const subject = nowhere();
    const referrer = await pushImage(repository, algorithm, { subject });
    const answer = await call('GET', `/v2/${repository}/referrers/${subject.digest}`);
    expect((jsonOf(answer).manifests as Descriptor[]).map((item) => item.digest)).toEqual([referrer.digest]);
    for (const name of [repository, 'nothing/here']) {
      const none = await call('GET', `/v2/${name}/referrers/${nowhere().digest}`);
      expect([none.status, jsonOf(none).manifests]).toEqual([200, []]);
    }
  });
});

describe('serve/registry: what is no manifest', () => {
  const put = (body: Buffer | Buffer[], contentType: string = mediaTypes.ociManifest) =>
    call('PUT', '/v2/bad/manifests/v1', { headers: { 'Content-Type': contentType }, body });
  const document = (value: object) => Buffer.from(JSON.stringify({ schemaVersion: 2, ...value }));

  it.each([
    ['not JSON', Buffer.from('{')],
    ['not an object', Buffer.from('[]')],
    ['not UTF-8', Buffer.from('{"a":"\xff"}', 'latin1')],
    ['schema 1', Buffer.from('{"schemaVersion":1,"fsLayers":[]}')],
    ['ambiguous by a key given twice', Buffer.from('{"schemaVersion":2,"layers":[],"layers":[]}')],
    ['ambiguous by a key in another case', document({ layers: [], Layers: [] })],
    ['an index and an image at once', document({ manifests: [], layers: [] })],
    ['of another type than its header says', document({ mediaType: mediaTypes.ociIndex, manifests: [] })],
    [
      'with a digest that is a path',
      document({ config: { mediaType: 'a/b', digest: 'sha256:../../x', size: 1 }, layers: [] }),
    ],
    [
      'with a negative size',
      document({ layers: [{ mediaType: 'a/b', digest: digestOf(Buffer.alloc(0)), size: -1 }] }),
    ],
  ])('refuses a manifest that is %s', async (_, body) => {
    const answer = await put(body);
    expect([answer.status, codesOf(answer)]).toEqual([400, ['MANIFEST_INVALID']]);
  });

  it('refuses more than 4 MiB, announced or not', async () => {
    const tooLarge = Buffer.alloc(4 * 1024 * 1024 + 1, ' ');
    for (const body of [tooLarge, [tooLarge.subarray(0, 1_000_000), tooLarge.subarray(1_000_000)]]) {
      expect((await put(body)).status).toBe(413);
    }
    expect((await call('GET', '/v2/')).status).toBe(200);
  });

  it('ignores parameters of the content type', async () => {
    const { answer } = await putManifest('bad', 'params', indexOf([]));
    expect(answer.status).toBe(201);
    const body = Buffer.from(JSON.stringify(indexOf([])));
    expect((await put(body, `${mediaTypes.ociIndex}; charset=utf-8`)).status).toBe(201);
    expect((await call('GET', '/v2/bad/manifests/v1')).headers['content-type']).toBe(mediaTypes.ociIndex);
  });
});

describe('serve/registry: lists', () => {
  const tags = ['B', 'a', 'b-1', 'b.2', 'c_3', 'z'];
  beforeAll(async () => {
    for (const tag of ['z', 'a', 'c_3', 'B', 'b.2', 'b-1']) await putManifest('lists/tags', tag, indexOf([]));
  });
  const list = async (query: string) => {
    const answer = await call('GET', `/v2/lists/tags/tags/list${query}`);
    return [jsonOf(answer).tags, answer.headers.link];
  };

  it('lists tags in byte order, in pages', async () => {
    expect(await list('')).toEqual([tags, undefined]);
    expect(await list('?n=2')).toEqual([['B', 'a'], '</v2/lists/tags/tags/list?last=a&n=2>; rel="next"']);
    expect(await list('?last=a&n=2')).toEqual([
      ['b-1', 'b.2'],
      '</v2/lists/tags/tags/list?last=b.2&n=2>; rel="next"',
    ]);
    expect(await list('?n=2&last=b.2')).toEqual([['c_3', 'z'], undefined]);
    expect(await list('?last=b.1')).toEqual([['b.2', 'c_3', 'z'], undefined]);
    expect(await list('?n=0')).toEqual([[], undefined]);
    expect(await list('?n=100')).toEqual([tags, undefined]);
    expect((await call('GET', '/v2/lists/tags/tags/list?n=-1')).status).toBe(400);
  });

  it('lists repositories, in pages', async () => {
    const all = jsonOf(await call('GET', '/v2/_catalog')).repositories as string[];
    expect(all).toEqual([...all].sort());
    expect(all).toContain('lists/tags');
    const page = await call('GET', '/v2/_catalog?n=1');
    expect(jsonOf(page).repositories).toEqual([all[0]]);
    expect(page.headers.link).toBe(
      `</v2/_catalog?${new URLSearchParams({ last: all[0] as string, n: '1' })}>; rel="next"`,
    );
  });
});

describe('serve/registry: the directory', () => {
  let directory: string;
  const outer = () => registry;
  let before: Registry;

  beforeEach(async () => {
    before = outer();
    directory = join(await mkdtemp(join(root, 'd-')), 'My.Layout_1');
    registry = await startRegistry({ directory });
  });
  afterEach(async () => {
    await registry.close();
    registry = before;
  });
  const restart = async () => {
    await registry.close();
    registry = await startRegistry({ directory });
  };

  it('is an OCI layout that openLayout reads, with full names as tags', async () => {
    const image = await imageOf('ns/name', 'sha256');
    const { descriptor } = await putManifest('ns/name', 'v1', image);
    const layout = await openLayout(directory);
    expect(await layout.listTags()).toEqual(['ns/name:v1']);
    expect((await layout.getManifest('ns/name:v1')).descriptor).toEqual(descriptor);
  });

  it('serves a plain layout under its own name, and everything again after a restart', async () => {
    const image = await imageOf('source', 'sha256');
    const bytes = Buffer.from(JSON.stringify(image));
    const layout = await openLayout(directory);
    await layout.putManifest('plain', bytes, mediaTypes.ociManifest);
    const name = 'my.layout_1';
    const digest = digestOf(bytes);
    for (let round = 0; round < 2; round++) {
      expect(jsonOf(await call('GET', `/v2/${name}/tags/list`))).toEqual({ name, tags: ['plain'] });
      expect((await call('GET', `/v2/${name}/manifests/plain`)).body.equals(bytes)).toBe(true);
      const [layer] = (image as { layers: Descriptor[] }).layers as [Descriptor];
      expect((await call('HEAD', `/v2/${name}/blobs/${layer.digest}`)).status).toBe(200);
      await restart();
    }
    const again = await putManifest(name, 'second', image);
    expect(again.descriptor.digest).toBe(digest);
    expect(await layout.listTags()).toEqual(['plain', 'second']);
  });

  it('keeps a manifest whose tag moved, and its referrers, over a restart', async () => {
    const first = await putManifest('moved', 'v1', await imageOf('moved', 'sha256'));
    const second = await putManifest('moved', 'v1', await imageOf('moved', 'sha256'));
    const referrer = await pushImage('moved', 'sha256', { subject: first.descriptor });
    await restart();
    expect((await call('GET', `/v2/moved/manifests/${first.descriptor.digest}`)).status).toBe(200);
    expect((await call('HEAD', '/v2/moved/manifests/v1')).headers['docker-content-digest']).toBe(
      second.descriptor.digest,
    );
    const answer = await call('GET', `/v2/moved/referrers/${first.descriptor.digest}`);
    expect((jsonOf(answer).manifests as Descriptor[]).map((item) => item.digest)).toEqual([referrer.digest]);
    expect(jsonOf(await call('GET', '/v2/_catalog'))).toEqual({ repositories: ['moved'] });
  });

  it('has no temporary files after it is closed, and sweeps what a killed process left', async () => {
    const location = await startUpload('left/over');
    await call('PATCH', location, { body: randomBytes(100) });
    await registry.close();
    expect((await readdir(directory)).sort()).toEqual(['blobs', 'index.json', 'oci-layout']);
    const [old, fresh] = [foreignName('aaaa'), foreignName('bbbb')];
    for (const name of [old, fresh]) await writeFile(join(directory, name), 'x');
    await utimes(join(directory, old), 1, 1);
    registry = await startRegistry({ directory });
    expect((await readdir(directory)).sort()).toEqual([fresh, 'blobs', 'index.json', 'oci-layout']);
  });

  it('takes many pushes at once and loses none', async () => {
    const names = Array.from({ length: 60 }, (_, i) => `many/repo-${i % 7}`);
    await Promise.all(
      names.map(async (name, i) => putManifest(name, `v${i}`, await imageOf(name, 'sha256'))),
    );
    const index = JSON.parse(await readFile(join(directory, 'index.json'), 'utf8')) as {
      manifests: Descriptor[];
    };
    expect(index.manifests).toHaveLength(60);
    await restart();
    const all = await Promise.all(names.map((name, i) => call('GET', `/v2/${name}/manifests/v${i}`)));
    expect(all.every((answer) => answer.status === 200)).toBe(true);
  });

  it('does not serve a damaged manifest, and heals it when it is pushed again', async () => {
    const { descriptor, bytes } = await putManifest('damaged', 'v1', indexOf([]));
    const path = join(directory, 'blobs', descriptor.digest.replace(':', '/'));
    await writeFile(path, bytes.toString().replace('2', '3'));
    expect((await call('GET', '/v2/damaged/manifests/v1')).status).toBe(404);
    await putManifest('damaged', 'v1', indexOf([]));
    expect((await call('GET', '/v2/damaged/manifests/v1')).body.equals(bytes)).toBe(true);
  });

  it('closes when its signal fires', async () => {
    const controller = new AbortController();
    const other = await startRegistry({
      directory: join(directory, '..', 'other'),
      signal: controller.signal,
    });
    controller.abort();
    await other.close();
    await expect(fetch(`${other.url}/v2/`)).rejects.toThrow();
  });

  it('goes on serving after a request that failed in an unforeseen way', async () => {
    const logged: string[] = [];
    const other = await startRegistry({
      directory: join(directory, '..', 'other'),
      logger: {
        log: (level, message) => {
          if (level === 'debug') throw new Error('log is full');
          logged.push(`${level}: ${message}`);
        },
        progress: () => undefined,
      },
    });
    try {
      for (let i = 0; i < 2; i++) await fetch(`${other.url}/v2/`).catch(() => undefined);
      expect(logged).toEqual(Array(2).fill('error: GET /v2/: log is full'));
    } finally {
      await other.close();
    }
  });

  it('leaves a directory of other things alone', async () => {
    const other = join(directory, '..', 'things');
    await mkdir(other);
    await writeFile(join(other, 'note.txt'), 'mine');
    await expect(startRegistry({ directory: other })).rejects.toMatchObject({ code: 'INVALID' });
    expect(await readdir(other)).toEqual(['note.txt']);
  });

  it('speaks TLS when it is given a certificate', async () => {
    const authority = createAuthority();
    const secure = await startRegistry({ directory: join(directory, '..', 'tls'), tls: authority.issue() });
    try {
      const status = await new Promise((resolve, reject) => {
        secureRequest(`${secure.url}/v2/`, { ca: authority.cert }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode));
        })
          .on('error', reject)
          .end();
      });
      expect([secure.url.slice(0, 8), status]).toEqual(['https://', 200]);
    } finally {
      await secure.close();
    }
    const tls = { cert: 'nothing', key: 'nothing' };
    const failed = startRegistry({ directory: join(directory, '..', 'tls'), tls });
    await expect(failed).rejects.toMatchObject({ code: 'INVALID' });
    const mixed = { cert: authority.issue().cert, key: createAuthority('another').issue().key };
    await expect(
      startRegistry({ directory: join(directory, '..', 'tls'), tls: mixed }),
    ).rejects.toMatchObject({
      message: 'TLS certificate and key: do not match',
    });
  });

  it('keeps disk and memory the same when tags change at the same time', async () => {
    const images = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const { descriptor, bytes } = await putManifest('busy', undefined, await imageOf('busy', 'sha256'));
        return { descriptor, bytes };
      }),
    );
    const headers = { 'Content-Type': mediaTypes.ociManifest };
    await Promise.all(
      Array.from({ length: 120 }, (_, i) => {
        const path = `/v2/busy/manifests/t${i % 3}`;
        const { bytes } = images[i % 4] as { bytes: Buffer };
        return i % 5 === 0 ? call('DELETE', path) : call('PUT', path, { headers, body: bytes });
      }),
    );
    const digests = async () =>
      Promise.all(
        [0, 1, 2].map(
          async (i) => (await call('HEAD', `/v2/busy/manifests/t${i}`)).headers['docker-content-digest'],
        ),
      );
    const before = await digests();
    await restart();
    expect(await digests()).toEqual(before);
    for (const { descriptor } of images) {
      expect((await call('HEAD', `/v2/busy/manifests/${descriptor.digest}`)).status).toBe(200);
    }
  });

  it('shows at once what another process writes to the directory', async () => {
    await putManifest('ours', 'v1', indexOf([]));
    const layout = await openLayout(directory);
    const bytes = Buffer.from(JSON.stringify(indexOf([], { annotations: { a: 'b' } })));
    await layout.putManifest('theirs:v2', bytes, mediaTypes.ociIndex);
    expect((await call('GET', '/v2/theirs/manifests/v2')).body.equals(bytes)).toBe(true);
    expect((await call('GET', '/v2/ours/manifests/v1')).status).toBe(200);
  });

  it('names the port that is taken', async () => {
    const { port } = registry;
    await expect(startRegistry({ directory: join(directory, '..', 'second'), port })).rejects.toMatchObject({
      code: 'IO',
      message: `listen 127.0.0.1:${port}: address already in use`,
    });
  });
});
