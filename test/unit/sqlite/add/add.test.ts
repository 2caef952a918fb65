import { silentLogger } from '../../../../src/core/log.js';
import { describe, expect, it } from 'vitest';
import type { AddOptions } from '../../../../src/sqlite/add/add.js';
import {
  BundleImageAlreadyAddedError,
  VersionAlreadyAddedError,
} from '../../../../src/sqlite/add/already-added.js';
import type { BundleRecord } from '../../../../src/sqlite/schema/bundle-record.js';
import type { Database } from '../../../../src/sqlite/schema/database.js';
import { failureOf } from '../../../support/connect.js';
import {
  addRecords,
  bundleRecord as bundle,
  bundlesIn,
  emptyIndex,
  entriesOf,
  packagesIn,
} from '../../../support/staged-bundles.js';

async function indexWith(...calls: BundleRecord[][]): Promise<Database> {
  const database = await emptyIndex();
  for (const records of calls) await addRecords(database, records);
  return database;
}

/** Versions in one channel, each replacing the one before. */
const chain = (versions: string[], change: Partial<BundleRecord> = {}): BundleRecord[] =>
  versions.map((version, index) =>
    bundle(version, { replaces: index > 0 ? `p.v${versions[index - 1]}` : '', ...change }),
  );

/** Adds what is refused; the index stays as it was. */
async function refusal(database: Database, records: BundleRecord[], options: Partial<AddOptions> = {}) {
  const state = () =>
    JSON.stringify([bundlesIn(database), packagesIn(database), database.all('SELECT * FROM properties')]);
  const before = state();
  const error = await failureOf(addRecords(database, records, options));
  expect(state()).toBe(before);
  return error;
}

