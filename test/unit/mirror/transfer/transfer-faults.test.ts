import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseReference } from '../../../../src/core/reference.js';
import { transferImages } from '../../../../src/mirror/transfer/transfer.js';
import type { TransferOptions } from '../../../../src/mirror/transfer/transfer-types.js';
import { copyImage } from '../../../../src/oci/image/copy.js';
import { createRegistryRepository } from '../../../../src/oci/registry/registry-client.js';
import { mediaTypes } from '../../../../src/oci/image/types.js';
import { type Registry, startRegistry } from '../../../../src/serve/registry/registry.js';
import { type Workbench, failureOf, openWorkbench } from '../../../support/connect.js';
import {
  type FaultRegistry,
  type FaultResponse,
  startFaultRegistry,
} from '../../../support/fault-registry.js';
import { bytesOf, descriptorOf, type SmallImage, serveImage, smallImage } from '../../../support/images.js';
import { type Disturbance, type RegistryProxy, startRegistryProxy } from '../../../support/registry-proxy.js';

let bench: Workbench;
let source: FaultRegistry;
let registry: Registry;
let target: RegistryProxy;

beforeEach(async () => {
  bench = await openWorkbench();
  source = await startFaultRegistry();
  registry = await startRegistry({ directory: join(bench.home, 'registry') });
  target = await startRegistryProxy(new URL(registry.url).host);
});
afterEach(async () => {
  await target.close();
  await registry.close();
  await source.close();
  await bench.close();
});

/** An image with a layer that is too large to be held in memory. */
const large: SmallImage = (() => {
  const layer = randomBytes(3_000_000);
  const small = smallImage();
  const manifest = { ...small.manifest, layers: [descriptorOf(layer)] };
  const bytes = bytesOf(manifest);
  return { ...small, layer, manifest, bytes, descriptor: descriptorOf(bytes, mediaTypes.ociManifest) };
})();
const small = smallImage({ text: 'small' });
const largeLayer = descriptorOf(large.layer).digest;
const smallLayer = descriptorOf(small.layer).digest;

function serveBoth(): void {
  serveImage(source, 'ns/large', 'v1', large);
  serveImage(source, 'ns/small', 'v1', small);
}

const run = (more: Partial<TransferOptions> = {}) =>
  transferImages(
    ['ns/large', 'ns/small'].map((name) => ({
      source: parseReference(`${source.host}/${name}:v1`),
      target: parseReference(`${target.host}/${name}:v1`),
      sourceName: `source ${name}`,
      targetName: `target ${name}`,
    })),
    {
      session: { connect: () => bench.connect({ useHttp: true }) },
      maxPerRegistry: 4,
      continueOnError: true,
      skipMissing: true,
      ...more,
    },
  );

async function tagged(): Promise<string[]> {
  const found = await Promise.all(
    ['ns/large', 'ns/small'].map(async (name) => {
      const answer = await fetch(`${registry.url}/v2/${name}/manifests/v1`, { method: 'HEAD' });
      return answer.ok ? name : '';
    }),
  );
  return found.filter((name) => name !== '');
}

