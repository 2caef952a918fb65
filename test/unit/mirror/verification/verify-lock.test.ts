import { createPrivateKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type LockedImage, getLockedName } from '../../../../src/mirror/lock/lock.js';
import { type VerifiedSet, verifyLock } from '../../../../src/mirror/verification/verify-lock.js';
import { readContents } from '../../../../src/oci/image/contents.js';
import { buildImage, pushImageIndex } from '../../../../src/oci/image/image-builder.js';
import { openLayout } from '../../../../src/oci/layout/layout.js';
import { signImage } from '../../../../src/oci/signatures/sign-image.js';
import { directoryWith } from '../../../support/temporary.js';
import { pemPair } from '../../../support/sigstore.js';

const acceptAll = {
  name: 'policy.json',
  default: [{ type: 'insecureAcceptAnything' as const }],
  transports: new Map(),
};

/** Judges two components, of which the second is not signed. */
async function judge(kind: 'component' | 'additional', versions: string[]): Promise<string[]> {
  const layout = await openLayout(await directoryWith(), { create: true });
  const key = createPrivateKey(pemPair().privateKey);
  const images: LockedImage[] = [];
  for (const tag of ['signed', 'unsigned']) {
    const built = [];
    for (const architecture of ['amd64', 'arm64']) {
      built.push(await buildImage({ layers: [], labels: { tag }, platform: { os: 'linux', architecture } }));
    }
    const { digest } = await pushImageIndex(layout, tag, built);
    // As releases are signed: each image, and not their index.
    if (tag === 'signed') {
      for (const one of built)
        await signImage(layout, one.descriptor.digest, { reference: 'quay.io/r/c:x', key });
    }
    images.push({
      ...{ kind, reference: `quay.io/r/c:${tag}`, source: `docker://quay.io/r/c:${tag}` },
      ...{ repository: 'r/c', tag, bundles: [], contents: await readContents(layout, digest) },
    });
  }
  const releases = versions.map((version) => ({ version }));
  const set = { images, catalogs: [], releases: { releases, graphs: [] } } as unknown as VerifiedSet;
  const verdicts = await verifyLock(set, {
    ...{ policy: acceptAll, now: new Date(), maxPerRegistry: 2 },
    open: (_, digest) =>
      Promise.resolve({ repository: layout, reference: digest, close: () => Promise.resolve() }),
    readOpenPgp: () => Promise.resolve([]),
  });
  return images.map((image) => verdicts.get(getLockedName(image))?.status ?? 'none');
}

describe('verifyLock, of releases that a policy accepts', () => {
  it.each([
    [['4.21.0'], 'unsigned'],
    [['4.20.9', '4.22.0-rc.1'], 'unsigned'],
    [['5.0.1'], 'unsigned'],
    [['4.20.9'], 'accepted'],
    [['4.21.0-okd-scos.1'], 'accepted'],
    [[], 'accepted'],
  ])('with %j an unsigned component is %s', async (versions, status) => {
    expect(await judge('component', versions)).toEqual(['accepted', status]);
  });

  it('asks nothing of other images of the set', async () => {
    expect(await judge('additional', ['4.21.0'])).toEqual(['accepted', 'accepted']);
  });
});
