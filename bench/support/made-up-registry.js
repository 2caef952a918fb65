// A registry of images that are made up as they are asked for, and one that takes everything and keeps only names.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';

const digestOf = (text) => `sha256:${createHash('sha256').update(text).digest('hex')}`;
const manifestType = 'application/vnd.oci.image.manifest.v1+json';

/** Images `image/0:v1` and so on, each with a configuration and a layer of its own and a layer that 50 share. */
export function makeUpImages(count) {
  const images = new Map();
  const blobs = new Map();
  for (let i = 0; i < count; i++) {
    const blob = (text, mediaType) => {
      const digest = digestOf(text);
      blobs.set(digest, text);
      return { mediaType, digest, size: text.length };
    };
    const layerType = 'application/vnd.oci.image.layer.v1.tar+gzip';
    const manifest = JSON.stringify({
      schemaVersion: 2,
      mediaType: manifestType,
      config: blob(
        `{"architecture":"amd64","os":"linux","i":${i}}`,
        'application/vnd.oci.image.config.v1+json',
      ),
      layers: [blob(`layer ${i}`, layerType), blob(`shared ${Math.floor(i / 50)}`, layerType)],
    });
    images.set(`image/${i}`, { manifest, digest: digestOf(manifest) });
  }
  return { images, blobs };
}

/** Serves images, or with none of them what it is given; counts what it is asked. */
export async function serveMadeUp({ images, blobs } = { images: new Map(), blobs: new Map() }) {
  const counts = {};
  /** Sizes of what it was sent, by repository and digest or tag. */
  const stored = new Map();
  let uploads = 0;
  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://x');
    const [, name, kind, last] =
      /^\/v2\/(.+)\/(manifests|blobs\/uploads|blobs|tags)\/(.*)$/.exec(url.pathname) ?? [];
    const what = url.searchParams.has('mount') ? 'mount' : kind;
    counts[`${request.method} ${what}`] = (counts[`${request.method} ${what}`] ?? 0) + 1;
    const answer = (status, headers = {}, body = '') => {
      response.writeHead(status, { 'content-length': Buffer.byteLength(body), ...headers });
      response.end(request.method === 'HEAD' ? undefined : body);
    };
    const hash = createHash('sha256');
    let size = 0;
    request.on('data', (chunk) => {
      hash.update(chunk);
      size += chunk.length;
    });
    request.on('end', () => {
      const image = images.get(name);
      if (kind === 'manifests' && request.method === 'PUT') {
        const digest = `sha256:${hash.digest('hex')}`;
        stored.set(`${name} ${digest}`, size).set(`${name} ${last}`, size);
        return answer(201, { 'docker-content-digest': digest });
      }
      if (kind === 'tags') {
        if (blobs.size > 0 || stored.has(`${name} v1`))
          return answer(200, {}, JSON.stringify({ name, tags: ['v1'] }));
        return answer(404, {}, JSON.stringify({ errors: [{ code: 'NAME_UNKNOWN' }] }));
      }
      if (kind === 'blobs/uploads') {
        const digest = url.searchParams.get('mount') ?? url.searchParams.get('digest');
        const from = url.searchParams.get('from') ?? name;
        const isThere = request.method === 'PUT' || stored.has(`${from} ${digest}`);
        if (!isThere) return answer(202, { location: `/v2/${name}/blobs/uploads/${++uploads}` });
        stored.set(`${name} ${digest}`, request.method === 'PUT' ? size : stored.get(`${from} ${digest}`));
        return answer(201, { 'docker-content-digest': digest });
      }
      if (image && kind === 'manifests' && ['v1', image.digest].includes(last)) {
        const headers = { 'content-type': manifestType, 'docker-content-digest': image.digest };
        const isStored = blobs.size > 0 || stored.has(`${name} ${last}`);
        if (isStored)
          return answer(200, { ...headers, 'content-length': image.manifest.length }, image.manifest);
      }
      if (kind === 'blobs' && blobs.has(last)) return answer(200, {}, blobs.get(last));
      const length = stored.get(`${name} ${last}`);
      if (request.method === 'HEAD' && length !== undefined) return answer(200, { 'content-length': length });
      return answer(404);
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${server.address().port}`;
  return {
    host,
    /** What it was asked since the last time, e.g. `{'GET manifests': 1}`. */
    takeCounts() {
      const taken = { ...counts };
      for (const key of Object.keys(counts)) delete counts[key];
      return taken;
    },
    stop: () => server.closeAllConnections() ?? server.close(),
  };
}
