import { cp, mkdir, readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { load, loadAll } from 'js-yaml';
import { afterAll, describe, expect, it } from 'vitest';
import { bundlesDirectory, useSandbox } from '../support/command-line.js';
import { createAuthority } from '../support/certificates.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { inDirectory, smallBundle } from '../support/small-bundle.js';
import { makeBundleImage, makeImage, serveBuilt, storeImage } from './images.js';

const sandbox = useSandbox();
const skupper = path.join(bundlesDirectory, 'skupper-operator/1.9.0');

interface ConfigMap {
  kind: string;
  metadata: { name: string; namespace: string; annotations: Record<string, string> };
  data?: Record<string, string>;
}

describe('opmate bundle extract', () => {
  it('writes the files of a bundle as a ConfigMap, from a directory given by argument or flag', async () => {
    const named = ['-c', 'skupper', '-n', 'olm'];
    const { code, stdout, stderr } = await sandbox.run(['bundle', 'extract', skupper, ...named]);
    expect([code, stderr]).toEqual([0, '']);
    const map = load(stdout) as ConfigMap;
    expect(map.metadata).toMatchObject({ name: 'skupper', namespace: 'olm' });
    const data: Record<string, string> = {};
    for (const name of await readdir(path.join(skupper, 'manifests')))
      data[name] = await readFile(path.join(skupper, 'manifests', name), 'utf8');
    expect(map.data).toEqual(data);
    const alpha = await sandbox.run(['alpha', 'bundle', 'extract', '-m', skupper, ...named]);
    const withConfig = await sandbox.run([
      'alpha',
      'bundle',
      'extract',
      '-m',
      skupper,
      ...named,
      '-k',
      'config',
    ]);
    expect(withConfig.stdout).toBe(alpha.stdout);
    expect(withConfig.stderr).toContain('--kubeconfig config has no effect');
    expect(alpha).toEqual({ code, stdout, stderr });
    const json = await sandbox.run(['bundle', 'extract', skupper, ...named, '-o', 'json']);
    expect(JSON.parse(json.stdout)).toEqual(map);
  });

  it('records the given image', async () => {
    const { stdout } = await sandbox.run(['bundle', 'extract', skupper, '-c', 'a', '--gzip'], {
      env: { CONTAINER_IMAGE: 'quay.io/w:v1' },
    });
    const { metadata } = load(stdout) as ConfigMap;
    expect(metadata.namespace).toBe('openshift-operator-lifecycle-manager');
    expect(metadata.annotations).toMatchObject({
      'olm.sourceImage': 'quay.io/w:v1',
      'olm.contentEncoding': 'gzip+base64',
    });
  });

  it('splits a bundle that is too large, and writes a file completely or not at all', async () => {
    await sandbox.write(inDirectory('large', smallBundle({ padding: 1024 * 1024 })));
    const common = ['extract', 'large', '-c', 'large', '--output-file', 'large.yaml'];
    const refused = await sandbox.run(['bundle', ...common]);
    expect([refused.code, refused.stdout]).toEqual([3, '']);
    expect(refused.stderr).toMatch(
      /^error: large: bundle files exceeded 1048576 bytes limit: they have \d+, manifests\/padding.yaml alone \d+\n {2}hint: add --gzip \(\d+ bytes in one ConfigMap\)\n$/,
    );
    expect((await sandbox.run(['alpha', 'bundle', ...common])).code).toBe(1);
    await expect(readFile(path.join(sandbox.work, 'large.yaml'))).rejects.toThrow('ENOENT');
    await sandbox.write({ 'large.yaml': 'old' });
    const split = await sandbox.run(['bundle', ...common, '--split', '-l', '1048700']);
    expect(split).toEqual({ code: 0, stdout: '', stderr: '' });
    const maps = loadAll(await readFile(path.join(sandbox.work, 'large.yaml'), 'utf8')) as ConfigMap[];
    expect(maps.map(({ metadata }) => metadata.name)).toEqual(['large-1', 'large-2']);
    const list = await sandbox.run([
      'bundle',
      'extract',
      'large',
      '-c',
      'l',
      '--split',
      '-l',
      '1048700',
      '-o',
      'json',
    ]);
    expect(JSON.parse(list.stdout)).toMatchObject({ kind: 'List', items: [{ kind: 'ConfigMap' }, {}] });
    expect((await readdir(sandbox.work)).sort()).toEqual(['large', 'large.yaml']);
  });

  it('refuses wrong usage', async () => {
    const run = async (...args: string[]): Promise<[number | null, string]> => {
      const { code, stderr } = await sandbox.run(['bundle', 'extract', ...args]);
      return [code, stderr.split('\n')[0] as string];
    };
    expect(await run('large')).toEqual([2, 'error: --configmapname: missing']);
    expect(await run('-c', 'x')).toEqual([2, 'error: no bundle is named']);
    expect(await run('large', '-c', 'x', '-m', 'other')).toEqual([
      2,
      'error: large: --manifestsdir says "other"',
    ]);
    expect((await run('large', '-c', 'x', '-l', '1M'))[0]).toBe(2);
    expect(await run('large', '-c', 'x', '-o', 'xml')).toEqual([
      2,
      'error: invalid --output value "xml", expected (json|yaml)',
    ]);
  });
});

describe('opmate bundle unpack', () => {
  const registries: FaultRegistry[] = [];
  afterAll(async () => {
    for (const registry of registries) await registry.close();
  });

  /** All files below a directory, by slash path. */
  const filesBelow = async (directory: string): Promise<Record<string, string>> => {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true });
    const files: Record<string, string> = {};
    for (const entry of entries.filter((one) => one.isFile())) {
      const file = path.join(entry.parentPath, entry.name);
      files[path.relative(directory, file)] = await readFile(file, 'utf8');
    }
    return files;
  };
  const at = (name: string): string => path.join(sandbox.work, name);

  it('writes the files of an image, verified with a CA file as for opm', async () => {
    const authority = createAuthority('authority of unpack');
    const registry = await startFaultRegistry({ tls: authority.issue({ names: ['127.0.0.1'] }) });
    registries.push(registry);
    serveBuilt(registry, 'ns/skupper', 'v1', await makeBundleImage('skupper-operator/1.9.0'));
    await sandbox.write({ 'ca.crt': authority.cert });
    const reference = `${registry.host}/ns/skupper:v1`;
    const args = ['alpha', 'bundle', 'unpack', reference, '-c', 'ca.crt', '-o', 'pulled/deep'];
    expect(await sandbox.run(args)).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(await filesBelow(at('pulled/deep'))).toEqual(await filesBelow(skupper));
    const untrusted = await sandbox.run(['alpha', 'bundle', 'unpack', reference, '-o', 'untrusted']);
    expect(untrusted.code).toBe(1);
    await expect(readdir(at('untrusted'))).rejects.toThrow('ENOENT');
  });

  it('adds all files of an image to existing ones, or none', async () => {
    const files = { ...(await filesBelow(skupper)), 'tests/config.yaml': 'x', 'root.txt': 'y' };
    await storeImage(at('layout'), 'v1', await makeImage({ files }));
    await sandbox.write({ 'shared/own.txt': 'mine' });
    const args = ['bundle', 'unpack', `oci:${at('layout')}:v1`];
    const first = await sandbox.run(args, { cwd: at('shared') });
    expect(first).toEqual({ code: 0, stdout: '', stderr: `info: unpacked oci:${at('layout')}:v1 to ./\n` });
    expect(await filesBelow(at('shared'))).toEqual({ ...files, 'own.txt': 'mine' });
    const again = await sandbox.run(args, { cwd: at('shared') });
    expect(again.code).toBe(1);
    expect(again.stderr).toMatch(/: "(?:manifests|metadata|tests|root.txt)" already exists\n/);
    await mkdir(at('taken'));
    await sandbox.write({ 'taken/root.txt': 'mine' });
    expect((await sandbox.run([...args, '-o', '../taken'], { cwd: at('shared') })).code).toBe(1);
    expect(await filesBelow(at('taken'))).toEqual({ 'root.txt': 'mine' });
    expect((await readdir(at('taken'))).length).toBe(1);
  });

  it('writes nothing if the bundle changes while it is copied', async () => {
    const files = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`manifests/${n}.yaml`, 'a: b']));
    await sandbox.write(inDirectory('changing', { ...files, 'metadata/x': '' }));
    let ended = false;
    const unpacked = sandbox
      .run(['bundle', 'unpack', 'changing', '-v', '-o', 'copies/changing'])
      .finally(() => (ended = true));
    // The directory that the files go into first.
    const isCopying = async (): Promise<boolean> =>
      (await readdir(at('copies')).catch(() => [])).some((name) => name.startsWith('.opmate-'));
    while (!ended && !(await isCopying())) await setImmediate();
    await sandbox.write({ 'changing/manifests/99.yaml': 'a: c' });
    const { code, stderr } = await unpacked;
    expect([code, stderr.split('\n')[0]]).toEqual([
      1,
      expect.stringMatching(/changed by another process while reading$/),
    ]);
    await expect(readdir(at('copies'))).rejects.toThrow('ENOENT');
  });

  it('refuses an invalid bundle unless validation is skipped', async () => {
    await sandbox.write(
      inDirectory('invalid', { 'manifests/csv.yaml': 'kind: ClusterServiceVersion', 'metadata/x': '' }),
    );
    const refused = await sandbox.run(['bundle', 'unpack', 'invalid', '-o', 'out-invalid']);
    expect([refused.code, refused.stdout]).toEqual([3, '']);
    expect(refused.stderr.trimEnd().split('\n').length).toBeGreaterThan(1);
    expect((await sandbox.run(['alpha', 'bundle', 'unpack', 'invalid', '-o', 'out-invalid'])).code).toBe(1);
    await expect(readdir(at('out-invalid'))).rejects.toThrow('ENOENT');
    await sandbox.write({ 'half/manifests/a.yaml': 'a: b' });
    const half = await sandbox.run(['bundle', 'unpack', 'half', '-o', 'out-half']);
    expect([half.code, half.stderr.split('\n')[0]]).toEqual([
      3,
      'error: half: Unable to locate metadata directory',
    ]);
    for (const [index, flag] of ['-v', '--skip-validation', '-dv'].entries()) {
      const out = `out-${index}`;
      const { code, stderr } = await sandbox.run(['alpha', 'bundle', 'unpack', 'half', flag, '-o', out]);
      expect([flag, code, flag === '-dv' ? '' : stderr]).toEqual([flag, 0, '']);
      expect(await filesBelow(at(out))).toEqual({ 'manifests/a.yaml': 'a: b' });
    }
  });

  it('extracts a bundle whose manifest has a duplicate key, as opm does', async () => {
    await cp(path.join(bundlesDirectory, 'skupper-operator/1.9.0'), at('doubled'), { recursive: true });
    const [name = ''] = await readdir(at('doubled/manifests'));
    const text = await readFile(at(`doubled/manifests/${name}`), 'utf8');
    const doubled = text.replace('\n  annotations:\n', '\n  annotations:\n    a: b$&');
    expect(doubled).not.toBe(text);
    await sandbox.write({ [`doubled/manifests/${name}`]: doubled });
    const refused = await sandbox.run(['bundle', 'validate', 'doubled']);
    expect(refused.stderr).toContain(': metadata.annotations: duplicate key, first defined on line 4');
    expect((await sandbox.run(['bundle', 'unpack', 'doubled', '-o', 'out-doubled'])).code).toBe(0);
    expect(await filesBelow(at('out-doubled'))).toEqual(await filesBelow(at('doubled')));
  });

  it('restores a bundle from ConfigMaps', async () => {
    const silicom = path.join(bundlesDirectory, 'silicom-sts-operator/0.0.1');
    const extract = ['bundle', 'extract', silicom, '-c', 's', '--gzip', '--split', '-l', '15000'];
    expect((await sandbox.run([...extract, '--output-file', 's.yaml'])).code).toBe(0);
    expect(await readFile(at('s.yaml'), 'utf8')).toContain('opmate/parts: s-1,s-2');
    expect(await sandbox.run(['bundle', 'unpack', 's.yaml', '-o', 'from-maps'])).toEqual({
      code: 0,
      stdout: '',
      stderr: 'info: unpacked s.yaml to from-maps\n',
    });
    const { stdout } = await sandbox.run(['render', 'from-maps']);
    expect(stdout).toBe((await sandbox.run(['render', silicom])).stdout);
    expect(stdout.length).toBeGreaterThan(1000);
  });
});
