import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, readdir, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { acquireLock, withLock } from '../../../src/files/lock.js';
import { openNamelessFile } from '../../../src/files/nameless-file.js';
import { deadName } from '../../support/dead-process.js';
import { directoryWith } from '../../support/temporary.js';

const task = 'opmate mirror';
const lockFile = '.opmate.lock-0123456789abcdef';

async function heldLock(directory: string): Promise<{ file: string; text: string }> {
  const [name] = await readdir(directory);
  const file = path.join(directory, name as string);
  return { file, text: await readFile(file, 'utf8') };
}

describe('the lock of a directory', () => {
  it('is held by one, names the holder to others, and leaves nothing', async () => {
    const directory = await directoryWith();
    const lock = await acquireLock(directory, { task });
    const refused = acquireLock(directory, { task });
    await expect(refused).rejects.toMatchObject({
      code: 'IO',
      message: expect.stringMatching(
        new RegExp(
          `^${directory}: in use by process ${process.pid} on .+ \\(opmate mirror\\) since 2\\d{3}-`,
        ),
      ) as string,
      hint: expect.stringContaining('.opmate.lock-') as string,
    });
    await lock.release();
    expect(await readdir(directory)).toEqual([]);
    await withLock(directory, { task }, async () => expect(await readdir(directory)).toHaveLength(1));
    expect(await readdir(directory)).toEqual([]);
  });

  it('is never held by two of many that want it at once, and each gets it', async () => {
    const directory = await directoryWith();
    let holders = 0;
    let most = 0;
    const work = async (): Promise<void> => {
      most = Math.max(most, ++holders);
      await new Promise((resolve) => setTimeout(resolve, 2));
      holders--;
    };
    const wanted = Array.from({ length: 12 }, () =>
      withLock(directory, { task, waitMilliseconds: 60_000 }, work),
    );
    await Promise.all(wanted);
    expect(most).toBe(1);
  });

  it('is released when the work fails', async () => {
    const directory = await directoryWith();
    const failing = withLock(directory, { task }, () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
    expect(await readdir(directory)).toEqual([]);
  });

  it('is taken over from a process that has ended, and from one whose number another process has now', async () => {
    const directory = await directoryWith();
    const child = spawn(process.execPath, ['-e', '']);
    await once(child, 'exit');
    const lock = await acquireLock(directory, { task });
    const { text } = await heldLock(directory);
    await lock.release();
    const holder = JSON.parse(text) as { process: string };
    const [machine, , started] = holder.process.split('-') as [string, string, string];
    const heldBy = (pid: number, start: string): string =>
      JSON.stringify({ ...holder, process: `${machine}-${pid}-${start}` });
    await writeFile(path.join(directory, lockFile), heldBy(child.pid as number, started));
    await withLock(directory, { task }, async () => expect(await readdir(directory)).toHaveLength(1));
    if (started === '0') return;
    await writeFile(path.join(directory, lockFile), heldBy(process.pid, '1'));
    await withLock(directory, { task }, async () => expect(await readdir(directory)).toHaveLength(1));
    expect(await readdir(directory)).toEqual([]);
  });

  it('is acquired with a sweep of the locks that ended processes did not finish', async () => {
    const directory = await directoryWith({ [await deadName()]: '' });
    await withLock(directory, { task }, async () => expect(await readdir(directory)).toHaveLength(1));
    expect(await readdir(directory)).toEqual([]);
  });

  it('of another host is taken over once it is not renewed any more', async () => {
    const directory = await directoryWith();
    const holder = { process: '01234567-7-1', host: 'other\u001b[31m', since: '2026-01-01T00:00:00Z', task };
    const file = path.join(directory, lockFile);
    await writeFile(file, JSON.stringify(holder));
    const refused = acquireLock(directory, { task });
    await expect(refused).rejects.toThrow('in use by process 7 on "other\\x1b[31m" (opmate mirror) since');
    const old = new Date(Date.now() - 600_000);
    await utimes(file, old, old);
    await withLock(directory, { task }, async () => expect(await readdir(directory)).toHaveLength(1));
    await writeFile(file, 'no holder');
    await expect(acquireLock(directory, { task })).rejects.toThrow('in use by another process');
  });
});

it('a nameless file is opened with a sweep of those that ended processes could not remove', async () => {
  const directory = await directoryWith({ [await deadName()]: 'left' });
  const handle = await openNamelessFile(directory);
  expect(await readdir(directory)).toEqual([]);
  await handle.close();
});
