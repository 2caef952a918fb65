/** Images mirrored by digest have the tag that lists referrers where a registry has no API for them. */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseReference, type RegistryReference } from '../../../../src/core/reference.js';
import { deleteImages } from '../../../../src/mirror/delete/delete-images.js';
import { toDigestTag } from '../../../../src/mirror/naming/mirror-target.js';
import { pinTransfers, surveyTransfers } from '../../../../src/mirror/transfer/transfer.js';
import { findSignatures } from '../../../../src/mirror/transfer/find-signatures.js';
import { copyTransfers } from '../../../../src/mirror/transfer/copy-transfers.js';
import type { TransferOptions } from '../../../../src/mirror/transfer/transfer-types.js';
import type { Connection } from '../../../../src/oci/registry/connection.js';
import { parsePlatform } from '../../../../src/oci/image/platform.js';
import {
  createRegistryRepository,
  type RegistryRepository,
} from '../../../../src/oci/registry/registry-client.js';
import { type Descriptor, mediaTypes } from '../../../../src/oci/image/types.js';
import { type Registry, startRegistry } from '../../../../src/serve/registry/registry.js';
import { openWorkbench, type Workbench } from '../../../support/connect.js';
import { hasDockerRegistry, startDockerRegistry } from '../../../support/docker-registry.js';
import {
  bytesOf,
  descriptorOf,
  indexOf,
  type SmallImage,
  smallImage,
  streamOf,
} from '../../../support/images.js';

let bench: Workbench;
let source: Registry;
let connection: Connection;
let options: TransferOptions;
let count = 0;

beforeEach(async () => {
  bench = await openWorkbench();
  source = await startRegistry({ directory: join(bench.home, 'source') });
  connection = bench.connect({ useHttp: true, maxAttempts: 1 });
  options = {
    session: { connect: () => connection },
    maxPerRegistry: 2,
    continueOnError: false,
    skipMissing: false,
  };
});
afterEach(async () => {
  await source.close();
  await bench.close();
});

const open = (host: string, repository: string): RegistryRepository =>
  createRegistryRepository({ connection, registry: host, repository });

async function store(repository: RegistryRepository, image: SmallImage): Promise<Descriptor> {
  await repository.putBlob(image.manifest.config, () => streamOf(image.config));
  await repository.putBlob(image.manifest.layers[0] as Descriptor, () => streamOf(image.layer));
  return repository.putManifest(image.descriptor.digest, image.bytes, mediaTypes.ociManifest);
}

const amd64 = smallImage({ architecture: 'amd64' });
const arm64 = smallImage({ architecture: 'arm64' });
const index = indexOf([
  { ...amd64.descriptor, platform: parsePlatform('linux/amd64') },
  { ...arm64.descriptor, platform: parsePlatform('linux/arm64') },
]);

const kinds = {
  'an image': {
    root: amd64.descriptor,
    put: async (at: RegistryRepository) => void (await store(at, amd64)),
  },
  'an index': {
    root: index.descriptor,
    put: async (at: RegistryRepository) => {
      await store(at, amd64);
      await store(at, arm64);
      await at.putManifest(index.descriptor.digest, index.bytes, mediaTypes.ociIndex);
    },
  },
};

/** Stores a signature that refers to a manifest; returns its digest. */
async function sign(at: RegistryRepository, subject: Descriptor, text = 'signature'): Promise<string> {
  const image = smallImage({ text: `${text} of ${subject.digest}` });
  const bytes = bytesOf({ ...image.manifest, artifactType: 'application/x-signature', subject });
  const descriptor = descriptorOf(bytes, mediaTypes.ociManifest);
  return (await store(at, { ...image, bytes, descriptor })).digest;
}

const registries = {
  opmate: async () => {
    const started = await startRegistry({ directory: join(bench.home, 'target') });
    return { host: new URL(started.url).host, close: () => started.close() };
  },
  ...(hasDockerRegistry && { 'docker-registry': () => startDockerRegistry() }),
};

