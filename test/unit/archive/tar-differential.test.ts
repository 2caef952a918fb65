import { spawnSync } from 'node:child_process';
import { lstat, mkdir, mkdtemp, readFile, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readLayers } from '../../../src/archive/layers.js';
import { indexTar } from '../../../src/archive/tar-index.js';
import { readTar } from '../../../src/archive/tar-reader.js';
import { OpmateError } from '../../../src/core/errors.js';
import { type RawEntry, layerFrom, paxRecord, rawTar, streamOf } from '../../support/tar.js';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'opmate-gnu-tar-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

/** Paths with their contents; a link has `-> TARGET`, a directory `/`. */
type Reading = Record<string, string>;

/** Unpacks with GNU tar; undefined where it complains, of a name with `..` for instance. */
async function readWithGnuTar(bytes: Buffer): Promise<Reading | undefined> {
  const directory = await mkdtemp(join(root, 'x-'));
  const file = join(directory, 'a.tar');
  await writeFile(file, bytes);
  await mkdir(join(directory, 'out'));
  // Not in one directory after the other: a link that leads out must find nothing.
  const { status } = spawnSync('tar', ['-xf', file, '-C', join(directory, 'out'), '--no-same-owner'], {
    env: { ...process.env, LC_ALL: 'C' },
    timeout: 10_000,
  });
  const reading: Reading = {};
  const visit = async (path: string): Promise<void> => {
    const full = join(directory, 'out', path);
    const stat = await lstat(full);
    if (stat.isSymbolicLink()) reading[path] = `-> ${await readlink(full)}`;
    else if (stat.isFile()) reading[path] = await readFile(full, 'latin1');
    else if (stat.isDirectory()) {
      if (path !== '') reading[path] = '/';
      for (const name of await readdir(full)) await visit(path === '' ? name : `${path}/${name}`);
    }
  };
  await visit('');
  await rm(directory, { recursive: true });
  return status === 0 ? reading : undefined;
}

async function readAsStream(bytes: Buffer): Promise<Reading> {
  const reading: Reading = {};
  const imply = (path: string): void => {
    for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1))
      reading[path.slice(0, slash)] ??= '/';
  };
  for await (const { path, type, linkName, body } of readTar(streamOf(bytes, 700), { label: 'x' })) {
    imply(path);
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(chunk);
    if (type === 'file') reading[path] = Buffer.concat(chunks).toString('latin1');
    else if (type === 'directory') reading[path] = '/';
    else if (type === 'symlink') reading[path] = `-> ${linkName}`;
    else if (type === 'link') reading[path] = reading[linkName] ?? 'missing';
    else delete reading[path];
  }
  return reading;
}

/** Regular files alone: what the index of an archive lists. */
async function readAsIndex(bytes: Buffer): Promise<Reading> {
  const file = join(root, 'indexed.tar');
  await writeFile(file, bytes);
  const reading: Reading = {};
  for (const [path, { offset, size }] of await indexTar(file))
    reading[path] = bytes.toString('latin1', offset, offset + size);
  return reading;
}

async function readAsLayer(bytes: Buffer): Promise<Reading> {
  const { files } = await readLayers([layerFrom(bytes)], { roots: [''] });
  const reading: Reading = {};
  for (const [path, file] of files)
    reading[path] = await file.read().then(
      (content) => content.toString('latin1'),
      (error: unknown) => `${(error as OpmateError).code}`,
    );
  return reading;
}

const attempt = async <T>(work: Promise<T>): Promise<T | OpmateError> => {
  try {
    return await work;
  } catch (error) {
    if (error instanceof OpmateError && error.code !== 'INTERNAL') return error;
    throw error;
  }
};

const filesOf = (reading: Reading): Reading =>
  Object.fromEntries(
    Object.entries(reading).filter(([, content]) => content !== '/' && !content.startsWith('-> ')),
  );

