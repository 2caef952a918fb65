import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { OpmateError } from '../../../src/core/errors.js';
import { mediaTypes } from '../../../src/oci/image/types.js';
import { type StageOptions, parsePullFrom, stageBundles } from '../../../src/source/bundles.js';
import type { SourceSession } from '../../../src/source/session.js';
import { type Session, openSourceSession } from '../../../src/source/session.js';
import { makeCatalogImage, makeImage, serveBuilt, storeImage } from '../../e2e/images.js';
import { failureOf } from '../../support/connect.js';
import { type FaultRegistry, startFaultRegistry } from '../../support/fault-registry.js';
import { inDirectory, smallBundle } from '../../support/small-bundle.js';
import { directoryWith } from '../../support/temporary.js';
import { sessionOptions } from './session-options.js';

interface World {
  registry: FaultRegistry;
  session: Session;
  temporaryDirectory: string;
  logged: string[];
  /** Serves a small bundle; returns its reference by tag and its digest. */
  serve(repository: string, version: string): Promise<{ tagged: string; digest: string }>;
}

async function openWorld(): Promise<World> {
  const registry = await startFaultRegistry();
  const logged: string[] = [];
  const logger = {
    log: (level: string, message: string) => void logged.push(`${level}: ${message}`),
    progress: () => undefined,
  };
  const options = await sessionOptions({ logger });
  const session = await openSourceSession(options);
  onTestFinished(async () => {
    await session.close();
    await registry.close();
  });
  return {
    registry,
    session,
    temporaryDirectory: options.temporaryDirectory,
    logged,
    async serve(repository, version) {
      const image = await makeImage({ files: smallBundle({ version }) });
      const digest = serveBuilt(registry, repository, `v${version}`, image);
      return { tagged: `${registry.host}/${repository}:v${version}`, digest };
    },
  };
}

/** Stages, and closes the stage when the test is done. */
async function stage(references: string[], session: SourceSession, options: StageOptions = {}) {
  const staged = await stageBundles(references, session, options);
  onTestFinished(() => staged.close());
  return staged.bundles;
}

const paths = (registry: FaultRegistry): string[] => registry.requests.map((request) => request.path);

