import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OpmateError } from '../../../src/core/errors.js';
import { checkPullSpec, formatReference, parseReference } from '../../../src/core/reference.js';

interface Vector {
  text: string;
  err?: string;
  registry?: string;
  repository?: string;
  tag?: string;
  digest?: string;
}

const vectors = readFileSync(new URL('../../../fixtures/vectors/references.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Vector);

const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;

function errorOf(text: string): OpmateError {
  try {
    parseReference(text);
  } catch (error) {
    if (error instanceof OpmateError) return error;
    throw error;
  }
  throw new Error(`${text} was accepted`);
}

describe('the answers of docker/reference', () => {
  it('are given for every reference', () => {
    expect(vectors.length).toBe(143);
    for (const { text, err, ...parts } of vectors) {
      expect({ text, err: checkPullSpec(text) }).toEqual({ text, err });
      // These two are places of their own for opmate, and the next is nothing that can be connected to.
      if (text.startsWith('oci:') || text.startsWith('docker://') || text.includes(':99999999')) continue;
      if (err === undefined) expect(parseReference(text)).toEqual({ transport: 'docker', text, ...parts });
      else if (!text.startsWith('[::1]')) expect(errorOf(text).message).toContain(err);
    }
  });
});

describe('parseReference', () => {
  it.each([
    ['quay.io/ns/name:v1', { registry: 'quay.io', repository: 'ns/name', tag: 'v1' }],
    ['quay.io/ns/name', { registry: 'quay.io', repository: 'ns/name' }],
    [`quay.io/ns/name:v1@${digest}`, { registry: 'quay.io', repository: 'ns/name', tag: 'v1', digest }],
    [
      'docker://quay.io:443/ns/name:1.0__2',
      { registry: 'quay.io:443', repository: 'ns/name', tag: '1.0__2' },
    ],
    ['docker://oci:5000/x', { registry: 'oci:5000', repository: 'x' }],
    ['alpine', { registry: 'docker.io', repository: 'library/alpine' }],
    ['docker.io/alpine:3', { registry: 'docker.io', repository: 'library/alpine', tag: '3' }],
    ['index.docker.io/ns/x', { registry: 'docker.io', repository: 'ns/x' }],
    ['localhost/x', { registry: 'localhost', repository: 'x' }],
    ['[::1]:5000/x:1', { registry: '[::1]:5000', repository: 'x', tag: '1' }],
    ['[fe80::1]/a/b', { registry: '[fe80::1]', repository: 'a/b' }],
  ])('reads %s', (text, parts) => {
    expect(parseReference(text)).toEqual({ transport: 'docker', text, ...parts });
  });

  it.each([
    ['oci:dir', { transport: 'oci', path: 'dir' }],
    ['oci:/some/dir:v1', { transport: 'oci', path: '/some/dir', tag: 'v1' }],
    ['oci:./a:b/c', { transport: 'oci', path: './a:b/c' }],
    ['oci:a:b:c', { transport: 'oci', path: 'a:b', tag: 'c' }],
    [`oci:dir@${digest}`, { transport: 'oci', path: 'dir', digest }],
    [`oci:dir:v1@${digest}`, { transport: 'oci', path: 'dir', tag: 'v1', digest }],
    ['oci:a@b/c:v1', { transport: 'oci', path: 'a@b/c', tag: 'v1' }],
    ['oci-archive:image.tar:v1', { transport: 'oci-archive', path: 'image.tar', tag: 'v1' }],
    ['docker-archive:image.tar', { transport: 'docker-archive', path: 'image.tar' }],
    [`docker-archive:a.tar@${digest}`, { transport: 'docker-archive', path: 'a.tar', digest }],
    [
      'docker-archive:/a/image.tar:quay.io/ns/x:v1',
      { transport: 'docker-archive', path: '/a/image.tar', tag: 'quay.io/ns/x:v1' },
    ],
  ])('reads %s', (text, parts) => {
    expect(parseReference(text)).toEqual({ text, ...parts });
  });

  it.each([
    ['quay.io/Ns/x', 'repository name must be lowercase', 'use lower case for the repository name'],
    ['https://quay.io/ns/x', 'invalid reference format', 'remove https://'],
    ['file:///a/b', 'invalid reference format', 'remove file://'],
    [
      'git+https://h/x',
      'invalid reference format',
      'use REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST',
    ],
    [
      './x',
      'invalid reference format',
      'use oci:DIR[:TAG], oci-archive:FILE or docker-archive:FILE for an image on disk',
    ],
    [
      'quay.io/ns/x:',
      'invalid reference format',
      'use REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST',
    ],
    ['quay.io:65536/x', 'registry "quay.io:65536" has no valid host or port', undefined],
    ['1.2.3.999/x', 'registry "1.2.3.999" has no valid host or port', undefined],
    ['[::g]/x', 'invalid reference format', undefined],
    ['[1:2]/x', 'invalid reference format', undefined],
    ['oci:', 'has no path', 'use oci:DIR[:TAG]'],
    ['oci::v1', 'has no path', undefined],
    ['oci:dir:', 'has an empty tag', undefined],
    ['oci:dir@sha256:../../x', 'invalid checksum digest length', undefined],
    ['docker-archive:', 'has no path', undefined],
    ['docker-archive:x.tar:', 'invalid reference format', undefined],
    ['docker://', 'invalid reference format', undefined],
  ])('refuses %s', (text, fault, hint) => {
    const error = errorOf(text);
    expect(error.code).toBe('INVALID');
    expect(error.message).toContain(fault);
    if (hint !== undefined) expect(error.hint).toBe(hint);
  });

  it.each([
    'user:s3cret@quay.io/ns/x',
    'docker://user:s3cret@quay.io/ns/x',
    'https://me:s3c@s3cret@quay.io/x',
  ])('does not repeat the password in %s', (text) => {
    const error = errorOf(text);
    expect(error.message).not.toContain('s3c');
    expect(error.hint).toContain('auth file');
  });

  it('stays short and quick on endless input', () => {
    for (const unit of ['a', 'a-', '-', 'a.', 'a/', ':', '@', '__', '@sha256:', 'A']) {
      const text = `quay.io/${unit.repeat(50_000)}`;
      expect(errorOf(text).message.length).toBeLessThan(400);
      expect(checkPullSpec(text)).toBeDefined();
    }
  });

  it('throws nothing but OpmateError, and what it accepts is stable', () => {
    const part = fc.constantFrom(
      ...[
        'a',
        'b1',
        'A',
        '.',
        '_',
        '__',
        '-',
        ':',
        '/',
        '@',
        ' ',
        '\0',
        'é',
        '[::1]',
        'localhost',
        'docker.io',
        'x.y',
        '1',
      ],
      ...['5000', 'oci:', 'docker://', 'docker-archive:', 'oci-archive:', digest, 'sha256:', 'library'],
    );
    const text = fc.array(part, { maxLength: 9 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(fc.oneof(text, fc.string()), (candidate) => {
        let reference: ReturnType<typeof parseReference>;
        try {
          reference = parseReference(candidate);
        } catch (error) {
          expect(error).toBeInstanceOf(OpmateError);
          return;
        }
        const formatted = formatReference(reference);
        expect(parseReference(formatted)).toEqual({ ...reference, text: formatted });
        expect(formatReference(parseReference(formatted))).toBe(formatted);
        if (reference.transport === 'docker')
          expect(URL.canParse(`https://${reference.registry}/`)).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });
});
