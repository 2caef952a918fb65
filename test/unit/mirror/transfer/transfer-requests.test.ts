import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseReference } from '../../../../src/core/reference.js';
import { pinTransfers, surveyTransfers } from '../../../../src/mirror/transfer/transfer.js';
import { findSignatures } from '../../../../src/mirror/transfer/find-signatures.js';
import { copyTransfers } from '../../../../src/mirror/transfer/copy-transfers.js';
import type { Transfer, TransferOptions } from '../../../../src/mirror/transfer/transfer-types.js';
import { parsePlatform } from '../../../../src/oci/image/platform.js';
import { mediaTypes } from '../../../../src/oci/image/types.js';
import { type Registry, startRegistry } from '../../../../src/serve/registry/registry.js';
import { type Workbench, failureOf, openWorkbench } from '../../../support/connect.js';
import { type FaultRegistry, startFaultRegistry } from '../../../support/fault-registry.js';
import {
  bytesOf,
  descriptorOf,
  indexOf,
  type SmallImage,
  serveImage,
  smallImage,
} from '../../../support/images.js';
import { type RegistryProxy, startRegistryProxy } from '../../../support/registry-proxy.js';

let bench: Workbench;
let source: FaultRegistry;
let registry: Registry;
let target: RegistryProxy;
let options: TransferOptions;

beforeEach(async () => {
  bench = await openWorkbench();
  source = await startFaultRegistry();
  registry = await startRegistry({ directory: join(bench.home, 'registry') });
  target = await startRegistryProxy(new URL(registry.url).host);
  options = {
    session: { connect: () => bench.connect({ useHttp: true, maxAttempts: 1 }) },
    maxPerRegistry: 1,
    continueOnError: false,
    skipMissing: false,
  };
});
afterEach(async () => {
  await target.close();
  await registry.close();
  await source.close();
  await bench.close();
});

const transferOf = (from: string, to = from, more: Partial<Transfer> = {}): Transfer => ({
  source: parseReference(`${source.host}/${from}`),
  target: parseReference(`${target.host}/${to}`),
  sourceName: `source ${from}`,
  targetName: `target ${to}`,
  ...more,
});

/** An image whose second layer is the same in all of them. */
function serveSharing(repository: string): SmallImage {
  return serveSharingAs(repository, 'v1');
}
function serveSharingAs(repository: string, tag: string): SmallImage {
  const text = `${repository}:${tag}`;
  const image = smallImage({ text: `layer of ${text}`, labels: { repository: text } });
  const manifest = { ...image.manifest, layers: [...image.manifest.layers, descriptorOf(base)] };
  const bytes = bytesOf(manifest);
  const whole = { ...image, manifest, bytes, descriptor: descriptorOf(bytes, mediaTypes.ociManifest) };
  source.serveBlob(repository, base);
  serveImage(source, repository, tag, whole);
  return whole;
}
const base = Buffer.from('a layer that all share');

const both = ['amd64', 'arm64'].map((architecture) => smallImage({ architecture }));
const index = indexOf(
  both.map(({ descriptor }, i) => ({
    ...descriptor,
    platform: parsePlatform(['linux/amd64', 'linux/arm64'][i] as string),
  })),
);
function serveIndex(repository: string): void {
  for (const image of both) serveImage(source, repository, undefined, image);
  source.serveManifest(repository, 'v1', index.bytes, mediaTypes.ociIndex);
}

async function copy(transfers: readonly Transfer[]) {
  const { pinned } = await pinTransfers(transfers, options);
  const { surveyed } = await surveyTransfers(pinned, options);
  return { pinned, surveyed, report: await copyTransfers(surveyed, options) };
}

const askedFor = (part: string): number => source.requests.filter(({ path }) => path.includes(part)).length;

