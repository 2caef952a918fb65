// Pushes images of one large layer each through the library: PUSH-LARGE HOST BYTES NAME… Prints the layers' digests.
import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { openSession, parseReference } from '../../dist/index.js';
import { openTarget } from '../../dist/oci/image/open.js';

const [host, bytes, ...names] = process.argv.slice(2);
const part = randomBytes(1024 * 1024);

/** Bytes that differ from image to image, and never lie in memory as a whole. */
function* contentOf(name) {
  for (let at = 0; at < Number(bytes); at += part.length) {
    part.write(`${name} ${at}`.padEnd(100));
    yield Buffer.from(part.subarray(0, Math.min(part.length, Number(bytes) - at)));
  }
}

const session = await openSession({
  environment: {},
  homeDirectory: '/nonexistent',
  temporaryDirectory: '/nonexistent',
  architecture: process.arch,
  registry: { useHttp: true },
});
for (const name of names) {
  const { repository } = await openTarget(parseReference(`${host}/${name}`), session);
  const hash = createHash('sha256');
  for (const chunk of contentOf(name)) hash.update(chunk);
  const layer = {
    mediaType: 'application/vnd.oci.image.layer.v1.tar',
    digest: `sha256:${hash.digest('hex')}`,
    size: Number(bytes),
  };
  const text = Buffer.from(JSON.stringify({ architecture: 'amd64', os: 'linux', name }));
  const config = {
    mediaType: 'application/vnd.oci.image.config.v1+json',
    digest: `sha256:${createHash('sha256').update(text).digest('hex')}`,
    size: text.length,
  };
  await repository.putBlob(layer, () => Readable.from(contentOf(name), { objectMode: false }));
  await repository.putBlob(config, () => Readable.from([text], { objectMode: false }));
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = { schemaVersion: 2, mediaType, config, layers: [layer] };
  await repository.putManifest('v1', Buffer.from(JSON.stringify(manifest)), mediaType);
  console.log(layer.digest);
}
await session.close();
