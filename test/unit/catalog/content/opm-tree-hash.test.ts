import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { computeFnv } from '../../../../src/catalog/content/fnv.js';
import {
  type HashedFile,
  hashChangedTrees,
  hashOpmTrees,
} from '../../../../src/catalog/content/opm-tree-hash.js';
import { directoryWith } from '../../../support/temporary.js';

/** The files in one, one after the other. */
async function tree(files: Record<string, string>): Promise<HashedFile[]> {
  const file = path.join(await directoryWith({ all: Object.values(files).join('') }), 'all');
  let offset = 0;
  return Object.entries(files).map(([name, text]) => {
    const size = Buffer.byteLength(text);
    offset += size;
    return { path: name, file, offset: offset - size, size };
  });
}

const long = 'l'.repeat(60);
const names: Record<string, string> = {
  'a-b.yaml': 'one',
  'a/x.yaml': 'two',
  'a/empty': '',
  'a.b': 'three',
  [`${long}/${long}/x.yaml`]: 'four',
  [`${'n'.repeat(120)}.yaml`]: 'five',
  [`d/${'m'.repeat(101)}`]: 'x'.repeat(512),
  'é/ü.yaml': 'six',
  ['ü'.repeat(80)]: 'seven',
  [`${'p/'.repeat(80)}f`]: 'y'.repeat(513),
  [`${'q'.repeat(99)}/r`]: '8'.repeat(1000),
  [`${long}/${'é'.repeat(30)}/x`]: 'nine',
  [Array.from({ length: 4 }, () => 'k'.repeat(50)).join('/')]: 'ten',
};

describe('catalog/content/opm-tree-hash', () => {
  it('equals the hash of opm 1.73, for names of every length and script', async () => {
    const cache = { 'packages.json': '{}', 'metas/s/p/1.json': '{"a":1}' };
    expect(await hashOpmTrees([await tree(names), await tree(cache)])).toBe('06be5557d02e4e7f');
  });

  it('depends neither on the order nor on the location of files', async () => {
    const whole = await hashOpmTrees([await tree(names)]);
    expect(await hashOpmTrees([(await tree(names)).reverse()])).toBe(whole);
    const apart = await directoryWith(names);
    const files = Object.entries(names).map(([name, text]) => ({
      ...{ path: name, file: path.join(apart, name), size: Buffer.byteLength(text) },
    }));
    expect(await hashOpmTrees([files])).toBe(whole);
  });

  it('computes the hashes before and after a change of files and directories together', async () => {
    const kept = await tree(names);
    const before = [...kept, ...(await tree({ 'a/gone': 'x', 'b/c/d': 'y', same: 'z', z: '1' }))];
    const after = [...(await tree({ same: 'Z', 'z/1': '1', 'a/new': 'x' })), ...kept];
    const cache = await tree({ 'packages.json': '{}' });
    const changes = [
      { before, after },
      { before: cache, after: cache },
    ];
    expect(await hashChangedTrees(changes)).toEqual({
      before: await hashOpmTrees([before, cache]),
      after: await hashOpmTrees([after, cache]),
    });
  });

  /** Of http://www.isthe.com/chongo/tech/comp/fnv: test vectors of FNV-1a, 64 bits. */
  it.each([
    ['', 'cbf29ce484222325'],
    ['a', 'af63dc4c8601ec8c'],
    ['foobar', '85944171f73967e8'],
  ])('is FNV-1a of %j', (text, expected) => {
    expect(computeFnv(Buffer.from(text))).toBe(expected);
  });

  it('is a number without leading zeros, as the name of a file', () => {
    let text = '';
    for (let at = 0; computeFnv(Buffer.from(text)).length === 16; at++) text = String(at);
    expect(computeFnv(Buffer.from(text))).toMatch(/^[1-9a-f][0-9a-f]{0,14}$/);
  });
});
