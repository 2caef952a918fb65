import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { replaceDirectories, writeOutputFiles } from '../../../src/mirror/output-files.js';
import { OpmateError } from '../../../src/core/errors.js';
import { failureOf } from '../../support/connect.js';
import { directoryWith } from '../../support/temporary.js';

describe('mirror/output-files', () => {
  it('writes files into a new directory, or over those of an earlier run', async () => {
    const directory = path.join(await directoryWith(), 'deep', 'out');
    await writeOutputFiles(
      directory,
      new Map([
        ['a', '1'],
        ['b', '2'],
        ['c', undefined],
      ]),
    );
    await writeOutputFiles(
      directory,
      new Map([
        ['a', '3'],
        ['b', undefined],
      ]),
    );
    expect(await readdir(directory)).toEqual(['a']);
    expect(await readFile(path.join(directory, 'a'), 'utf8')).toBe('3');
  });

  it('leaves other files alone, and nothing of its own when it fails', async () => {
    const directory = await directoryWith({ 'mine.txt': 'mine' });
    await mkdir(path.join(directory, 'a', 'full'), { recursive: true });
    const error = await failureOf(writeOutputFiles(directory, new Map([['a', 'x']])));
    expect(error.message).toContain(`output dir "${directory}": `);
    expect(error.hint).toBe('specify another directory, or make this one writable');
    await expect(writeOutputFiles(directory, new Map([['a', undefined]]))).rejects.toThrow(
      'a: is a directory',
    );
    expect((await readdir(directory)).sort()).toEqual(['a', 'mine.txt']);
    const fresh = path.join(directory, 'deep', 'out');
    await expect(writeOutputFiles(fresh, new Map([['missing/a', 'x']]))).rejects.toThrow('output dir');
    expect((await readdir(directory)).sort()).toEqual(['a', 'mine.txt']);
  });

  it('puts everything back where a directory cannot be replaced', async () => {
    const root = await directoryWith({ 'first/old.txt': 'old' });
    await writeFile(path.join(root, 'second'), 'mine');
    const bad = new Map([
      ['first', new Map([['new.txt', 'new']])],
      ['second', new Map([['new.txt', 'new']])],
    ]);
    await expect(replaceDirectories(root, bad)).rejects.toThrow(OpmateError);
    expect((await readdir(root)).sort()).toEqual(['first', 'second']);
    expect(await readFile(path.join(root, 'first', 'old.txt'), 'utf8')).toBe('old');
    expect(await readdir(path.join(root, 'first'))).toEqual(['old.txt']);
    await writeFile(path.join(root, 'file'), '');
    await expect(replaceDirectories(path.join(root, 'file'), bad)).rejects.toThrow('output dir');
  });
});
