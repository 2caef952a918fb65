import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readArchiveIndex } from '../../src/oci/archive-set/archive-index.js';
import { mediaTypes } from '../../src/oci/image/types.js';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { bytesOf, descriptorOf, indexOf, serveImage, smallImage } from '../support/images.js';
import { type OperatorSet, serveOperatorSet } from '../support/operator-set.js';

const sandbox = useSandbox();
let source: FaultRegistry;
let operators: OperatorSet;
let target: Registry;

beforeAll(async () => {
  source = await startFaultRegistry();
  operators = await serveOperatorSet(source);
  target = await startRegistry({ directory: path.join(sandbox.work, 'registry') });
  await sandbox.write({
    'set.yaml': `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: ${operators.catalog}
    packages: [{name: widget}]
`,
  });
  sign('acme/proxy:1');
});
afterAll(async () => {
  await source.close();
  await target.close();
});

const tagOf = (image: string): string => `${operators.digests.get(image)?.replace(':', '-')}.sig`;

/** Puts a signature beside an image. */
function sign(image: string): void {
  const [repository = ''] = image.split(':');
  serveImage(source, repository, tagOf(image), smallImage({ text: `signature of ${image}` }));
}

const mirror = (...args: string[]) => sandbox.run(['mirror', '--use-http', '-c', 'set.yaml', ...args]);
const at = (name: string): string => `docker://${new URL(target.url).host}/${name}`;
async function has(name: string, image: string): Promise<boolean> {
  const [repository = ''] = image.split(':');
  const answer = await fetch(`${target.url}/v2/${name}/${repository}/manifests/${tagOf(image)}`);
  return answer.ok;
}

describe('signatures of an image set', () => {
  it('are included in a plan and copied with its lock, without later ones', async () => {
    const plan = async (to: string, ...args: string[]) => {
      const output = ['-o', 'json', '--use-http', '-c', 'set.yaml', '--workspace', `file://${to}`];
      const { code, stdout } = await sandbox.run(['mirror', 'plan', ...output, ...args, at(to)]);
      expect(code).toBe(0);
      return JSON.parse(stdout) as { images: number; manifests: number; blobs: number; bytes: number };
    };
    const locked = (to: string, ...args: string[]) =>
      mirror('--locked', '--workspace', `file://${to}`, ...args, at(to));
    const { blobs, bytes, ...counts } = await plan('planned');
    const bare = await plan('bare', '--remove-signatures');
    expect(counts).toMatchObject({ images: bare.images + 1, manifests: bare.manifests + 1 });
    expect(bytes).toBeGreaterThan(bare.bytes);
    sign('acme/app:1.0.0');
    const result = await locked('planned');
    expect(result).toMatchObject({ code: 0 });
    expect(result.stderr).toContain(`to copy: ${blobs} blobs`);
    expect(await has('planned', 'acme/proxy:1')).toBe(true);
    expect(await has('planned', 'acme/app:1.0.0')).toBe(false);
    expect(await locked('planned', '--remove-signatures')).toMatchObject({ code: 2 });
    expect(await locked('bare', '--remove-signatures')).toMatchObject({ code: 0 });
    expect(await has('bare', 'acme/proxy:1')).toBe(false);
  });

  it('are copied with such a lock to an archive and from it', async () => {
    await sandbox.run(['mirror', 'plan', '--use-http', '-c', 'set.yaml', 'file://carry']);
    expect(await mirror('--locked', 'file://carry')).toMatchObject({ code: 0 });
    const args = ['mirror', '--use-http', '--from', 'file://carry', at('carried')];
    expect(await sandbox.run(args)).toMatchObject({ code: 0 });
    expect(await has('carried', 'acme/proxy:1')).toBe(true);
  });

  it('are copied if the image exists already', async () => {
    expect(await mirror(at('later'))).toMatchObject({ code: 0 });
    expect(await has('later', 'acme/app:1.2.0')).toBe(false);
    sign('acme/app:1.2.0');
    expect(await mirror(at('later'))).toMatchObject({ code: 0 });
    expect(await has('later', 'acme/app:1.2.0')).toBe(true);
  });

  it('attached as referrers belong to their image in every count of an archive', async () => {
    const digest = operators.digests.get('acme/proxy:1') as string;
    const empty = Buffer.from('{}');
    source.serveBlob('acme/proxy', empty);
    const config = descriptorOf(empty, 'application/vnd.oci.empty.v1+json');
    const subject = { mediaType: mediaTypes.ociManifest, digest, size: 1 };
    const artifact = bytesOf({
      ...{ schemaVersion: 2, mediaType: mediaTypes.ociManifest, artifactType: 'application/example' },
      ...{ config, layers: [config], subject },
    });
    source.serveManifest('acme/proxy', undefined, artifact);
    const referrers = indexOf([descriptorOf(artifact, mediaTypes.ociManifest)]);
    source.serveManifest('acme/proxy', digest.replace(':', '-'), referrers.bytes, mediaTypes.ociIndex);

    const written = await mirror('file://referred');
    const [, images] = /archive sha256:\w+: (\d+ images)/.exec(written.stderr) ?? [];
    const index = await readArchiveIndex(path.join(sandbox.work, 'referred'));
    expect(index.images.filter(({ tag }) => tag === undefined)).toHaveLength(1);
    expect(images).toBe(`${index.images.length - 1} images`);
    const verified = await sandbox.run(['archive', 'verify', 'referred']);
    expect(verified.stdout).toContain(`: ${images}, `);
    const copied = await sandbox.run(['mirror', '--use-http', '--from', 'file://referred', at('referred')]);
    expect(copied.stderr).toContain(`info: ${images}, `);
    expect(copied.stderr).toContain(`info: mirrored ${images}: `);
  });
});
