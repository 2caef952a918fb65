import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CancelledError } from '../../../src/core/errors.js';
import { openRegularFile, readNamedFile, readRegularFile } from '../../../src/files/read-file.js';

let root: string;
let file: string;
let pipe: string;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'opmate-read-'));
  file = path.join(root, 'file');
  pipe = path.join(root, 'pipe');
  await writeFile(file, 'content');
  execFileSync('mkfifo', [pipe]);
});
afterEach(() => rm(root, { recursive: true, force: true }));

const notOrdinary = {
  name: 'OpmateError',
  code: 'IO',
  message: expect.stringMatching(/: not an ordinary file$/),
};

describe('files/read-file', () => {
  it('reads an ordinary file, and one that says nothing of its size', async () => {
    expect(String(await readRegularFile(file, 7))).toBe('content');
    expect(String(await readRegularFile('/proc/self/status', 1 << 20))).toContain('Pid:');
  });

  it('refuses pipes and devices at once, also behind links', async () => {
    const zero = path.join(root, 'zero');
    await symlink('/dev/zero', zero);
    for (const name of [pipe, zero, '/dev/zero', '/dev/null']) {
      await expect(readRegularFile(name, 7)).rejects.toMatchObject(notOrdinary);
      await expect(openRegularFile(name)).rejects.toMatchObject(notOrdinary);
    }
    await expect(openRegularFile(pipe, { name: 'pipe' })).rejects.toThrow('pipe: not an ordinary file');
  });

  it('leaves what the system says of missing files, directories and links as it is', async () => {
    const link = path.join(root, 'link');
    await symlink('file', link);
    await mkdir(path.join(root, 'd'));
    await expect(readRegularFile(path.join(root, 'none'), 7)).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(readRegularFile(path.join(root, 'd'), 1 << 20)).rejects.toMatchObject({ code: 'EISDIR' });
    await expect(readRegularFile(link, 7, { noFollow: true })).rejects.toMatchObject({ code: 'ELOOP' });
  });

  it('stops waiting for the writer of a pipe when it is cancelled', async () => {
    const cancel = new AbortController();
    const waiting = readNamedFile(pipe, 7, { signal: cancel.signal });
    cancel.abort(new CancelledError('interrupted'));
    await expect(waiting).rejects.toBeInstanceOf(CancelledError);
    const reading = readNamedFile(pipe, 7, { signal: new AbortController().signal });
    await writeFile(pipe, 'content');
    expect(String(await reading)).toBe('content');
  });

  it('reads no more than the limit, whatever it is', async () => {
    await expect(readRegularFile(file, 6)).rejects.toMatchObject({
      code: 'LIMIT',
      message: `${file}: more than 6 bytes`,
    });
    await expect(readNamedFile(file, 6)).rejects.toMatchObject({ code: 'LIMIT' });
    await expect(readNamedFile('/dev/zero', 1 << 20)).rejects.toMatchObject({ code: 'LIMIT' });
  });

  it('reads a pipe and a device that a person named', async () => {
    const read = readNamedFile(pipe, 7);
    await writeFile(pipe, 'content');
    expect(String(await read)).toBe('content');
    expect(String(await readNamedFile('/dev/null', 7))).toBe('');
  });
});
