import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  choosePlatform,
  formatPlatform,
  parsePlatform,
  resolveImage,
} from '../../../../src/oci/image/platform.js';
import { createRegistryRepository } from '../../../../src/oci/registry/registry-client.js';
import { type Descriptor, mediaTypes } from '../../../../src/oci/image/types.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import { type FaultRegistry, startFaultRegistry } from '../../../support/fault-registry.js';
import { indexOf, serveImage, smallImage } from '../../../support/images.js';

const host = parsePlatform('linux/amd64');
let count = 0;

function entry(platform?: string, extra: Partial<Descriptor> = {}): Descriptor {
  const digest = `sha256:${String(++count).padStart(64, '0')}`;
  const known = platform === undefined ? {} : { platform: parsePlatform(platform) };
  return { mediaType: mediaTypes.ociManifest, digest, size: 2, ...known, ...extra };
}

const attestation = (): Descriptor => entry('unknown/unknown');

function choice(entries: Descriptor[], platform?: string, hostPlatform = 'linux/amd64'): string | undefined {
  const chosen = choosePlatform(entries, {
    platform: platform === undefined ? undefined : parsePlatform(platform),
    hostPlatform: parsePlatform(hostPlatform),
  });
  return chosen && (chosen.platform ? formatPlatform(chosen.platform) : 'any');
}

describe('oci/platform', () => {
  it('reads platforms, under other tools’ names for architectures too', () => {
    expect(parsePlatform('linux/arm64/v8')).toEqual({ os: 'linux', architecture: 'arm64', variant: 'v8' });
    expect(parsePlatform('Linux/x86_64')).toEqual({ os: 'linux', architecture: 'amd64' });
    for (const text of ['', 'amd64', 'a/b/c/d', 'linux/', 'linux/a b']) {
      expect(() => parsePlatform(text)).toThrow('invalid platform');
    }
  });

  it('takes the asked platform or nothing', () => {
    const entries = [entry('linux/amd64'), entry('linux/arm64')];
    expect(choice(entries, 'linux/arm64')).toBe('linux/arm64');
    expect(choice(entries, 'linux/s390x')).toBeUndefined();
    expect(choice([entry('linux/amd64')], 'linux/arm64')).toBeUndefined();
    expect(choice([entry()], 'linux/arm64')).toBe('any');
  });

  it('ignores what is no manifest, whatever platform it names', () => {
    const hidden = entry('linux/amd64', { mediaType: 'application/octet-stream' });
    expect(choice([hidden, entry('linux/arm64')], 'linux/amd64')).toBeUndefined();
    expect(choice([hidden])).toBeUndefined();
  });

  it('takes the host’s, else linux/amd64, else the only one', () => {
    const entries = [entry('linux/arm64'), entry('linux/amd64')];
    expect(choice(entries, undefined, 'linux/arm64')).toBe('linux/arm64');
    expect(choice(entries, undefined, 'darwin/arm64')).toBe('linux/arm64');
    expect(choice(entries, undefined, 'linux/s390x')).toBe('linux/amd64');
    expect(choice([entry('linux/ppc64le'), attestation()])).toBe('linux/ppc64le');
    expect(choice([entry('linux/ppc64le'), entry('linux/s390x')])).toBeUndefined();
    expect(choice([attestation()])).toBeUndefined();
    expect(choice([])).toBeUndefined();
  });

  it('skips attestations by annotation', () => {
    const annotations = { 'vnd.docker.reference.type': 'attestation-manifest' };
    expect(choice([entry('linux/amd64', { annotations }), entry('linux/s390x')])).toBe('linux/s390x');
  });

  it('knows the usual variant of an architecture', () => {
    expect(choice([entry('linux/arm64/v8')], 'linux/arm64')).toBe('linux/arm64/v8');
    expect(choice([entry('linux/arm64')], 'linux/arm64/v8')).toBe('linux/arm64');
    expect(choice([entry('linux/arm/v6'), entry('linux/arm/v7')], 'linux/arm')).toBe('linux/arm/v7');
    expect(choice([entry('linux/arm/v6')], 'linux/arm')).toBe('linux/arm/v6');
    expect(choice([entry('linux/arm/v6')], 'linux/arm/v7')).toBeUndefined();
    expect(choice([entry('linux/amd64/v3'), entry('linux/amd64')], 'linux/amd64')).toBe('linux/amd64');
  });
});

