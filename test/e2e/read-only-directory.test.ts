import { spawnSync } from 'node:child_process';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { bundlesDirectory, commandWords, projectRoot, useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();
const bundle = path.join(bundlesDirectory, 'skupper-operator/1.9.0');
const hasNamespaces = spawnSync('unshare', ['-Urm', 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;

beforeAll(async () => {
  await mkdir(path.join(sandbox.work, 'disk'));
  const operators = [{ catalog: `oci://${path.join(sandbox.work, 'image')}` }];
  const set = {
    kind: 'ImageSetConfiguration',
    apiVersion: 'mirror.openshift.io/v2alpha1',
    mirror: { operators },
  };
  await writeFile(path.join(sandbox.work, 'set.yaml'), JSON.stringify(set));
  await cp(path.join(projectRoot, 'fixtures/lists'), path.join(sandbox.work, 'catalog'), {
    recursive: true,
    filter: (file) => path.extname(file) === '' || file.endsWith('.json'),
  });
});

describe.skipIf(!hasNamespaces)('on a read-only file system', () => {
  it.each([
    ['catalog build catalog -i scratch --save oci:disk/image', 'oci:disk/image: cannot be written'],
    ['catalog build catalog -i scratch --save oci-archive:disk/image.tar', 'disk/image.tar'],
    ['catalog filter catalog -p bpfman-operator --to disk/out', 'output dir "disk/out"'],
    ['catalog filter catalog -p bpfman-operator --to out --report disk/report', 'disk/report'],
    ['catalog publish catalog --to disk/site', 'output dir "disk/site"'],
    ['generate dockerfile disk/catalog', 'disk/catalog.Dockerfile'],
    ['registry add -d disk/index.db -b $bundle', 'disk/index.db'],
    ['registry create disk/index.db', 'disk/index.db'],
    ['bundle build -d $bundle -t quay.test/a:v1 --save oci:disk/image', 'oci:disk/image: cannot be written'],
    ['mirror plan -c set.yaml docker://127.0.0.1:1/x --workspace file://disk/work', 'output dir'],
    ['migrate catalog disk/out', 'output dir "disk/out"'],
    ['view catalog --export disk/site', 'output dir "disk/site"'],
    ['serve catalog --cache-dir disk/cache --cache-only', 'disk/cache: cannot write the cache'],
  ])('%s fails with one error', (line, subject) => {
    const script = `mount -t tmpfs none disk; mkdir disk/catalog; mount -o remount,ro disk; exec "$@" ${line}`;
    const { status, stdout, stderr } = spawnSync(
      'unshare',
      ['-Urm', 'sh', '-ec', script, 'sh', ...commandWords],
      {
        cwd: sandbox.work,
        encoding: 'utf8',
        env: { ...process.env, HOME: sandbox.work, bundle },
      },
    );
    const errors = stderr.split('\n').filter((text) => text.startsWith('error: '));
    expect({ status, stdout, errors: errors.length }).toEqual({ status: 1, stdout: '', errors: 1 });
    expect(errors[0]).toContain(`error: ${subject}`);
    expect(errors[0]).toMatch(/: read-only file system$|: cannot be opened, or its journal cannot be made/);
    expect(stderr).toMatch(/^hint: (?:specify|set TMPDIR to) (?:a|another) /m);
    expect(stderr).not.toMatch(/^\s+at /m);
  });
});