describe('mirror/transfer, requests', () => {
  it('reads each manifest once and no blob to know what images consist of', async () => {
    serveIndex('ns/multi');
    serveSharing('ns/one');
    const { pinned } = await pinTransfers([transferOf('ns/multi:v1'), transferOf('ns/one:v1')], options);
    expect(source.requests.map(({ method }) => method)).toEqual(['GET', 'GET', 'GET', 'GET']);
    expect(askedFor('/blobs/')).toBe(0);
    expect(pinned.map(({ contents }) => contents.manifests.length)).toEqual([3, 1]);
    expect(pinned[0]?.contents.manifests.at(-1)?.descriptor.digest).toBe(index.descriptor.digest);
    expect(target.requests).toEqual([]);
  });

  it('asks a repository that is there once a manifest, and once a blob of those that are not there', async () => {
    serveSharing('ns/multi');
    await copy([transferOf('ns/multi:v1', 'ns/multi:other')]);
    serveIndex('ns/multi');
    const { pinned } = await pinTransfers([transferOf('ns/multi:v1')], options);
    target.requests.length = 0;
    const { surveyed } = await surveyTransfers(pinned, options);
    expect(target.counts()).toEqual({ 'GET tags': 1, 'HEAD manifests': 2, 'HEAD blobs': 4 });
    expect(surveyed[0]).toMatchObject({ isTagged: false });
    expect(surveyed[0]?.blobs).toHaveLength(4);
  });

  it('asks a repository without tags for one blob, and for the others where that is there', async () => {
    options = { ...options, maxPerRegistry: 6 };
    const names = Array.from({ length: 12 }, (_, i) => {
      serveSharingAs('ns/a', `v${i}`);
      return transferOf(`ns/a:v${i}`);
    });
    const { pinned } = await pinTransfers(names, options);
    const { surveyed } = await surveyTransfers(pinned, options);
    expect(target.counts()).toEqual({ 'GET tags': 1, 'HEAD blobs': 1 });
    const puts = ({ method, path }: { method: string; path: string }): boolean =>
      method === 'PUT' && path.includes('/manifests/');
    target.disturb((request) => (puts(request) ? { status: 403 } : undefined));
    await failureOf(copyTransfers(surveyed, options));
    const [first] = target.uploaded();
    expect(first).toBe(pinned[0]?.contents.manifests[0]?.blobs[0]?.digest);
    target.disturb(() => undefined);
    await copy(names);
    expect(new Set(target.uploaded()).size).toBe(target.uploaded().length);
  });

  it('asks for everything where the survey is to be exact', async () => {
    serveSharing('ns/a');
    const { pinned } = await pinTransfers([transferOf('ns/a:v1')], options);
    await surveyTransfers(pinned, { ...options, isExact: true });
    expect(target.counts()).toEqual({ 'HEAD manifests': 1, 'HEAD blobs': 3 });
  });

  it.each([
    ['is refused', { status: 403 }],
    ['says nothing of the repository', { status: 404, body: '404 page not found' }],
    [
      'has further pages',
      { status: 200, body: '{"tags":["x"]}', headers: { link: '<?n=1&last=x>; rel="next"' } },
    ],
  ])('asks for each manifest and blob where the list of tags %s', async (_, list) => {
    serveSharing('ns/a');
    target.disturb(({ path }) => (path.includes('/tags/list') ? list : undefined));
    const { surveyed } = await copy([transferOf('ns/a:v1')]);
    expect(surveyed[0]?.blobs).toHaveLength(3);
    const { 'GET tags': lists, 'HEAD manifests': manifests, 'HEAD blobs': blobs } = target.counts();
    // One of the manifests proves that it was stored.
    expect([lists, manifests, blobs]).toEqual([1, 2, 3]);
  });

  it('asks a second time, with what is known, one request a manifest and nothing else', async () => {
    serveIndex('ns/multi');
    serveSharing('ns/one');
    const { pinned } = await copy([transferOf('ns/multi:v1'), transferOf('ns/one:v1')]);
    source.requests.length = target.requests.length = 0;
    const { report } = await copy(pinned);
    expect(report).toMatchObject({ blobs: 0, bytes: 0, failed: [], missing: [] });
    expect(report.done.map(({ digest }) => digest)).toEqual(
      pinned.map(({ contents }) => contents.root.digest),
    );
    expect(target.counts()).toEqual({ 'GET tags': 2, 'HEAD manifests': 4 });
    expect(source.requests).toEqual([]);
  });

  it('sends a blob that many need once, and mounts it elsewhere', async () => {
    const names = [0, 1, 2, 3, 4].map((i) => `ns/app${i}`);
    names.forEach(serveSharing);
    const transfers = names.map((name) => transferOf(`${name}:v1`));
    const { report } = await copy(transfers);
    const { digest } = descriptorOf(base);
    expect(askedFor(digest)).toBe(1);
    expect(target.uploaded().filter((one) => one === digest)).toHaveLength(1);
    expect(target.counts()['POST mount']).toBe(4);
    expect(report.blobs).toBe(11);
  });

  it('lets one wait for the other where both need a blob at the same time', async () => {
    options = { ...options, maxPerRegistry: 6 };
    const names = Array.from({ length: 12 }, (_, i) => `ns/app${i}`);
    names.forEach(serveSharing);
    await copy(names.map((name) => transferOf(`${name}:v1`)));
    expect(askedFor(descriptorOf(base).digest)).toBe(1);
    expect(new Set(target.uploaded()).size).toBe(target.uploaded().length);
  });

  it('mounts what the target has in another repository, and asks no source for it', async () => {
    ['ns/a', 'ns/b'].forEach(serveSharing);
    await copy([transferOf('ns/a:v1')]);
    source.requests.length = target.requests.length = 0;
    await copy([transferOf('ns/a:v1'), transferOf('ns/b:v1')]);
    expect(askedFor(descriptorOf(base).digest)).toBe(0);
    expect(target.counts()['POST mount']).toBe(1);
  });

  it('mounts a blob in a repository once, whatever number of its images need it', async () => {
    options.maxPerRegistry = 6;
    serveSharing('ns/one');
    await copy([transferOf('ns/one:v1')]);
    const names = ['a', 'b', 'c', 'd', 'e'];
    for (const name of names) serveSharingAs('ns/many', name);
    target.requests.length = 0;
    const { report } = await copy(
      ['ns/one:v1', ...names.map((name) => `ns/many:${name}`)].map((name) => transferOf(name)),
    );
    expect(report.done).toHaveLength(6);
    expect(target.counts()['POST mount']).toBe(1);
  });

  it('sends what a registry refuses to mount, and does not try that again', async () => {
    const names = ['ns/a', 'ns/b', 'ns/c'];
    names.forEach(serveSharing);
    target.disturb(({ path }) =>
      path.includes('?mount=')
        ? { status: 202, headers: { location: '/v2/ns/b/blobs/uploads/none' } }
        : undefined,
    );
    const { report } = await copy(names.map((name) => transferOf(`${name}:v1`)));
    expect(report.done).toHaveLength(3);
    expect(target.counts()['POST mount']).toBe(1);
    expect(target.uploaded().filter((one) => one === descriptorOf(base).digest)).toHaveLength(3);
  });

  it('only tags a root that is there under another tag', async () => {
    serveSharing('ns/a');
    await copy([transferOf('ns/a:v1')]);
    source.requests.length = target.requests.length = 0;
    await copy([transferOf('ns/a:v1', 'ns/a:v2')]);
    const proof = { 'PUT manifests': 1, 'HEAD manifests': 1 };
    expect(target.counts()).toEqual({ 'GET tags': 1, 'HEAD blobs': 3, ...proof });
    expect(source.requests).toHaveLength(1);
  });

  it('copies the platforms that are asked for, image by image', async () => {
    serveIndex('ns/multi');
    const platforms = [parsePlatform('linux/arm64')];
    const { pinned } = await pinTransfers([transferOf('ns/multi:v1', 'ns/multi:v1', { platforms })], options);
    const digests = pinned[0]?.contents.manifests.map(({ descriptor }) => descriptor.digest);
    expect(digests).toEqual([both[1]?.descriptor.digest, index.descriptor.digest]);
    expect(askedFor(both[0]?.descriptor.digest as string)).toBe(0);
  });

  it('says what to leave out where a registry takes no index without all its images', async () => {
    serveIndex('ns/multi');
    target.disturb(({ method, path }) => {
      if (method !== 'PUT' || !path.endsWith('/manifests/v1')) return undefined;
      const errors = [{ code: 'MANIFEST_BLOB_UNKNOWN', message: 'blob unknown to registry' }];
      return { status: 400, body: JSON.stringify({ errors }) };
    });
    const platforms = [parsePlatform('linux/arm64')];
    const hint = expect.stringContaining('remove session.platform and platforms') as string;
    const sparse = transferOf('ns/multi:v1', 'ns/multi:v1', { platforms });
    expect(await failureOf(copy([sparse]))).toMatchObject({ code: 'REGISTRY', hint });
    expect((await failureOf(copy([transferOf('ns/multi:v1')]))).hint).not.toEqual(hint);
  });

  it('reads by digest what is not at hand, and notices contents that were changed', async () => {
    const { descriptor } = serveSharing('ns/a');
    const [pinned] = (await pinTransfers([transferOf('ns/a:v1')], options)).pinned;
    if (pinned === undefined) throw new Error('not pinned');
    const [manifest] = pinned.contents.manifests.map((one) => ({ ...one, bytes: undefined }));
    if (manifest === undefined) throw new Error('without manifest');
    const withManifest = (one: typeof manifest): Transfer => ({
      ...pinned,
      contents: { ...pinned.contents, manifests: [one] },
    });
    source.requests.length = 0;
    const fewer = withManifest({ ...manifest, blobs: manifest.blobs.slice(1) });
    expect(await failureOf(copy([fewer]))).toMatchObject({
      code: 'INVALID',
      message: `${source.host}/ns/a@${descriptor.digest}: content does not match the lock`,
    });
    await copy([withManifest(manifest)]);
    expect(askedFor('/manifests/v1')).toBe(0);
    expect(askedFor(`/manifests/${descriptor.digest}`)).toBe(2);
  });

  it('sends what a survey found lacking only where the tag can be given', async () => {
    const { descriptor } = serveSharing('ns/a');
    const wrong = {
      ...transferOf('ns/a:v1'),
      target: parseReference(`${target.host}/ns/a@${digestOfZeros}`),
    };
    expect(await failureOf(copy([wrong]))).toMatchObject({
      code: 'DIGEST',
      message: `target ns/a:v1: cannot be source ns/a:v1, whose digest is ${descriptor.digest}`,
    });
    expect(target.requests).toEqual([]);
  });
});

