import { mkdtemp, readFile, readdir, rm, stat, symlink, writeFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LayerInput, extractLayers, readLayers } from '../../../src/archive/layers.js';
import { defaultArchiveLimits } from '../../../src/archive/limits.js';
import { layerOf } from '../../../src/archive/tar-writer.js';
import { type RawEntry, layerFrom, rawLayer, rawTar } from '../../support/tar.js';

const dir = (name: string): RawEntry => ({ name, flag: '5' });
const file = (name: string, content = name): RawEntry => ({ name, content });
const soft = (name: string, linkName: string): RawEntry => ({ name, flag: '2', linkName });
const hard = (name: string, linkName: string): RawEntry => ({ name, flag: '1', linkName });

/** Paths and contents under `roots`; a file that cannot be read shows as its error code. */
async function read(layers: RawEntry[][], roots = ['configs']): Promise<Record<string, string>> {
  return contentOf(layers.map(rawLayer), roots);
}

async function contentOf(layers: LayerInput[], roots = ['configs']): Promise<Record<string, string>> {
  const tree = await readLayers(layers, { roots });
  const result: Record<string, string> = {};
  for (const [path, entry] of tree.files) {
    result[path] = await entry.read().then(String, (error: { code: string }) => `!${error.code}`);
  }
  return result;
}

