import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { parsePlace, parsePlacedSource } from '../../../src/source/parse-place.js';
import { failureOf } from '../../support/connect.js';
import { rawTar } from '../../support/tar.js';
import { directoryWith } from '../../support/temporary.js';

const options = { purpose: 'content', workingDirectory: '/nonexistent' } as const;
const commit = '0123456789abcdef0123456789abcdef01234567';
const checksum = `sha256:${'a'.repeat(64)}`;

describe('source/parse-place', () => {
  it.each([
    ['git+https://git.example/a/b.git', { repository: 'https://git.example/a/b.git' }],
    ['git+https://git.example/a/b.git@v1', { repository: 'https://git.example/a/b.git', revision: 'v1' }],
    ['git+https://git.example/a/b.git#main', { repository: 'https://git.example/a/b.git', revision: 'main' }],
    [
      `git+ssh://git@git.example:22/a/b#${commit}:x/y`,
      { repository: 'ssh://git@git.example:22/a/b', commit, directory: 'x/y' },
    ],
    ['git+file:///a@b/c#:x', { repository: 'file:///a@b/c', directory: 'x' }],
    ['git+http://localhost/a@feature', { repository: 'http://localhost/a', revision: 'feature' }],
    ['git+https://git.example/a#feature/x', { repository: 'https://git.example/a', revision: 'feature/x' }],
  ])('reads %s', async (text, source) => {
    expect(await parsePlace(text, options)).toEqual({ kind: 'git', ...source });
  });

  it.each([
    ['https://a.example/x.tgz', { kind: 'http', url: 'https://a.example/x.tgz' }],
    [
      `https://a.example/x.tgz?a=b#${checksum}`,
      { kind: 'http', url: 'https://a.example/x.tgz?a=b', checksum },
    ],
    [`http://a.example/x@y.tgz@${checksum}`, { kind: 'http', url: 'http://a.example/x@y.tgz', checksum }],
    ['quay.io/ns/a:v1', { kind: 'image', ref: 'quay.io/ns/a:v1' }],
    ['oci:dir:v1', { kind: 'image', ref: 'oci:dir:v1' }],
    ['docker-archive:f.tar', { kind: 'image', ref: 'docker-archive:f.tar' }],
    [
      'configmap:m.yaml#one',
      { kind: 'configMaps', file: '/nonexistent/m.yaml', configMaps: [{ name: 'one' }] },
    ],
    ['configmap:/m.yaml', { kind: 'configMaps', file: '/m.yaml' }],
  ])('reads %s', async (text, source) => {
    expect(await parsePlace(text, options)).toEqual(source);
  });

  it.each([
    ['git+https://me:s3cret@git.example/a', 'URL must not contain credentials'],
    ['git+https://s3cret@git.example/a#main', 'URL must not contain credentials'],
    ['https://me:s3cret@a.example/x.tgz', 'URL must not contain credentials'],
    ['git+https://git.example', 'invalid git repository URL'],
    ['git+ext://x/y', 'invalid git repository URL'],
    ['git+https://git.example/a@x#y', '@ and # cannot be combined'],
    ['git+https://git.example/a#:../x', 'leads out of the root'],
    ['git+https://git.example/a#:/etc', 'is absolute'],
    ['https://a.example/x#sha256:12', 'invalid checksum'],
    ['https://a.example/x#main', 'invalid checksum'],
    ['configmap:', 'missing file name'],
    ['./none', 'no such file or directory'],
    ['none/', 'no such file or directory'],
    ['none', 'no such file or directory'],
    ['none.db', 'no such file or directory'],
    ['quay.io/ns/a', 'missing tag or digest'],
    ['', 'invalid reference'],
  ])('refuses %s', async (text, problem) => {
    const error = await failureOf(parsePlace(text, options));
    expect(error.message).toContain(problem);
    expect(`${error.message}${error.hint ?? ''}`).not.toContain('s3cret');
  });

  it('takes paths that exist for what they hold', async () => {
    const map = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n';
    const workingDirectory = await directoryWith({
      'a.tar': rawTar([{ name: 'x', content: '' }]),
      'b.bin': gzipSync(rawTar([])),
      'c.yaml': map,
      'd.yaml': `${map}---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n`,
      'e.db': 'SQLite format 3\0',
      'ns/name': '',
    });
    const parse = (text: string): Promise<unknown> =>
      parsePlace(text, { purpose: 'content', workingDirectory });
    const at = (name: string): string => path.join(workingDirectory, name);
    expect(await parse('a.tar')).toEqual({ kind: 'archive', path: at('a.tar') });
    expect(await parse('./b.bin')).toEqual({ kind: 'archive', path: at('b.bin') });
    expect(await parse('c.yaml')).toEqual({ kind: 'configMaps', file: at('c.yaml') });
    expect(await parse('ns')).toEqual({ kind: 'directory', path: at('ns') });
    for (const name of ['d.yaml', 'e.db', 'ns/name']) {
      expect((await failureOf(parse(name))).message).toBe(
        `${name}: expected a tar archive or a file with ConfigMaps`,
      );
    }
    await writeFile(at('f.yaml'), 'a: [');
    expect((await failureOf(parse('f.yaml'))).message).toContain('f.yaml');
  });

  it('takes a source apart from its destination', async () => {
    expect(await parsePlacedSource('a/b=https://a.example/x?y=z', '/nonexistent')).toEqual({
      name: 'https://a.example/x?y=z',
      destination: 'a/b',
      source: { kind: 'http', url: 'https://a.example/x?y=z' },
    });
    expect((await failureOf(parsePlacedSource('a/b', '/nonexistent'))).message).toContain(
      'expected DESTINATION=SOURCE',
    );
  });
});
