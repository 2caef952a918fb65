import { copyFile, readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { imageLabels } from '../../src/model/image-labels.js';
import { useSandbox } from '../support/command-line.js';
import { indexFile } from '../support/index-file.js';
import { makeImage, storeImage } from './images.js';

const sandbox = useSandbox();

/** The same index as a file and in an image. */
async function references(...statements: string[]): Promise<string[]> {
  const file = await indexFile(...statements);
  await copyFile(file, path.join(sandbox.work, 'index.db'));
  const image = await makeImage({
    files: { 'database/index.db': await readFile(file) },
    labels: { [imageLabels.database]: '/database/index.db' },
  });
  await storeImage(path.join(sandbox.work, 'layout'), 'index', image);
  return ['index.db', 'oci:layout:index'];
}

async function answerOf(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await sandbox.run(args);
  const said = stderr.replace(/^info: \d+ bundles? without manifests: .*\n/, '');
  expect(`${code} ${said}`).toBe('0 ');
  return stdout;
}

describe('indexes as catalogs, and registry images and bundles', () => {
  it('lists images and bundles', async () => {
    for (const reference of await references()) {
      const images = await answerOf('registry', 'images', '--from-db', reference);
      expect(images.split('\n')).toHaveLength(6);
      const own = await answerOf('registry', 'images', '--from-db', reference, '--bundle', 'widget.v1.1.0');
      expect(own).toBe('quay.io/widget/bundle:1.1.0\nquay.io/widget/operand:1.1.0\n');
      const { code, stdout, stderr } = await sandbox.run(['registry', 'bundles', reference]);
      expect(stdout).toBe('quay.io/widget/bundle:1.1.0\nquay.io/widget/bundle:1.2.0\n');
      expect(stderr).toContain('widget.v1.0.0: skipped: no image in the index');
      expect(code).toBe(4);
    }
    const [file = ''] = await references("DELETE FROM operatorbundle WHERE bundlepath = ''");
    await answerOf('registry', 'bundles', file);
    const unknown = await sandbox.run(['registry', 'images', '--from-db', file, '--bundle', 'widgt.v1.1.0']);
    expect(unknown).toMatchObject({ code: 1, stdout: '' });
    expect(unknown.stderr).toContain('hint: did you mean "widget.v1.1.0"?');
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('reports an unreadable index once per line', async () => {
    await references(
      "UPDATE operatorbundle SET version = 'x' WHERE name IN ('widget.v1.1.0', 'widget.v1.2.0')",
    );
    const { code, stderr } = await sandbox.run(['validate', 'index.db']);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^error: index\.db: package "widget", bundle "widget\.v1\.2\.0": parse version "x"/m,
    );
    expect(stderr).not.toContain('index.db: index.db:');
  });

  it('accepts an index wherever it accepts a catalog', async () => {
    const [file = '', image = ''] = await references();
    const before = await readFile(path.join(sandbox.work, file));
    const rendered = await answerOf('render', file);
    expect(await answerOf('render', image)).toBe(rendered);
    expect(rendered).toContain('"olm.bundle.object"');
    expect(await answerOf('render', '-o', 'yaml', file)).toContain('schema: olm.channel');
    expect(await answerOf('render', '--migrate', file)).toContain('"olm.csv.metadata"');
    expect(await answerOf('list', 'packages', image)).toMatch(/widget +Widget +stable/);
    expect(await answerOf('alpha', 'list', 'channels', file)).toMatch(/widget +stable +widget\.v1\.2\.0/);
    expect(await answerOf('graph', image)).toContain('widget.v1.2.0');
    await answerOf('validate', file);
    await answerOf('validate', image);
    expect(await sandbox.run(['migrate', file, 'out'])).toMatchObject({ code: 0, stdout: '' });
    expect(await answerOf('render', 'out')).not.toBe('');
    expect(await readFile(path.join(sandbox.work, file))).toEqual(before);
    expect(await sandbox.leftovers()).toEqual([]);
  });

  it('prints nothing for a faulty index', async () => {
    for (const reference of await references("UPDATE package SET default_channel = 'nope'")) {
      for (const command of [['render'], ['list', 'bundles'], ['validate'], ['graph']]) {
        const { code, stdout, stderr } = await sandbox.run([...command, reference]);
        expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
        expect(stderr).toContain('"nope"');
      }
    }
    expect(await sandbox.leftovers()).toEqual([]);
  });
});
