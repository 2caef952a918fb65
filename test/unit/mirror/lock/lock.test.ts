import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { OpmateError } from '../../../../src/core/errors.js';
import { encodeLock, planOf } from '../../../../src/mirror/lock/encode-lock.js';
import { type ImageSetLock, getLockBlobs, compareLocked } from '../../../../src/mirror/lock/lock.js';
import { parseLock, readLock } from '../../../../src/mirror/lock/parse-lock.js';
import {
  contentsOf,
  digestFor,
  imageManifest,
  indexManifest,
  layer,
  lockOf,
  lockedCatalog,
  lockedImage,
} from '../../../support/locks.js';
import { directoryWith } from '../../../support/temporary.js';

const schema = JSON.parse(readFileSync('schemas/opmate-lock.json', 'utf8')) as object;
const matchesSchema = new Ajv().compile(schema);

const [base, top, other] = [layer('base', 1000), layer('top', 20), layer('other', 3)];
const amd64 = imageManifest('amd64', [base, top]);
const arm64 = imageManifest('arm64', [base, other]);
const index = indexManifest('both', [amd64, arm64]);
const signature = imageManifest('signature', [layer('payload', 7)]);

/** Everything that a lock can say: indexes whole and in part, referrers, one digest as two types, no tag. */
function fullLock(): ImageSetLock {
  const sparse = { ...index, manifests: [amd64.descriptor.digest] };
  const asConfig = imageManifest('config', [{ ...base, mediaType: 'application/vnd.oci.empty.v1+json' }]);
  const images = [
    lockedImage('whole', contentsOf([amd64, arm64, index]), { bundles: ['acme/acme.v1', 'beta/beta.v2'] }),
    lockedImage('sparse', contentsOf([amd64, sparse]), { bundles: ['acme/acme.v1'], kind: 'bundle' }),
    lockedImage('signed', contentsOf([amd64, signature], amd64), {
      tag: undefined,
      aliases: ['docker.io/ns/signed:v1'],
    }),
    lockedImage('nested', contentsOf([amd64, arm64, index, indexManifest('outer', [index, amd64])])),
    lockedImage('odd', contentsOf([asConfig]), { kind: 'signature', tag: 'sha256-aa.sig' }),
    lockedImage('index', contentsOf([arm64]), { kind: 'catalog', source: 'oci:catalogs/index:v1' }),
  ];
  const catalog = { ...lockedCatalog({ acme: ['acme.v0', 'acme.v1'], beta: ['beta.v2'] }), isWhole: false };
  return lockOf(images.sort(compareLocked), [
    { ...catalog, targetCatalogSourceTemplate: { file: 'cs.yaml', text: 'kind: CatalogSource\n' } },
  ]);
}

const text = encodeLock(fullLock());
/** What is said about a lock text. */
function faultOf(changed: string): OpmateError {
  try {
    parseLock(changed, 'a.lock');
  } catch (error) {
    if (error instanceof OpmateError) return error;
    throw error;
  }
  throw new Error('the lock is accepted');
}