describe('sqlite/add', () => {
  it('makes the same index whatever the order', async () => {
    const records = [
      ...chain(['1.0.0-rc1', '1.0.0', '1.10.0', '1.11.0']),
      ...chain(['1.0.0', '2.0.0']).map(({ version, replaces }) =>
        bundle(version, { packageName: 'q', replaces: replaces.replace('p', 'q') }),
      ),
    ];
    const reports: unknown[] = [];
    for (const order of [records, [...records].reverse()]) {
      const database = await emptyIndex();
      const schema = database.all('SELECT * FROM sqlite_master');
      const { added } = await addRecords(database, order);
      reports.push([added, entriesOf(database, 'stable'), entriesOf(database, 'stable', 'q')]);
      expect(database.all('SELECT * FROM sqlite_master')).toEqual(schema);
      expect(packagesIn(database)).toEqual(['p (stable): stable=p.v1.11.0', 'q (stable): stable=q.v2.0.0']);
    }
    expect(reports[0]).toEqual(reports[1]);
    expect((reports[0] as unknown[])[0]).toEqual([
      'p.v1.0.0-rc1',
      'p.v1.0.0',
      'p.v1.10.0',
      'p.v1.11.0',
      'q.v1.0.0',
      'q.v2.0.0',
    ]);
  });

  it('takes several calls, each of which notes the package again as opm does', async () => {
    const [first, second] = chain(['1.0.0', '2.0.0']) as [BundleRecord, BundleRecord];
    const database = await indexWith([first], [second]);
    expect(entriesOf(database, 'stable')).toEqual(['p.v2.0.0@0 > p.v1.0.0@1', 'p.v1.0.0@1']);
    expect(
      database.all('SELECT operatorbundle_name AS name, count(*) AS n FROM properties GROUP BY 1'),
    ).toEqual([
      { name: 'p.v1.0.0', n: 2 },
      { name: 'p.v2.0.0', n: 1 },
    ]);
  });

  it('refuses an existing image, and reports whether it is the same', async () => {
    const database = await indexWith([bundle('1.0.0')]);
    const error = await refusal(database, [bundle('1.0.0'), bundle('2.0.0', { replaces: 'p.v1.0.0' })]);
    expect(error).toBeInstanceOf(BundleImageAlreadyAddedError);
    expect(error.message).toBe(
      '[Bundle quay.io/p:v1.0.0 already exists, Bundle already added that provides package and csv: ' +
        'p.v1.0.0 is in the index with the same image, the manifests are the same]',
    );
  });

  it.each([
    ['quay.io/p:other', 'as quay.io/p:v1.0.0, the manifests differ'],
    [`quay.io/p@sha256:${'1'.repeat(64)}`, 'as quay.io/p:v1.0.0, the manifests differ'],
  ])('refuses a version that is there as another image: %s', async (image, likeness) => {
    const database = await indexWith([bundle('1.0.0')]);
    const error = await refusal(database, [bundle('1.0.0', { image })]);
    expect(error).toBeInstanceOf(VersionAlreadyAddedError);
    expect(error.message).toContain(`p.v1.0.0 is in the index ${likeness}`);
  });

  it('compares digests where both images have one', async () => {
    const at = (digit: string): string => `quay.io/p@sha256:${digit.repeat(64)}`;
    const database = await indexWith([bundle('1.0.0', { image: at('1') })]);
    const error = await refusal(database, [bundle('1.0.0', { image: at('2') })]);
    expect(error.message).toContain('the digest differs');
    const same = await refusal(database, [
      bundle('1.0.0', { image: at('1').replace('quay.io', 'other.io') }),
    ]);
    expect(same.message).toContain('the digest is the same');
  });

  it('refuses a bundle that comes twice, one in no channel, and one of another package', async () => {
    const database = await indexWith([bundle('1.0.0')], [bundle('2.0.0')]);
    const twice = await refusal(database, [bundle('3.0.0'), bundle('3.0.0', { image: 'quay.io/other:v1' })]);
    expect(twice.message).toBe(
      'failed to add bundle "p.v3.0.0": quay.io/other:v1 and quay.io/p:v3.0.0 both have that name, with different manifests',
    );
    const stranded = await refusal(database, [bundle('1.0.0', { image: 'quay.io/other:v1' })]);
    expect(stranded.message).toMatch(/^failed to add bundle "p\.v1\.0\.0": .* but in no channel$/);
    const other = await refusal(database, [
      bundle('1.0.0', { packageName: 'q', replaces: 'p.v2.0.0' }),
      bundle('1.0.0', { packageName: 'r', skips: ['q.v1.0.0'] }),
    ]);
    expect(other.message).toBe(
      '[bundle p.v2.0.0 belongs to package p on index, cannot be added as an edge for package q, ' +
        'bundle q.v1.0.0 must belong to exactly one package, found on: [q r]]',
    );
  });

  it('checks bundles without an image like all others', async () => {
    const database = await indexWith([bundle('1.0.0', { image: '' })]);
    const error = await refusal(database, [bundle('1.0.0', { image: '' })]);
    expect(error).toBeInstanceOf(VersionAlreadyAddedError);
    expect(error.message).toContain('p.v1.0.0 is in the index without an image, the manifests are the same');
  });

  it('refuses what would be in no channel, for all packages at once', async () => {
    const error = await refusal(await emptyIndex(), [
      bundle('1.0.0'),
      bundle('1.1.0', { skips: ['p.v0.9.0', 'p.v0.8.0'] }),
      bundle('1.0.0', { packageName: 'q', replaces: 'q.v0' }),
    ]);
    expect(error.message).toBe(
      '[add prunes bundle p.v1.0.0 (quay.io/p:v1.0.0) from package p, channel stable: this may be due to incorrect ' +
        'channel head (p.v1.1.0, skips/replaces [p.v0.8.0 p.v0.9.0]). Be aware that the head of the channel stable ' +
        'where you are trying to add the p.v1.0.0 is p.v1.1.0. Upgrade graphs follows the Semantic Versioning 2.0.0 ' +
        '(https://semver.org/) which means that is not possible add new versions lower then the head of the channel, ' +
        'Invalid bundle q.v1.0.0, replaces nonexistent bundle q.v0]',
    );
  });

  it('refuses a circle of skips', async () => {
    const records = [bundle('1.0.0', { skips: ['p.v2.0.0'] }), bundle('2.0.0', { replaces: 'p.v1.0.0' })];
    const error = await refusal(await emptyIndex(), records);
    expect(error.message).toBe(
      'unable to verify added bundles for package p: no channel head found for stable',
    );
  });

  it('takes a bundle that replaces what it substitutes for where versions make the channels', async () => {
    const records = [
      bundle('1.0.0'),
      bundle('1.0.0+1', { version: '1.0.1', substitutesFor: 'p.v1.0.0', replaces: 'p.v1.0.0' }),
    ];
    const database = await emptyIndex();
    const error = await refusal(database, records, { enableAlpha: true });
    expect(error.message).toContain('Cycle detected, p.v1.0.0+1 replaces p.v1.0.0+1');
    await addRecords(database, records, { enableAlpha: true, mode: 'semver' });
    expect(entriesOf(database, 'stable')).toEqual(['p.v1.0.0+1@0 > p.v1.0.0@1', 'p.v1.0.0@1']);
  });

  it.each<[string, Partial<BundleRecord>, string]>([
    [
      'an empty channel name',
      { channels: ['stable', ''] },
      'render the index with it: channel name must not be',
    ],
    ['a skip range that is none', { skipRange: '>=x' }, 'invalid skipRange ">=x"'],
    ['no version', { version: '', defaultChannel: 'stable' }, 'parse version ""'],
    [
      'several package properties',
      { properties: [{ type: 'olm.package', value: '{"packageName":"q","version":"9.9.9"}' }] },
      'must be exactly one property with type "olm.package"; correct the bundle',
    ],
    [
      'a dependency on no range',
      { dependencies: [{ type: 'olm.package', value: '{"packageName":"q","version":"x"}' }] },
      'validate refuses a catalog with it: dependency of type olm.package: invalid version range "x"',
    ],
    ['a package name that is no label', { packageName: 'P_' }, 'invalid package name "P_"'],
  ])('adds a bundle with %s, and warns that the index is of no use', async (_, change, warning) => {
    const lines: string[] = [];
    const logger = {
      log: (level: string, message: string) => void lines.push(`${level}: ${message}`),
      progress: () => undefined,
    };
    const database = await emptyIndex();
    const record = bundle('1.0.0', { defaultChannel: 'stable', ...change });
    await addRecords(database, [record], { logger });
    expect(bundlesIn(database)).toEqual([record.name]);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(`warn: ${record.image}: bundle ${record.name} was added, but `);
    expect(lines[0]).toContain(warning);
  });

  it('does not warn about bundles with their own package property', async () => {
    const lines: string[] = [];
    const logger = { log: (_: string, line: string) => void lines.push(line), progress: () => undefined };
    const value = '{"packageName":"p","version":"1.0.0"}';
    const properties = [{ type: 'olm.package', value }];
    for (const mode of ['replaces', 'semver'] as const)
      await addRecords(await emptyIndex(), [bundle('1.0.0', { properties })], { logger, mode });
    expect(lines).toEqual([]);
  });

  it('accepts substitutes only if enabled', async () => {
    const records = [bundle('1.0.0'), bundle('1.0.0+1', { substitutesFor: 'p.v1.0.0' })];
    const error = await refusal(await emptyIndex(), records);
    expect(error.message).toContain('You must enable alpha features with the flag --enable-alpha');
    const database = await emptyIndex();
    await addRecords(database, records, { enableAlpha: true });
    expect(entriesOf(database, 'stable')).toEqual([
      'p.v1.0.0+1@0',
      'p.v1.0.0@1',
      'p.v1.0.0+1@1 > p.v1.0.0@1',
    ]);
  });

  it('warns of bundles that are left without a channel', async () => {
    const database = await indexWith([bundle('1.0.0')]);
    const warnings: string[] = [];
    const logger = {
      log: (_level: string, message: string) => void warnings.push(message),
      progress: () => undefined,
    };
    await addRecords(database, [bundle('2.0.0')], { logger });
    expect(warnings).toEqual(['package p: p.v1.0.0 is no longer in a channel: no bundle leads to it']);
  });
});

