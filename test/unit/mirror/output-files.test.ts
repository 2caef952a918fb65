import { mkdir, readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { writeOutputFiles } from '../../../src/mirror/output-files.js';
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
    expect(error.message).toContain(`output dir ${directory}: `);
    expect((await readdir(directory)).sort()).toEqual(['a', 'mine.txt']);
  });
});
