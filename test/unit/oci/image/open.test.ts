import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defaultArchiveLimits } from '../../../../src/archive/limits.js';
import { parseReference } from '../../../../src/core/reference.js';
import { openReference, openTarget } from '../../../../src/oci/image/open.js';
import { mediaTypes } from '../../../../src/oci/image/types.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import { startFaultRegistry } from '../../../support/fault-registry.js';
import { serveImage, smallImage, streamOf } from '../../../support/images.js';
import { rawTar } from '../../../support/tar.js';

let bench: Workbench;
beforeEach(async () => {
  bench = await openWorkbench();
});
afterEach(() => bench.close());

const image = smallImage();
const open = (text: string) =>
  openReference(parseReference(text), { connect: () => bench.connect({ useHttp: true }) });
const target = (text: string) =>
  openTarget(parseReference(text), { connect: () => bench.connect({ useHttp: true }) });

describe('oci/open', () => {
  it('opens a registry’s repository; the digest wins over the tag', async () => {
    const server = await startFaultRegistry();
    try {
      const digest = serveImage(server, 'ns/name', 'v1', image);
      for (const end of [':v1', `@${digest}`, `:gone@${digest}`]) {
        const { repository, reference } = await open(`${server.host}/ns/name${end}`);
        expect(repository.name).toBe(`${server.host}/ns/name`);
        expect((await repository.getManifest(reference)).descriptor.digest).toBe(digest);
      }
    } finally {
      await server.close();
    }
  });

  it('reads what is attached to an image once in a run, missing or not', async () => {
    const server = await startFaultRegistry();
    try {
      const digest = serveImage(server, 'ns/name', 'v1', image);
      const tag = `${digest.replace(':', '-')}`;
      serveImage(server, 'ns/name', `${tag}.sig`, image);
      const session = { connect: () => bench.connect({ useHttp: true }), signatureReads: new Map() };
      for (let i = 0; i < 2; i++) {
        const { repository } = await openReference(parseReference(`${server.host}/ns/name:v1`), session);
        await repository.getManifest('v1');
        expect((await repository.getManifest(`${tag}.sig`)).descriptor.digest).toBe(digest);
        expect(await failureOf(repository.getManifest(`${tag}.att`))).toMatchObject({ code: 'NOT_FOUND' });
      }
      const requests = server.requests.map(({ path }) => path.split('/').at(-1));
      expect(requests).toEqual(['v1', `${tag}.sig`, `${tag}.att`, 'v1']);
    } finally {
      await server.close();
    }
  });

  it('asks a target itself what is there, not its mirrors', async () => {
    const [server, other] = [await startFaultRegistry(), await startFaultRegistry()];
    try {
      const digest = serveImage(other, 'ns/name', 'v1', image);
      await writeFile(
        join(bench.home, 'registries.conf'),
        `[[registry]]\nlocation = "${server.host}"\n[[registry.mirror]]\nlocation = "${other.host}"\n`,
      );
      const environment = { CONTAINERS_REGISTRIES_CONF: join(bench.home, 'registries.conf') };
      const connection = bench.connect({ useHttp: true, environment });
      const reference = parseReference(`${server.host}/ns/name:v1`);
      const source = await openReference(reference, { connect: () => connection });
      expect((await source.repository.headManifest('v1'))?.digest).toBe(digest);
      const { repository } = await openTarget(reference, { connect: () => connection });
      expect(await repository.headManifest('v1')).toBeUndefined();
      expect(await repository.hasBlob(image.manifest.config)).toBe(false);
    } finally {
      await server.close();
      await other.close();
    }
  });

  it('makes up no tag', async () => {
    const failure = await failureOf(open('quay.io/ns/name'));
    expect(failure).toMatchObject({
      code: 'USAGE',
      message: 'quay.io/ns/name: missing tag or digest',
    });
    expect(await failureOf(target('quay.io/ns/name'))).toMatchObject({ code: 'USAGE' });
  });

  it('writes to a layout and reads it by tag or as its only image', async () => {
    const directory = join(bench.home, 'layout');
    const { repository, reference } = await target(`oci:${directory}:v1`);
    await repository.putBlob(image.manifest.config, () => streamOf(image.config));
    for (const layer of image.manifest.layers) await repository.putBlob(layer, () => streamOf(image.layer));
    await repository.putManifest(reference, image.bytes, mediaTypes.ociManifest);
    for (const end of ['', ':v1', `@${image.descriptor.digest}`]) {
      const opened = await open(`oci:${directory}${end}`);
      expect((await opened.repository.getManifest(opened.reference)).bytes).toEqual(image.bytes);
      await opened.close();
    }
    const missing = await open(`oci:${directory}:v2`);
    expect(await failureOf(missing.repository.getManifest(missing.reference))).toMatchObject({
      code: 'NOT_FOUND',
    });
  });

  it('does not write to archives, nor without a tag', async () => {
    expect(await failureOf(target('oci-archive:x.tar:v1'))).toMatchObject({ code: 'USAGE' });
    expect(await failureOf(target('docker-archive:x.tar:ns/name:v1'))).toMatchObject({ code: 'USAGE' });
    expect(await failureOf(target(`oci:${bench.home}/none`))).toMatchObject({ code: 'USAGE' });
  });

  it('holds compressed archives to the limits that it is given', async () => {
    const path = join(bench.home, 'image.tar.gz');
    await writeFile(path, gzipSync(rawTar([{ name: 'oci-layout', content: Buffer.alloc(100_000) }])));
    for (const transport of ['oci-archive', 'docker-archive']) {
      const reference = parseReference(`${transport}:${path}`);
      for (const [name, value] of [
        ['maxUnpackedSize', 50_000],
        ['maxEntries', 0],
        ['maxRatio', 2],
      ] as const) {
        const failure = await failureOf(
          openReference(reference, {
            connect: () => bench.connect(),
            temporaryDirectory: bench.home,
            limits: { ...defaultArchiveLimits, ratioThreshold: 1000, maxRatio: 10_000, [name]: value },
          }),
        );
        expect(failure).toMatchObject({ code: 'LIMIT' });
      }
    }
  });

  it('says which file is not there', async () => {
    const path = join(bench.home, 'gone.tar');
    for (const transport of ['oci-archive', 'docker-archive']) {
      const failure = await failureOf(open(`${transport}:${path}`));
      expect(failure.code).toBe('NOT_FOUND');
      expect(failure.message).toContain('gone.tar');
    }
    expect(await failureOf(open(`oci:${join(bench.home, 'gone')}`))).toMatchObject({ code: 'NOT_FOUND' });
  });
});
