/** Charts, releases, graph data and catalogs are mirrored from servers that cut, refuse and stall. */
import { readFile, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { layerOf, writeTar } from '../../src/archive/tar-writer.js';
import { mirrorImageSet } from '../../src/api/mirror.js';
import { openSession } from '../../src/api/session.js';
import { buildImage } from '../../src/oci/image/image-builder.js';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { useSandbox } from '../support/command-line.js';
import { failureOf } from '../support/connect.js';
import { type Damage, type FaultRegistry } from '../support/fault-registry.js';
import { serveOperatorSet } from '../support/operator-set.js';
import { type ReleaseWorld, startReleaseWorld } from '../support/release-world.js';
import { graphText } from '../support/releases.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
let world: ReleaseWorld;
let source: FaultRegistry;
/** Content by path that is no registry's. */
const files = new Map<string, Buffer>();
let target: Registry;
let run = 0;

async function pack(content: Record<string, string>): Promise<Buffer> {
  const entries = Object.entries(content).map(([name, text]) => ({ path: name, content: Buffer.from(text) }));
  const chunks: Buffer[] = [];
  for await (const chunk of writeTar(entries)) chunks.push(chunk as Buffer);
  return gzipSync(Buffer.concat(chunks));
}

beforeAll(async () => {
  world = await startReleaseWorld();
  source = world.registry;
  const { catalog } = await serveOperatorSet(source);
  const image = await buildImage({ layers: [await layerOf([{ path: 'a', content: Buffer.from('a') }])] });
  source.serveBlob('acme/portal', image.config);
  for (const { bytes } of image.layers) source.serveBlob('acme/portal', bytes);
  source.serveManifest('acme/portal', 'v1', image.manifest);
  const pod = `apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: "${source.host}/acme/portal:v1"}]}\n`;
  const chart = await pack({
    'portal/Chart.yaml': 'apiVersion: v2\nname: portal\nversion: 1.0.0\n',
    'portal/templates/pod.yaml': pod,
  });
  const indexed = { name: 'portal', version: '1.0.0', urls: ['portal-1.0.0.tgz'] };
  files.set(
    '/charts/index.yaml',
    Buffer.from(JSON.stringify({ apiVersion: 'v1', entries: { portal: [indexed] } })),
  );
  files.set('/charts/portal-1.0.0.tgz', chart);
  const release = await world.addRelease('4.1.0');
  const graph = graphText(['4.1.0'], [], { payloads: { '4.1.0': release.payload }, channels: 'stable-4.1' });
  files.set('/graph', Buffer.from(graph));
  const signature = `/signatures/${release.digest.replace(':', '=')}/signature-1`;
  files.set(signature, world.signatures.get(release.digest) as Buffer);
  files.set(
    '/graph-data.tar.gz',
    await pack({ version: '1.0.0\n', 'channels/stable-4.1.yaml': 'name: stable-4.1\n' }),
  );
  source.on({
    method: 'GET',
    path: /^\/(?:charts|graph|signatures|graph-data)/,
    respond: ({ path: asked }) => {
      const body = files.get(asked.split('?', 1)[0] as string);
      return body === undefined ? { status: 404 } : { body };
    },
  });
  await sandbox.write({
    'set.yaml': `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  platform:
    graph: true
    channels:
    - name: stable-4.1
  operators:
  - catalog: ${catalog}
  helm:
    repositories:
    - name: main
      url: ${source.origin}/charts
      charts:
      - name: portal
        version: 1.0.0
`,
  });
});
afterAll(() => world.close());
beforeEach(async () => {
  await replaceTarget();
  return async () => {
    source.repair();
    await target.close();
  };
});

async function replaceTarget(): Promise<void> {
  target = await startRegistry({ directory: at(`target-${++run}`) });
}

/** Mirrors the set in the workspace of a name, with hardly any waiting. */
async function mirror(workspace: string, idleTimeoutMs = 30_000) {
  const session = await openSession({
    environment: {
      ...{ ...world.environment, UPDATE_URL_OVERRIDE: `${source.origin}/graph` },
      OCP_SIGNATURE_URL: `${source.origin}/signatures/`,
    },
    homeDirectory: at('home'),
    temporaryDirectory: sandbox.temporary,
    workingDirectory: sandbox.work,
    registry: { useHttp: true, retryBaseDelayMs: 1, maxAttempts: 4, idleTimeoutMs },
  });
  try {
    return await mirrorImageSet('set.yaml', `docker://${new URL(target.url).host}/m`, session, {
      ...{ workspace, graphData: `${source.origin}/graph-data.tar.gz` },
      graphBase: `${source.host}/demo/ocp-release:4.1.0-x86_64`,
    });
  } finally {
    await session.close();
  }
}

const lockOf = (workspace: string): Promise<string> =>
  readFile(at(workspace, 'working-dir', 'opmate.lock.json'), 'utf8');
const places = /^\/(?:charts|graph|signatures)|\/(?:manifests|blobs)\//;

describe('mirror -c of a catalog, a chart and a release', () => {
  it('mirrors the same from sources that break each response twice', async () => {
    await mirror('whole');
    const expected = await lockOf('whole');
    for (const how of ['cut body', 'flipped bit', 'reset', 'status 503'] satisfies Damage[]) {
      await rm(at('broken'), { recursive: true, force: true });
      await target.close();
      await replaceTarget();
      source.repair();
      // A flipped bit of a file without digest is its content.
      source.damage(how === 'flipped bit' ? /\/(?:manifests|blobs)\// : places, how, 2);
      const { report } = await mirror('broken');
      expect({ how, failed: report.failed, missing: report.missing }).toEqual({
        how,
        failed: [],
        missing: [],
      });
      expect({ how, lock: await lockOf('broken') }).toEqual({ how, lock: expected });
      expect(await readdir(sandbox.temporary)).toEqual([]);
    }
  });

  it('requests again what hangs', async () => {
    await mirror('before');
    source.damage(/^\/(?:charts|graph|signatures)/, 'hanging body', 1);
    expect((await mirror('hung', 1000)).report.failed).toEqual([]);
    expect(await lockOf('hung')).toBe(await lockOf('before'));
  });

  it.each([
    ['/charts/portal-1.0.0.tgz', 'chart main/portal 1.0.0'],
    ['/graph-data.tar.gz', 'graph data'],
    ['/graph', 'channel stable-4.1 (amd64)'],
  ])('fails if %s never arrives, names it, and writes nothing', async (file, subject) => {
    const only = new RegExp(`^${file.replaceAll('.', '\\.')}(?:\\?|$)`);
    source.damage(only, 'cut body', 5);
    const error = await failureOf(mirror(`cut-${run}`));
    expect(error).toMatchObject({ code: 'NETWORK' });
    expect(error.message).toContain(subject);
    expect(error.message).toMatch(/connection cut after \d+ of \d+ bytes \(after 5 attempts\)/);
    await expect(lockOf(`cut-${run}`)).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await readdir(sandbox.temporary)).toEqual([]);
    // The next run gets it.
    expect((await mirror(`cut-${run}`)).report.failed).toEqual([]);
  });

  it('gives up a chart that arrives at 1 B/s', async () => {
    source.damage(/portal-1\.0\.0\.tgz/, '1 B/s', 9);
    const error = await failureOf(mirror('slow', 1500));
    expect(error).toMatchObject({ code: 'NETWORK' });
    expect(error.message).toMatch(/chart main\/portal 1\.0\.0: .*(?:too slow|nothing received)/);
  });
});