const evil: RawEntry = { name: 'evil', content: 'EVIL' };
const next: RawEntry = { name: 'next', content: 'next' };
const pax = (...records: [string, string][]): RawEntry => ({
  name: 'x',
  flag: 'x',
  content: records.map(([key, value]) => paxRecord(key, value)).join(''),
});
const global = (...records: [string, string][]): RawEntry => ({ ...pax(...records), name: 'g', flag: 'g' });
const long = (name: string): RawEntry => ({ name: '././@LongLink', flag: 'L', content: name });
const longLink = (name: string): RawEntry => ({ name: '././@LongLink', flag: 'K', content: name });
const inner = rawTar([evil], { end: false });
const size = (hex: string): Buffer => Buffer.from(hex.padEnd(24, '0'), 'hex');
const text = (field: string): Buffer => Buffer.from(field.padEnd(12, '\0'), 'latin1');
const tar = (...entries: RawEntry[]): Buffer => rawTar(entries);
const end = Buffer.alloc(1024);
const noEnd = (...entries: RawEntry[]): Buffer => rawTar(entries, { end: false });

/** Read the same by all. */
const agreed: [string, Buffer][] = [
  ['a PAX size before a GNU long name', tar(pax(['size', '4']), long('long\0'), { ...evil, size: 1024 }, next)],
  ['a PAX size behind a GNU long name', tar(long('long\0'), pax(['size', '4']), { ...evil, size: 0 }, next)],
  ['a PAX size that is smaller than that of the header', tar(pax(['size', '2']), { name: 'a', content: 'hh', size: 700 }, next)],
  ['a PAX size of a link', tar(pax(['size', '1024']), { name: 's', flag: '2', linkName: 'a', content: inner, size: 0 }, next)],
  ['a PAX size with zeros in front', tar(pax(['size', '004']), { ...evil, size: 0 }, next)],
  ['PAX records twice', tar(pax(['size', '512'], ['path', 'p'], ['size', '4'], ['path', 'q']), { ...evil, size: 0 }, next)],
  ['a PAX header that replaces another', tar(pax(['path', 'one']), pax(['linkpath', 'z']), evil, next)],
  ['a PAX header before a global one of a comment', tar(global(['comment', 'c']), pax(['path', 'p']), evil, next)],
  ['a PAX path with an equals sign', tar(pax(['path', 'q=r']), evil)],
  ['two GNU long names', tar(long('one\0'), long('two\0'), evil, next)],
  ['a GNU long name with bytes behind its NUL', tar(long('one\0two\0'), evil)],
  ['a GNU long name without NUL', tar(long('one'), evil)],
  ['a GNU long name that ends in a slash', tar(long('d/\0'), { name: 'd' }, next)],
  ['a GNU long link', tar(longLink('target\0'), { name: 's', flag: '2', linkName: 'short' })],
  ['equal PAX and GNU names', tar(long('p\0'), pax(['path', 'p']), evil)],
  ['NUL in a name', tar({ name: Buffer.from('on\0e'), content: '1' }, next)],
  ['a link with a size and an entry for content', tar({ name: 's', flag: '2', linkName: 'a', content: inner }, next)],
  ['a directory with a size and an entry for content', tar({ name: 'd/', flag: '5', content: inner }, next)],
  ['an old directory with a size and an entry for content', tar({ name: 'd/', flag: '\0', content: inner }, next)],
  ['a hard link with a size and an entry for content', tar({ name: 'a', content: '1' }, { name: 's', flag: '1', linkName: 'a', content: inner }, next)],
  ['a FIFO with a size and an entry for content', tar({ name: 's', flag: '6', content: inner }, next)],
  ['a contiguous file', tar({ name: 's', flag: '7', content: inner }, next)],
  ['a base-256 size', tar({ ...evil, sizeField: Buffer.from('800000000000000000000004', 'hex') }, next)],
  ['a size after spaces', tar({ ...evil, sizeField: text('          4 ') }, next)],
  ['a size of twelve digits', tar({ ...evil, sizeField: text('000000000004') }, next)],
  ['a size with digits behind its NUL', tar({ ...evil, sizeField: text('4\x003') }, next)],
  ['a size of NULs', tar({ name: 'a', sizeField: text('') }, next)],
  ['an archive behind another', Buffer.concat([tar(evil), tar(next)])],
  ['bytes behind the end', Buffer.concat([tar(evil), Buffer.from('garbage')])],
  ['no end', noEnd(evil, next)],
  ['half an end', Buffer.concat([noEnd(evil), Buffer.alloc(512)])],
  ['extension headers before the end', tar(evil, pax(['path', 'p']), long('q\0'))],
  ['duplicates', tar({ name: 'a', content: '1' }, { name: './a', content: '2' })],
  ['a file that becomes a directory', tar({ name: 'a', content: '1' }, { name: 'a/', flag: '5' })],
  ['a directory that becomes a file', tar({ name: 'a/', flag: '5' }, { name: 'a', content: '1' })],
  ['a hard link to a file that is replaced', tar({ name: 'a', content: '1' }, { name: 'b', flag: '1', linkName: 'a' }, { name: 'a', content: '2' })],
  ['a hard link to itself', tar({ name: 'a', content: '1' }, { name: 'a', flag: '1', linkName: 'a' })],
]; // prettier-ignore