/** The layers are at the target, byte for byte. */
async function expectWhole(): Promise<void> {
  expect(await tagged()).toEqual(['ns/large', 'ns/small']);
  for (const [name, digest] of [
    ['ns/large', largeLayer],
    ['ns/small', smallLayer],
  ]) {
    const answer = await fetch(`${registry.url}/v2/${name}/blobs/${digest}`);
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`).toBe(digest);
  }
}

const busy: [string, FaultResponse][] = [
  ['429 with seconds', { status: 429, headers: { 'retry-after': '0' } }],
  [
    '429 with a date',
    {
      status: 429,
      headers: { 'retry-after': 'Sat, 21 Nov 2026 10:00:00 GMT', date: 'Sat, 21 Nov 2026 10:00:00 GMT' },
    },
  ],
  ['429 with words', { status: 429, body: '{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}' }],
  ['429 without anything', { status: 429 }],
  [
    '429 with a page',
    { status: 429, headers: { 'content-type': 'text/html' }, body: '<html>too many requests</html>' },
  ],
  ['500', { status: 500 }],
  [
    '502 with a page',
    { status: 502, headers: { 'content-type': 'text/html' }, body: '<html>bad gateway</html>' },
  ],
  ['503', { status: 503, headers: { 'retry-after': '0' } }],
  ['504 with JSON', { status: 504, headers: { 'content-type': 'application/json' }, body: '{"errors":[]}' }],
  ['425', { status: 425 }],
  ...[408, 509, 520, 522, 524, 529, 530, 598].map((status): [string, FaultResponse] => [
    `${status}`,
    { status, headers: { 'retry-after': '0' } },
  ]),
  ['a reset', { reset: true }],
  ['a hang-up', { hangUp: true }],
];

describe('mirror/transfer, faults of the source', () => {
  it.each(busy)('survives %s, at every request', async (_, respond) => {
    serveBoth();
    for (const path of new Set(
      ['ns/large', 'ns/small'].flatMap((name, i) => {
        const image = [large, small][i] as SmallImage;
        const blobs = [image.manifest.config, ...image.manifest.layers];
        return [`manifests/v1`, ...blobs.map(({ digest }) => `blobs/${digest}`)].map(
          (what) => `/v2/${name}/${what}`,
        );
      }),
    ))
      source.on({ path, times: 2, respond });
    const { done, failed } = await run();
    expect(failed).toEqual([]);
    expect(done).toHaveLength(2);
    await expectWhole();
  });

  it('goes on where a download was cut, without sending anything twice', async () => {
    serveBoth();
    for (const [path, body, truncateAfter] of [
      [`/v2/ns/large/blobs/${largeLayer}`, large.layer, 1_500_000],
      [`/v2/ns/small/blobs/${smallLayer}`, small.layer, 5],
    ] as const)
      source.on({ path, times: 1, respond: { body, truncateAfter } });
    expect((await run()).done).toHaveLength(2);
    const ranges = source.requests.flatMap(({ headers }) => headers['range'] ?? []);
    // A small blob is read whole again.
    expect(ranges).toEqual(['bytes=1500000-']);
    expect(target.uploaded()).toHaveLength(3);
    await expectWhole();
  });

  it.each([
    ['large', large],
    ['small', small],
  ])('tags nothing where a %s layer is not what its digest says', async (name, image) => {
    serveBoth();
    const { digest } = descriptorOf(image.layer);
    const other = Buffer.from(image.layer).fill(1, 3, 9);
    source.on({ path: `/v2/ns/${name}/blobs/${digest}`, respond: { body: other } });
    const { done, failed } = await run();
    expect(done).toHaveLength(1);
    expect(failed[0]?.transfer.sourceName).toBe(`source ns/${name}`);
    expect(failed[0]?.error).toMatchObject({ code: 'DIGEST' });
    expect(failed[0]?.error.message).toContain(
      `${source.host}/ns/${name}: blob ${digest}: content has digest`,
    );
    expect(await tagged()).toEqual([name === 'large' ? 'ns/small' : 'ns/large']);
    expect(target.uploaded()).not.toContain(digest);
  });

  it('asks for a new token whenever the old one has expired', async () => {
    serveBoth();
    let tokens = 0;
    let uses = 0;
    const auth = await startFaultRegistry();
    auth.on({
      path: '/token',
      respond: () => {
        uses = 0;
        return { body: JSON.stringify({ token: `t${++tokens}`, expires_in: 60 }) };
      },
    });
    source.gate((request) =>
      request.authorization === `Bearer t${tokens}` && ++uses <= 2
        ? undefined
        : {
            status: 401,
            headers: { 'www-authenticate': `Bearer realm="${auth.origin}/token",service="registry"` },
          },
    );
    try {
      const connection = bench.connect({ useHttp: true, allowedPrivateHosts: [auth.host] });
      expect(await run({ session: { connect: () => connection }, maxPerRegistry: 1 })).toMatchObject({
        failed: [],
      });
      expect(tokens).toBeGreaterThan(2);
      await expectWhole();
    } finally {
      await auth.close();
    }
  });
});

describe('mirror/transfer, faults of the target', () => {
  const page = { 'content-type': 'text/html' };
  it.each<[string, Disturbance]>([
    ...[429, 500, 502, 503, 504, 520, 529].map((status): [string, Disturbance] => [
      `${status}`,
      { status, headers: { 'retry-after': '0' } },
    ]),
    ['429 with a date', { status: 429, headers: { 'retry-after': 'Sat, 21 Nov 2026 10:00:00 GMT' } }],
    ['429 with a page', { status: 429, headers: page, body: '<html>too many requests</html>' }],
    ['503 with a page', { status: 503, headers: page, body: '<html>unavailable</html>' }],
    ['a reset', { reset: true }],
  ])('survives %s, once at each kind of request', async (_, disturbance) => {
    serveBoth();
    const seen = new Set<string>();
    target.disturb(({ method, path }) => {
      const what = `${method} ${path.replace(/uploads\/.*/, 'uploads')}`;
      if (seen.has(what) || method === 'DELETE') return undefined;
      seen.add(what);
      return disturbance;
    });
    expect(await run()).toMatchObject({ failed: [] });
    expect([...seen].some((what) => /^POST .*uploads/.test(what))).toBe(true);
    expect([...seen].some((what) => /^(?:PUT|PATCH) .*uploads/.test(what))).toBe(true);
    expect([...seen].some((what) => /^PUT .*manifests/.test(what))).toBe(true);
    await expectWhole();
  });

  it('sends a blob again whose upload was cut, and only that', async () => {
    serveBoth();
    let cuts = 0;
    target.disturb(({ method, path }) =>
      method === 'PUT' && path.includes(encodeURIComponent(largeLayer)) && cuts++ < 2
        ? { cutRequestAfter: 1_000_000 }
        : undefined,
    );
    expect(await run()).toMatchObject({ failed: [], blobs: 3 });
    expect(cuts).toBeGreaterThan(2);
    expect(target.uploaded()).toHaveLength(3);
    await expectWhole();
  });

  it.each([500, 507])(
    'names the blob for which there was no space (%s), and can be repeated',
    async (status) => {
      serveBoth();
      const body = '{"errors":[{"code":"UNKNOWN","message":"no space left on device"}]}';
      target.disturb(({ method, path }) =>
        method === 'PUT' && path.includes(encodeURIComponent(largeLayer)) ? { status, body } : undefined,
      );
      const { done, failed } = await run();
      expect(done).toHaveLength(1);
      expect(failed[0]?.error.message).toContain(target.host);
      expect(failed[0]?.error.message).toContain(largeLayer);
      expect(failed[0]?.error.message).toContain('no space left on device');
      expect(await tagged()).toEqual(['ns/small']);
      target.disturb(() => undefined);
      target.requests.length = 0;
      expect(await run()).toMatchObject({ failed: [], blobs: 1, bytes: large.layer.length });
      expect(target.uploaded()).toEqual([largeLayer]);
      await expectWhole();
    },
  );

  it('works on as many images and manifests at a time as it is told', async () => {
    const images = ['a', 'b', 'c', 'd'].map((text) => smallImage({ text }));
    const manifests = images.map(({ descriptor }, i) => ({
      ...descriptor,
      platform: { os: 'linux', architecture: `cpu${i}` },
    }));
    const index = bytesOf({ schemaVersion: 2, mediaType: mediaTypes.ociIndex, manifests });
    const names = ['ns/large', 'ns/small'];
    for (const name of names) {
      for (const image of images) serveImage(source, name, undefined, image);
      source.serveManifest(name, 'v1', index, mediaTypes.ociIndex);
    }
    const under = new Set<string>();
    let [most, mostNames] = [0, 0];
    for (const name of names) {
      for (const { descriptor, bytes } of images) {
        const path = `/v2/${name}/manifests/${descriptor.digest}`;
        source.on({
          path,
          respond: async () => {
            under.add(path);
            most = Math.max(most, under.size);
            mostNames = Math.max(mostNames, new Set([...under].map((one) => one.split('/')[3])).size);
            await new Promise((resolve) => setTimeout(resolve, 20));
            under.delete(path);
            return { headers: { 'content-type': mediaTypes.ociManifest }, body: bytes };
          },
        });
      }
    }
    expect(await run({ imagesAtOnce: 1, layersAtOnce: 2 })).toMatchObject({ failed: [] });
    expect([most, mostNames]).toEqual([2, 1]);
  });

  it('ends with the first failure where that is wanted', async () => {
    serveBoth();
    target.disturb(({ method }) => (method === 'POST' ? { status: 403 } : undefined));
    expect(await failureOf(run({ continueOnError: false }))).toMatchObject({ code: 'AUTH' });
    expect(await tagged()).toEqual([]);
  });
});

/** Attempts as the command line has them: as many as the time allows. */
const patient = () =>
  bench.connect({ useHttp: true, maxAttempts: undefined, retryBaseDelayMs: 20, retryTimeoutMs: 20_000 });

async function copyBoth(): Promise<void> {
  const connection = patient();
  const open = (host: string, repository: string) =>
    createRegistryRepository({ connection, registry: host, repository });
  for (const name of ['ns/large', 'ns/small']) {
    await copyImage(open(source.host, name), 'v1', open(target.host, name), 'v1');
  }
}

describe.each<[string, () => Promise<unknown>]>([
  ['mirror/transfer', () => run({ session: { connect: () => patient() }, continueOnError: false })],
  ['oci/copy', copyBoth],
])('%s, a network that recovers', (_name, work) => {
  it('outlasts a source that is away for longer than a few attempts', async () => {
    serveBoth();
    let isGone = false;
    source.gate(({ path }) => {
      if (path.includes('/blobs/') && !isGone) {
        isGone = true;
        source.goAway(700);
        return { reset: true };
      }
      return undefined;
    });
    await work();
    expect(isGone).toBe(true);
    await expectWhole();
  });

  it('outlasts a target that is away for longer than a few attempts', async () => {
    serveBoth();
    let backAt = 0;
    target.disturb(({ method }) => {
      if (method === 'PUT' && backAt === 0) backAt = performance.now() + 700;
      return performance.now() < backAt ? { status: 503 } : undefined;
    });
    await work();
    expect(backAt).toBeGreaterThan(0);
    await expectWhole();
  });

  it.each(['flipped bit', 'wrong length', 'portal page'] as const)(
    'reads again, once, what comes with a %s',
    async (how) => {
      serveBoth();
      source.damage(/\/(blobs|manifests)\//, how);
      await work();
      await expectWhole();
      const reads = source.requests.filter(
        ({ method, path }) => method === 'GET' && path.includes(largeLayer),
      );
      expect(reads).toHaveLength(2);
    },
  );

  it('reads what comes damaged three times, and tags nothing', async () => {
    serveBoth();
    source.damage(new RegExp(`${largeLayer}$`), 'flipped bit', 99);
    expect(await failureOf(work())).toMatchObject({ code: 'DIGEST' });
    const reads = source.requests.filter(({ path }) => path.includes(largeLayer));
    expect(reads).toHaveLength(3);
    expect(await tagged()).not.toContain('ns/large');
  });

  it('sends a blob again that the target has lost when its manifest is put', async () => {
    serveBoth();
    const lost = new Set(['ns/large', 'ns/small']);
    const away = new Set<string>();
    target.disturb(({ method, path }) => {
      const [, name = ''] = /^\/v2\/(ns\/\w+)\//.exec(path) ?? [];
      if (method === 'PUT' && path.includes('/manifests/') && lost.delete(name)) {
        away.add(name);
        const body = '{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN","message":"blob unknown to registry"}]}';
        return { status: 404, body };
      }
      // Of the lost blob it says so once; then it takes it.
      const isLayer = path.includes(name === 'ns/large' ? largeLayer : smallLayer);
      if (method === 'HEAD' && isLayer && away.delete(name)) return { status: 404 };
      return undefined;
    });
    await work();
    await expectWhole();
    expect(lost.size + away.size).toBe(0);
    expect(target.uploaded().filter((digest) => digest === largeLayer)).toHaveLength(2);
  });

  it('ends with what the target says where nothing is lacking', async () => {
    serveBoth();
    const body = '{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN","message":"blob unknown to registry"}]}';
    let refused = 0;
    target.disturb(({ method, path }) => {
      if (method !== 'PUT' || !path.includes('/ns/large/manifests/')) return undefined;
      refused++;
      return { status: 404, body };
    });
    expect((await failureOf(work())).message).toContain('blob unknown to registry');
    expect(refused).toBe(3);
  });
});

it('names the image of an error about its registry', async () => {
  const gone = await startFaultRegistry();
  await gone.close();
  const name = `${gone.host}/ns/app:v1`;
  const targetName = `${target.host}/ns/app:v1`;
  const { failed } = await transferImages(
    [{ source: parseReference(name), target: parseReference(targetName), sourceName: name, targetName }],
    {
      session: { connect: () => bench.connect({ useHttp: true, retryTimeoutMs: 500 }) },
      ...{ maxPerRegistry: 4, continueOnError: true, skipMissing: true },
    },
  );
  expect(failed.map(({ error }) => error.message)).toEqual([
    expect.stringMatching(`^${name}: connection refused`) as string,
  ]);
});

it('names an unreachable host once, with the number of its images', async () => {
  const gone = await startFaultRegistry();
  await gone.close();
  serveImage(source, 'ns/small', 'v1', small);
  const errors: string[] = [];
  const logger = {
    log: (level: string, message: string) =>
      void (/error|warn/.test(level) && errors.push(`${level} ${message}`)),
    progress: () => undefined,
  };
  const names = [
    `${source.host}/ns/small:v1`,
    ...Array.from({ length: 30 }, (_, i) => `${gone.host}/ns/app${i}:v1`),
  ];
  // One connection, as a run has: its requests share the retry time.
  const connection = bench.connect({ useHttp: true, retryTimeoutMs: 500 });
  const { done, failed } = await transferImages(
    names.map((sourceName) => {
      const targetName = `${target.host}/${sourceName.split('/').slice(1).join('/')}`;
      return {
        source: parseReference(sourceName),
        target: parseReference(targetName),
        sourceName,
        targetName,
      };
    }),
    {
      session: { connect: () => connection, logger },
      ...{ maxPerRegistry: 4, continueOnError: true, skipMissing: true },
    },
  );
  expect([done.length, failed.length]).toEqual([1, 30]);
  expect(errors).toHaveLength(2);
  expect(errors[0]).toMatch(new RegExp(`^error ${gone.host}/ns/app\\d+:v1: connection refused`));
  expect(errors[1]).toMatch(
    new RegExp(`^warn ${gone.host}: unreachable for 29 further images: ${gone.host}/.*, …$`),
  );
});

it.each<[string, FaultResponse]>([
  ['a byte at a time', { body: large.layer, drip: { bytes: 1, everyMs: 10 } }],
  ['its header and nothing else', { body: large.layer, drip: { bytes: 0, everyMs: 10_000 } }],
  ['nothing', { hang: true }],
])('gives up an image whose source sends %s, and copies the others', async (_name, respond) => {
  serveBoth();
  source.on({ path: `/v2/ns/large/blobs/${largeLayer}`, respond });
  const connection = bench.connect({
    ...{ useHttp: true, idleTimeoutMs: 300, retryTimeoutMs: 2_000 },
    ...{ maxAttempts: 2, retryBaseDelayMs: 1 },
  });
  const report = await run({ session: { connect: () => connection } });
  expect(report.done.map(({ transfer }) => transfer.targetName)).toEqual(['target ns/small']);
  expect(report.failed).toMatchObject([{ error: { code: 'NETWORK' } }]);
  expect(await tagged()).toEqual(['ns/small']);
  // A later run needs no other state than the target's.
  source.on({ path: `/v2/ns/large/blobs/${largeLayer}`, respond: { body: large.layer } });
  expect((await run()).failed).toEqual([]);
  expect(await tagged()).toEqual(['ns/large', 'ns/small']);
});
