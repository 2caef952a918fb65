import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../../../src/cli/main.js';
import { mediaTypes } from '../../../src/oci/image/types.js';
import { type FaultRegistry, startFaultRegistry } from '../../support/fault-registry.js';
import { bytesOf, descriptorOf } from '../../support/images.js';
import { smallBundle } from '../../support/small-bundle.js';
import { rawTar } from '../../support/tar.js';
import { directoryWith } from '../../support/temporary.js';
import { createWorld } from './world.js';

let server: FaultRegistry;
beforeAll(async () => {
  server = await startFaultRegistry();
});
afterAll(() => server.close());

/** Larger than what is checked as a whole before any of it is used, also when compressed. */
const padding = Array.from({ length: 40_000 }, (_, i) =>
  ((i * 2_654_435_761) % 4_294_967_296).toString(36),
).join('');
const contents = {
  catalog: {
    labels: { 'operators.operatorframework.io.index.configs.v1': '/configs' },
    files: {
      'configs/catalog.json': JSON.stringify({ schema: 'olm.package', name: 'widget', defaultChannel: 'a' }),
      'configs/other.json': JSON.stringify({ schema: 'other', padding }),
    },
  },
  bundle: {
    labels: { 'operators.operatorframework.io.bundle.package.v1': 'widget' },
    files: { ...smallBundle({ annotations: { padding } }) },
  },
};

/** How a layer arrives damaged. */
const damages: Record<string, (layer: Buffer) => Buffer> = {
  'a flipped bit': (layer) => {
    const copy = Buffer.from(layer);
    copy[Math.floor(copy.length / 2)] = (copy[Math.floor(copy.length / 2)] as number) ^ 4;
    return copy;
  },
  'a flipped bit in a header': (layer) => {
    const copy = Buffer.from(layer);
    copy[1] = (copy[1] as number) ^ 4;
    return copy;
  },
  'a byte too few': (layer) => layer.subarray(0, -1),
  'a byte too many': (layer) => Buffer.concat([layer, Buffer.from([0])]),
  'the page of a portal': () => Buffer.from('<html>please sign in</html>'),
};
const compressions = { gzip: gzipSync, plain: (bytes: Buffer) => bytes };

const cases = (['catalog', 'bundle'] as const).flatMap((kind) =>
  (['gzip', 'plain'] as const).flatMap((compression) =>
    Object.keys(damages).map((damage) => ({ kind, compression, damage })),
  ),
);

let count = 0;

/** Serves an image whose layer arrives damaged the first `times` times; returns its reference. */
function serveDamaged({ kind, compression, damage }: (typeof cases)[number], times: number): string {
  const { labels, files } = contents[kind];
  const layer = compressions[compression](
    rawTar(Object.entries(files).map(([name, content]) => ({ name, content }))),
  );
  const config = bytesOf({ architecture: 'amd64', os: 'linux', config: { Labels: labels } });
  const repository = `damaged/${count++}`;
  const digest = server.serveBlob(repository, layer);
  server.serveBlob(repository, config);
  const layers = [descriptorOf(layer)];
  server.serveManifest(
    repository,
    'v1',
    bytesOf({
      schemaVersion: 2,
      mediaType: mediaTypes.ociManifest,
      config: descriptorOf(config, mediaTypes.ociConfig),
      layers,
    }),
  );
  const body = (damages[damage] as (layer: Buffer) => Buffer)(layer);
  server.on({
    path: `/v2/${repository}/blobs/${digest}`,
    times,
    respond: { body, chunked: !damage.includes('portal') },
  });
  return `${server.host}/${repository}:v1`;
}

async function render(reference: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const world = createWorld({ temporaryDirectory: await directoryWith() });
  const code = await run(['render', reference, '--use-http'], world);
  return { code, stdout: world.stdout.text, stderr: world.stderr.text };
}

describe('cli: layers that arrive damaged', () => {
  it.each(cases)('are read again: $kind, $compression, $damage', async (one) => {
    const reference = serveDamaged(one, 1);
    const { code, stdout, stderr } = await render(reference);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('"name": "widget');
    expect((await render(reference)).stdout).toBe(stdout);
  });

  it.each(cases.filter(({ damage }) => damage !== 'a byte too few'))(
    'fail with the digest after three attempts: $kind, $compression, $damage',
    async (one) => {
      const { code, stdout, stderr } = await render(serveDamaged(one, Infinity));
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/content has digest sha256:|expected \d+ bytes, got/);
    },
  );
});