describe('oci/platform, following indexes', () => {
  let server: FaultRegistry;
  let bench: Workbench;
  beforeAll(async () => {
    server = await startFaultRegistry();
    bench = await openWorkbench();
  });
  afterAll(async () => {
    await bench.close();
    await server.close();
  });
  const repository = () =>
    createRegistryRepository({
      connection: bench.connect({ useHttp: true }),
      registry: server.host,
      repository: 'ns/name',
    });

  function serveIndex(tag: string | undefined, manifests: Descriptor[]): Descriptor {
    const { bytes, descriptor } = indexOf(manifests);
    server.serveManifest('ns/name', tag, bytes, mediaTypes.ociIndex);
    return descriptor;
  }

  it('finds an image in a nested index', async () => {
    const image = smallImage({ architecture: 's390x' });
    serveImage(server, 'ns/name', undefined, image);
    const inner = serveIndex(undefined, [{ ...image.descriptor, platform: parsePlatform('linux/s390x') }]);
    serveIndex('nested', [attestation(), inner]);
    const found = await resolveImage(repository(), 'nested', { hostPlatform: host });
    expect(found.descriptor.digest).toBe(image.descriptor.digest);
    expect(found.platform).toEqual({ os: 'linux', architecture: 's390x' });
  });

  it('reads no more than it needs', async () => {
    const image = smallImage();
    serveImage(server, 'ns/name', undefined, image);
    serveIndex('direct', [
      { ...entry(), mediaType: mediaTypes.ociIndex },
      { ...image.descriptor, platform: host },
    ]);
    const before = server.requests.length;
    await resolveImage(repository(), 'direct', { hostPlatform: host });
    expect(server.requests.length - before).toBe(2);
  });

  it('refuses indexes nested deeper than four, and too many of them', async () => {
    let deep = serveIndex(undefined, [entry('linux/s390x')]);
    for (let i = 0; i < 4; i++) deep = serveIndex(i === 3 ? 'deep' : undefined, [deep]);
    const failure = await failureOf(resolveImage(repository(), 'deep', { hostPlatform: host }));
    expect(failure).toMatchObject({
      code: 'LIMIT',
      message: expect.stringContaining('nested deeper than 4'),
    });
    const many = Array.from({ length: 5 }, (_, i) =>
      serveIndex(
        undefined,
        Array.from({ length: 2500 }, () => entry(undefined, { size: i })),
      ),
    );
    serveIndex('many', many);
    const tooMany = await failureOf(resolveImage(repository(), 'many', { hostPlatform: host }));
    expect(tooMany).toMatchObject({
      code: 'LIMIT',
      message: expect.stringContaining('more than 10000 index entries'),
    });
  });

  it('says what an index has when it lacks what was asked for', async () => {
    serveIndex('other', [entry('linux/s390x'), entry('linux/ppc64le'), attestation()]);
    const failure = await failureOf(resolveImage(repository(), 'other', { hostPlatform: host }));
    expect(failure.message).toBe(
      `${server.host}/ns/name:other: no image for linux/amd64, only linux/s390x, linux/ppc64le`,
    );
    expect(failure.hint).toBe('select one with session.platform');
    serveIndex('empty', []);
    const empty = await failureOf(resolveImage(repository(), 'empty', { hostPlatform: host }));
    expect(empty.message).toContain('no images');
  });

  it('holds what an index lists to the size and kind that it gives', async () => {
    const image = smallImage();
    serveImage(server, 'ns/name', undefined, image);
    serveIndex('size', [{ ...image.descriptor, size: 7 }]);
    const size = await failureOf(resolveImage(repository(), 'size', { hostPlatform: host }));
    expect(size.code).toBe('DIGEST');
    serveIndex('kind', [{ ...image.descriptor, mediaType: mediaTypes.ociIndex }]);
    const kind = await failureOf(resolveImage(repository(), 'kind', { hostPlatform: host }));
    expect(kind.message).toContain('differs from the announced');
  });
});