/** Refused: GNU tar reads them in another way than Go, or complains. */
const refused: [string, Buffer][] = [
  ['a PAX size that two PAX headers give', tar(pax(['size', '4']), pax(['path', 'q']), { ...evil, size: 0 }, next)],
  ['a PAX path and another GNU long name', tar(pax(['path', 'p']), long('q\0'), evil)],
  ['a GNU long name and another PAX path', tar(long('q\0'), pax(['path', 'p']), evil)],
  ['a PAX linkpath and another GNU long link', tar(pax(['linkpath', 'p']), longLink('q\0'), { name: 's', flag: '2', linkName: 's' })],
  ['a path in a global header', tar(global(['path', 'p']), evil, next)],
  ['a size in a global header', tar(global(['size', '4']), { ...evil, size: 0 }, next)],
  ['a linkpath in a global header', tar(global(['linkpath', 'p']), { name: 's', flag: '2', linkName: 'q' })],
  ['a global header between a PAX header and its entry', tar(pax(['path', 'p']), global(['comment', 'c']), evil)],
  ['a global header between a long name and its entry', tar(long('p\0'), global(['comment', 'c']), evil)],
  ['a Solaris extension header', tar({ ...pax(['path', 'p']), flag: 'X' }, evil)],
  ['an empty PAX path', tar(pax(['path', '']), evil)],
  ['an empty PAX size', tar(pax(['size', '']), evil)],
  ['an empty GNU long name', tar(long('\0abc'), evil)],
  ['NUL in a PAX path', tar(pax(['path', 'p\0q']), evil)],
  ['NUL in a PAX linkpath', tar(pax(['linkpath', 'p\0q']), { name: 's', flag: '2', linkName: 's' })],
  ...['-4', '+4', ' 4', '4x', '4.0', '4e0', '0x4', '99999999999999999999'].map(
    (value): [string, Buffer] => [`a PAX size of "${value}"`, tar(pax(['size', value]), { ...evil, size: 0 }, next)],
  ),
  ['an old file with a slash behind its name and content', tar({ name: 'd/', content: inner }, next)],
  ['a GNU name with a slash behind and content', tar(long('d/\0'), evil, next)],
  ['a PAX path with a slash behind and content', tar(pax(['path', 'd/']), evil, next)],
  ['a negative base-256 size', tar({ ...evil, sizeField: Buffer.alloc(12, 0xff) })],
  ['a base-256 size of 2^88', tar({ ...evil, sizeField: size('8001') })],
  ['a base-256 size with other leading bits', tar({ ...evil, sizeField: size('81') })],
  ['a negative octal size', tar({ ...evil, sizeField: text('-0000000004') })],
  ['a size with a sign', tar({ ...evil, sizeField: text('+0000000004') })],
  ['a size that is not octal', tar({ ...evil, sizeField: text('00000000008') })],
  ['a size of two numbers', tar({ ...evil, sizeField: text('00000000 4 ') })],
  ['a size of spaces', tar({ ...evil, sizeField: Buffer.alloc(12, ' ') })],
  ['a single block of zeros before an entry', Buffer.concat([noEnd(evil), Buffer.alloc(512), tar(next)])],
  ['bytes of less than a block behind the last entry', Buffer.concat([noEnd(evil), Buffer.from('junk')])],
  ['an entry without its padding', noEnd(evil).subarray(0, 516)],
  ['a damaged header between entries', Buffer.concat([noEnd(evil), Buffer.alloc(512, 'Q'), tar(next), end])],
  ...['99 path=q\n', '9 path=qX', 'garbage', '8 pathq\n', ' 9 path=q\n', '4 =q\n', '+9 path=q\n', '9 path=q\n\0\0'].map(
    (content): [string, Buffer] => [`the PAX record ${JSON.stringify(content)}`, tar({ name: 'x', flag: 'x', content }, evil)],
  ),
  ['a sparse file without a map', tar(pax(['GNU.sparse.name', 'real']), evil)],
  ['a prefix in a header of GNU', (() => {
    const bytes = noEnd(evil);
    bytes.write('ustar  \0', 257, 'latin1');
    bytes.write('pre', 345);
    bytes.fill(' ', 148, 156);
    const sum = bytes.subarray(0, 512).reduce((total, byte) => total + byte, 0);
    bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    return Buffer.concat([bytes, end]);
  })()],
]; // prettier-ignore