describe('sqlite/add: other failures', () => {
  it('names the database that has an entry without a bundle', async () => {
    const database = await indexWith([bundle('1.0.0')]);
    database.run('UPDATE channel_entry SET operatorbundle_name = NULL');
    const error = await refusal(database, [bundle('2.0.0')], { permissive: true });
    expect(error.message).toBe(`${database.name}: package p has an entry without a channel or bundle`);
  });

  it('refuses a package with an entry whose number is ambiguous', async () => {
    const database = await indexWith([bundle('1.0.0')]);
    database.execute('UPDATE channel_entry SET entry_id = 9007199254740993');
    const error = await refusal(database, [bundle('2.0.0')]);
    expect(error.message).toBe(`${database.name}: package p has an entry whose number is too large`);
  });

  it('stops when it is cancelled, also with permissive', async () => {
    const signal = AbortSignal.abort();
    const error = await refusal(await emptyIndex(), [bundle('1.0.0')], { signal, permissive: true });
    expect(error.code).toBe('CANCELLED');
  });
});

describe('sqlite/add: overwriting the latest', () => {
  const overwriteLatest = true;

  it('replaces the head of a channel', async () => {
    const database = await indexWith(chain(['1.0.0', '2.0.0']));
    const again = bundle('2.0.0', { image: 'quay.io/p:new', channels: ['beta'], replaces: 'p.v1.0.0' });
    await addRecords(database, [again], { overwriteLatest });
    expect(packagesIn(database)).toEqual(['p (stable): beta=p.v2.0.0, stable=p.v1.0.0']);
    expect(database.get('SELECT bundlepath FROM operatorbundle WHERE name = ?', 'p.v2.0.0')).toEqual({
      bundlepath: 'quay.io/p:new',
    });
    expect(
      database.all(
        "SELECT DISTINCT operatorbundle_path AS at FROM properties WHERE operatorbundle_name = 'p.v2.0.0'",
      ),
    ).toEqual([{ at: 'quay.io/p:new' }]);
  });

  it('replaces the heads of several packages, and what is in no channel', async () => {
    const inPackage = (packageName: string, image?: string): BundleRecord =>
      bundle('1.0.0', { packageName, ...(image !== undefined && { image }) });
    const database = await indexWith(
      [inPackage('p'), inPackage('q'), inPackage('r')],
      [bundle('2.0.0', { packageName: 'r' })],
    );
    const again = ['p', 'q'].map((name) => inPackage(name, `quay.io/${name}:new`));
    const stranded = bundle('1.0.0', {
      packageName: 'r',
      image: 'quay.io/r:new',
      channels: ['old'],
      defaultChannel: 'stable',
    });
    await addRecords(database, [...again, stranded], { overwriteLatest });
    expect(packagesIn(database)).toEqual([
      'p (stable): stable=p.v1.0.0',
      'q (stable): stable=q.v1.0.0',
      'r (stable): old=r.v1.0.0, stable=r.v2.0.0',
    ]);
  });

  it('replaces the only bundle of a package', async () => {
    const database = await indexWith([bundle('1.0.0')]);
    await addRecords(database, [bundle('1.0.0', { image: 'quay.io/p:new' })], { overwriteLatest });
    expect(packagesIn(database)).toEqual(['p (stable): stable=p.v1.0.0']);
  });

  it('refuses the same image, what is replaced, two of a package, and what has no image', async () => {
    const other = { image: 'quay.io/p:new' };
    const database = await indexWith(chain(['1.0.0', '2.0.0']), [
      bundle('3.0.0', { channels: ['beta'], defaultChannel: 'stable' }),
    ]);
    expect(await refusal(database, [bundle('2.0.0')], { overwriteLatest })).toBeInstanceOf(
      BundleImageAlreadyAddedError,
    );
    const replaced = await refusal(database, [bundle('1.0.0', other)], { overwriteLatest });
    expect(replaced.message).toBe(
      'Cannot overwrite a bundle that is not at the head of a channel using --overwrite-latest: ' +
        'p.v1.0.0 from package p is replaced by p.v2.0.0 on channel stable',
    );
    const two = [bundle('2.0.0', other), bundle('3.0.0', { image: 'quay.io/p:two' })];
    const both = await refusal(database, two, { overwriteLatest });
    expect(both.message).toMatch(/^Cannot overwrite more than one bundle at a time for a given package/);
    const directory = await indexWith([bundle('1.0.0', { image: '' })]);
    const error = await refusal(directory, [bundle('1.0.0', other)], { overwriteLatest });
    expect(error.message).toContain('only supported when using bundle images');
  });

  it('is for the mode replaces', async () => {
    const database = await indexWith([bundle('1.0.0')]);
    const again = [bundle('1.0.0', { image: 'quay.io/p:new' })];
    const error = await refusal(database, again, { overwriteLatest, mode: 'semver' });
    expect(error.hint).toBe('use options.overwriteLatest with options.mode replaces only');
  });
});

