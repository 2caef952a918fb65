import { describe, expect, it } from 'vitest';
import { UsageError } from '../../../../src/core/errors.js';
import { parseReference } from '../../../../src/core/reference.js';
import {
  formatSource,
  nameBelow,
  parseMirrorTarget,
  pathBelow,
} from '../../../../src/mirror/naming/mirror-target.js';

const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;

describe('mirror/mirror-target', () => {
  it.each([
    ['docker://registry.test:5001/ocm', 'registry.test:5001', 'ocm'],
    ['docker://registry.test:5001/ocm/deep/', 'registry.test:5001', 'ocm/deep'],
    ['docker://mirror.test', 'mirror.test', ''],
    ['docker://localhost:5000', 'localhost:5000', ''],
  ])('reads %s', (text, registry, path) => {
    expect(parseMirrorTarget(text)).toEqual({ registry, path });
  });

  it.each([
    'registry.test/ocm',
    'docker://',
    'docker://mirror',
    'docker://team/mirror',
    'docker:///ocm',
    'docker://registry.test/Ocm',
    'docker://registry.test/ocm:v1',
    `docker://registry.test/ocm@${digest}`,
    'docker://registry.test:99999/ocm',
    'docker://user:secret@registry.test/ocm',
    'docker://registry.test//ocm',
  ])('refuses %s', (text) => {
    expect(() => parseMirrorTarget(text)).toThrow(UsageError);
    expect(() => parseMirrorTarget(text)).not.toThrow(/secret/);
  });

  it.each([
    ['quay.io/acme/app:v1', 'acme/app', 'v1', 'docker://quay.io/acme/app:v1'],
    [
      `quay.io/acme/app@${digest}`,
      'acme/app',
      digest.replace(':', '-'),
      `docker://quay.io/acme/app@${digest}`,
    ],
    [`quay.io/acme/app:v1@${digest}`, 'acme/app', 'v1', `docker://quay.io/acme/app@${digest}`],
    ['nginx', 'library/nginx', 'latest', 'docker://docker.io/library/nginx:latest'],
  ])('names %s', (text, repository, tag, source) => {
    const reference = parseReference(text);
    expect(nameBelow(reference)).toEqual({ repository, tag });
    expect(formatSource(reference)).toBe(source);
    expect(nameBelow(reference, { repository: 'a/b', tag: 'c' })).toEqual({ repository: 'a/b', tag: 'c' });
  });

  it('makes a tag of a digest of any length', () => {
    const long = `sha512:${'ab'.repeat(64)}`;
    expect(nameBelow(parseReference(`quay.io/acme/app@${long}`)).tag).toHaveLength(128);
  });

  it('joins what is nested too deeply', () => {
    const target = { registry: 'registry.test', path: 'ocm' };
    expect(pathBelow(target, 'a/b/c')).toBe('ocm/a/b/c');
    expect(pathBelow({ ...target, maxNestedPaths: 4 }, 'a/b/c')).toBe('ocm/a/b/c');
    expect(pathBelow({ ...target, maxNestedPaths: 3 }, 'a/b/c')).toBe('ocm/a/b-c');
    expect(pathBelow({ ...target, maxNestedPaths: 1 }, 'a/b/c')).toBe('ocm-a-b-c');
    expect(pathBelow({ ...target, path: '', maxNestedPaths: 1 }, 'a/b')).toBe('a-b');
  });
});
