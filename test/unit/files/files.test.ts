import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, readdir, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { listCatalogFiles } from '../../../src/catalog/walk.js';
import { changeDirectory } from '../../../src/files/change-directory.js';
import { fillDirectory, requireEmptyDirectory } from '../../../src/files/fill-directory.js';
import { type Journal, readIdentity, recoverDirectory } from '../../../src/files/journal.js';
import { getProcessId, isRunning, ownProcess } from '../../../src/files/process-identity.js';
import { replaceFile, replaceFiles } from '../../../src/files/replace-file.js';
import { journalName, stagingName, sweepLeftovers } from '../../../src/files/staging.js';
import { deadName } from '../../support/dead-process.js';
import { directoryWith } from '../../support/temporary.js';

async function writeTree(root: string, files: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(root, name)), { recursive: true });
    await writeFile(path.join(root, name), text);
  }
}

describe('process identity', () => {
  it('recognizes a running process, an ended one, and one of another machine', async () => {
    const own = ownProcess();
    const [machine, pid, started] = own.split('-') as [string, string, string];
    expect(getProcessId(own)).toBe(process.pid);
    expect(isRunning(own)).toBe(true);
    expect(isRunning(`${machine}-${pid}-${Number(started) + 1}`)).toBe(started === '0');
    const child = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
    await once(child, 'exit');
    expect(isRunning(`${machine}-${child.pid}-${started}`)).toBe(false);
    expect(isRunning(`00000000-${pid}-${started}`)).toBeUndefined();
    expect(getProcessId('a-b-c')).toBeUndefined();
    expect(isRunning('a-b-c')).toBeUndefined();
  });
});

describe('sweepLeftovers', () => {
  it('removes what an ended process left, and nothing of a running one or of others', async () => {
    const directory = await directoryWith();
    const [dead, alive] = [await deadName(), stagingName()];
    const fresh = '.opmate-00000000-7-7-0123456789abcdef';
    const old = '.opmate-00000001-7-7-0123456789abcdef';
    for (const name of [`${dead}/x`, alive, fresh, old, '.opmate-mine', 'opmate.txt'])
      await writeTree(directory, { [name]: 'x' });
    const longAgo = new Date(Date.now() - 30 * 86_400_000);
    await utimes(path.join(directory, old), longAgo, longAgo);
    await sweepLeftovers(directory);
    expect((await readdir(directory)).sort()).toEqual([alive, fresh, '.opmate-mine', 'opmate.txt'].sort());
  });
});

describe('replaceFile', () => {
  it('replaces a file whose name is as long as names may be', async () => {
    const directory = await directoryWith();
    const file = path.join(directory, 'n'.repeat(255));
    await replaceFile(file, 'one');
    await replaceFile(file, 'two');
    expect(await readFile(file, 'utf8')).toBe('two');
    expect(await readdir(directory)).toHaveLength(1);
  });
});

describe('replaceFiles', () => {
  it('takes back what it replaced and made when a later file fails', async () => {
    const directory = await directoryWith();
    await writeTree(directory, { a: 'old', taken: 'x' });
    const write = replaceFiles([
      { target: path.join(directory, 'a'), text: 'new' },
      { target: path.join(directory, 'made/b'), text: 'new' },
      { target: path.join(directory, 'taken/c'), text: 'new' },
    ]);
    await expect(write).rejects.toMatchObject({ message: expect.stringContaining('taken/c') });
    expect((await readdir(directory)).sort()).toEqual(['a', 'taken']);
    expect(await readFile(path.join(directory, 'a'), 'utf8')).toBe('old');
  });

  it('takes its files back when what belongs to them fails', async () => {
    const directory = await directoryWith();
    await writeTree(directory, { a: 'old' });
    const files = ['a', 'b'].map((name) => ({ target: path.join(directory, name), text: 'new' }));
    const then = async (): Promise<void> => {
      expect(await readFile(path.join(directory, 'a'), 'utf8')).toBe('new');
      throw new Error('no space');
    };
    await expect(replaceFiles(files, { then })).rejects.toThrow('no space');
    expect(await readdir(directory)).toEqual(['a']);
    expect(await readFile(path.join(directory, 'a'), 'utf8')).toBe('old');
  });
});

describe('changeDirectory', () => {
  it('replaces, adds and removes files and directories as one step', async () => {
    const parent = await directoryWith();
    const root = path.join(parent, 'root');
    await writeTree(root, { 'a/x': 'old', b: 'old', gone: 'old' });
    for (const beside of [true, false]) {
      await changeDirectory(root, { beside }, async ({ staging, put, add, remove }) => {
        await writeTree(staging, { 'dir/y': 'new', b: 'new', c: 'new' });
        put(path.join(staging, 'dir'), 'a');
        put(path.join(staging, 'b'), 'b');
        if (beside) add(path.join(staging, 'c'), 'deep/er/c');
        remove('gone');
      });
    }
    expect((await readdir(root, { recursive: true })).sort()).toEqual(
      ['a', 'a/y', 'b', 'deep', 'deep/er', 'deep/er/c'].sort(),
    );
    expect(await readFile(path.join(root, 'b'), 'utf8')).toBe('new');
    expect(await readdir(parent)).toEqual(['root']);
  });

  it('takes everything back when a name is taken', async () => {
    const parent = await directoryWith();
    const root = path.join(parent, 'root');
    await writeTree(root, { b: 'old', c: 'old' });
    const change = changeDirectory(root, {}, async ({ staging, put, add }) => {
      await writeTree(staging, { b: 'new', c: 'new' });
      put(path.join(staging, 'b'), 'b');
      add(path.join(staging, 'c'), 'c');
    });
    await expect(change).rejects.toThrow(/c: already exists$/);
    expect(await readFile(path.join(root, 'b'), 'utf8')).toBe('old');
    expect((await readdir(root)).sort()).toEqual(['b', 'c']);
  });

  it('refuses a directory that another process changes', async () => {
    const root = await directoryWith();
    await changeDirectory(root, { filling: true }, async () => {
      await expect(changeDirectory(root, {}, async () => undefined)).rejects.toThrow(
        /is being changed by another process \(process \d+\)$/,
      );
      await expect(listCatalogFiles(root, 'cat')).rejects.toThrow(/^cat: is being changed by process \d+$/);
    });
    expect(await readdir(root)).toEqual([]);
  });
});

