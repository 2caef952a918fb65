// Mirrors images of one platform by node:http alone, as few requests as can be: bare-mirror.js SOURCE TARGET NS/NAME:TAG…
// Nothing is retried, resumed, authorized or written down; what opmate does beyond that costs the rest.
import { createHash } from 'node:crypto';
import { Agent, request } from 'node:http';

const [source, target, ...names] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: 64 });
const accept =
  'application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json';
const imagesAtOnce = 24;

function send(host, method, path, { body, headers = {} } = {}) {
  const [hostname, port] = host.split(':');
  const length = body === undefined ? {} : { 'content-length': String(body.length) };
  return new Promise((resolve, reject) => {
    const sent = request(
      { hostname, port, method, path, agent, headers: { ...length, ...headers } },
      (response) => {
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const { statusCode: status, headers: received } = response;
          if (status < 300) resolve({ headers: received, bytes: Buffer.concat(chunks) });
          else reject(new Error(`${method} ${path}: ${status}`));
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

async function eachOf(items, work) {
  let next = 0;
  const worker = async () => {
    while (next < items.length) await work(items[next++]);
  };
  await Promise.all(Array.from({ length: imagesAtOnce }, worker));
}

async function copyBlob(repository, digest) {
  const { bytes } = await send(source, 'GET', `/v2/${repository}/blobs/${digest}`);
  const actual = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  if (actual !== digest) throw new Error(`${digest}: is ${actual}`);
  const begun = await send(target, 'POST', `/v2/${repository}/blobs/uploads/`, { body: Buffer.alloc(0) });
  const { pathname, search } = new URL(begun.headers.location, `http://${target}`);
  await send(target, 'PUT', `${pathname}${search}&digest=${encodeURIComponent(digest)}`, { body: bytes });
}

const manifests = [];
await eachOf(names, async (name) => {
  const [repository, tag] = name.split(':');
  const { headers, bytes } = await send(source, 'GET', `/v2/${repository}/manifests/${tag}`, {
    headers: { accept },
  });
  manifests.push({ repository, tag, bytes, type: headers['content-type'] });
});
const copied = new Map();
await eachOf(manifests, async ({ repository, tag, bytes, type }) => {
  const { config, layers } = JSON.parse(bytes);
  const copies = [config, ...layers].map(({ digest }) => {
    const key = `${repository} ${digest}`;
    if (!copied.has(key)) copied.set(key, copyBlob(repository, digest));
    return copied.get(key);
  });
  await Promise.all(copies);
  const path = `/v2/${repository}/manifests/${tag}`;
  await send(target, 'PUT', path, { body: bytes, headers: { 'content-type': type } });
});
agent.destroy();
