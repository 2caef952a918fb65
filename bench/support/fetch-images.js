// The reference for images: fetch manifest, configuration and layers of each, eight at a time, and gunzip.
import { Agent, get } from 'node:http';
import { gunzipSync } from 'node:zlib';

const [url, ...references] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true });
const accept = 'application/vnd.oci.image.manifest.v1+json';

function fetchBytes(path) {
  return new Promise((resolve, reject) => {
    get(`${url}/v2/${path}`, { agent, headers: { accept } }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => resolve(Buffer.concat(chunks)));
    }).on('error', reject);
  });
}

let bytes = 0;
const waiting = [...references];
async function worker() {
  for (let reference = waiting.pop(); reference !== undefined; reference = waiting.pop()) {
    const [, name, tag] = /^[^/]+\/(.+):([^:]+)$/.exec(reference);
    const manifest = JSON.parse(await fetchBytes(`${name}/manifests/${tag}`));
    JSON.parse(await fetchBytes(`${name}/blobs/${manifest.config.digest}`));
    for (const layer of manifest.layers)
      bytes += gunzipSync(await fetchBytes(`${name}/blobs/${layer.digest}`)).length;
  }
}
await Promise.all(Array.from({ length: 8 }, worker));
agent.destroy();
console.log(bytes);
