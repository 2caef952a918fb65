import { spawnSync } from 'node:child_process';
import { cp, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { projectRoot, useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();
const program = path.join(projectRoot, 'bin/opmate.cjs');
const hasNamespaces = spawnSync('unshare', ['-Urm', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;

beforeAll(async () => {
  await mkdir(path.join(sandbox.work, 'disk'));
  await cp(path.join(projectRoot, 'fixtures/lists'), path.join(sandbox.work, 'catalog'), {
    recursive: true,
    filter: (file) => path.extname(file) === '' || file.endsWith('.json'),
  });
});

describe.skipIf(!hasNamespaces)('on a read-only file system', () => {
  it.each([
    ['catalog build catalog -i scratch --save oci:disk/image', 'oci:disk/image: cannot be written'],
    ['catalog filter catalog -p bpfman-operator --to disk/out', 'output dir "disk/out"'],
    ['migrate catalog disk/out', 'output dir "disk/out"'],
    ['view catalog --export disk/site', 'output dir "disk/site"'],
    ['serve catalog --cache-dir disk/cache --cache-only', 'disk/cache: cannot write the cache'],
  ])('%s fails with one error', (line, subject) => {
    const script = `mount -t tmpfs -o ro none disk; exec "$node" "$program" ${line}`;
    const { status, stdout, stderr } = spawnSync('unshare', ['-Urm', 'sh', '-ec', script], {
      cwd: sandbox.work,
      encoding: 'utf8',
      env: { ...process.env, HOME: sandbox.work, node: process.execPath, program },
    });
    const errors = stderr.split('\n').filter((text) => text.startsWith('error: '));
    expect({ status, stdout, errors: errors.length }).toEqual({ status: 1, stdout: '', errors: 1 });
    expect(errors[0]).toContain(`error: ${subject}`);
    expect(errors[0]).toContain('read-only file system');
    expect(stderr).not.toMatch(/^\s+at /m);
  });
});
