import { cp, readFile, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { bundlesDirectory, useSandbox } from '../support/command-line.js';
import { makeBundleImage, packLayout, storeImage } from './images.js';

const sandbox = useSandbox();
const skupper = path.join(bundlesDirectory, 'skupper-operator/1.9.0');
const microcks = path.join(bundlesDirectory, 'microcks/0.3.0');
const here = ['--install-namespace', 'here'];

interface Shown {
  kind: string;
  metadata: { name: string; namespace?: string };
}

const keysOf = (objects: unknown[]): string[] =>
  (objects as Shown[]).map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''} ${metadata.name}`);

describe('opmate bundle render', () => {
  it('writes documents sorted by kind, namespace and name, and the same as JSON', async () => {
    const { code, stdout, stderr } = await sandbox.run(['bundle', 'render', skupper, ...here]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.startsWith('---\napiVersion: ')).toBe(true);
    const objects = loadAll(stdout);
    const keys = keysOf(objects);
    expect(keys).toContain('Deployment here skupper-site-controller');
    expect(keys).toEqual([...keys].sort());
    const json = await sandbox.run(['bundle', 'render', skupper, ...here, '-o', 'json']);
    expect((JSON.parse(json.stdout) as { items: unknown[] }).items).toEqual(objects);
  });

  it('reads the same bundle from a layout and from an archive', async () => {
    const { stdout } = await sandbox.run(['bundle', 'render', skupper, ...here]);
    const layout = path.join(sandbox.work, 'layout');
    await storeImage(layout, 'v1', await makeBundleImage('skupper-operator/1.9.0'));
    await sandbox.write({ 'bundle.tar': await packLayout(layout) });
    for (const reference of ['oci:layout:v1', 'oci-archive:bundle.tar']) {
      const image = await sandbox.run(['bundle', 'render', reference, ...here]);
      expect({ reference, ...image }).toEqual({ reference, code: 0, stdout, stderr: '' });
    }
  });

  it('reports errors with the text of operator-controller, and writes nothing', async () => {
    const out = path.join(sandbox.work, 'refused');
    const { code, stdout, stderr } = await sandbox.run([
      'bundle',
      'render',
      skupper,
      ...here,
      '--watch-namespace=there',
      '--to',
      out,
    ]);
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toContain(
      'invalid option(s): invalid target namespaces [there]: supported install modes [AllNamespaces OwnNamespace] do not support target namespaces [there]',
    );
    expect(stderr).toMatch(/skupper-operator\/1\.9\.0\/manifests\/[\w.-]+:\d+:\d+: invalid/);
    await expect(readdir(out)).rejects.toThrow('ENOENT');
    const image = await sandbox.run(['bundle', 'render', microcks, ...here]);
    expect([image.code, image.stdout]).toEqual([3, '']);
  });

  it('writes one file per object to a directory, completely or not at all', async () => {
    const out = path.join(sandbox.work, 'out');
    const args = ['bundle', 'render', skupper, ...here, '--to', out];
    const { code, stdout: printed, stderr } = await sandbox.run(args);
    expect({ code, printed }).toEqual({ code: 0, printed: '' });
    expect(stderr).toMatch(/^info: wrote \d+ objects to \S+\ninfo: next: kubectl apply -f \S+\n$/);
    const files = (await readdir(out)).sort();
    expect(files[0]).toMatch(/^00_clusterrole_[\w.-]+\.yaml$/);
    const texts = await Promise.all(files.map((file) => readFile(path.join(out, file), 'utf8')));
    const { stdout } = await sandbox.run(['bundle', 'render', skupper, ...here]);
    expect(texts.map((text) => `---\n${text}`).join('')).toBe(stdout);
    const again = await sandbox.run(args);
    expect(again.code).toBe(1);
    expect(again.stderr).toContain('must be empty');
    expect((await readdir(out)).sort()).toEqual(files);
  });

  it('writes the file of a Secret for the user only', async () => {
    await cp(skupper, path.join(sandbox.work, 'with-secret'), { recursive: true });
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'hidden' }, stringData: { a: 'b' } };
    await sandbox.write({ 'with-secret/manifests/hidden.yaml': secret });
    const args = ['bundle', 'render', 'with-secret', ...here, '--to', 'of-user'];
    expect((await sandbox.run(args)).code).toBe(0);
    const directory = path.join(sandbox.work, 'of-user');
    const names = await readdir(directory);
    expect(names.filter((name) => name.includes('_secret_'))).toHaveLength(1);
    for (const name of names) {
      const { mode } = await stat(path.join(directory, name));
      expect({ name, isShared: (mode & 0o077) !== 0 }).toEqual({
        name,
        isShared: !name.includes('_secret_'),
      });
    }
  });

  it('applies a configuration, from a file or standard input', async () => {
    const text = 'watchNamespace: here\ndeploymentConfig:\n  nodeSelector: {disk: fast}\n';
    const { code, stdout } = await sandbox.run(
      ['bundle', 'render', skupper, ...here, '--config', '-', '--cert-provider=cert-manager'],
      { stdin: text },
    );
    expect(code).toBe(0);
    expect(stdout).toContain('disk: fast');
    expect(stdout).toContain('olm.targetNamespaces: here');
    await sandbox.write({ 'config.yaml': 'watchNamespace: there\ncolour: red\n' });
    const refused = await sandbox.run(['bundle', 'render', skupper, ...here, '--config', 'config.yaml']);
    expect([refused.code, refused.stdout]).toEqual([3, '']);
    expect(refused.stderr).toContain('config.yaml:2:1: colour: unknown field');
    expect(refused.stderr).toContain(
      'config.yaml:1:1: watchNamespace: must be the install namespace "here", got "there"',
    );
  });

  it('renders plain manifests, and omits unsupported objects if allowed', async () => {
    const monitor = 'apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata:\n  name: m\n';
    await sandbox.write({
      'plain/manifests/a.yaml': `${monitor}---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n`,
      'apis.txt':
        'NAME  SHORTNAMES  APIVERSION  NAMESPACED  KIND\ncm    cm          v1          true        ConfigMap\n',
    });
    const args = ['bundle', 'render', 'plain', '--format=plain'];
    const all = await sandbox.run(args);
    expect(keysOf(loadAll(all.stdout))).toEqual(['ConfigMap  c', 'ServiceMonitor  m']);
    const lacking = await sandbox.run([...args, '--available-apis', 'apis.txt']);
    expect([lacking.code, lacking.stdout]).toEqual([3, '']);
    expect(lacking.stderr).toContain('monitoring.coreos.com/v1 ServiceMonitor: kind missing in the cluster');
    for (const optional of ['--optional-kinds', '--optional-kinds=ServiceMonitor']) {
      const skipped = await sandbox.run([...args, '--available-apis', 'apis.txt', optional]);
      expect([skipped.code, keysOf(loadAll(skipped.stdout))]).toEqual([0, ['ConfigMap  c']]);
      expect(skipped.stderr).toContain('ServiceMonitor "m": omitted');
    }
    await sandbox.write({ 'plain/manifests/deep/b.yaml': monitor, 'plain/manifests/c.yaml': 'kind: [\n' });
    const broken = await sandbox.run(args);
    expect([broken.code, broken.stdout]).toEqual([3, '']);
    expect(broken.stderr).toContain('plain/manifests/deep: is a directory');
    expect(broken.stderr).toMatch(/plain\/manifests\/c\.yaml:\d+: yaml: /);
    await sandbox.write({ 'flat/a.yaml': 'kind: [\n' });
    const flat = await sandbox.run(['bundle', 'render', 'flat', '--format=plain']);
    expect(flat.stderr).toMatch(/^error: flat\/a\.yaml:\d+: yaml: /);
  });

  it.each([
    [['bundle', 'render', 'b'], '--install-namespace: missing'],
    [['bundle', 'render', 'b', ...here, '--cert-provider=mine'], 'invalid --cert-provider value "mine"'],
    [['bundle', 'render', 'b', ...here, '--format=../helm'], 'invalid --format value "../helm"'],
    [['bundle', 'render', 'b', ...here, '-o', 'xml'], 'invalid --output value "xml"'],
    [['bundle', 'render', 'b', ...here, '--optional-kinds'], 'needs --available-apis'],
    [
      ['bundle', 'render', 'b', ...here, '--format=plain'],
      '--install-namespace and --format plain cannot be used together',
    ],
    [
      ['bundle', 'render', 'b', ...here, '--to=o', '-o', 'json'],
      '--to and --output json cannot be used together',
    ],
  ])('refuses wrong usage: %j', async (args, said) => {
    const { code, stdout, stderr } = await sandbox.run(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(said);
  });

  it('refuses a missing file and a directory that is not a bundle', async () => {
    await sandbox.write({ 'catalog/catalog.yaml': 'schema: olm.package\nname: a\n' });
    for (const [reference, said] of [
      ['./missing', 'no such file or directory'],
      ['catalog', 'catalog: directory manifests not found'],
    ] as const) {
      const { code, stdout, stderr } = await sandbox.run(['bundle', 'render', reference, ...here]);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain(said);
    }
    expect(await sandbox.leftovers()).toEqual([]);
  });
});