describe('source/bundles stageBundles', () => {
  it('reads images, and records each as it was named', async () => {
    const { session, serve } = await openWorld();
    const one = await serve('ns/one', '1.0.0');
    const two = await serve('ns/two', '2.0.0');
    const pinned = two.tagged.replace(/:v.*/, `@${two.digest}`);
    const bundles = await stage([one.tagged, `docker://${pinned}`], session);
    const byName = new Map(bundles.map((bundle) => [bundle.record.name, bundle]));
    expect(byName.get('widget.v1.0.0')).toMatchObject({
      reference: one.tagged,
      digest: one.digest,
      record: { image: one.tagged, packageName: 'widget', channels: ['stable'], version: '1.0.0' },
    });
    expect(byName.get('widget.v2.0.0')).toMatchObject({
      reference: `docker://${pinned}`,
      digest: two.digest,
      record: { image: pinned },
    });
    const manifests = await byName.get('widget.v1.0.0')?.manifests();
    expect(JSON.parse(String(manifests?.csv))).toMatchObject({ metadata: { name: 'widget.v1.0.0' } });
  });

  it('reads directories, layouts and archives, and records no image for them', async () => {
    const { session } = await openWorld();
    const root = await directoryWith(inDirectory('plain', smallBundle({ version: '1.0.0' })));
    await storeImage(
      path.join(root, 'layout'),
      'v2',
      await makeImage({ files: smallBundle({ version: '2.0.0' }) }),
    );
    const references = [path.join(root, 'plain'), `oci:${root}/layout:v2`];
    const bundles = await stage(references, session);
    expect(bundles.map(({ record }) => [record.name, record.image]).sort()).toEqual([
      ['widget.v1.0.0', ''],
      ['widget.v2.0.0', ''],
    ]);
  });

  it('warns of manifests that are left out because they do not parse', async () => {
    const { session, logged } = await openWorld();
    const files = { ...smallBundle(), 'manifests/role.yaml': 'rules: [' };
    const root = await directoryWith(inDirectory('plain', files));
    await stage([path.join(root, 'plain')], session);
    expect(logged).toEqual([expect.stringMatching(/^warn: .*plain: manifests\/role\.yaml skipped: yaml: /)]);
  });

  it('takes what is named twice once, and says so', async () => {
    const { session, serve, logged } = await openWorld();
    const { tagged } = await serve('ns/one', '1.0.0');
    const bundles = await stage([tagged, `docker://${tagged}`], session);
    expect(bundles).toHaveLength(1);
    expect(logged).toContain(`info: docker://${tagged}: duplicate reference, added once`);
  });

  it('pulls from another place, and records the place that was named', async () => {
    const { session, serve, registry, logged } = await openWorld();
    const { digest } = await serve('stage/deep/one', '1.0.0');
    const pullFrom = parsePullFrom([
      `quay.io=${registry.host}/wrong`,
      `quay.io/prod/=${registry.host}/stage/deep`,
      `quay.io/prod/on=${registry.host}/wrong`,
      'example.com/x=example.org/y',
    ]);
    const reference = `quay.io/prod/one:v1.0.0@${digest}`;
    const [bundle] = await stage([reference], session, { pullFrom });
    expect(bundle).toMatchObject({ reference, record: { image: reference, relatedImages: [reference] } });
    expect(paths(registry).every((one) => one.startsWith('/v2/stage/deep/one/') || one === '/v2/')).toBe(
      true,
    );
    expect(logged).toContain(
      'warn: options.pullFrom example.com/x=example.org/y: no bundle matches example.com/x/…',
    );
    expect(logged.join()).not.toContain('no bundle matches quay.io/prod/…');
  });

  it('takes the platform that is wanted of an image of several', async () => {
    const { session, registry } = await openWorld();
    const platform = { os: 'linux', architecture: 'amd64' };
    const image = await makeImage({ files: smallBundle(), platform });
    const digest = serveBuilt(registry, 'ns/multi', 'amd64', image);
    const manifests = [{ mediaType: mediaTypes.ociManifest, digest, size: image.manifest.length, platform }];
    const index = JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.ociIndex, manifests });
    const root = registry.serveManifest('ns/multi', 'v1', Buffer.from(index), mediaTypes.ociIndex);
    const [bundle] = await stage([`${registry.host}/ns/multi:v1`], session);
    expect(bundle).toMatchObject({ record: { name: 'widget.v1.0.0' }, digest: root });
  });

  it('names the one that cannot be read, asks for no more, and leaves nothing behind', async () => {
    const { session, serve, registry, temporaryDirectory } = await openWorld();
    const good = await serve('ns/good', '1.0.0');
    const missing = `${registry.host}/ns/missing:v1`;
    const many = Array.from({ length: 30 }, (_, i) => `${registry.host}/ns/later${i}:v1`);
    const error = await failureOf(stageBundles([good.tagged, missing, ...many], session, { concurrency: 1 }));
    expect(error).toMatchObject({ code: 'NOT_FOUND' });
    expect(error.message.startsWith(missing)).toBe(true);
    expect(paths(registry).join()).not.toContain('later');
    expect(await readdir(temporaryDirectory)).toEqual([]);
  });

  it('reports all invalid bundles, in the order in which they are named', async () => {
    const { session } = await openWorld();
    const annotations = 'annotations: {}\n';
    const references = await Promise.all(
      ['1.0.0', '1.1.0', '1.2.0'].map((version, index) =>
        directoryWith(
          index === 1
            ? smallBundle({ version })
            : { ...smallBundle({ version }), 'metadata/annotations.yaml': annotations },
        ),
      ),
    );
    for (const order of [references, [...references].reverse()]) {
      const error = (await failureOf(stage(order, session))) as OpmateError;
      const faulty = order.filter((_reference, index) => index !== 1);
      expect(error.diagnostics?.length).toBe(2);
      const places = faulty.map((reference) => error.message.indexOf(reference));
      expect(places.every((place) => place >= 0)).toBe(true);
      expect(places).toEqual([...places].sort((a, b) => a - b));
    }
  });

  it('names the given reference when another place fails', async () => {
    const { session, registry } = await openWorld();
    const pullFrom = parsePullFrom([`quay.io/prod=${registry.host}/stage`]);
    const error = await failureOf(stageBundles(['quay.io/prod/one:v1'], session, { pullFrom }));
    expect(error.message).toMatch(/^quay\.io\/prod\/one:v1: 127\.0\.0\.1:\d+\/stage\/one:v1/);
  });

  it('goes on without what cannot be read where failures are taken', async () => {
    const { session, serve, registry } = await openWorld();
    const { tagged } = await serve('ns/one', '1.0.0');
    const failures: [string, OpmateError][] = [];
    const references = [`${registry.host}/ns/missing:v1`, tagged, 'Quay.io/UPPER:v1', '/nowhere'];
    const onFailure = (...failure: [string, OpmateError]): void => void failures.push(failure);
    const bundles = await stage(references, session, { onFailure });
    expect(bundles.map(({ reference }) => reference)).toEqual([tagged]);
    expect(failures.map(([reference]) => reference).sort()).toEqual(
      references.filter((one) => one !== tagged).sort(),
    );
  });

  it.each([
    [
      'quay.io/ns/a:sha256@0123abcd',
      'quay.io/ns/a:sha256@0123abcd: invalid digest',
      'quay.io/ns/a@sha256:0123abcd',
    ],
    [
      'quay.io/ns/a:sha256:0123abcd',
      'quay.io/ns/a:sha256:0123abcd: invalid digest',
      'quay.io/ns/a@sha256:0123abcd',
    ],
    ['quay.io/ns/a', 'quay.io/ns/a: missing tag or digest', 'quay.io/ns/a:TAG'],
    [
      'quay.io/ns/A:v1',
      'quay.io/ns/A:v1: invalid reference format: repository name must be lowercase',
      'lower case',
    ],
    ['./nowhere', './nowhere: no such file or directory', undefined],
  ])('refuses %s before anything is asked for', async (reference, message, hint) => {
    const { session, serve, registry } = await openWorld();
    const { tagged } = await serve('ns/one', '1.0.0');
    const error = await failureOf(stageBundles([tagged, reference], session));
    expect(error.message).toBe(message);
    if (hint !== undefined) expect(error.hint).toContain(hint);
    expect(registry.requests).toEqual([]);
  });

  it('never repeats credentials that were written into a reference', async () => {
    const { session } = await openWorld();
    const failures: string[] = [];
    const onFailure = (_: string, { message, hint }: OpmateError): void =>
      void failures.push(`${message} ${hint}`);
    await stage(['user:secret@quay.io/ns/a:v1'], session, { onFailure });
    expect(failures).toEqual([expect.stringContaining('***@quay.io/ns/a:v1')]);
    expect(failures.join()).not.toContain('secret');
  });

  it('refuses what has no digest before anything is asked for, where one is wanted', async () => {
    const { session, serve, registry } = await openWorld();
    const { tagged, digest } = await serve('ns/one', '1.0.0');
    const root = await directoryWith(smallBundle());
    const options = { requireDigest: true };
    for (const reference of [tagged, root, `oci:${root}:v1@${digest}`]) {
      const error = await failureOf(stageBundles([reference], session, options));
      expect(error.message).toMatch(/, required by options\.requireDigest$/);
      expect(error.message.startsWith(reference)).toBe(true);
    }
    expect(registry.requests).toEqual([]);
    const pinned = tagged.replace(/:v.*/, `@${digest}`);
    expect(await stage([pinned], session, options)).toHaveLength(1);
  });

  it('says what something is that is no bundle', async () => {
    const { session, registry } = await openWorld();
    serveBuilt(registry, 'ns/catalog', 'v1', await makeCatalogImage({ 'a.json': '{}' }));
    serveBuilt(registry, 'ns/empty', 'v1', await makeImage({ files: { 'etc/passwd': '' } }));
    const root = await directoryWith({ 'a.json': '{}', 'list.txt': '' });
    const messageOf = async (reference: string): Promise<string> =>
      (await failureOf(stageBundles([reference], session))).message;
    const { host } = registry;
    expect(await messageOf(`${host}/ns/catalog:v1`)).toBe(
      `${host}/ns/catalog:v1: is a catalog image, not a bundle`,
    );
    expect(await messageOf(`${host}/ns/empty:v1`)).toBe(`${host}/ns/empty:v1: directory manifests not found`);
    expect(await messageOf(root)).toBe(`${root}: directory manifests not found`);
    expect(await messageOf(path.join(root, 'list.txt'))).toBe(
      `${path.join(root, 'list.txt')}: is a file, not a bundle`,
    );
  });

  it.each(['git+https://git.test/team/repo.git#main', 'https://files.test/b.tgz', 'configmap:maps.yaml'])(
    'names the sources that can be added in place of %s',
    async (reference) => {
      const { session } = await openWorld();
      const failure = await failureOf(stageBundles([reference], session));
      expect(failure).toMatchObject({
        code: 'UNSUPPORTED',
        message: `${reference}: cannot be added to an index`,
        hint: expect.stringMatching(/^use an image, oci:DIR\[:TAG\], .*api\.unpackBundle/),
      });
    },
  );

  it('stops when it is told to', async () => {
    const { session, registry } = await openWorld();
    registry.on({ path: /manifests/, respond: { hang: true } });
    const cancel = new AbortController();
    const staging = stageBundles([`${registry.host}/ns/one:v1`], { ...session, signal: cancel.signal });
    setTimeout(() => cancel.abort(), 50);
    expect(await failureOf(staging)).toMatchObject({ code: 'CANCELLED' });
  });
});

describe('source/bundles parsePullFrom', () => {
  it('takes registries and beginnings of names', () => {
    expect(parsePullFrom(['quay.io=localhost:5000/mirror', 'docker.io/library/=a.example'])).toEqual([
      { prefix: 'quay.io', other: 'localhost:5000/mirror' },
      { prefix: 'docker.io/library', other: 'a.example' },
    ]);
  });

  it.each([
    [['quay.io'], 'expected PREFIX=OTHER'],
    [['quay.io='], 'expected PREFIX=OTHER'],
    [['a.io=b.io=c.io'], 'expected PREFIX=OTHER'],
    [['prod=registry.internal/stage'], 'prod missing registry'],
    [['quay.io/prod=stage'], 'stage missing registry'],
    [['quay.io/prod:v1=b.io'], 'quay.io/prod:v1 is not a registry'],
    [['https://quay.io=b.io'], 'not a registry'],
    [['a.io=b.io', 'a.io=c.io'], 'duplicate prefix a.io, already pulled from b.io'],
  ])('refuses %j', (texts, message) => {
    expect(() => parsePullFrom(texts)).toThrow(message);
  });
});
