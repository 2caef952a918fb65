import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ImageManifest } from '../../src/oci/image/types.js';
import { mediaTypes } from '../../src/oci/image/types.js';
import { startRegistry } from '../../src/serve/registry/registry.js';
import { useSandbox } from '../support/command-line.js';
import { hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { bytesOf, descriptorOf } from '../support/images.js';
import { startRegistryProxy } from '../support/registry-proxy.js';

const sandbox = useSandbox();
const names = Array.from({ length: 8 }, (_, i) => `ns/app${i}`);
/** How often a run is killed; more by hand. */
const kills = Number(process.env['OPMATE_TEST_KILLS'] ?? 4);
const manifests = new Map<string, Buffer>();
let source: FaultRegistry;

beforeAll(async () => {
  source = await startFaultRegistry();
  const shared = gzipSync(randomBytes(300_000));
  for (const [i, name] of names.entries()) {
    const own = gzipSync(randomBytes(i % 2 === 0 ? 200_000 : 2_000));
    const config = bytesOf({ architecture: 'amd64', os: 'linux', config: { Labels: { name } } });
    for (const blob of [shared, own, config]) source.serveBlob(name, blob);
    const manifest = bytesOf({
      schemaVersion: 2,
      mediaType: mediaTypes.ociManifest,
      config: descriptorOf(config, mediaTypes.ociConfig),
      layers: [descriptorOf(shared), descriptorOf(own)],
    });
    manifests.set(name, manifest);
    source.serveManifest(name, 'v1', manifest);
  }
});
afterAll(() => source.close());

const startOwn = async (name: string) => {
  const registry = await startRegistry({ directory: path.join(sandbox.work, name) });
  return { host: new URL(registry.url).host, close: () => registry.close() };
};

/** Everything that a registry has of the images. */
async function contentOf(host: string): Promise<object> {
  const get = async (what: string): Promise<Buffer | number> => {
    const answer = await fetch(`http://${host}/v2/${what}`, { headers: { accept: mediaTypes.ociManifest } });
    return answer.ok ? Buffer.from(await answer.arrayBuffer()) : answer.status;
  };
  const content: Record<string, unknown> = {};
  for (const name of names) {
    content[`${name} tags`] = String(await get(`${name}/tags/list`)).trim();
    const manifest = await get(`${name}/manifests/v1`);
    content[name] = String(manifest);
    const { config, layers } = JSON.parse(String(manifest)) as ImageManifest;
    for (const { digest } of [config, ...layers]) {
      const blob = await get(`${name}/blobs/${digest}`);
      content[`${name} ${digest}`] = typeof blob === 'number' ? blob : descriptorOf(blob).digest;
    }
  }
  return content;
}

const mapping = (host: string): string =>
  names.map((name) => `${source.host}/${name}:v1=${host}/${name}:v1\n`).join('');
const mirror = (host: string) => sandbox.start(['mirror', '-f', '-', '--insecure'], { stdin: mapping(host) });

/** Numbers that look random and are the same every time. */
function* spread(most: number): Generator<number> {
  for (let seed = 20_261_121; ;) {
    seed = (seed * 48_271) % 2_147_483_647;
    yield 1 + (seed % most);
  }
}

describe.each([
  ["opmate's registry", startOwn],
  ...(hasDockerRegistry ? [['docker-registry', () => startDockerRegistry()] as const] : []),
] as const)('mirror to %s, killed', (_, start) => {
  it('completes when repeated after an interruption, and sends no blob twice', async () => {
    const [undisturbed, registry] = [await start('undisturbed'), await start('target')];
    const target = await startRegistryProxy(registry.host);
    try {
      expect(await mirror(undisturbed.host).result).toMatchObject({ code: 0 });
      const points = spread(60);
      let killed = 0;
      for (;;) {
        const run = mirror(target.host);
        const last = target.requests.length + (points.next().value as number);
        target.disturb(() => {
          if (killed < kills && target.requests.length === last) run.child.kill('SIGKILL');
          return undefined;
        });
        const { code, stderr } = await run.result;
        if (code === 0) break;
        expect({ code, stderr }).toMatchObject({ code: null });
        killed++;
        // Nothing has its name before it is whole.
        for (const name of names) {
          const answer = await fetch(`http://${registry.host}/v2/${name}/manifests/v1`, {
            headers: { accept: mediaTypes.ociManifest },
          });
          if (answer.ok) expect(Buffer.from(await answer.arrayBuffer())).toEqual(manifests.get(name));
        }
      }
      expect(killed).toBeGreaterThan(0);
      expect(await contentOf(registry.host)).toEqual(await contentOf(undisturbed.host));
      expect(target.uploaded().sort()).toEqual([...new Set(target.uploaded())].sort());
    } finally {
      await target.close();
      await registry.close();
      await undisturbed.close();
    }
  });
});