describe.each(Object.entries(registries))('images mirrored by digest to %s', (name, start) => {
  let target: { host: string; close(): Promise<void> };
  beforeAll(async () => {
    if (name === 'docker-registry') target = await start();
  });
  beforeEach(async () => {
    if (name === 'opmate') target = await start();
    return name === 'opmate' ? () => target.close() : undefined;
  });
  afterAll(() => (name === 'docker-registry' ? target.close() : undefined));

  describe.each(Object.entries(kinds))('%s', (_, { root, put }) => {
    const tag = toDigestTag(root.digest);
    let repository = '';
    let from: RegistryRepository;
    let to: RegistryRepository;
    beforeEach(async () => {
      repository = `ns/app${count++}`;
      from = open(new URL(source.url).host, repository);
      to = open(target.host, repository);
      await put(from);
    });

    async function mirror(): Promise<void> {
      const text = `${new URL(source.url).host}/${repository}@${root.digest}`;
      const transfer = {
        source: parseReference(text),
        target: parseReference(`${target.host}/${repository}:${tag}`),
        sourceName: text,
        targetName: `${target.host}/${repository}:${tag}`,
      };
      const { pinned } = await pinTransfers([transfer], options);
      const found = await findSignatures(pinned, options);
      const { surveyed } = await surveyTransfers([...found.pinned, ...found.signatures], options);
      await copyTransfers(surveyed, options);
    }
    const deleteAll = (signatures = true) => {
      const reference = parseReference(`${target.host}/${repository}:${tag}`) as RegistryReference;
      const item = { reference } as Parameters<typeof deleteImages>[0][number];
      return deleteImages([item], {
        session: { connect: () => connection },
        maxPerRegistry: 2,
        signatures,
        keep: { reasonFor: () => undefined } as unknown as Parameters<typeof deleteImages>[1]['keep'],
        dryRun: false,
        refusesShared: false,
      });
    };
    const referrers = async (subject = root) =>
      (await open(target.host, repository).listReferrers(subject.digest)).map(({ digest }) => digest).sort();
    const tagged = async () => (await to.headManifest(tag))?.digest;

    it('are no referrers of themselves, and are deleted with no more than themselves', async () => {
      await mirror();
      await to.putManifest('kept', amd64.bytes, mediaTypes.ociManifest);
      expect(await referrers()).toEqual([]);
      if (root !== amd64.descriptor) {
        expect(await deleteAll()).toMatchObject({ failed: [], done: [{ digest: root.digest }] });
        expect((await to.headManifest('kept'))?.digest).toBe(amd64.descriptor.digest);
      } else expect((await deleteAll()).done).toHaveLength(1);
      expect(await to.headManifest(root.digest)).toBeUndefined();
    });

    it('keep their tag and their signatures, made before the first run', async () => {
      const signature = await sign(from, root);
      await mirror();
      expect(await tagged()).toBe(root.digest);
      expect(await referrers()).toEqual([signature]);
      await mirror();
      expect(await tagged()).toBe(root.digest);
      expect(await referrers()).toEqual([signature]);
    });

    it('keep their tag and their signatures, made between two runs', async () => {
      const first = await sign(from, root, 'first');
      await mirror();
      const second = await sign(from, root, 'second');
      await mirror();
      expect(await tagged()).toBe(root.digest);
      expect(await referrers()).toEqual([first, second].sort());
    });

    it('keep what others listed as their referrers before they came', async () => {
      const signature = await sign(to, root, 'made at the target');
      await mirror();
      expect(await tagged()).toBe(root.digest);
      expect(await referrers()).toEqual([signature]);
    });

    it('are deleted with their signatures and the signatures of these, and nothing is left', async () => {
      const signature = await sign(from, root);
      const bytes = (await from.getManifest(signature)).bytes;
      const above = await sign(from, descriptorOf(bytes, mediaTypes.ociManifest));
      await mirror();
      const report = await deleteAll();
      expect(report.failed).toEqual([]);
      expect(report.done.map(({ digest }) => digest).sort()).toEqual([root.digest, signature, above].sort());
      for (const digest of [root.digest, signature, above])
        expect(await to.headManifest(digest)).toBeUndefined();
      expect(await to.listTags().catch(() => [])).toEqual([]);
    });

    it('are served to the next registry with their signatures', async () => {
      const signature = await sign(from, root);
      await mirror();
      const next = await startRegistry({ directory: join(bench.home, 'next') });
      try {
        const text = `${target.host}/${repository}:${tag}`;
        const host = new URL(next.url).host;
        const onward = {
          source: parseReference(text),
          target: parseReference(`${host}/${repository}:${tag}`),
          sourceName: text,
          targetName: `${host}/${repository}:${tag}`,
        };
        const { pinned } = await findSignatures((await pinTransfers([onward], options)).pinned, options);
        await copyTransfers((await surveyTransfers(pinned, options)).surveyed, options);
        const there = open(host, repository);
        expect((await there.listReferrers(root.digest)).map(({ digest }) => digest)).toEqual([signature]);
        expect((await there.headManifest(tag))?.digest).toBe(root.digest);
      } finally {
        await next.close();
      }
    });
  });

  it('says where referrers are listed that share their tag with an image', async () => {
    const repository = `ns/said${count++}`;
    const at = createRegistryRepository({
      connection,
      registry: target.host,
      repository,
      logger: {
        log: (level, message) => void bench.logged.push(`${level}: ${message}`),
        progress: () => undefined,
      },
    });
    await store(at, amd64);
    const tag = toDigestTag(amd64.descriptor.digest);
    await at.putManifest(tag, amd64.bytes, mediaTypes.ociManifest);
    await sign(at, amd64.descriptor, 'one');
    await sign(at, amd64.descriptor, 'two');
    const said = `warn: ${target.host}/${repository}: tag ${tag} names an image, so its referrers are listed under ${tag}.referrers`;
    const told = bench.logged.filter((line) => line.startsWith('warn'));
    expect(told).toEqual(name === 'opmate' ? [] : [said]);
  });

  it('heals a tag that an older version made a list of an index and its signature', async () => {
    const repository = `ns/healed${count++}`;
    const at = open(target.host, repository);
    await kinds['an index'].put(at);
    const signature = await sign(at, index.descriptor);
    const tag = toDigestTag(index.descriptor.digest);
    const entry = {
      ...(await at.headManifest(signature)),
      artifactType: 'application/x-signature',
    } as Descriptor;
    const children = [amd64, arm64].map(({ descriptor }, i) => ({
      ...descriptor,
      platform: parsePlatform(['linux/amd64', 'linux/arm64'][i] as string),
    }));
    await at.putManifest('mixed', indexOf([...children, entry]).bytes, mediaTypes.ociIndex);
    await at.putManifest(tag, indexOf([...children, entry]).bytes, mediaTypes.ociIndex);
    expect((await at.listReferrers(index.descriptor.digest)).map(({ digest }) => digest)).toEqual([
      signature,
    ]);
    await at.putManifest(tag, index.bytes, mediaTypes.ociIndex);
    expect((await at.headManifest(tag))?.digest).toBe(index.descriptor.digest);
    expect((await at.listReferrers(index.descriptor.digest)).map(({ digest }) => digest)).toEqual([
      signature,
    ]);
  });
});
