import { describe, expect, it } from 'vitest';
import { formatMessage } from '../../../../src/core/diagnostic.js';
import { bundleDockerfile, isPlainLabel } from '../../../../src/bundle/author/annotations.js';
import { readDockerfile } from '../../../../src/bundle/author/dockerfile.js';

const read = (...lines: string[]) => readDockerfile(lines.join('\n'), 'f');
const findingsOf = (...lines: string[]): string[] =>
  read('FROM scratch', ...lines).findings.map(({ line, ...finding }) => `${line}: ${formatMessage(finding)}`);

describe('bundle/author/dockerfile', () => {
  it('reads back what is generated', () => {
    const facts = { mediaType: 'plain', packageName: 'p', channels: 'a,b', defaultChannel: 'a' } as const;
    const places = { baseImage: 'quay.io/a/b:c', manifests: 'x/manifests', metadata: 'x/metadata' };
    const { baseImage, labels, copies, findings } = readDockerfile(bundleDockerfile(facts, places), 'f');
    expect(findings).toEqual([]);
    expect(baseImage).toBe('quay.io/a/b:c');
    expect(labels.map(({ value }) => value)).toEqual(['plain', 'manifests/', 'metadata/', 'p', 'a,b', 'a']);
    expect(copies.map(({ source, target }) => [source, target])).toEqual([
      ['x/manifests', '/manifests'],
      ['x/metadata', '/metadata'],
    ]);
  });

  it.each([
    [['LABEL a=b c="d e" f=\'g h\''], { a: 'b', c: 'd e', f: 'g h' }],
    [['label a=b\\ c d="e\\"f" g="h\\i"'], { a: 'b c', d: 'e"f', g: 'h\\i' }],
    [['LABEL a some text'], { a: 'some text' }],
    [['LABEL a=b \\', '  # comment', '', '  c=d'], { a: 'b', c: 'd' }],
    [["LABEL a='$HOME'"], { a: '$HOME' }],
    [['LABEL a=b \\', '# the end'], { a: 'b' }],
    [['LABEL a='], { a: '' }],
    [['LABEL __proto__=x'], { ['__proto__']: 'x' }],
  ])('reads labels of %j', (lines, expected) => {
    const { labels, findings } = read('FROM scratch', ...lines);
    expect(findings).toEqual([]);
    expect(labels.map(({ key, value }) => [key, value])).toEqual(Object.entries(expected));
  });

  it('names the line of instructions that need an engine', () => {
    expect(findingsOf('', '# comment', 'RUN id \\', '  -u', 'ADD a /b')).toEqual([
      '4: RUN: needs an engine',
      '6: ADD: needs an engine',
    ]);
    expect(findingsOf('FROM other')).toEqual(['2: a second FROM: images of several stages need an engine']);
    expect(findingsOf('LABEL a=$B')).toEqual(['2: LABEL: variables are not supported']);
    expect(findingsOf('LABEL a="b')).toEqual(['2: LABEL: a quote that does not end']);
    expect(findingsOf('LABEL a=b c d')).toHaveLength(2);
    expect(findingsOf('COPY --from=x a /b')).toEqual(['2: COPY: --from is not supported']);
    expect(findingsOf('COPY a b /c/', 'COPY a* /c/')).toHaveLength(2);
    expect(findingsOf('COPY ["a", 1]')).toEqual(['2: COPY: its list is not JSON']);
    expect(read('# escape=`', 'FROM scratch').findings).toHaveLength(1);
    expect(read('FROM a AS b').findings).toHaveLength(1);
    expect(read('').findings).toMatchObject([{ problem: 'no FROM' }]);
  });

  it('keeps a target within the image', () => {
    const { copies } = read('FROM scratch', 'COPY a ../../b/', 'COPY a .', 'COPY a b/..', 'COPY a /x/../y');
    expect(copies.map(({ target, isDirectory }) => [target, isDirectory])).toEqual([
      ['/b', true],
      ['', true],
      ['', true],
      ['/y', false],
    ]);
  });

  it('detects values that need quotes', () => {
    expect(['a,b', 'x/y:z@1', 'é#'].map(isPlainLabel)).toEqual([true, true, true]);
    expect(['a b', '"', "'", '\\', '$a', 'a\tb'].map(isPlainLabel)).not.toContain(true);
  });
});