/** A directory as a process leaves it that was killed while it moved the entries. */
async function killedAt(root: string, moved: number): Promise<void> {
  const staging = (await deadName()).replace(/^/, '');
  await writeTree(root, {
    a: 'old a',
    b: 'old b',
    [`${staging}/new/a`]: 'new a',
    [`${staging}/new/b`]: 'new b',
  });
  await writeTree(root, { [`${staging}/new/c`]: 'new c', [`${staging}/.indexignore`]: '*\n' });
  await mkdir(path.join(root, staging, 'old'));
  const { link, rename } = await import('node:fs/promises');
  const entries: Journal['entries'][number][] = [];
  for (const name of ['a', 'b', 'c']) {
    const before = await readIdentity(path.join(root, name));
    entries.push({ place: name, before, after: await readIdentity(path.join(root, staging, 'new', name)) });
  }
  for (const [i, { place, before }] of entries.slice(0, moved).entries()) {
    if (before !== undefined) await link(path.join(root, place), path.join(root, staging, 'old', String(i)));
    await rename(path.join(root, staging, 'new', place), path.join(root, place));
  }
  const journal = { process: staging.slice('.opmate-'.length, -17), staging, isBeside: false, entries };
  await writeFile(path.join(root, journalName), JSON.stringify({ ...journal, directories: [] }));
}

describe('a directory whose change was killed', () => {
  it.each([0, 1, 2, 3])(
    'is refused as a catalog, and taken back by the next change (%d moved)',
    async (moved) => {
      const root = await directoryWith();
      await killedAt(root, moved);
      await expect(listCatalogFiles(root, 'cat')).rejects.toMatchObject({
        message: 'cat: unfinished, the command that wrote it was interrupted',
        hint: 'run that command again to roll back its changes',
      });
      await changeDirectory(root, {}, async () => undefined);
      expect((await readdir(root)).sort()).toEqual(['a', 'b']);
      expect(await readFile(path.join(root, 'a'), 'utf8')).toBe('old a');
      expect(await readFile(path.join(root, 'b'), 'utf8')).toBe('old b');
    },
  );

  it('keeps what another process has written since', async () => {
    const root = await directoryWith();
    await killedAt(root, 3);
    await replaceFile(path.join(root, 'a'), 'mine');
    await recoverDirectory(root);
    expect(await readFile(path.join(root, 'a'), 'utf8')).toBe('mine');
    expect(await readFile(path.join(root, 'b'), 'utf8')).toBe('old b');
  });

  it('is left alone where the journal leads out of it', async () => {
    const parent = await directoryWith();
    const root = path.join(parent, 'root');
    await writeTree(parent, { precious: 'x', 'root/a': 'x' });
    const staging = await deadName();
    for (const place of ['../precious', 'link/precious', '/etc/x', 'a/../../precious']) {
      await symlink('..', path.join(root, 'link')).catch(() => undefined);
      const after = await readIdentity(path.join(parent, 'precious'));
      const journal = {
        process: staging.slice(8, -17),
        staging,
        directories: [],
        entries: [{ place, after }],
      };
      await writeFile(path.join(root, journalName), JSON.stringify(journal));
      await expect(recoverDirectory(root)).rejects.toMatchObject({ code: 'UNSAFE' });
    }
    expect(await readFile(path.join(parent, 'precious'), 'utf8')).toBe('x');
  });
});

describe('fillDirectory', () => {
  it('heals an empty directory that a killed run has begun to fill', async () => {
    const root = await directoryWith();
    const staging = await deadName();
    await writeTree(root, { [`${staging}/new/pkg/catalog.json`]: '{}' });
    const journal = { process: staging.slice(8, -17), staging, entries: [], directories: [] };
    await writeFile(path.join(root, journalName), JSON.stringify(journal));
    await requireEmptyDirectory(root);
    expect(await readdir(root)).toEqual([]);
    const { ino } = await stat(root);
    await fillDirectory(root, (to) => writeTree(to, { 'old/catalog.json': '{}', new: 'x' }));
    expect((await readdir(root)).sort()).toEqual(['new', 'old']);
    expect((await stat(root)).ino).toBe(ino);
  });

  it('is refused as a catalog from the first byte to the last', async () => {
    const root = await directoryWith();
    await fillDirectory(root, async (to) => {
      await writeTree(to, { 'pkg/catalog.json': '{}' });
      await expect(listCatalogFiles(root)).rejects.toMatchObject({ code: 'IO' });
    });
    expect(await listCatalogFiles(root)).toHaveLength(1);
  });

  it('leaves neither the directory nor those above it when it fails', async () => {
    const parent = await directoryWith();
    const fill = fillDirectory(path.join(parent, 'a/b/c'), async (to) => {
      await writeTree(to, { x: 'x' });
      throw new Error('no');
    });
    await expect(fill).rejects.toThrow();
    expect(await readdir(parent)).toEqual([]);
  });
});
