/** A world of releases on loopback: registry, update service and signature store. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { layerOf } from '../../src/archive/tar-writer.js';
import { type BuiltImage, buildImage } from '../../src/oci/image/image-builder.js';
import { type FaultRegistry, startFaultRegistry } from './fault-registry.js';
import { graphText, imageReferences } from './releases.js';

const run = promisify(execFile);

export interface WorldRelease {
  version: string;
  /** `registry/release@sha256:…` */
  payload: string;
  digest: string;
  /** Digests of its components by name. */
  components: Record<string, string>;
}

export interface ReleaseWorld {
  registry: FaultRegistry;
  /** What the update service answers, by channel. */
  graphs: Map<string, string>;
  /** What the signature store has, by digest. */
  signatures: Map<string, Buffer>;
  /** Requests to both, as paths with queries. */
  asked: string[];
  /** Variables that make opmate use this world. */
  environment: Record<string, string>;
  keyFile: string;
  /** Serves a release image and its components, signed with the key of the world. */
  addRelease(version: string, changes?: { files?: Record<string, string> }): Promise<WorldRelease>;
  sign(digest: string, tag: string, key?: string): Promise<Buffer>;
  close(): Promise<void>;
}

const key = 'releases@example.com';
export const strangerKey = 'stranger@example.com';

export async function startReleaseWorld(): Promise<ReleaseWorld> {
  const home = await mkdtemp(path.join(tmpdir(), 'opmate-releases-'));
  const gpg = (...args: string[]) => run('gpg', ['--homedir', home, '--batch', '--quiet', '--yes', ...args]);
  for (const one of [key, strangerKey])
    await gpg('--passphrase', '', '--quick-generate-key', one, 'rsa2048', 'sign', 'never');
  const keyFile = path.join(home, 'key.asc');
  await gpg('--armor', '--output', keyFile, '--export', key);
  const registry = await startFaultRegistry();
  const graphs = new Map<string, string>();
  const signatures = new Map<string, Buffer>();
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    asked.push(`${url.pathname}${url.search}`);
    const [, hex] = /^\/signatures\/sha256=([0-9a-f]{64})\/signature-1$/.exec(url.pathname) ?? [];
    const channel = url.searchParams.get('channel') ?? '';
    const body =
      url.pathname === '/graph' ? (graphs.get(channel) ?? graphText([])) : signatures.get(`sha256:${hex}`);
    response.writeHead(body === undefined ? 404 : 200).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const serve = (repository: string, tag: string | undefined, image: BuiltImage): string => {
    registry.serveBlob(repository, image.config);
    for (const { bytes } of image.layers) registry.serveBlob(repository, bytes);
    registry.serveManifest(repository, tag, image.manifest);
    return image.descriptor.digest;
  };
  const sign = async (digest: string, tag: string, by = key): Promise<Buffer> => {
    const text = path.join(home, 'text');
    await writeFile(
      text,
      JSON.stringify({
        critical: {
          image: { 'docker-manifest-digest': digest },
          type: 'atomic container signature',
          identity: { 'docker-reference': `${registry.host}/demo/ocp-release:${tag}` },
        },
        optional: { creator: 'test' },
      }),
    );
    await gpg('--passphrase', '', '--local-user', by, '--output', `${text}.sig`, '--sign', text);
    return readFile(`${text}.sig`);
  };
  return {
    ...{ registry, graphs, signatures, asked, keyFile, sign },
    environment: {
      UPDATE_URL_OVERRIDE: `${address}/graph`,
      OCP_SIGNATURE_URL: `${address}/signatures/`,
      OCP_SIGNATURE_VERIFICATION_PK: keyFile,
    },
    async addRelease(version, { files } = {}) {
      const components: Record<string, string> = {};
      for (const name of ['etcd', 'pod']) {
        const layer = await layerOf([
          { path: `usr/bin/${name}`, content: Buffer.from(`${name} ${version}`) },
        ]);
        components[name] = serve('demo/art', undefined, await buildImage({ layers: [layer] }));
      }
      // The usual case: two components are one image.
      components['tools'] = components['pod'] as string;
      const images = Object.fromEntries(
        Object.entries(components).map(([name, digest]) => [name, `${registry.host}/demo/art@${digest}`]),
      );
      const content = files ?? { 'release-manifests/image-references': imageReferences(version, images) };
      const layers = [
        await layerOf([{ path: 'etc/os-release', content: Buffer.from('test') }]),
        await layerOf(
          Object.entries(content).map(([name, text]) => ({ path: name, content: Buffer.from(text) })),
        ),
      ];
      const digest = serve('demo/ocp-release', `${version}-x86_64`, await buildImage({ layers }));
      signatures.set(digest, await sign(digest, `${version}-x86_64`));
      return { version, digest, components, payload: `${registry.host}/demo/ocp-release@${digest}` };
    },
    async close() {
      server.close();
      await registry.close();
      await run('gpgconf', ['--homedir', home, '--kill', 'all']).catch(() => undefined);
      await rm(home, { recursive: true, force: true });
    },
  };
}
