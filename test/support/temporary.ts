import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';

/** A directory with these files, removed when the running test is done. Keys are slash paths. */
export async function directoryWith(files: Record<string, string | Buffer> = {}): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'opmate-test-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(directory, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content);
  }
  return directory;
}

/** Copies a file or directory; the function of Node.js takes ten times as long. */
export async function copyTree(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-R', from, to]);
}