describe('archive: hostile tar archives', () => {
  it.each(agreed)('reads %s as GNU tar does', async (_, bytes) => {
    const expected = (await readWithGnuTar(bytes)) as Reading;
    expect(expected).toBeDefined();
    expect(await readAsStream(bytes)).toEqual(expected);
    expect(await readAsIndex(bytes)).toEqual(filesOf(expected));
    expect(filesOf(await readAsLayer(bytes))).toMatchObject(filesOf(expected));
  });

  it.each(refused)('refuses %s', async (_, bytes) => {
    const error = { name: 'OpmateError', code: expect.stringMatching(/^(?:SYNTAX|UNSUPPORTED|UNSAFE)$/) };
    await expect(readAsStream(bytes)).rejects.toMatchObject(error);
    await expect(readAsIndex(bytes)).rejects.toMatchObject(error);
    await expect(readAsLayer(bytes)).rejects.toMatchObject(error);
  });

  it('lists nothing below a file or link, in an archive of images', async () => {
    for (const entries of [
      [{ name: 'a', content: '1' }, { name: 'a/b' }],
      [{ name: 'a/b' }, { name: 'a', content: '1' }],
      [{ name: 'd/', flag: '5' }, { name: 'l', flag: '2', linkName: 'd' }, { name: 'l/x' }],
    ])
      await expect(readAsIndex(rawTar(entries))).rejects.toMatchObject({ code: 'INVALID' });
  });

  it('reads any mix of headers as GNU tar does, or refuses it', async () => {
    const name = fc.constantFrom('a', 'b', 'd/', 'd/x', 'a/b', './a', 'ü', '');
    const value = fc.constantFrom('4', '0', '512', '1024', 'p', 'q', 'd/', 'p/q', '-1', '');
    const key = fc.constantFrom('path', 'linkpath', 'size', 'comment', 'GNU.sparse.name', 'mtime');
    const records = fc.array(fc.tuple(key, value), { maxLength: 2 });
    const content = fc.constantFrom('', '4444', inner, Buffer.concat([inner, inner]));
    const entry = fc.oneof(
      { weight: 3, arbitrary: fc.record({ name, content, flag: fc.constantFrom('0', '\0', '7') }) },
      { weight: 2, arbitrary: fc.record({ name, content, flag: fc.constantFrom('1', '2', '5', '6') , linkName: fc.constantFrom('a', 'd', 'none') }) },
      { weight: 1, arbitrary: fc.record({ name, content, size: fc.constantFrom(0, 4, 512, 1024, 3000) }) },
      { weight: 3, arbitrary: records.map((list) => pax(...list)) },
      { weight: 1, arbitrary: records.map((list) => global(...list)) },
      { weight: 2, arbitrary: value.map((text) => long(`${text}\0`)) },
      { weight: 1, arbitrary: value.map((text) => longLink(`${text}\0`)) },
    ); // prettier-ignore
    let read = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { minLength: 1, maxLength: 6 }), async (entries) => {
        const bytes = rawTar(entries as RawEntry[]);
        const stream = await attempt(readAsStream(bytes));
        const index = await attempt(readAsIndex(bytes));
        const layer = await attempt(readAsLayer(bytes));
        if (stream instanceof OpmateError) {
          for (const other of [index, layer]) expect(other).toBeInstanceOf(OpmateError);
          return;
        }
        const gnu = await readWithGnuTar(bytes);
        // What GNU tar cannot unpack (a file below a file) is told apart by those that build a tree.
        if (gnu === undefined) return;
        read++;
        expect(stream).toEqual(gnu);
        if (!(index instanceof OpmateError)) expect(index).toMatchObject(filesOf(gnu));
        if (!(layer instanceof OpmateError)) expect(layer).toMatchObject(filesOf(gnu));
      }),
      { numRuns: 150 },
    );
    expect(read).toBeGreaterThan(20);
  });
});
