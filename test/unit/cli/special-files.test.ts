import { execFileSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../../../src/cli/main.js';
import { createWorld } from './world.js';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'opmate-special-'));
  await mkdir(path.join(root, 'layout', 'blobs'), { recursive: true });
  await writeFile(path.join(root, 'layout', 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  await writeFile(path.join(root, 'layout', 'index.json'), '{"schemaVersion":2,"manifests":[]}');
  await mkdir(path.join(root, 'catalog'));
  await writeFile(
    path.join(root, 'catalog', 'c.json'),
    '{"schema":"olm.package","name":"p","defaultChannel":"x"}',
  );
});
afterAll(() => rm(root, { recursive: true, force: true }));

async function opmate(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const world = createWorld({ temporaryDirectory: root, workingDirectory: root });
  const code = await run(args, world);
  return { code, stdout: world.stdout.text, stderr: world.stderr.text };
}

let number = 0;
/** A copy of a directory in which one file is a named pipe or leads to a device without end. */
async function copyWith(name: string, file: string, kind: 'pipe' | 'device'): Promise<string> {
  const copy = path.join(root, `copy-${number++}`);
  await cp(path.join(root, name), copy, { recursive: true });
  await rm(path.join(copy, file), { force: true });
  if (kind === 'pipe') execFileSync('mkfifo', [path.join(copy, file)]);
  else await symlink('/dev/zero', path.join(copy, file));
  return copy;
}

describe.each(['pipe', 'device'] as const)('cli: a %s in place of a file', (kind) => {
  it.each<[string, string, (directory: string) => string[]]>([
    ['layout', 'oci-layout', (directory) => ['render', `oci:${directory}:latest`]],
    ['layout', 'index.json', (directory) => ['render', `oci:${directory}:latest`]],
    ['layout', 'a.tar', (directory) => ['render', `oci-archive:${directory}/a.tar:latest`]],
    ['layout', 'a.tar', (directory) => ['render', `docker-archive:${directory}/a.tar:latest`]],
    ['layout', 'index.db', (directory) => ['render', `${directory}/index.db`]],
    ['layout', 'opmate.lock.json', (directory) => ['mirror', '--config', `${directory}/oci-layout`, '--locked', '--lock', `${directory}/opmate.lock.json`, '--dry-run', 'docker://localhost:1']],
    ['catalog', '.indexignore', (directory) => ['validate', directory]],
    ['catalog', 'd.yaml', (directory) => ['validate', directory]],
    ['catalog', 'cat.yaml', (directory) => ['catalogs', 'check', directory]],
    ['catalog', 'mirror_archive.json', (directory) => ['archive', 'verify', directory]],
  ])('ends with an error: %s/%s', async (name, file, argsFor) => {
    const { code, stderr } = await opmate(...argsFor(await copyWith(name, file, kind)));
    expect(code).not.toBe(0);
    expect(stderr).not.toMatch(/internal error/);
    expect(stderr.trim()).not.toBe('');
  });
}); // prettier-ignore

describe('cli: files that users name', () => {
  it('reads a template from a pipe, as a shell passes it', async () => {
    const pipe = path.join(root, 'typed');
    execFileSync('mkfifo', [pipe]);
    const running = opmate('alpha', 'render-template', 'basic', pipe);
    await writeFile(pipe, 'schema: olm.template.basic\nentries:\n- schema: olm.package\n  name: p\n');
    expect(await running).toMatchObject({ code: 0, stdout: expect.stringContaining('"name": "p"') });
  });

  it.each([
    [['init', 'demo', '-d']],
    [['init', 'demo', '-i']],
    [['archive', 'verify', 'archive', '--verify-key']],
    [['mirror', '--config', '/dev/null', 'file://out', '--sign-by']],
    [['mirror', 'delete', 'docker://localhost:1', '--delete-yaml-file']],
    [['catalog', 'filter', 'catalog', '--to', '-', '-f']],
    [['template', 'render', 'basic']],
  ])('ends while it waits for the writer of a pipe: %j', async (args) => {
    const pipe = path.join(root, `silent-${number++}`);
    execFileSync('mkfifo', [pipe]);
    const stopping = new AbortController();
    const world = createWorld({
      temporaryDirectory: root,
      workingDirectory: root,
      signal: stopping.signal,
    });
    const running = run([...args, pipe], world);
    setTimeout(() => stopping.abort(), 50);
    expect(await running, world.stderr.text).toBe(130);
  });

  it('refuses a configuration without end', async () => {
    const { code, stderr } = await opmate(
      'mirror',
      '--config',
      '/dev/zero',
      '--dry-run',
      'docker://localhost:1',
    );
    expect(code).toBe(1);
    expect(stderr).toContain('/dev/zero: more than 67108864 bytes');
  });
});
