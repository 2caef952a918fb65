import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { hasDockerRegistry, serveDockerRegistry } from './support/docker-registry.js';
import { measure, opmate } from './support/measure.js';

export const summary =
  'mirroring a release of 190 components that is there already, against curl and to the request';

const components = 190;
/** Of the time that curl takes to read the manifests of the release at the source and to ask the target for them. */
const maxRatio = 8;
const layerType = 'application/vnd.oci.image.layer.v1.tar+gzip';
const configType = 'application/vnd.oci.image.config.v1+json';
const manifestType = 'application/vnd.oci.image.manifest.v1+json';

export async function run() {
  if (!hasDockerRegistry || spawnSync('gpg', ['--version']).status !== 0) {
    console.log('  skipped: docker-registry and gpg are needed');
    return true;
  }
  const directory = mkdtempSync(path.join(tmpdir(), 'opmate-bench-release-'));
  const at = (name) => path.join(directory, name);
  const source = await serveDockerRegistry(at('source'), { accessLog: true });
  const target = await serveDockerRegistry(at('target'));
  try {
    const release = await pushRelease(source.host, at);
    const environment = sign(release, source.host, at);
    writeFileSync(
      at('set.yaml'),
      'kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  platform:\n    channels: [{name: stable-4.1}]\n',
    );
    const args = ['mirror', '--use-http', '-c', at('set.yaml'), `docker://${target.host}/m`];
    const mirror = (workspace) =>
      measure(opmate, [...args, '--workspace', `file://${at(workspace)}`], environment);
    await mirror('first');
    const before = manifestReads(at).length;
    const { seconds, megabytes } = await mirror('again');
    const reads = manifestReads(at).slice(before);
    const isOnce = new Set(reads).size === reads.length && reads.length === components + 1;
    const curl = timeCurl(release, source.host, target.host, at);
    const ratio = seconds / curl;
    const good = isOnce && ratio <= maxRatio;
    console.log(
      `  ${components} components: ${seconds.toFixed(2)} s, ${ratio.toFixed(1)} times curl (limit ${maxRatio}), ` +
        `peak ${megabytes.toFixed(0)} MB, ${reads.length} manifests read${isOnce ? ', each once' : ''}${good ? '' : '  EXCEEDED'}`,
    );
    return good;
  } finally {
    source.stop();
    target.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

const digestOf = (bytes) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

async function pushBlob(host, repository, bytes) {
  const digest = digestOf(bytes);
  const begun = await globalThis.fetch(`http://${host}/v2/${repository}/blobs/uploads/`, { method: 'POST' });
  const url = new URL(begun.headers.get('location'), `http://${host}`);
  url.searchParams.set('digest', digest);
  const done = await globalThis.fetch(url, { method: 'PUT', body: bytes });
  if (done.status !== 201) throw new Error(`${url}: ${done.status}`);
  return { digest, size: bytes.length };
}

async function pushImage(host, repository, tag, layer) {
  const config = Buffer.from(
    JSON.stringify({ architecture: 'amd64', os: 'linux', rootfs: { type: 'layers', diff_ids: [] } }),
  );
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: manifestType,
    config: { mediaType: configType, ...(await pushBlob(host, repository, config)) },
    layers: [{ mediaType: layerType, ...(await pushBlob(host, repository, layer)) }],
  });
  const digest = digestOf(manifest);
  const url = `http://${host}/v2/${repository}/manifests/${tag ?? digest}`;
  const done = await globalThis.fetch(url, {
    method: 'PUT',
    body: manifest,
    headers: { 'content-type': manifestType },
  });
  if (done.status !== 201) throw new Error(`${url}: ${done.status}`);
  return digest;
}

async function pushRelease(host, at) {
  const tags = [];
  for (let i = 0; i < components; i++) {
    const digest = await pushImage(host, 'demo/art', undefined, Buffer.from(`component ${i}`));
    tags.push({ name: `part-${i}`, from: { kind: 'DockerImage', name: `${host}/demo/art@${digest}` } });
  }
  mkdirSync(at('payload/release-manifests'), { recursive: true });
  writeFileSync(
    at('payload/release-manifests/image-references'),
    JSON.stringify({ kind: 'ImageStream', metadata: { name: '4.1.0' }, spec: { tags } }),
  );
  const layer = execFileSync('tar', ['-czf', '-', '-C', at('payload'), 'release-manifests']);
  const digest = await pushImage(host, 'demo/ocp-release', '4.1.0-x86_64', layer);
  return { digest, images: [...tags.map(({ from }) => from.name), `${host}/demo/ocp-release@${digest}`] };
}

/** Signs the release and writes its update graph; returns the variables that name both. */
function sign({ digest }, host, at) {
  const home = at('gnupg');
  mkdirSync(home, { mode: 0o700 });
  const gpg = (...args) =>
    execFileSync('gpg', ['--homedir', home, '--batch', '--quiet', '--yes', '--passphrase', '', ...args]);
  gpg('--quick-generate-key', 'demo@example.com', 'rsa2048', 'sign', 'never');
  gpg('--output', at('key'), '--export');
  const critical = {
    image: { 'docker-manifest-digest': digest },
    type: 'atomic container signature',
    identity: { 'docker-reference': `${host}/demo/ocp-release:4.1.0-x86_64` },
  };
  writeFileSync(at('text'), JSON.stringify({ critical, optional: {} }));
  const store = at(`signatures/${digest.replace(':', '=')}`);
  mkdirSync(store, { recursive: true });
  gpg('--output', path.join(store, 'signature-1'), '--sign', at('text'));
  spawnSync('gpgconf', ['--homedir', home, '--kill', 'all']);
  const nodes = [{ version: '4.1.0', payload: `${host}/demo/ocp-release@${digest}` }];
  writeFileSync(at('graph.json'), JSON.stringify({ nodes, edges: [], conditionalEdges: [] }));
  return {
    UPDATE_URL_OVERRIDE: `file://${at('graph.json')}`,
    OCP_SIGNATURE_URL: `file://${at('signatures')}/`,
    OCP_SIGNATURE_VERIFICATION_PK: at('key'),
  };
}

/** Manifests by digest that the source was asked for, in order. */
function manifestReads(at) {
  const log = readFileSync(path.join(at('source'), 'access.log'), 'latin1');
  return [...log.matchAll(/"GET (\/v2\/\S+\/manifests\/sha256:[0-9a-f]{64}) /g)].map(([, name]) => name);
}

/** Seconds that curl takes for one request per image and registry, several at once. */
function timeCurl({ images }, source, target, at) {
  const urls = images.flatMap((image) => {
    const [, repository, digest] = /^[^/]+\/(.+)@(.+)$/.exec(image);
    const own = repository === 'demo/art' ? 'm/openshift/release' : 'm/openshift/release-images';
    return [
      `http://${source}/v2/${repository}/manifests/${digest}`,
      `http://${target}/v2/${own}/manifests/${digest}`,
    ];
  });
  const config = urls.map((url) => `url = "${url}"\noutput = "/dev/null"\n`).join('');
  writeFileSync(at('curl.conf'), `header = "Accept: ${manifestType}"\nfail\nsilent\n${config}`);
  const begun = performance.now();
  execFileSync('curl', ['--parallel', '--parallel-max', '24', '-K', at('curl.conf')], { stdio: 'ignore' });
  return (performance.now() - begun) / 1000;
}
