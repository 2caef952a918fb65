import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { getBlobs, readContents, withReferrers } from '../../../../src/oci/image/contents.js';
import {
  createRegistryRepository,
  type RegistryRepository,
} from '../../../../src/oci/registry/registry-client.js';
import { type Descriptor, mediaTypes } from '../../../../src/oci/image/types.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import { type FaultRegistry, startFaultRegistry } from '../../../support/fault-registry.js';
import { bytesOf, descriptorOf, indexOf, smallImage } from '../../../support/images.js';

let bench: Workbench;
let server: FaultRegistry;
beforeEach(async () => {
  bench = await openWorkbench();
  server = await startFaultRegistry();
});
afterEach(async () => {
  await bench.close();
  await server.close();
});

const open = (): RegistryRepository =>
  createRegistryRepository({
    connection: bench.connect({ useHttp: true, maxAttempts: 1 }),
    registry: server.host,
    repository: 'ns/name',
  });
const serve = (bytes: Buffer, tag?: string, mediaType: string = mediaTypes.ociManifest): Descriptor => {
  server.serveManifest('ns/name', tag, bytes, mediaType);
  return descriptorOf(bytes, mediaType);
};
const serveIndex = (entries: Descriptor[], tag?: string): Descriptor =>
  serve(indexOf(entries).bytes, tag, mediaTypes.ociIndex);
const refer = (to: Descriptor, by: Descriptor): void =>
  void server.on({
    path: `/v2/ns/name/referrers/${to.digest}`,
    respond: { headers: { 'content-type': mediaTypes.ociIndex }, body: indexOf([by]).bytes },
  });

describe('oci/contents', () => {
  it('puts what is listed before what lists it, and referrers after the root', async () => {
    const [first, second] = [smallImage({ text: 'a' }), smallImage({ text: 'b' })];
    const images = [first, second].map(({ bytes }) => serve(bytes));
    const inner = serveIndex([images[1] as Descriptor]);
    const root = serveIndex([inner, ...images], 'v1');
    const signature = serve(bytesOf({ ...first.manifest, subject: root }));
    refer(root, signature);
    const contents = await readContents(open(), 'v1', { referrers: true });
    expect(contents.root).toEqual(root);
    const order = contents.manifests.map(({ descriptor }) => descriptor.digest);
    expect(order).toEqual([images[1], inner, images[0], root, signature].map((one) => one?.digest));
    expect(getBlobs(contents).size).toBe(3);
    expect(await withReferrers(open(), await readContents(open(), 'v1'))).toEqual(contents);
  });

  it('ends where referrers name each other, or a server says so of anything', async () => {
    const image = smallImage();
    const root = serve(image.bytes, 'v1');
    const other = serve(bytesOf({ ...image.manifest, subject: root }));
    refer(root, other);
    refer(other, root);
    expect((await readContents(open(), 'v1', { referrers: true })).manifests).toHaveLength(2);
  });

  it('refuses indexes that are nested without end', async () => {
    let deepest = serve(smallImage().bytes);
    const all = [deepest];
    for (let i = 0; i < 20; i++) all.push((deepest = serveIndex([deepest])));
    serveIndex([deepest], 'deep');
    expect(await failureOf(readContents(open(), 'deep'))).toMatchObject({ code: 'LIMIT' });
    // Each is found near the top, and still lies as deep.
    serveIndex(all, 'wide');
    expect(await failureOf(readContents(open(), 'wide'))).toMatchObject({ code: 'LIMIT' });
  });

  it('asks for no blob, and says which manifest is not there', async () => {
    const missing = descriptorOf('{}', mediaTypes.ociManifest);
    serveIndex([missing], 'v1');
    const failure = await failureOf(readContents(open(), 'v1'));
    expect(failure).toMatchObject({ code: 'NOT_FOUND' });
    expect(failure.message).toContain(missing.digest);
    expect(server.requests.some(({ path }) => path.includes('/blobs/'))).toBe(false);
  });
});