describe('sqlite/add: permissive', () => {
  const permissive = true;

  it('skips existing bundles, and adds the rest', async () => {
    const database = await indexWith([bundle('1.0.0')]);
    const { added, failures } = await addRecords(database, chain(['1.0.0', '2.0.0']), { permissive });
    expect(added).toEqual(['p.v2.0.0']);
    expect(failures.map(({ bundle: { record }, error }) => [record.name, error.constructor])).toEqual([
      ['p.v1.0.0', BundleImageAlreadyAddedError],
    ]);
    expect(packagesIn(database)).toEqual(['p (stable): stable=p.v2.0.0']);
  });

  it('leaves out what would be in no channel', async () => {
    const database = await emptyIndex();
    const records = [...chain(['1.0.0', '3.0.0']), bundle('2.0.0', { replaces: 'p.v1.0.0' })];
    const { added, failures } = await addRecords(database, records, { permissive });
    expect(added).toEqual(['p.v1.0.0', 'p.v3.0.0']);
    expect(failures.map(({ error }) => error.message.slice(0, 26))).toEqual(['add prunes bundle p.v2.0.0']);
    expect(bundlesIn(database)).toEqual(['p.v1.0.0', 'p.v3.0.0']);
  });

  it('adds the lower versions when the graph cannot be made with the higher', async () => {
    const database = await emptyIndex();
    const records = [
      ...chain(['1.0.0', '1.1.0', '1.2.0']),
      bundle('2.0.0', { replaces: 'p.v1.9.0' }),
      bundle('2.1.0', { replaces: 'p.v2.0.0' }),
      bundle('1.0.0', { packageName: 'q' }),
    ];
    const { added, failures } = await addRecords(database, records, { permissive });
    expect(added).toEqual(['p.v1.0.0', 'p.v1.1.0', 'p.v1.2.0', 'q.v1.0.0']);
    expect(failures.map(({ error }) => error.message)).toEqual([
      'Invalid bundle p.v2.0.0, replaces nonexistent bundle p.v1.9.0',
      'Invalid bundle p.v2.1.0, replaces nonexistent bundle p.v2.0.0',
    ]);
    expect(packagesIn(database)).toEqual(['p (stable): stable=p.v1.2.0', 'q (stable): stable=q.v1.0.0']);
  });

  it('does not lose one that it has added for another', async () => {
    const database = await emptyIndex();
    const records = [bundle('1.0.0'), bundle('2.0.0', { replaces: 'p.v0' }), bundle('3.0.0')];
    const { added, failures } = await addRecords(database, records, { permissive });
    expect(entriesOf(database, 'stable').map((line) => line.split('@')[0])).toEqual(added);
    expect(failures).toHaveLength(2);
    expect(bundlesIn(database)).toEqual(added);
  });
});

