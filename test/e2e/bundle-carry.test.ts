import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { load, loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { bundlesDirectory, useSandbox } from '../support/command-line.js';
import { inDirectory, smallBundle } from '../support/small-bundle.js';

const sandbox = useSandbox();
const skupper = path.join(bundlesDirectory, 'skupper-operator/1.9.0');

interface ConfigMap {
  kind: string;
  metadata: { name: string; namespace: string; annotations: Record<string, string> };
  data?: Record<string, string>;
}

describe('opmate bundle extract', () => {
  it('writes the files of a bundle as a ConfigMap, from a directory named in either way', async () => {
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
    expect(alpha).toEqual({ code, stdout, stderr });
    const json = await sandbox.run(['bundle', 'extract', skupper, ...named, '-o', 'json']);
    expect(JSON.parse(json.stdout)).toEqual(map);
  });

  it('names the image that it is told of', async () => {
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

  it('splits a bundle that is too large, and writes a file whole or not at all', async () => {
    await sandbox.write(inDirectory('large', smallBundle({ padding: 1024 * 1024 })));
    const common = ['extract', 'large', '-c', 'large', '--output-file', 'large.yaml'];
    const refused = await sandbox.run(['bundle', ...common]);
    expect([refused.code, refused.stdout]).toEqual([3, '']);
    expect(refused.stderr).toMatch(
      /^large: bundle files exceeded 1048576 bytes limit: they have \d+, manifests\/padding.yaml alone \d+\n {2}hint: \d+ bytes, in one ConfigMap, with --gzip\n$/,
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
    expect(await run('large')).toEqual([2, 'required flag(s) "configmapname" not set']);
    expect(await run('-c', 'x')).toEqual([2, 'no bundle is named']);
    expect(await run('large', '-c', 'x', '-m', 'other')).toEqual([2, 'large: --manifestsdir says "other"']);
    expect((await run('large', '-c', 'x', '-l', '1M'))[0]).toBe(2);
    expect(await run('large', '-c', 'x', '-o', 'xml')).toEqual([
      2,
      'invalid --output value "xml", expected (json|yaml)',
    ]);
  });
});
