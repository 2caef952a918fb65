import { describe, expect, it } from 'vitest';
import { readPlainDirectory } from '../../../../src/bundle/plain/plain-directory.js';
import { directoryWith } from '../../../support/temporary.js';

const map = (name: string): string => `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n`;

describe('bundle/plain/plain-directory', () => {
  it('reads every destination of content from several sources', async () => {
    const directory = await directoryWith({
      'a.yaml': map('a'),
      'one/b.yaml': map('b'),
      'two/deep/manifests/c.yaml': map('c'),
    });
    const { objects, findings } = await readPlainDirectory(directory, {
      destinations: ['', 'one', 'two/deep'],
    });
    expect(findings).toEqual([]);
    expect(objects.map(({ name, origin }) => `${name} ${origin}`)).toEqual([
      'a a.yaml',
      'b one/b.yaml',
      'c two/deep/manifests/c.yaml',
    ]);
  });

  it('reads nothing beside manifests/', async () => {
    const directory = await directoryWith({ 'manifests/a.yaml': map('a'), 'else/b.yaml': map('b') });
    const { objects } = await readPlainDirectory(directory, { destinations: ['else', 'manifests'] });
    expect(objects.map(({ name }) => name)).toEqual(['a']);
  });

  it('reads destinations within manifests', async () => {
    const directory = await directoryWith({ 'manifests/a/a.yaml': map('a'), 'manifests/b/b.yaml': map('b') });
    const { objects } = await readPlainDirectory(directory, { destinations: ['manifests/a', 'manifests/b'] });
    expect(objects.map(({ name }) => name)).toEqual(['a', 'b']);
  });

  it('refuses other directories, and objects that two destinations have', async () => {
    const directory = await directoryWith({
      'one/a.yaml': map('a'),
      'two/a.yaml': `${map('a')}data: {x: '1'}\n`,
    });
    expect((await readPlainDirectory(directory, { destinations: ['one'] })).findings).toEqual([
      expect.objectContaining({ file: 'two', problem: 'is a directory' }),
    ]);
    const twice = await readPlainDirectory(directory, { destinations: ['one', 'two'] });
    expect(twice.findings).toHaveLength(1);
    expect(twice.objects).toEqual([]);
  });
});