const digestOfZeros = `sha256:${'0'.repeat(64)}`;

describe('mirror/find-signatures', () => {
  it('finds what is attached by tag to the root and what is below it, and referrers', async () => {
    serveIndex('ns/multi');
    const tagOf = (digest: string): string => `${digest.replace(':', '-')}.sig`;
    const signatures = [index.descriptor, both[1]?.descriptor ?? index.descriptor].map(({ digest }) => {
      const image = smallImage({ text: `signature of ${digest}` });
      serveImage(source, 'ns/multi', tagOf(digest), image);
      return image;
    });
    const referrer = bytesOf({ ...both[0]?.manifest, subject: index.descriptor });
    source.serveManifest('ns/multi', undefined, referrer);
    source.serveManifest(
      'ns/multi',
      index.descriptor.digest.replace(':', '-'),
      indexOf([descriptorOf(referrer, mediaTypes.ociManifest)]).bytes,
      mediaTypes.ociIndex,
    );
    const { pinned } = await pinTransfers([transferOf('ns/multi:v1', 'mirror/multi:v1')], options);
    const found = await findSignatures(pinned, options);
    expect(found.pinned[0]?.contents.manifests).toHaveLength(4);
    expect(found.pinned[0]?.contents.root).toEqual(index.descriptor);
    expect(found.signatures.map(({ targetName }) => targetName).sort()).toEqual(
      [index.descriptor, both[1]?.descriptor ?? index.descriptor]
        .map(({ digest }) => `target mirror/multi:${tagOf(digest)}`)
        .sort(),
    );
    const { report } = await copy([...found.pinned, ...found.signatures]);
    expect(report.done.map(({ digest }) => digest).sort()).toEqual(
      [index, ...signatures].map(({ descriptor }) => descriptor.digest).sort(),
    );
    const again = await findSignatures(pinned, options);
    expect(again.signatures).toHaveLength(2);
  });

  it('asks for no tag that the list of the repository lacks, and for the referrers API once', async () => {
    const connection = bench.connect({ useHttp: true });
    options = { ...options, session: { connect: () => connection } };
    for (const tag of ['v1', 'v2', 'v3']) serveSharingAs('ns/a', tag);
    const names = ['v1', 'v2', 'v3'].map((tag) => transferOf(`ns/a:${tag}`));
    const { pinned } = await pinTransfers(names, options);
    const { digest } = pinned[1]?.contents.root ?? index.descriptor;
    const tag = `${digest.replace(':', '-')}.sig`;
    serveImage(source, 'ns/a', tag, smallImage({ text: 'signature' }));
    const body = JSON.stringify({ name: 'ns/a', tags: ['v1', 'v2', 'v3', tag] });
    source.on({ path: '/v2/ns/a/tags/list', respond: { status: 200, body } });
    source.on({ path: /\/referrers\//, respond: { status: 404, body: '404 page not found' } });
    source.requests.length = 0;
    const { signatures } = await findSignatures(pinned, options);
    expect(signatures.map(({ targetName }) => targetName)).toEqual([`target ns/a:${tag}`]);
    expect([askedFor('/tags/list'), askedFor('/referrers/'), askedFor('/manifests/')]).toEqual([1, 1, 1]);
  });

  it('asks for every tag where the list lacks that of the image itself', async () => {
    const { descriptor } = serveSharing('ns/a');
    const { pinned } = await pinTransfers([transferOf('ns/a:v1')], options);
    const tag = `${descriptor.digest.replace(':', '-')}.sig`;
    serveImage(source, 'ns/a', tag, smallImage({ text: 'signature' }));
    source.on({ path: '/v2/ns/a/tags/list', respond: { status: 200, body: '{"tags":["other"]}' } });
    expect((await findSignatures(pinned, options)).signatures).toHaveLength(1);
  });

  it('takes what cannot be asked for as none', async () => {
    serveSharing('ns/a');
    const { pinned } = await pinTransfers([transferOf('ns/a:v1')], options);
    source.on({ path: /./, respond: { status: 403 } });
    expect(await findSignatures(pinned, options)).toEqual({ pinned, signatures: [] });
  });
});
