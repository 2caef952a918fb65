import { execFileSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../support/command-line.js';

interface Lock {
  packages: Record<string, { version?: string; dev?: boolean; devDependencies?: object }>;
}

let root: string;
beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'opmate-pack-'));
  await mkdir(path.join(root, 'dist'));
  await mkdir(path.join(root, 'bin'));
  await writeFile(path.join(root, 'dist', 'index.js'), '');
  for (const name of ['package.json', 'package-lock.json', 'bin/stamp-build.js', 'bin/opmate.js'])
    await cp(path.join(projectRoot, name), path.join(root, name));
  execFileSync(process.execPath, [path.join(root, 'bin', 'stamp-build.js'), '--shrinkwrap']);
});
afterAll(() => rm(root, { recursive: true, force: true }));

const readLock = async (name: string): Promise<Lock> =>
  JSON.parse(await readFile(path.join(root, name), 'utf8')) as Lock;

describe('the package', () => {
  it('pins what it is installed with to what it is tested with', async () => {
    const [lock, shrinkwrap] = [await readLock('package-lock.json'), await readLock('npm-shrinkwrap.json')];
    expect(shrinkwrap.packages['']?.devDependencies).toBeUndefined();
    expect(shrinkwrap.packages['node_modules/vitest']).toBeUndefined();
    expect(shrinkwrap.packages['node_modules/commander']?.version).toBe(
      lock.packages['node_modules/commander']?.version,
    );
    const published = Object.keys(lock.packages).filter((name) => !lock.packages[name]?.dev);
    expect(Object.keys(shrinkwrap.packages)).toEqual(published);
  });

  it('contains the shrinkwrap, and what version knows of the build', () => {
    const [{ files }] = JSON.parse(
      execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
        cwd: root,
        encoding: 'utf8',
      }),
    ) as [{ files: { path: string }[] }];
    const names = files.map((file) => file.path);
    expect(names).toEqual(
      expect.arrayContaining(['npm-shrinkwrap.json', 'dist/build.json', 'bin/opmate.js']),
    );
    expect(names).not.toContain('package-lock.json');
  });

  it('knows no commit where there is no git', async () => {
    expect(JSON.parse(await readFile(path.join(root, 'dist', 'build.json'), 'utf8'))).toEqual({
      commit: '',
      date: '',
    });
  });
});
