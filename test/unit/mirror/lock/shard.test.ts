import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UsageError } from '../../../../src/core/errors.js';
import { toTransfers } from '../../../../src/mirror/lock/lock-plan.js';
import { planSharedBlobs } from '../../../../src/mirror/lock/shard-blobs.js';
import { assignShards, parseShard, getShard } from '../../../../src/mirror/lock/shard.js';
import {
  contentsOf,
  imageManifest,
  indexManifest,
  layer,
  lockOf,
  lockedImage,
} from '../../../support/locks.js';

const images = fc
  .array(fc.record({ key: fc.string(), bytes: fc.integer({ min: 0, max: 1e9 }) }), { maxLength: 60 })
  .map((list) => list.map((image, i) => ({ ...image, key: `${i} ${image.key}` })));
const counts = fc.integer({ min: 1, max: 12 });
const partsOf = <T extends { key: string; bytes: number }>(list: readonly T[], count: number): T[][] =>
  Array.from({ length: count }, (_, index) => getShard(list, { index, count }));
const sum = (list: readonly { bytes: number }[]): number =>
  list.reduce((total, { bytes }) => total + bytes, 0);

describe('mirror/shard', () => {
  it('gives every image to exactly one machine, in the order given', () => {
    fc.assert(
      fc.property(images, counts, (list, count) => {
        const parts = partsOf(list, count);
        const place = new Map(list.map((image, i) => [image, i]));
        for (const part of parts) {
          const places = part.map((image) => place.get(image) as number);
          expect(places).toEqual([...places].sort((a, b) => a - b));
        }
        expect(new Set(parts.flat())).toEqual(new Set(list));
        expect(parts.flat()).toHaveLength(list.length);
      }),
    );
  });

  it('gives an image to the same machine in whatever order the images come', () => {
    const both = images.chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
    );
    fc.assert(
      fc.property(both, counts, ([list, shuffled], count) => {
        const keys = (parts: { key: string }[][]) => parts.map((part) => part.map(({ key }) => key).sort());
        expect(keys(partsOf(shuffled, count))).toEqual(keys(partsOf(list, count)));
      }),
    );
  });

  it('gives machines that differ by one image at most, by bytes or by number', () => {
    fc.assert(
      fc.property(images, counts, (list, count) => {
        const loads = partsOf(list, count).map(sum);
        const largest = Math.max(0, ...list.map(({ bytes }) => bytes));
        expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(largest);
        const same = partsOf(
          list.map(({ key }) => ({ key, bytes: 0 })),
          count,
        ).map((part) => part.length);
        expect(Math.max(...same) - Math.min(...same)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('shares many images among many machines', () => {
    const many = Array.from({ length: 20_000 }, (_, i) => ({ key: `k${i}`, bytes: (i * 7919) % 1000 }));
    expect(getShard(many, { index: 9999, count: 10_000 })).toHaveLength(2);
  });

  it.each([
    ['0/4', {}, { index: 0, count: 4 }],
    ['3/4', { JOB_COMPLETION_INDEX: '1', JOB_COMPLETION_COUNT: '2' }, { index: 3, count: 4 }],
    ['0/1', {}, { index: 0, count: 1 }],
    ['9999/10000', {}, { index: 9999, count: 10_000 }],
    [undefined, { JOB_COMPLETION_INDEX: '1', JOB_COMPLETION_COUNT: '2' }, { index: 1, count: 2 }],
    [undefined, {}, undefined],
    [undefined, { JOB_COMPLETION_INDEX: '', JOB_COMPLETION_COUNT: '' }, undefined],
  ])('reads %s beside %j', (text, environment, shard) => {
    expect(parseShard(text, environment)).toEqual(shard);
  });

  it.each([
    [
      '',
      {},
      'mirror.shard "": not one of several machines',
      'use I/N, e.g. 0/4 for the first of four machines',
    ],
    ['4/4', {}, 'mirror.shard "4/4": not one of several machines', 'use I/N, e.g. 0/4'],
    ['0/0', {}, 'mirror.shard "0/0": not one', 'use I/N, e.g. 0/4'],
    ['-1/4', {}, 'mirror.shard "-1/4": not one', 'use I/N, e.g. 0/4'],
    ['1/2/3', {}, 'mirror.shard "1/2/3": not one', 'use I/N, e.g. 0/4'],
    ['1e0/4', {}, 'mirror.shard "1e0/4": not one', 'use I/N, e.g. 0/4'],
    ['0/10001', {}, 'mirror.shard "0/10001": more than 10000 machines', 'use I/N, e.g. 0/4'],
    [
      undefined,
      { JOB_COMPLETION_INDEX: '1' },
      'JOB_COMPLETION_INDEX is set, but JOB_COMPLETION_COUNT is not',
      'set JOB_COMPLETION_COUNT to the completions of the Job',
    ],
    [
      undefined,
      { JOB_COMPLETION_COUNT: '2' },
      'JOB_COMPLETION_COUNT is set, but JOB_COMPLETION_INDEX is not',
      'run in a Job with completionMode Indexed',
    ],
    [
      undefined,
      { JOB_COMPLETION_INDEX: '2', JOB_COMPLETION_COUNT: '2' },
      'JOB_COMPLETION_INDEX "2" of JOB_COMPLETION_COUNT "2": not one of several machines',
      'use numbers',
    ],
  ])('refuses %s beside %j', (text, environment, message, hint) => {
    const act = () => parseShard(text, environment);
    expect(act).toThrow(UsageError);
    expect(act).toThrow(message);
    expect(act).toThrow(expect.objectContaining({ hint: expect.stringContaining(hint) as string }) as Error);
  });
});

describe('mirror/shard assignShards', () => {
  const manifest = (name: string, size: number) => imageManifest(name, [layer(name, size)]);
  const app = lockedImage('app', contentsOf([manifest('app', 900)]));
  const others = ['b', 'c', 'd', 'e'].map((name, i) =>
    lockedImage(name, contentsOf([manifest(name, 100 * (i + 1))])),
  );

  it('does not change when signatures and referrers come to be known', () => {
    const planned = [app, ...others];
    const shards = assignShards(planned, 3);
    const referrer = imageManifest('referrer', [layer('referrer', 5000)]);
    const { root, manifests } = app.contents;
    const signed = [
      { ...app, contents: { root, manifests: [...manifests, referrer] } },
      ...others,
      lockedImage('sig', contentsOf([manifest('sig', 7000)]), {
        kind: 'signature',
        repository: app.repository,
        tag: `${root.digest.replace(':', '-')}.sig`,
      }),
    ];
    expect(assignShards(signed, 3)).toEqual([...shards, shards[0]]);
  });

  it('keeps images of one repository that share a manifest in one shard', () => {
    const child = manifest('child', 300);
    const images = ['v1', 'v2', 'v3'].map((tag) =>
      lockedImage('multi', contentsOf([child, indexManifest(tag, [child])]), { tag }),
    );
    expect(new Set(assignShards([...others, ...images], 4).slice(others.length)).size).toBe(1);
  });
});

describe('mirror/shard-blobs', () => {
  it('has each shared blob sent by one shard that needs it, to a repository of its own images', () => {
    const common = layer('common', 1000);
    const images = ['a', 'b', 'c', 'd'].map((name) =>
      lockedImage(name, contentsOf([imageManifest(name, [common, layer(name, 10)])])),
    );
    const transfers = toTransfers(lockOf(images, []), { target: { registry: 'r.example', path: 'm' } });
    const shards = assignShards(images, 2);
    const plan = planSharedBlobs(transfers, shards);
    expect([...plan.keys()]).toEqual([common.digest]);
    const { owner, home, providers } = plan.get(common.digest) ?? {
      owner: -1,
      home: '',
      providers: new Map(),
    };
    const ownRepositories = transfers.flatMap(({ target }, i) =>
      shards[i] === owner && target.transport === 'docker' ? target.repository : [],
    );
    expect(ownRepositories).toContain(home);
    expect([...providers.values()]).toEqual(shards);
    expect(planSharedBlobs([...transfers].reverse(), [...shards].reverse())).toEqual(plan);
  });
});
