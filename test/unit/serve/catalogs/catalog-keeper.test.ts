import { readFile, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { LogLevel } from '../../../../src/core/log.js';
import { imageLabels } from '../../../../src/model/image-labels.js';
import type { SourceSession } from '../../../../src/source/session.js';
import { getCredentials, readSecrets } from '../../../../src/source/secrets.js';
import { CatalogKeeper } from '../../../../src/serve/catalogs/catalog-keeper.js';
import type { KeeperOptions } from '../../../../src/serve/catalogs/kept-catalog.js';
import type { KeeperClock } from '../../../../src/serve/catalogs/kept-catalog.js';
import type { CatalogManifest } from '../../../../src/serve/catalogs/catalog-manifest.js';
import { readCatalogManifests } from '../../../../src/serve/catalogs/catalog-manifests.js';
import type { CatalogRecord } from '../../../../src/serve/catalogs/catalog-status.js';
import { CatalogRecords } from '../../../../src/serve/catalogs/catalog-records.js';
import { type CatalogSet, createCatalogSet } from '../../../../src/serve/catalogs/catalog-set.js';
import { createCatalogStatus } from '../../../../src/serve/catalogs/catalog-status.js';
import { layerOf } from '../../../../src/archive/tar-writer.js';
import { buildImage } from '../../../../src/oci/image/image-builder.js';
import { closeHttpServer } from '../../../../src/serve/server/http-server.js';
import { serve } from '../../../e2e/served-catalogs.js';
import { type Workbench, openWorkbench } from '../../../support/connect.js';
import { type FaultRegistry, basic, startFaultRegistry } from '../../../support/fault-registry.js';
import { readAll } from '../../../support/images.js';
import { streamContent } from '../../../support/stream-content.js';
import { directoryWith } from '../../../support/temporary.js';

const minute = 60_000;

/** A clock that stands still until it is told to go on. */
class FakeClock implements KeeperClock {
  #now = Date.parse('2026-01-01T00:00:00Z');
  readonly #waits = new Set<{ at: number; ms: number; wake: () => void }>();

  now(): Date {
    return new Date(this.#now);
  }

  wait(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const one = {
        at: this.#now + ms,
        ms,
        wake: () => {
          this.#waits.delete(one);
          resolve();
        },
      };
      this.#waits.add(one);
      signal.addEventListener('abort', one.wake, { once: true });
    });
  }

  /** What is waited for, besides the next sweep. */
  get pending(): number[] {
    return [...this.#waits].filter(({ ms }) => ms !== 60 * minute).map(({ at }) => at - this.#now);
  }

  go(ms: number): void {
    this.#now += ms;
    for (const one of [...this.#waits]) if (one.at <= this.#now) one.wake();
  }
}

const packageOf = (name: string): string =>
  `${JSON.stringify({ schema: 'olm.package', name, defaultChannel: 'stable' })}\n`;

let bench: Workbench;
let registry: FaultRegistry;
let isDown: boolean;
let keepers: { keeper: CatalogKeeper; held: CatalogSet }[];

beforeEach(async () => {
  bench = await openWorkbench();
  registry = await startFaultRegistry();
  isDown = false;
  registry.gate(() => (isDown ? { hangUp: true } : undefined));
  keepers = [];
});

afterEach(async () => {
  for (const { keeper, held } of keepers) {
    await keeper.close();
    await held.close();
  }
  await registry.close();
  await bench.close();
});

async function push(
  tag: string,
  files: Record<string, string>,
  labels?: Record<string, string>,
): Promise<string> {
  const entries = Object.entries(files).map(([name, text]) => ({
    path: `configs/${name}`,
    content: Buffer.from(text),
  }));
  const image = await buildImage({
    layers: [await layerOf(entries)],
    labels: labels ?? { [imageLabels.configs]: '/configs' },
  });
  registry.serveBlob('ns/catalog', image.config);
  for (const { bytes } of image.layers) registry.serveBlob('ns/catalog', bytes);
  return registry.serveManifest('ns/catalog', tag, image.manifest);
}

type KeeperCredentials = KeeperOptions['credentials'];

interface Setup {
  keeper: CatalogKeeper;
  held: CatalogSet;
  clock: FakeClock;
  logged: string[];
  storage: string | undefined;
}

function setUp(
  storage: string | undefined,
  temporaryDirectory: string,
  secrets: string | undefined = undefined,
): Setup {
  const held = createCatalogSet();
  const clock = new FakeClock();
  const logged: string[] = [];
  const logger = {
    log: (level: LogLevel, message: string) => void logged.push(`${level}: ${message}`),
    progress: () => undefined,
  };
  const origins: SourceSession = {
    connect: () => bench.connect({ useHttp: true, maxAttempts: 1 }),
    connectAnew: () => Promise.resolve(bench.connect({ useHttp: true, maxAttempts: 1 })),
    temporaryDirectory,
    now: () => clock.now(),
    hostPlatform: { os: 'linux', architecture: 'amd64' },
    environment: {},
    logger,
  };
  const credentials: KeeperCredentials =
    secrets === undefined
      ? undefined
      : async (request) => getCredentials(await readSecrets(secrets), request);
  const keeper = new CatalogKeeper({
    held,
    storage,
    origins,
    credentials,
    clock,
    random: () => 0.5,
    logger,
  });
  keepers.push({ keeper, held });
  return { keeper, held, clock, logged, storage };
}

async function setUpStored(): Promise<Setup> {
  return setUp(await directoryWith(), await directoryWith());
}

/** Manifests as they are read from files. */
async function manifestsOf(...objects: object[]): Promise<CatalogManifest[]> {
  const files = Object.fromEntries(objects.map((one, i) => [`${i}.json`, JSON.stringify(one)]));
  const logger = { log: () => undefined, progress: () => undefined };
  const { manifests, refused } = await readCatalogManifests(await directoryWith(files), logger);
  for (const { error } of refused) throw error;
  return manifests;
}

function clusterCatalog(name: string, source: object, spec: object = {}): object {
  return {
    apiVersion: 'olm.operatorframework.io/v1',
    kind: 'ClusterCatalog',
    metadata: { name },
    spec: { source, ...spec },
  };
}

const imageSource = (tag = 'latest', more: object = { pollIntervalMinutes: 10 }): object => ({
  type: 'Image',
  image: { ref: `${registry.host}/ns/catalog:${tag}`, ...more },
});

async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 2_000; i++) {
    if (await what()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error('did not come about');
}

/** Waits until every catalog waits for its next look. */
const idle = ({ clock, keeper }: Setup): Promise<void> =>
  until(() => clock.pending.length === keeper.getRecords().length && keeper.getRecords().length > 0);

async function contentOf({ held }: Pick<Setup, 'held'>, name: string): Promise<string | undefined> {
  const found = held.find(name);
  return found === undefined ? undefined : String(await readAll(streamContent(found.content)));
}

function conditionsOf({ keeper }: Setup, name: string): string[] {
  const record = keeper.getRecords().find((one) => one.name === name);
  return (record?.conditions ?? []).map(({ type, status, reason }) => `${type}=${status} ${reason}`);
}

function messageOf({ keeper }: Setup, name: string): string {
  const record = keeper.getRecords().find((one) => one.name === name);
  return record?.conditions.find(({ type }) => type === 'Progressing')?.message ?? '';
}

const tagRequests = (): number =>
  registry.requests.filter((one) => one.path.endsWith('/manifests/latest')).length;
const blobRequests = (): number => registry.requests.filter((one) => one.path.includes('/blobs/')).length;

describe('serve/catalogs/catalog-keeper', () => {
  it('serves the catalog of an image, and records its digest', async () => {
    const digest = await push('latest', { 'a.json': packageOf('widget') });
    const setup = await setUpStored();
    await setup.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(setup);
    expect(await contentOf(setup, 'first')).toContain('"name":"widget"');
    expect(setup.held.isReady()).toBe(true);
    const [record] = await new CatalogRecords(setup.storage as string).list();
    expect(
      createCatalogStatus(record as NonNullable<typeof record>, 'https://catalogs.example/catalogs/first'),
    ).toMatchObject({
      kind: 'ClusterCatalog',
      metadata: { name: 'first', labels: { 'olm.operatorframework.io/metadata.name': 'first' } },
      status: {
        resolvedSource: { type: 'Image', image: { ref: `${registry.host}/ns/catalog@${digest}` } },
        urls: { base: 'https://catalogs.example/catalogs/first' },
        contentURL: 'https://catalogs.example/catalogs/first/api/v1/all',
        contentHash: setup.held.find('first')?.content.hash,
        lastUnpacked: '2026-01-01T00:00:00Z',
        conditions: [
          { type: 'Progressing', status: 'True', reason: 'Succeeded' },
          { type: 'Serving', status: 'True', reason: 'Available' },
        ],
      },
    });
  });

  it('row 38: does not unpack an unchanged catalog again: a poll is one request', async () => {
    await push('latest', { 'a.json': packageOf('widget') });
    const setup = await setUpStored();
    await setup.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(setup);
    const [before, blobs, tags] = [registry.requests.length, blobRequests(), tagRequests()];
    for (let poll = 1; poll <= 3; poll++) {
      setup.clock.go(11 * minute);
      await until(() => tagRequests() === tags + poll);
      await idle(setup);
    }
    expect(registry.requests.length - before).toBe(3);
    expect(registry.requests.slice(before).map(({ method }) => method)).toEqual(['HEAD', 'HEAD', 'HEAD']);
    expect(blobRequests()).toBe(blobs);
    expect(setup.keeper.getRecords()[0]).toMatchObject({
      lastUnpacked: '2026-01-01T00:00:00Z',
      lastChecked: '2026-01-01T00:33:00Z',
    });
  });

  it('serves the catalog of another server, and polls it with validators', async () => {
    const upstream = await serve({ widgets: { 'a.json': packageOf('widget') } });
    const setup = await setUpStored();
    const served = { url: `${upstream.url}/catalogs/widgets`, pollIntervalMinutes: 10 };
    await setup.keeper.apply(await manifestsOf(clusterCatalog('mirror', { type: 'Served', served })));
    await idle(setup);
    expect(await contentOf(setup, 'mirror')).toBe(await contentOf({ held: upstream.set }, 'widgets'));
    const { lastUnpacked, origin } = setup.keeper.getRecords()[0] ?? {};
    expect(origin?.ref).toMatch(/^http:.*\/catalogs\/widgets@sha256:[0-9a-f]{64}$/);
    setup.clock.go(11 * minute);
    await until(() => setup.keeper.getRecords()[0]?.lastChecked === '2026-01-01T00:11:00Z');
    await idle(setup);
    expect(setup.keeper.getRecords()[0]?.lastUnpacked).toBe(lastUnpacked);
    await upstream.put('widgets', { 'a.json': packageOf('gadget') });
    setup.clock.go(11 * minute);
    await until(async () => (await contentOf(setup, 'mirror'))?.includes('"gadget"') === true);
    await idle(setup);
    await closeHttpServer(upstream.server, 0);
    setup.clock.go(11 * minute);
    await until(() =>
      conditionsOf(setup, 'mirror').some((one) => one.startsWith('Progressing=True Retrying')),
    );
    expect(await contentOf(setup, 'mirror')).toContain('"gadget"');
  });

  it('row 26: a changed catalog has another hash and date, one with the same blobs has not', async () => {
    await push('latest', { 'a.json': packageOf('widget') });
    const setup = await setUpStored();
    await setup.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(setup);
    const hash = setup.held.find('first')?.content.hash;
    // The same blobs in another file, so another image.
    const same = await push('latest', { 'b.json': packageOf('widget') });
    setup.clock.go(11 * minute);
    await until(() => setup.keeper.getRecords()[0]?.origin?.ref.endsWith(same) === true);
    await idle(setup);
    expect(setup.keeper.getRecords()[0]).toMatchObject({
      contentHash: hash,
      lastUnpacked: '2026-01-01T00:00:00Z',
    });
    await push('latest', { 'b.json': packageOf('gadget') });
    setup.clock.go(11 * minute);
    await until(async () => (await contentOf(setup, 'first'))?.includes('gadget') === true);
    await idle(setup);
    expect(setup.keeper.getRecords()[0]).toMatchObject({ lastUnpacked: '2026-01-01T00:22:00Z' });
    expect(setup.held.find('first')?.content.hash).not.toBe(hash);
  });

  it('row 36: reports an update that does not parse, changes nothing, and does not fetch it again', async () => {
    await push('latest', { 'a.json': packageOf('widget') });
    const setup = await setUpStored();
    await setup.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(setup);
    const served = await contentOf(setup, 'first');
    await push('latest', { 'a.json': `${packageOf('gadget')}{"schema": ` });
    setup.clock.go(11 * minute);
    await until(() => conditionsOf(setup, 'first').includes('Progressing=True Retrying'));
    await idle(setup);
    expect(conditionsOf(setup, 'first')).toContain('Serving=True Available');
    expect(await contentOf(setup, 'first')).toBe(served);
    expect(setup.keeper.getRecords()[0]?.conditions[0]?.message).toMatch(/a\.json/);
    const [blobs, tags] = [blobRequests(), tagRequests()];
    setup.clock.go(minute);
    await until(() => tagRequests() > tags);
    await idle(setup);
    expect(blobRequests()).toBe(blobs);
    await push('latest', { 'a.json': packageOf('gadget') });
    setup.clock.go(minute);
    await until(async () => (await contentOf(setup, 'first'))?.includes('gadget') === true);
    await idle(setup);
    expect(conditionsOf(setup, 'first')).toContain('Progressing=True Succeeded');
  });

  it('row 11: keeps serving with few requests while a registry is down for hours', async () => {
    await push('latest', { 'a.json': packageOf('widget') });
    const setup = await setUpStored();
    await setup.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(setup);
    isDown = true;
    const before = registry.requests.length;
    const waits: number[] = [];
    for (let hours = 0; hours < 6 * 60 * minute;) {
      const [next = Infinity] = setup.clock.pending;
      waits.push(next);
      hours += next;
      const asked = registry.requests.length;
      setup.clock.go(next);
      await until(() => registry.requests.length > asked);
      await idle(setup);
    }
    expect(waits.slice(1, 8)).toEqual([5, 10, 20, 40, 80, 160, 320].map((seconds) => seconds * 1000));
    expect(Math.max(...waits.slice(1))).toBe(10 * minute);
    // HEAD, and GET where that is no answer.
    expect(registry.requests.length - before).toBeLessThan(100);
    expect(conditionsOf(setup, 'first')).toEqual(['Progressing=True Retrying', 'Serving=True Available']);
    expect(await contentOf(setup, 'first')).toContain('widget');
    expect(setup.logged.filter((line) => line.startsWith('warn: '))).toHaveLength(1);
    isDown = false;
    setup.clock.go(11 * minute);
    await until(() => conditionsOf(setup, 'first').includes('Progressing=True Succeeded'));
  });

  it('waits with jitter, so that servers do not poll at the same moment', async () => {
    const setup = await setUpStored();
    const values = [0, 1];
    const held = createCatalogSet();
    isDown = true;
    const keeper = new CatalogKeeper({
      held,
      clock: setup.clock,
      random: () => values.shift() ?? 0.5,
      origins: {
        connect: () => bench.connect({ useHttp: true, maxAttempts: 1 }),
        connectAnew: () => Promise.resolve(bench.connect({ useHttp: true, maxAttempts: 1 })),
        temporaryDirectory: await directoryWith(),
        now: () => setup.clock.now(),
        hostPlatform: { os: 'linux', architecture: 'amd64' },
        environment: {},
      },
    });
    keepers.push({ keeper, held });
    await keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await until(() => setup.clock.pending.length === 1);
    expect(setup.clock.pending).toEqual([3_750]);
    setup.clock.go(3_750);
    await until(() => setup.clock.pending.length === 1);
    expect(setup.clock.pending).toEqual([12_500]);
  });

  it('spreads the polls of many catalogs over their interval, each at the same moment on every server', async () => {
    await push('latest', { 'a.json': packageOf('widget') });
    const names = Array.from({ length: 40 }, (_, i) => `catalog-${i}`);
    const manifests = await manifestsOf(...names.map((name) => clusterCatalog(name, imageSource())));
    const waits = async (): Promise<number[]> => {
      const setup = await setUpStored();
      await setup.keeper.apply(manifests);
      await idle(setup);
      return [...setup.clock.pending].sort((a, b) => a - b);
    };
    const first = await waits();
    expect(await waits()).toEqual(first);
    for (let fifth = 0; fifth < 5; fifth++) {
      const inFifth = first.filter((ms) => ms > fifth * 2 * minute && ms <= (fifth + 1) * 2 * minute);
      expect(inFifth.length).toBeGreaterThan(2);
      expect(inFifth.length).toBeLessThan(16);
    }
  });

  it('row 2: takes credentials from the auth file, also new ones', async () => {
    await push('latest', { 'a.json': packageOf('widget') });
    let password = 'first';
    registry.gate(({ authorization }) =>
      authorization === basic('user', password)
        ? undefined
        : { status: 401, headers: { 'www-authenticate': 'Basic realm="r"' } },
    );
    const write = (secret: string): Promise<string> =>
      bench.file('.docker/config.json', {
        auths: { [registry.host]: { auth: Buffer.from(`user:${secret}`).toString('base64') } },
      });
    await write('first');
    const setup = await setUpStored();
    await setup.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(setup);
    expect(conditionsOf(setup, 'first')).toContain('Progressing=True Succeeded');
    password = 'second';
    setup.clock.go(11 * minute);
    await until(() => conditionsOf(setup, 'first').includes('Progressing=True Retrying'));
    await idle(setup);
    await write('second');
    setup.clock.go(minute);
    await until(() => conditionsOf(setup, 'first').includes('Progressing=True Succeeded'));
    const said = JSON.stringify([setup.keeper.getRecords(), setup.logged]);
    expect(said).not.toMatch(new RegExp(`${basic('user', 'first')}|${basic('user', 'second')}`));
  });

  it('reads the Secret of an HTTP source for each request, and never keeps or shows it', async () => {
    const archive = (await layerOf([{ path: 'c.json', content: Buffer.from(packageOf('widget')) }])).bytes;
    let password = 'first';
    const server = createServer((request, response) => {
      const isKnown = request.headers.authorization === basic('ann', password);
      response.writeHead(isKnown ? 200 : 401, { 'cache-control': 'no-cache' }).end(isKnown ? archive : '');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => closeHttpServer(server, 0));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/c.tar.gz`;
    const http = { url, insecure: true, secretRef: { name: 'catalogs' }, pollIntervalMinutes: 10 };
    const manifests = await manifestsOf(clusterCatalog('c', { type: 'HTTP', http }));
    const secrets = await directoryWith();
    const setup = setUp(await directoryWith(), await directoryWith(), secrets);
    const trouble = (): string => conditionsOf(setup, 'c').join('\n');
    await setup.keeper.apply(manifests);
    await until(() => messageOf(setup, 'c').startsWith('Secret "catalogs": not found'));
    await idle(setup);

    const writeSecret = (): Promise<void> =>
      writeFile(
        path.join(secrets, 's.json'),
        JSON.stringify({
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: 'catalogs', annotations: { 'tekton.dev/git-0': new URL(url).origin } },
          type: 'kubernetes.io/basic-auth',
          stringData: { username: 'ann', password },
        }),
      );
    await writeSecret();
    setup.clock.go(11 * minute);
    await until(async () => (await contentOf(setup, 'c'))?.includes('widget') === true);
    await idle(setup);

    password = 'second';
    setup.clock.go(11 * minute);
    await until(() => trouble().includes('Retrying'));
    await idle(setup);
    await writeSecret();
    setup.clock.go(11 * minute);
    await until(() => !trouble().includes('Retrying'));
    const record = await readFile(path.join(setup.storage as string, 'catalogs', 'c'), 'utf8');
    expect(record + setup.logged.join('\n')).not.toMatch(/first|second|YW5u/);
  });

  it('fails only the catalog with a Secret if there is no directory of Secrets', async () => {
    await push('latest', { 'c.json': packageOf('widget') });
    const git = { repository: 'https://127.0.0.1:1/a/b', secretRef: { name: 'git' } };
    const setup = await setUpStored();
    await setup.keeper.apply(
      await manifestsOf(clusterCatalog('a', { type: 'Git', git }), clusterCatalog('b', imageSource())),
    );
    await until(() => messageOf(setup, 'a').includes('specify its directory with options.secrets'));
    await until(async () => (await contentOf(setup, 'b')) !== undefined);
  });

  it('is blocked by a pinned image without label, and retries a tag', async () => {
    const digest = await push('latest', { 'a.json': packageOf('widget') }, { other: 'label' });
    const setup = await setUpStored();
    const pinned = { type: 'Image', image: { ref: `${registry.host}/ns/catalog@${digest}` } };
    await setup.keeper.apply(
      await manifestsOf(clusterCatalog('pinned', pinned), clusterCatalog('tagged', imageSource())),
    );
    await idle(setup);
    expect(conditionsOf(setup, 'pinned')).toEqual(['Progressing=False Blocked', 'Serving=False Unavailable']);
    expect(conditionsOf(setup, 'tagged')).toEqual(['Progressing=True Retrying', 'Serving=False Unavailable']);
    expect(setup.clock.pending.sort((a, b) => a - b)).toEqual([5_000, Infinity]);
    expect(setup.held.isReady()).toBe(false);
  });

  it('rows 14 and 32: catalogs with the same packages do not hide each other', async () => {
    await push('latest', { 'a.json': packageOf('widget') });
    const directory = await directoryWith({ 'a.json': packageOf('widget') });
    const setup = await setUpStored();
    const other = clusterCatalog('second', { type: 'Directory', directory: { path: directory } });
    await setup.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource()), other));
    await idle(setup);
    expect(setup.held.list().map(({ name }) => name)).toEqual(['first', 'second']);
    await setup.keeper.apply(await manifestsOf(other));
    expect(setup.held.list().map(({ name }) => name)).toEqual(['second']);
    expect(await contentOf(setup, 'second')).toContain('widget');
  });

  it('row 12: a removed manifest removes record and content', async () => {
    await push('latest', { 'a.json': packageOf('widget') });
    const setup = await setUpStored();
    await setup.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(setup);
    const contents = path.join(setup.storage as string, 'contents');
    const [content] = (await readdir(contents)).filter((name) => name !== 'keys');
    await setup.keeper.apply([]);
    expect(setup.held.list()).toEqual([]);
    expect(await new CatalogRecords(setup.storage as string).list()).toEqual([]);
    // Contents that were stored within the hour may be another process' own.
    const stored = new Date(setup.clock.now().getTime() - 2 * 60 * minute);
    await utimes(path.join(contents, content as string), stored, stored);
    await setup.keeper.sweep();
    expect((await readdir(contents)).filter((name) => name === content)).toEqual([]);
  });

  it('stops serving a catalog that is set to Unavailable, and serves it again afterwards', async () => {
    await push('latest', { 'a.json': packageOf('widget') });
    const setup = await setUpStored();
    await setup.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(setup);
    await setup.keeper.apply(
      await manifestsOf(clusterCatalog('first', imageSource(), { availabilityMode: 'Unavailable' })),
    );
    await until(() => conditionsOf(setup, 'first').includes('Serving=False UserSpecifiedUnavailable'));
    await idle(setup);
    expect(setup.held.find('first')).toBeUndefined();
    expect(conditionsOf(setup, 'first')).toContain('Progressing=True Succeeded');
    await setup.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await until(() => setup.held.find('first') !== undefined);
  });

  it('reads records with as many labels as a manifest may have, and with reasons of later versions', async () => {
    const storage = await directoryWith();
    const records = new CatalogRecords(storage);
    const labels = Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`l${i}`, '']));
    const condition = { status: 'True', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' } as const;
    await records.write({
      ...{ name: 'first', labels, priority: 0, isAvailable: true, sourceType: 'Image' },
      conditions: [
        { ...condition, type: 'Progressing', reason: 'Succeeded' },
        { ...condition, type: 'Serving', reason: 'Later' as 'Available' },
      ],
    } as unknown as CatalogRecord);
    const [record] = await records.list();
    expect(record?.labels).toEqual(labels);
    expect(record?.conditions.map(({ reason }) => reason)).toEqual(['Succeeded']);
  });

  it('serves stored content after a restart, also while the registry is down', async () => {
    await push('latest', { 'a.json': packageOf('widget') });
    const before = await setUpStored();
    await before.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(before);
    await before.keeper.close();
    await before.held.close();
    const [stopped] = await new CatalogRecords(before.storage as string).list();
    expect(stopped?.conditions.map(({ reason }) => reason)).toEqual(['Succeeded', 'Unavailable']);
    isDown = true;
    const after = setUp(before.storage, await directoryWith());
    await after.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(after);
    expect(await contentOf(after, 'first')).toContain('widget');
    expect(conditionsOf(after, 'first')).toEqual(['Progressing=True Retrying', 'Serving=True Available']);
    expect(after.held.isReady()).toBe(true);
  });

  it('requests no layer after a restart if the image is unchanged', async () => {
    await push('latest', { 'a.json': packageOf('widget') });
    const before = await setUpStored();
    await before.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(before);
    await before.keeper.close();
    const blobs = blobRequests();
    const after = setUp(before.storage, await directoryWith());
    await after.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(after);
    // Nor for another catalog of the same image.
    await after.keeper.apply(
      await manifestsOf(clusterCatalog('first', imageSource()), clusterCatalog('again', imageSource())),
    );
    await idle(after);
    expect(await contentOf(after, 'again')).toContain('widget');
    expect(blobRequests()).toBe(blobs);
  });

  it.each(['damaged content', 'damaged record', 'record of another format'])(
    'fetches again what it cannot trust: %s',
    async (what) => {
      await push('latest', { 'a.json': packageOf('widget') });
      const before = await setUpStored();
      await before.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
      await idle(before);
      const storage = before.storage as string;
      const [content = ''] = (await readdir(path.join(storage, 'contents'))).filter(
        (name) => name !== 'keys',
      );
      await before.keeper.close();
      const record = path.join(storage, 'catalogs', 'first');
      if (what === 'damaged content') {
        const file = path.join(storage, 'contents', content, 'catalog.jsonl');
        await writeFile(file, (await readFile(file, 'utf8')).replace('widget', 'gidget'));
      } else if (what === 'damaged record') await writeFile(record, '{"name": "first", ');
      else await writeFile(record, '{"formatVersion": 99, "name": "first"}');
      const after = setUp(storage, await directoryWith());
      await after.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
      await idle(after);
      expect(await contentOf(after, 'first')).toContain('"name":"widget"');
    },
  );

  it('serves without storage, and when the storage is removed', async () => {
    await push('latest', { 'a.json': packageOf('widget') });
    const nowhere = setUp(undefined, await directoryWith());
    await nowhere.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(nowhere);
    expect(await contentOf(nowhere, 'first')).toContain('widget');
    const setup = await setUpStored();
    await setup.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(setup);
    await rm(setup.storage as string, { recursive: true });
    await writeFile(setup.storage as string, 'a file is in the way');
    await push('latest', { 'a.json': packageOf('gadget') });
    setup.clock.go(11 * minute);
    await until(async () => (await contentOf(setup, 'first'))?.includes('gadget') === true);
    await idle(setup);
    expect(conditionsOf(setup, 'first')).toEqual(['Progressing=True Succeeded', 'Serving=True Available']);
  });

  it('row 3: serves each state of a changing directory completely', async () => {
    const directory = await directoryWith({ 'a.json': packageOf('widget'), 'b.json': packageOf('gadget') });
    const setup = await setUpStored();
    const source = { type: 'Directory', directory: { path: directory, pollIntervalMinutes: 1 } };
    await setup.keeper.apply(await manifestsOf(clusterCatalog('first', source)));
    await idle(setup);
    expect((await contentOf(setup, 'first'))?.split('\n')).toHaveLength(3);
    await rm(path.join(directory, 'a.json'));
    await writeFile(path.join(directory, 'b.json'), packageOf('gizmo'));
    setup.clock.go(2 * minute);
    await until(
      async () =>
        (await contentOf(setup, 'first')) ===
        '{"defaultChannel":"stable","name":"gizmo","schema":"olm.package"}\n',
    );
  });

  it('row 37: blobs of any fields are created, updated and removed with the image', async () => {
    const matrix = [
      { schema: 'my.schema' },
      { schema: 'my.schema', name: 'n' },
      { schema: 'my.schema', package: 'p' },
      { schema: 'my.schema', package: 'p', name: 'n', foo: { bar: [1, 'two', null] } },
    ];
    const text = (blobs: object[]): string => blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('');
    await push('latest', { 'a.json': text(matrix) });
    const setup = await setUpStored();
    await setup.keeper.apply(await manifestsOf(clusterCatalog('first', imageSource())));
    await idle(setup);
    const parsed = async (): Promise<unknown[]> =>
      ((await contentOf(setup, 'first')) ?? '')
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as unknown);
    expect(await parsed()).toEqual(matrix);
    const next = [{ ...matrix[3], foo: 'changed' }, { schema: 'other' }];
    await push('latest', { 'a.json': text(next) });
    setup.clock.go(11 * minute);
    await until(async () => JSON.stringify(await parsed()).includes('changed'));
    expect(await parsed()).toEqual(next);
  });
});