/** A lock file as JSON, to be changed at will. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- any part is made wrong
type Json = Record<string, any>;
const changed = (change: (lock: Json) => void): string => {
  const lock = JSON.parse(text) as Json;
  change(lock);
  return JSON.stringify(lock);
};

describe('mirror/lock', () => {
  it('is read as it was written', () => {
    expect(parseLock(text, 'a.lock')).toEqual(fullLock());
    expect(encodeLock(parseLock(text, 'a.lock'))).toBe(text);
    expect(text.endsWith('\n}\n')).toBe(true);
    expect(matchesSchema(JSON.parse(text)), JSON.stringify(matchesSchema.errors)).toBe(true);
  });

  it('has the same bytes in whatever order the images come, and however they were read', () => {
    const lock = fullLock();
    const images = [...lock.images].reverse().map((image) => {
      const manifests = image.contents.manifests.map((one) => ({ ...one, bytes: Buffer.from('{}') }));
      return { ...image, contents: { ...image.contents, manifests } };
    });
    expect(encodeLock({ ...lock, images, options: { ...lock.options } })).toBe(text);
  });

  it('says everything once, so that an image more is a block more', () => {
    const lines = (lock: ImageSetLock): string[] => encodeLock(lock).split('\n');
    const lock = fullLock();
    const more = lockedImage('more', contentsOf([imageManifest('more', [base, layer('more', 9)])]));
    const added = lines({ ...lock, images: [...lock.images, more] });
    const before = new Set(lines(lock));
    expect(added.filter((line) => !before.has(line))).toEqual([
      `  "plan": "${planOf({ ...lock, images: [...lock.images, more] })}",`,
      '      "reference": "quay.io/ns/more:v1",',
      `      "source": "docker://quay.io/ns/more@${more.contents.root.digest}",`,
      '      "repository": "ns/more",',
      `      "digest": "${more.contents.root.digest}",`,
      `    "${more.contents.root.digest}": {`,
      `        "${layer('more', 9).digest}"`,
      `    "${layer('more', 9).digest}": { "mediaType": "${base.mediaType}", "size": 9 },`,
    ]);
    expect(added.length - lines(lock).length).toBe(18);
    expect(text.match(new RegExp(`"${top.digest}": {`, 'g'))).toHaveLength(1);
  });

  it('has each blob once', () => {
    const blobs = getLockBlobs(fullLock());
    expect([...blobs.keys()].sort()).toEqual(
      [base, top, other, layer('payload', 7)].map(({ digest }) => digest).sort(),
    );
    expect(blobs.get(top.digest)).toEqual(top);
  });

  it('is refused when written with two images of one name', () => {
    const lock = lockOf([lockedImage('a', contentsOf([amd64])), lockedImage('a', contentsOf([arm64]))]);
    expect(() => encodeLock(lock)).toThrow('lock: images[1]: duplicate "ns/a:v1"');
  });

  const digest = digestFor('nothing');
  it.each<[string, (lock: Json) => void, RegExp]>([
    ['a field that is missing', (lock) => delete lock.images, /^a.lock:1:1: images: missing$/],
    [
      'an unknown field',
      (lock) => (lock.images[3].color = 1),
      /^a.lock:1:\d+: images\[3\]\.color: unknown field$/,
    ],
    ['another type', (lock) => (lock.images = {}), /^a.lock:1:\d+: images: expected a list, got an object$/],
    [
      'no object',
      (lock) => (lock.images[0] = 'x'),
      /^a.lock:1:\d+: images\[0\]: expected an object, got a string$/,
    ],
    [
      'a digest that is none',
      (lock) => (lock.images[3].digest = 'sha256:../x'),
      /images\[3\]\.digest: invalid digest "sha256:\.\.\/x"$/,
    ],
    [
      'a digest as a key',
      (lock) => (lock.blobs['../x'] = { mediaType: 'a', size: 1 }),
      /^a.lock:1:\d+: blobs\["\.\.\/x"\]/,
    ],
    [
      'a negative size',
      (lock) => (lock.blobs[base.digest].size = -1),
      /size: expected a size in bytes, got -1$/,
    ],
    [
      'half a byte',
      (lock) => (lock.blobs[base.digest].size = 1.5),
      /size: expected a size in bytes, got 1\.5$/,
    ],
    [
      'a size beyond counting',
      (lock) => (lock.blobs[base.digest].size = 2 ** 53),
      /size: expected a size in bytes, got the number 9007199254740992$/,
    ],
    [
      'a sum beyond counting',
      (lock) => (lock.blobs[base.digest].size = 2 ** 53 - 1),
      /size: more bytes than can be/,
    ],
    [
      'a huge manifest',
      (lock) => (lock.manifests[amd64.descriptor.digest].size = 2 ** 30),
      /size: more than the maximum of 4194304 bytes$/,
    ],
    [
      'an image without manifest',
      (lock) => (lock.images[3].digest = digest),
      /images\[3\]\.digest: .* not in manifests/,
    ],
    [
      'a manifest without blob',
      (lock) => delete lock.blobs[top.digest],
      /blobs\[1\]: sha256:\w+ is not in blobs$/,
    ],
    [
      'an index without manifest',
      (lock) => delete lock.manifests[arm64.descriptor.digest],
      /is not in manifests$/,
    ],
    [
      'a manifest in itself',
      (lock) => (lock.manifests[amd64.descriptor.digest].manifests = [index.descriptor.digest]),
      /lists .* which does not precede it$/,
    ],
    [
      'a root that is not listed',
      (lock) => (lock.images[0].manifests = [amd64.descriptor.digest]),
      /images\[0\]\.digest: .* is not among the manifests/,
    ],
    [
      'a repository',
      (lock) => (lock.images[2].repository = '../x'),
      /images\[2\]\.repository: expected a repository, got "\.\.\/x"$/,
    ],
    [
      'a tag in a repository',
      (lock) => (lock.images[2].repository = 'ns/x:v1'),
      /expected a repository, got "ns\/x:v1"$/,
    ],
    ['a tag', (lock) => (lock.images[2].tag = 'a/b'), /images\[2\]\.tag: expected a tag, got "a\/b"$/],
    ['a source', (lock) => (lock.images[2].source = 'https://x/y'), /images\[2\]\.source: image reference/],
    ['a kind', (lock) => (lock.images[2].kind = 'operator'), /\.kind: unsupported value "operator"$/],
    [
      'an image twice',
      (lock) => lock.images.push({ ...lock.images[3] }),
      /images\[6\]: duplicate "ns\/\w+:v1"$/,
    ],
    [
      'a catalog twice',
      (lock) => lock.catalogs.push(lock.catalogs[0]),
      /catalogs\[1\]: duplicate "ns\/index:v1"$/,
    ],
    [
      'a package twice',
      (lock) => lock.catalogs[0].packages.push(lock.catalogs[0].packages[0]),
      /^a.lock:1:\d+: catalogs\[0\]\.packages\[2\]\.name: duplicate "acme"$/,
    ],
    [
      'an option',
      (lock) => (lock.options['x'] = 1),
      /^a.lock:1:\d+: options\.x: expected a string, got the number 1$/,
    ],
    ['a secret in a source', (lock) => (lock.images[2].source = 'me:hush@quay.io/x'), /^((?!hush).)*$/],
  ])('is refused with %s', (_what, change, message) => {
    expect(faultOf(changed(change)).message).toMatch(message);
  });

  it('agrees with its schema about what the shape of a lock is', () => {
    const broken: ((lock: Json) => void)[] = [
      (lock) => delete lock.images,
      (lock) => (lock.images[3].color = 1),
      (lock) => (lock.images[3].digest = 'sha256:../x'),
      (lock) => (lock.blobs['../x'] = { mediaType: 'a', size: 1 }),
      (lock) => (lock.blobs[base.digest].size = -1),
      (lock) => (lock.images[2].repository = '../x'),
      (lock) => (lock.images[2].tag = 'a/b'),
      (lock) => (lock.images[2].kind = 'operator'),
      (lock) => (lock.options['x'] = 1),
      (lock) => (lock.catalogs[0].isWhole = 'yes'),
      (lock) => (lock.catalogs[0].packages[0].channels[0].head = 1),
      (lock) => (lock.version = 2),
    ];
    for (const change of broken) {
      expect(matchesSchema(JSON.parse(changed(change)))).toBe(false);
      expect(faultOf(changed(change)).file).toBe('a.lock');
    }
  });

  it('is refused where it is not JSON, or ambiguous, or another thing, or newer', () => {
    expect(faultOf('{\n  "version": 1,\n}')).toMatchObject({ code: 'SYNTAX', line: 3 });
    const twice = faultOf(text.replace('"version": 1,', '"version": 1, "version": 1,'));
    expect(twice.message).toBe('a.lock:2:17: version: duplicate key, first defined on line 2');
    for (const thing of ['{}', '[]', '1', 'null', '"x"', 'kind: List\n', '\u0000\u0001'])
      expect(faultOf(thing)).toMatchObject({
        code: 'INVALID',
        message: 'a.lock: expected a lock or an archive',
        line: undefined,
      });
    expect(faultOf('{"version":"1"}').message).toBe(
      'a.lock:1:2: version: expected the number 1, got a string',
    );
    const newer = faultOf(text.replace('"version": 1', '"version": 2'));
    expect(newer).toMatchObject({ code: 'UNSUPPORTED', hint: expect.stringContaining('newer') as string });
  });

  it('is refused quickly where its manifests go round in circles, or deep, or many times', () => {
    const names = Array.from({ length: 300 }, (_, i) => digestFor(`circle ${i}`));
    const entry = (manifests: string[]) => ({ mediaType: 'x', size: 1, manifests });
    const withManifests = (manifests: Json, image: Json = {}, times = 1): string =>
      changed((lock) => {
        const one = { ...lock.images[2], digest: names[0], ...image };
        delete one.manifests;
        lock.images = Array.from({ length: times }, (_, i) => ({ ...one, tag: `v${i}` }));
        Object.assign(lock.manifests, manifests);
      });
    const circle = Object.fromEntries(names.map((name) => [name, entry(names)]));
    expect(faultOf(withManifests(circle)).message).toMatch(/does not precede it$/);
    const chain = Object.fromEntries(names.map((name, i) => [name, entry(names.slice(i + 1, i + 2))]));
    expect(faultOf(withManifests(chain)).message).toMatch(/does not precede it$/);
    const wide = Object.fromEntries(names.map((name, i) => [name, entry(i === 0 ? names.slice(1) : [])]));
    expect(faultOf(withManifests(wide, {}, 5000))).toMatchObject({ code: 'LIMIT' });
  });

  it('is refused in plain words, or means something, whatever stands in any place of it', () => {
    const wrong = [null, true, -1, 2 ** 53, 1e308, '', 'x', '../x', '\u0000', [], [[]], {}, { a: 1 }, digest];
    const places = (value: unknown, path: string[] = []): string[][] =>
      typeof value !== 'object' || value === null
        ? []
        : Object.entries(value).flatMap(([key, item]) => [[...path, key], ...places(item, [...path, key])]);
    for (const place of places(JSON.parse(text))) {
      for (const value of wrong) {
        const changedText = changed((lock) => {
          let object = lock;
          for (const key of place.slice(0, -1)) object = object[key] as Json;
          object[place.at(-1) as string] = value;
        });
        let lock: ImageSetLock;
        try {
          lock = parseLock(changedText, 'a.lock');
        } catch (error) {
          expect(error).toBeInstanceOf(OpmateError);
          expect((error as OpmateError).message).toMatch(/^a\.lock(?::1:\d+)?: .*$/);
          continue;
        }
        expect(parseLock(encodeLock(lock), 'b.lock')).toEqual(lock);
      }
    }
    for (let end = 0; end < text.length - 1; end += 97)
      expect(faultOf(text.slice(0, end))).toMatchObject({ code: 'SYNTAX', file: 'a.lock' });
  });

  it('is read from its file, and only from a file', async () => {
    const directory = await directoryWith({ 'a.lock': text, binary: Buffer.from([0xff, 0xfe]) });
    expect(await readLock(`${directory}/a.lock`)).toEqual(fullLock());
    const failure = (name: string) => readLock(`${directory}/${name}`, name).catch((error: unknown) => error);
    expect(await failure('b.lock')).toMatchObject({
      code: 'NOT_FOUND',
      message: 'b.lock: no such file or directory',
    });
    expect(await failure('')).toMatchObject({ code: 'IO' });
    execFileSync('mkfifo', [`${directory}/pipe`]);
    expect(await failure('pipe')).toMatchObject({ code: 'IO', message: 'pipe: not an ordinary file' });
    expect(await failure('binary')).toMatchObject({ code: 'SYNTAX', message: 'binary:1: invalid UTF-8' });
  });
});