describe('archive/layers', () => {
  let work: string;
  beforeEach(async () => {
    work = await mkdtemp(join(tmpdir(), 'opmate-layers-'));
  });
  afterEach(async () => {
    await rm(work, { recursive: true, force: true });
  });

  it('reads what is under the roots and nothing else', async () => {
    const layers = [
      [dir('./'), file('./configs/a'), file('/configs/d//b'), file('configsx/c'), file('etc/d')],
    ];
    expect(await read(layers)).toEqual({ 'configs/a': './configs/a', 'configs/d/b': '/configs/d//b' });
    expect(await read(layers, ['/etc/'])).toEqual({ 'etc/d': 'etc/d' });
    expect(Object.keys(await read(layers, ['']))).toEqual([
      'configs/a',
      'configs/d/b',
      'configsx/c',
      'etc/d',
    ]);
    const { directories } = await readLayers(layers.map(rawLayer), { roots: ['configs'] });
    expect([...directories]).toEqual(['configs', 'configs/d']);
  });

  it('lists files in byte order', async () => {
    const tree = await readLayers([rawLayer([file('b'), file('a/x'), file('a-b'), file('B')])], {
      roots: [''],
    });
    expect([...tree.files.keys()]).toEqual(['B', 'a-b', 'a/x', 'b']);
  });

  describe('names (row 1)', () => {
    it.each(['../../x', '..', 'a/../../x', '/../x', 'C:\\x', '..\\x', '\\x', 'a\\..\\..\\x', './c:/x'])(
      'refuses the entry %j, naming layer and entry',
      async (name) => {
        const layer = rawLayer([file('configs/a'), file(name)]);
        const error = await readLayers([layer], { roots: ['configs'] }).catch((e: unknown) => e);
        expect(error).toMatchObject({ code: 'UNSAFE' });
        expect((error as Error).message).toContain(`layer ${layer.label}: entry ${JSON.stringify(name)}: `);
      },
    );
    it('refuses NUL in a PAX path', async () => {
      const layer = rawLayer([{ ...file('x'), pax: { path: 'configs/a\0b' } }]);
      await expect(readLayers([layer], { roots: ['configs'] })).rejects.toMatchObject({ code: 'UNSAFE' });
    });
    it('keeps names with dots and backslashes that stay inside', async () => {
      expect(await read([[file('configs/x/../a'), file('configs/a\\x2db'), file('configs/..c')]])).toEqual({
        'configs/..c': 'configs/..c',
        'configs/a': 'configs/x/../a',
        'configs/a\\x2db': 'configs/a\\x2db',
      });
    });
    it('reads names that are not UTF-8', async () => {
      const name = Buffer.from([...Buffer.from('configs/'), 0xff, 0xfe]);
      expect(Object.values(await read([[{ name, content: 'x' }]]))).toEqual(['x']);
    });
  });

  describe('links', () => {
    it('confines a file written through configs -> /etc to the image (row 2)', async () => {
      const layers = [[soft('configs', '/etc')], [file('configs/opmate-x', 'in')]];
      expect(await read(layers)).toEqual({ 'configs/opmate-x': 'in' });
      expect(await read(layers, ['etc'])).toEqual({ 'etc/opmate-x': 'in' });
      await extractLayers(layers.map(rawLayer), join(work, 'out'), { roots: ['configs'] });
      expect(await readFile(join(work, 'out/configs/opmate-x'), 'utf8')).toBe('in');
      await expect(stat('/etc/opmate-x')).rejects.toMatchObject({ code: 'ENOENT' });
    });
    it('never leaves the root by chains of links and ".." (row 3)', async () => {
      await writeFile(join(work, 'secret'), 'host');
      const up = '../'.repeat(30);
      const layers = [
        [soft('configs/a', 'b'), soft('configs/b', up), soft('configs/s', `${up}${work}/secret`)],
      ];
      expect(await read(layers)).toEqual({
        'configs/a': '!NOT_FOUND',
        'configs/b': '!NOT_FOUND',
        'configs/s': '!NOT_FOUND',
      });
      const { files, problems } = await extractLayers(layers.map(rawLayer), join(work, 'out'), {
        roots: ['configs'],
      });
      expect(files).toEqual([...problems.keys()]);
      expect(await readdir(join(work, 'out/configs'))).toEqual([]);
    });
    it('reports a loop when the file is read, or when an entry goes through it (row 3)', async () => {
      const loop = [soft('configs/a', 'b'), soft('configs/b', 'a'), file('configs/c')];
      expect(await read([loop])).toEqual({
        'configs/a': '!NOT_FOUND',
        'configs/b': '!NOT_FOUND',
        'configs/c': 'configs/c',
      });
      await expect(read([loop, [file('configs/a/x')]])).rejects.toMatchObject({ code: 'INVALID' });
      const chain = Array.from({ length: 60 }, (_, i) => soft(`configs/l${i}`, `l${i + 1}`));
      const ends = await read([[...chain, file('configs/l60', 'end')]]);
      expect([ends['configs/l0'], ends['configs/l20'], ends['configs/l21']]).toEqual([
        '!NOT_FOUND',
        'end',
        'end',
      ]);
    });
    it('bounds what links to directories repeat', async () => {
      const entries: RawEntry[] = [file('configs/d20/x')];
      for (let i = 0; i < 20; i++)
        for (const l of ['a', 'b']) entries.push(soft(`configs/d${i}/${l}`, `../d${i + 1}`));
      await expect(read([entries])).rejects.toMatchObject({ code: 'LIMIT' });
    });
    it('follows roots, parents and files that are links, reading a layer again if need be', async () => {
      const base = rawLayer([file('opt/real/a'), file('opt/other', 'other'), soft('srv', 'opt')]);
      const top = rawLayer([
        soft('configs', '/srv/real'),
        soft('opt/real/l', '../other'),
        hard('opt/real/h', 'opt/other'),
      ]);
      expect(await contentOf([base, top])).toEqual({
        'configs/a': 'opt/real/a',
        'configs/h': 'other',
        'configs/l': 'other',
      });
      expect([base.opened, top.opened]).toEqual([2, 1]);
      expect(await read([[file('x/configs/a')], [soft('y', 'x')]], ['y/configs'])).toEqual({
        'y/configs/a': 'x/configs/a',
      });
    });
    it('writes into a wanted directory through a link outside of it', async () => {
      expect(await read([[dir('configs'), soft('alias', 'configs')], [file('alias/n', 'new')]])).toEqual({
        'configs/n': 'new',
      });
    });
    it('replaces a link by a directory or file of the same name', async () => {
      const lower = [file('opt/a'), soft('configs', 'opt')];
      expect(await read([lower, [dir('configs'), file('configs/b')]])).toEqual({ 'configs/b': 'configs/b' });
      expect(await read([[file('o'), soft('configs/l', '../o')], [file('configs/l', 'new')]])).toEqual({
        'configs/l': 'new',
      });
    });

    it('refuses hard links out of the root and takes none from the working directory (row 4)', async () => {
      await writeFile(join(work, 'sentinel'), 'host');
      const before = process.cwd();
      // The attack is on a link name that is resolved against the working directory.
      process.chdir(work);
      try {
        for (const target of [
          'sentinel',
          './sentinel',
          join(work, 'sentinel'),
          '../sentinel',
          `${'../'.repeat(20)}etc/passwd`,
        ]) {
          const layer = rawLayer([hard('configs/x', target)]);
          const error = await extractLayers([layer], join(work, 'out'), { roots: ['configs'] }).catch(
            (e: unknown) => e,
          );
          expect(error).toMatchObject({ code: target.startsWith('..') ? 'UNSAFE' : 'INVALID' });
          expect((error as Error).message).toContain(`layer ${layer.label}: entry "configs/x": hard link`);
        }
        expect((await stat(join(work, 'sentinel'))).nlink).toBe(1);
        expect(await readdir(work)).toEqual(['sentinel']);
      } finally {
        process.chdir(before);
      }
    });
    it('confines a hard link that goes through symbolic links', async () => {
      await expect(read([[soft('s', '/etc'), hard('configs/x', 's/passwd')]])).rejects.toMatchObject({
        code: 'INVALID',
      });
    });
    it('resolves a hard link to one outside the roots, of its own or a lower layer (row 5)', async () => {
      expect(
        await read([
          [file('o/a'), hard('configs/a', 'o/a')],
          [hard('configs/b', './o/a'), hard('configs/c', '/configs/b')],
        ]),
      ).toEqual({ 'configs/a': 'o/a', 'configs/b': 'o/a', 'configs/c': 'o/a' });
    });
    it('keeps what a hard link names after its target is removed or replaced (row 5)', async () => {
      expect(
        await read([
          [file('o/a'), hard('configs/a', 'o/a')],
          [file('o/a', 'new'), file('.wh.o')],
        ]),
      ).toEqual({ 'configs/a': 'o/a' });
    });
    it('names the target of a hard link to what has been removed, or to a directory (row 5)', async () => {
      await expect(read([[file('o/a')], [file('.wh.o')], [hard('configs/a', 'o/a')]])).rejects.toThrow(
        /hard link to "o\/a", which does not exist/,
      );
      await expect(read([[dir('o'), hard('configs/a', 'o')]])).rejects.toThrow(/a directory/);
    });
  });

  describe('whiteouts (row 6)', () => {
    const lower = [file('configs/a'), file('configs/d/b'), file('configs/d/e/c'), file('o')];
    it('removes a file or directory of lower layers', async () => {
      expect(Object.keys(await read([lower, [file('configs/.wh.d')]]))).toEqual(['configs/a']);
      expect(Object.keys(await read([lower, [file('configs/d/.wh.b')]]))).toEqual([
        'configs/a',
        'configs/d/e/c',
      ]);
      expect(await read([lower, [file('.wh.configs')]])).toEqual({});
    });
    it.each(['first', 'last'])('spares what its own layer brings, coming %s', async (place) => {
      for (const marker of ['configs/d/.wh..wh..opq', 'configs/.wh.d']) {
        const own = [dir('configs/d'), file('configs/d/e/n')];
        const layer = place === 'first' ? [file(marker), ...own] : [...own, file(marker)];
        expect(Object.keys(await read([lower, layer]))).toEqual(['configs/a', 'configs/d/e/n']);
      }
    });
    it('ignores names that no file has', async () => {
      const bogus = [
        '.wh.',
        '.wh..',
        '.wh...',
        '.wh..wh.plnk',
        '.wh..wh.',
        'none/.wh.x',
        'o/.wh.x',
        'configs/d/.wh...',
      ];
      expect(Object.keys(await read([lower, bogus.map((name) => file(name))], ['']))).toEqual([
        'configs/a',
        'configs/d/b',
        'configs/d/e/c',
        'o',
      ]);
    });
    it('works through a link to the directory, inside the image only', async () => {
      await writeFile(join(work, 'a'), 'host');
      const layers = [
        [...lower, soft('s', 'configs'), soft('h', `..${work}`)],
        [file('s/.wh.a'), file('h/.wh.a')],
      ];
      expect(Object.keys(await read(layers))).toEqual(['configs/d/b', 'configs/d/e/c']);
      expect(await readFile(join(work, 'a'), 'utf8')).toBe('host');
    });
    it('lets a later layer bring back what an earlier one removed', async () => {
      expect(await read([lower, [file('configs/.wh..wh..opq')], [file('configs/a', 'new')]])).toEqual({
        'configs/a': 'new',
      });
    });
  });

  it('reports devices and pipes, skips odd modes, and writes 0600 and 0700 (row 7)', async () => {
    const layer = rawLayer([
      { ...dir('configs'), mode: 0 },
      { ...file('configs/a'), mode: 0o4000, pax: { 'SCHILY.xattr.security.capability': 'x' } },
      { name: 'configs/c', flag: '3' },
      { name: 'configs/b', flag: '4' },
      { name: 'configs/p', flag: '6' },
    ]);
    const out = join(work, 'out');
    const { files, problems } = await extractLayers([layer], out, { roots: ['configs'] });
    expect(files).toEqual(['configs/a', 'configs/b', 'configs/c', 'configs/p']);
    expect([...problems.keys()]).toEqual(['configs/b', 'configs/c', 'configs/p']);
    expect((await stat(join(out, 'configs/a'))).mode & 0o7777).toBe(0o600);
    expect((await stat(join(out, 'configs'))).mode & 0o7777).toBe(0o700);
    expect((await stat(join(out, 'configs/a'))).uid).toBe(process.getuid?.());
  });
  it('reports a device that replaces a file', async () => {
    expect(await read([[file('configs/a')], [{ name: 'configs/a', flag: '3' }]])).toEqual({
      'configs/a': '!UNSUPPORTED',
    });
  });

  describe('limits (rows 8 and 9)', () => {
    const limited = (layers: LayerInput[], limits: Partial<typeof defaultArchiveLimits>) =>
      readLayers(layers, { roots: ['configs'], limits: { ...defaultArchiveLimits, ...limits } });
    it('counts entries over all layers, and directories that names imply', async () => {
      const layers = [rawLayer([file('a'), file('b')]), rawLayer([file('c'), file('x/y/d')])];
      await expect(limited(layers, { maxEntries: 5 })).rejects.toMatchObject({
        code: 'LIMIT',
        message: expect.stringContaining('more than 5 entries'),
        hint: expect.stringContaining('limits.maxEntries'),
      });
      await expect(limited(layers, { maxEntries: 6 })).resolves.toBeDefined();
    });
    it('counts files that are kept over all layers, where their number is limited, and skips the others', async () => {
      const limits = { ...defaultArchiveLimits, maxFiles: 2 };
      const few = [[file('configs/a'), file('etc/b'), file('etc/c')], [file('configs/d')]].map(rawLayer);
      expect((await readLayers(few, { roots: ['configs'], limits })).files.size).toBe(2);
      const many = [...few, rawLayer([file('configs/e')])];
      await expect(readLayers(many, { roots: ['configs'], limits })).rejects.toMatchObject({
        code: 'LIMIT',
        message: expect.stringMatching(/^layer .*: more than 2 files$/) as string,
      });
    });

    it('counts decompressed bytes over all layers, skipped ones too', async () => {
      const layers = [1, 2].map(() => rawLayer([{ name: 'a', content: Buffer.alloc(600_000) }]));
      await expect(limited(layers, { maxUnpackedSize: 1_000_000 })).rejects.toMatchObject({
        code: 'LIMIT',
        hint: expect.stringContaining('limits.maxUnpackedSize'),
      });
      await expect(limited(layers, { maxUnpackedSize: 1_300_000 })).resolves.toBeDefined();
    });
    it('leaves nothing behind when a bomb is refused', async () => {
      const bomb = layerFrom(
        gzipSync(rawTar([{ name: 'configs/a', content: Buffer.alloc(80 << 20) }]), { level: 9 }),
      );
      await expect(extractLayers([bomb], join(work, 'out'), { roots: ['configs'] })).rejects.toMatchObject({
        code: 'LIMIT',
        message: expect.stringContaining('200 times'),
        hint: expect.stringContaining('limits.maxRatio'),
      });
      expect(await readdir(work)).toEqual([]);
    });
    it('refuses one large file on disk only where it is kept, and in memory when it is read', async () => {
      const layer = rawLayer([
        file('o', 'x'.repeat(100)),
        file('configs/a', 'y'.repeat(50)),
        file('configs/b', 'b'),
      ]);
      const limits = { ...defaultArchiveLimits, maxFileSize: 60, maxMetadataFileSize: 20 };
      const tree = await readLayers([layer], { roots: ['configs'], limits });
      expect(String(await tree.files.get('configs/b')?.read())).toBe('b');
      await expect(tree.files.get('configs/a')?.read()).rejects.toMatchObject({ code: 'LIMIT' });
      await extractLayers([layer], join(work, 'one'), { roots: ['configs'], limits });
      await expect(extractLayers([layer], join(work, 'two'), { roots: ['o'], limits })).rejects.toMatchObject(
        { code: 'LIMIT' },
      );
    });
    it('refuses more files than memory is meant for', async () => {
      const layer = rawLayer(Array.from({ length: 6 }, (_, i) => file(`configs/${i}`, 'x'.repeat(100))));
      await expect(limited([layer], { maxMetadataFileSize: 100 })).rejects.toMatchObject({ code: 'LIMIT' });
    });
    it('refuses links and whiteouts that cost too many steps', async () => {
      const up = '../'.repeat(1300);
      const entries: RawEntry[] = [dir('d')];
      for (let i = 0; i < 39; i++) {
        entries.push({ ...soft(`s${i}`, 'd'), pax: { linkpath: i === 0 ? `${up}d` : `${up}s${i - 1}` } });
      }
      for (let i = 0; i < 500; i++) entries.push(file(`s38/f${i}`));
      await expect(read([entries])).rejects.toMatchObject({ code: 'LIMIT' });
    });
    it('refuses directories that links make deeper than any name', async () => {
      const deep = Array.from({ length: 1000 }, () => 'd').join('/');
      const entries: RawEntry[] = [];
      for (let i = 0; i < 3; i++) {
        entries.push({ ...dir('x'), pax: { path: i === 0 ? deep : `s${i - 1}/${deep}` } });
        entries.push({ ...soft(`s${i}`, ''), pax: { linkpath: i === 0 ? deep : `s${i - 1}/${deep}` } });
      }
      await expect(read([entries, [file('.wh.d')]])).rejects.toMatchObject({ code: 'LIMIT' });
      expect(await read([entries.slice(0, 4), [file('.wh.d')]])).toEqual({});
    });
    it('reports a sparse file when it is read', async () => {
      const sparse = [
        {
          ...file('GNUSparseFile.0/a', '1\n0\n'),
          pax: {
            'GNU.sparse.major': '1',
            'GNU.sparse.minor': '0',
            'GNU.sparse.name': 'configs/a',
            'GNU.sparse.realsize': '1000000000000',
          },
        },
        { ...file('configs/b'), flag: 'S' },
      ];
      expect(await read([[...sparse, file('configs/c')]])).toEqual({
        'configs/a': '!UNSUPPORTED',
        'configs/b': '!UNSUPPORTED',
        'configs/c': 'configs/c',
      });
    });
  });

  it('refuses a name under a file of a lower layer', async () => {
    await expect(read([[file('configs')], [file('configs/a')]])).rejects.toMatchObject({ code: 'INVALID' });
  });
  it('reads a root that is a file', async () => {
    expect(await read([[file('configs', 'x')]])).toEqual({ configs: 'x' });
  });

  describe('extractLayers', () => {
    it('writes through links and makes hard links of what they repeat', async () => {
      const layers = [
        [
          file('configs/d/a', 'A'),
          soft('configs/l', 'd'),
          soft('configs/m', 'd/a'),
          file('o/b', 'B'),
          soft('configs/n', '/o/b'),
        ],
      ];
      const out = join(work, 'deep/out');
      const result = await extractLayers(layers.map(rawLayer), out, { roots: ['configs'] });
      expect(result.files).toEqual(['configs/d/a', 'configs/l/a', 'configs/m', 'configs/n']);
      expect(result.directories).toEqual(['configs', 'configs/d', 'configs/l']);
      for (const path of result.files)
        expect(await readFile(join(out, path), 'utf8')).toBe(path === 'configs/n' ? 'B' : 'A');
      expect((await stat(join(out, 'configs/l'))).isDirectory()).toBe(true);
      expect(await readdir(join(work, 'deep'))).toEqual(['out']);
    });
    it('keeps existing files and writes nothing next to them', async () => {
      await mkdir(join(work, 'out'));
      await writeFile(join(work, 'out/kept'), 'x');
      await expect(
        extractLayers([rawLayer([file('configs/a')])], join(work, 'out'), { roots: ['configs'] }),
      ).rejects.toMatchObject({ code: 'IO' });
      await symlink('out', join(work, 'link'));
      await expect(
        extractLayers([rawLayer([file('configs/a')])], join(work, 'link'), { roots: ['configs'] }),
      ).rejects.toMatchObject({ code: 'IO' });
      expect(await readdir(work)).toEqual(['link', 'out']);
      expect(await readdir(join(work, 'out'))).toEqual(['kept']);
    });
    it('writes roots that are files, in directories that are not wanted', async () => {
      const layer = rawLayer([file('a/b/c', 'C'), file('d/e'), hard('f/g', 'a/b/c')]);
      const result = await extractLayers([layer], join(work, 'out'), { roots: ['/a/b/c', 'f/g'] });
      expect(result).toMatchObject({ files: ['a/b/c', 'f/g'], directories: [] });
      expect(await readFile(join(work, 'out/f/g'), 'utf8')).toBe('C');
      expect(await readdir(join(work, 'out'))).toEqual(['a', 'f']);
    });
    it('fills an empty directory', async () => {
      await mkdir(join(work, 'out'));
      await extractLayers([rawLayer([file('a')])], join(work, 'out'), { roots: [''] });
      expect(await readdir(join(work, 'out'))).toEqual(['a']);
    });
    it('stops reading other layers when one fails, and throws what that one failed with', async () => {
      const hanging = { label: 'sha256:x', open: async () => new Readable({ read: () => undefined }) };
      const layers = [hanging, rawLayer([file('../x')]), hanging];
      await expect(readLayers(layers, { roots: [''] })).rejects.toMatchObject({ code: 'UNSAFE' });
    });
    it('stops on a signal, even when a layer hangs, and cleans up', async () => {
      const controller = new AbortController();
      const hanging: LayerInput = {
        label: 'sha256:x',
        open: async () => {
          setTimeout(() => controller.abort(), 10);
          return new Readable({ read: () => undefined });
        },
      };
      const layers = [rawLayer([file('configs/a')]), hanging];
      await expect(
        extractLayers(layers, join(work, 'out'), { roots: ['configs'], signal: controller.signal }),
      ).rejects.toMatchObject({ code: 'CANCELLED' });
      expect(await readdir(work)).toEqual([]);
    });
  });

  it('passes on the failure of a source at its very end', async () => {
    const bytes = gzipSync(rawTar([file('configs/a')]));
    const source = async function* () {
      yield bytes;
      throw Object.assign(new Error('digest mismatch'), { code: 'DIGEST' });
    };
    const layer = { label: 'sha256:x', open: async () => Readable.from(source(), { objectMode: false }) };
    await expect(readLayers([layer], { roots: ['configs'] })).rejects.toThrow('digest mismatch');
  });

  it('reads back what random trees, written in layers, amount to', async () => {
    const name = fc.constantFrom('a', 'b', 'c', 'dd');
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
    const change = fc.oneof(
      { weight: 4, arbitrary: fc.record({ path, content: fc.string({ maxLength: 20 }) }) },
      { weight: 1, arbitrary: fc.record({ path, content: fc.constant(undefined) }) },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(change, { maxLength: 8 }), { minLength: 1, maxLength: 4 }),
        async (changes) => {
          const model = new Map<string, string>();
          const layers: LayerInput[] = [];
          for (const layer of changes) {
            const removed = new Set<string>();
            const added = new Map<string, string>();
            for (const { path: at, content } of layer) {
              if (content === undefined) {
                if ([...model.keys()].some((p) => `${p}/`.startsWith(`${at}/`))) removed.add(at);
              } else if (
                ![...added.keys(), ...model.keys()].some(
                  (p) => p !== at && (`${p}/`.startsWith(`${at}/`) || `${at}/`.startsWith(`${p}/`)),
                )
              ) {
                added.set(at, content);
              }
            }
            for (const at of removed)
              for (const p of [...model.keys()]) if (`${p}/`.startsWith(`${at}/`)) model.delete(p);
            for (const [at, content] of added) model.set(at, content);
            const whiteouts = [...removed].map((p) => ({
              path: p.replace(/[^/]*$/, '.wh.$&'),
              content: Buffer.alloc(0),
            }));
            const files = [...added].map(([p, content]) => ({ path: p, content: Buffer.from(content) }));
            layers.push(layerFrom((await layerOf([...whiteouts, ...files])).bytes));
          }
          expect(await contentOf(layers, [''])).toEqual(Object.fromEntries(model));
        },
      ),
      { numRuns: 60 },
    );
  });
});
