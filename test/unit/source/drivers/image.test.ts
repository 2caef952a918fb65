import { readdir } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { imageLabels } from '../../../../src/model/image-labels.js';
import { mediaTypes } from '../../../../src/oci/image/types.js';
import type { ImagePlace } from '../../../../src/source/place.js';
import { createAuthority } from '../../../support/certificates.js';
import { type Workbench, failureOf, openWorkbench } from '../../../support/connect.js';
import { type FaultRegistry, basic, startFaultRegistry } from '../../../support/fault-registry.js';
import { bytesOf, descriptorOf } from '../../../support/images.js';
import { type RawEntry, rawTar } from '../../../support/tar.js';
import { contentOptions, placedAt, type Opening, openWith } from '../content/content-world.js';

let bench: Workbench;
let options: Opening;
const servers: FaultRegistry[] = [];

beforeEach(async () => {
  bench = await openWorkbench();
  options = await contentOptions(bench);
});

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
  await bench.close();
});

/** A registry with the image `ns/bundle:v1` of one layer; its digest. */
async function registryWith(
  entries: RawEntry[],
  { labels = {}, ...more }: { labels?: Record<string, string>; tls?: { cert: string; key: string } } = {},
): Promise<{ server: FaultRegistry; digest: string }> {
  const server = await startFaultRegistry(more);
  servers.push(server);
  const config = bytesOf({ architecture: 'amd64', os: 'linux', config: { Labels: labels } });
  const layer = gzipSync(rawTar(entries));
  const manifest = bytesOf({
    schemaVersion: 2,
    mediaType: mediaTypes.ociManifest,
    config: descriptorOf(config, mediaTypes.ociConfig),
    layers: [descriptorOf(layer)],
  });
  server.serveBlob('ns/bundle', config);
  server.serveBlob('ns/bundle', layer);
  return { server, digest: server.serveManifest('ns/bundle', 'v1', manifest) };
}

async function read(
  source: Omit<ImagePlace, 'kind'>,
  more: Partial<Opening> = {},
): Promise<{ names: string[]; ref: string | undefined }> {
  const opened = await openWith([placedAt('src', { kind: 'image', ...source })], { ...options, ...more });
  try {
    return { names: (await readdir(opened.directory)).sort(), ref: opened.pins[0]?.ref };
  } finally {
    await opened.close();
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  }
}

const entries: RawEntry[] = [
  { name: 'manifests/a.yaml', content: 'a' },
  { name: 'etc/passwd', content: 'x' },
];

describe('source/content-image', () => {
  it('takes credentials of the source alone, and pins the digest', async () => {
    const { server, digest } = await registryWith(entries);
    server.requireBasic('me', 's3cret');
    const ref = `${server.host}/ns/bundle:v1`;
    expect(await failureOf(read({ ref }))).toMatchObject({ code: 'AUTH' });
    const auth = basic('me', 's3cret').slice('Basic '.length);
    const config = JSON.stringify({ auths: { [server.host]: { auth } } });
    const found = await read({ ref, credentials: { type: 'docker', config } });
    expect(found).toEqual({ names: ['etc', 'manifests'], ref: `${server.host}/ns/bundle@${digest}` });
    const other = { type: 'basic', username: 'me', password: 's3cret' } as const;
    const error = await failureOf(read({ ref, credentials: other }));
    expect(error).toMatchObject({ code: 'INVALID' });
    expect(error.message).not.toContain('s3cret');
    expect(await readdir(options.temporaryDirectory)).toEqual([]);
  });

  it('unpacks what is wanted, and reads no more once it is pinned by digest', async () => {
    const { server, digest } = await registryWith(entries);
    const ref = `${server.host}/ns/bundle@${digest}`;
    expect(await read({ ref }, { roots: ['manifests'], requireDigest: true })).toEqual({
      names: ['manifests'],
      ref,
    });
    expect(server.requests.some(({ path }) => path.includes('/manifests/v1'))).toBe(false);
  });

  it('trusts the certificate of the source, or any where it says so', async () => {
    const authority = createAuthority();
    const { server } = await registryWith(entries, { tls: authority.issue() });
    const ref = `${server.host}/ns/bundle:v1`;
    const more: Partial<Opening> = {
      connect: () => bench.connect({ maxAttempts: 1 }),
      connectAnew: (changes) => Promise.resolve(bench.connect({ maxAttempts: 1, ...changes })),
    };
    expect((await failureOf(read({ ref }, more))).message).toMatch(/certificate/i);
    const names = ['etc', 'manifests'];
    expect(await read({ ref, certificateData: authority.cert }, more)).toMatchObject({ names });
    expect(await read({ ref, insecureSkipTlsVerify: true }, more)).toMatchObject({ names });
  });

  it('refuses catalogs, and links that lead nowhere', async () => {
    const catalog = await registryWith(entries, { labels: { [imageLabels.configs]: '/configs' } });
    expect(await failureOf(read({ ref: `${catalog.server.host}/ns/bundle:v1` }))).toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringContaining('is a catalog, not a bundle') as string,
    });
    const link = await registryWith([
      ...entries,
      { name: 'manifests/b.yaml', flag: '2', linkName: '../../../home/secret' },
    ]);
    const error = await failureOf(read({ ref: `${link.server.host}/ns/bundle:v1` }));
    expect(error.message).toContain('src: manifests/b.yaml');
  });
});