describe('sqlite/add: manifests', () => {
  const withManifests = (database: Database): string[] =>
    database
      .all<{ name: string }>('SELECT name FROM operatorbundle WHERE bundle IS NOT NULL ORDER BY name')
      .map(({ name }) => name);

  it.each([
    [{ mode: 'replaces' }, ['p.v1.0.0', 'p.v2.0.0']],
    [{ mode: 'replaces', minimal: true }, ['p.v2.0.0']],
    [{ mode: 'semver' }, ['p.v2.0.0']],
    [{ mode: 'semver-skippatch' }, ['p.v2.0.0']],
    [{ mode: 'semver', allInOne: true }, ['p.v1.0.0', 'p.v2.0.0']],
  ] as const)('with %j keeps those of %j', async (options, names) => {
    const database = await emptyIndex();
    await addRecords(database, chain(['1.0.0', '2.0.0']), options);
    expect(withManifests(database)).toEqual(names);
    expect(entriesOf(database, 'stable')).toEqual(['p.v2.0.0@0 > p.v1.0.0@1', 'p.v1.0.0@1']);
  });

  it('warns of bundles without an image, which keep theirs in spite of minimal', async () => {
    const database = await emptyIndex();
    const messages: string[] = [];
    const log = (level: string, message: string) => void messages.push(`${level}: ${message}`);
    const logger = { ...silentLogger, log };
    const records = chain(['1.0.0', '2.0.0']).map((record) => ({ ...record, image: '' }));
    await addRecords(database, records, { minimal: true, logger });
    expect(withManifests(database)).toEqual(['p.v1.0.0', 'p.v2.0.0']);
    expect(messages).toEqual([
      'warn: options.minimal keeps the manifests of bundles without an image: p.v1.0.0',
    ]);
  });

  it('drops those of a head that a later call puts another bundle in front of', async () => {
    const database = await emptyIndex();
    const [first, second] = chain(['1.0.0', '2.0.0']);
    for (const record of [first, second])
      await addRecords(database, [record as BundleRecord], { minimal: true });
    expect(withManifests(database)).toEqual(['p.v2.0.0']);
  });

  it('leaves no free pages behind for manifests that are not kept', async () => {
    const database = await emptyIndex();
    const versions = Array.from({ length: 30 }, (_, i) => `1.${i}.0`);
    await addRecords(database, chain(versions), { minimal: true, manifestSize: 100_000 });
    const pages = (name: string): number => Number(Object.values(database.get(`PRAGMA ${name}`) ?? {})[0]);
    expect(withManifests(database)).toEqual(['p.v1.29.0']);
    expect(pages('page_count') * pages('page_size')).toBeLessThan(500_000);
  });
});
