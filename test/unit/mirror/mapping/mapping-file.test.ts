import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OpmateError } from '../../../../src/core/errors.js';
import { parseMappings, planPairs } from '../../../../src/mirror/mapping/mapping-file.js';
import { failureOf } from '../../../support/connect.js';

const digest = `sha256:${'a'.repeat(64)}`;
const roots = { from: '/from', to: '/to' };
const tags = ['v1.0', 'v1.1', 'v2.0', 'latest'];

async function resolve(text: string): Promise<string[]> {
  const plan = await planPairs(parseMappings(text, 'mapping.txt'), () => Promise.resolve(tags), { roots });
  return plan.images.map(({ source, destination }) => `${source} -> ${destination}`);
}

describe('mirror/mapping-file', () => {
  it.each([
    ['a.io/x:1=b.io/x:2', ['a.io/x:1 -> b.io/x:2']],
    [
      '  a.io/x:1=b.io/x:2   a.io/y:1=b.io/y:1 # and more\r\n',
      ['a.io/x:1 -> b.io/x:2', 'a.io/y:1 -> b.io/y:1'],
    ],
    ['a.io/x:1 b.io/x:2 c.io/x', ['a.io/x:1 -> b.io/x:2', 'a.io/x:1 -> c.io/x:1']],
    ['# nothing\n\n   \n', []],
    [`a.io/x@${digest}=b.io/x`, [`a.io/x@${digest} -> b.io/x`]],
    [`a.io/x@${digest}=b.io/x:t`, [`a.io/x@${digest} -> b.io/x:t`]],
    ['a.io/x:v1.*=b.io/x', ['a.io/x:v1.0 -> b.io/x:v1.0', 'a.io/x:v1.1 -> b.io/x:v1.1']],
    ['a.io/x:*2*0=b.io/x', ['a.io/x:v2.0 -> b.io/x:v2.0']],
    ['a.io/x=b.io/x', tags.map((tag) => `a.io/x:${tag} -> b.io/x:${tag}`)],
    ['a.io/x:1=file://dir/x:1', ['a.io/x:1 -> file://dir/x:1']],
    ['file://dir/x:1=b.io/x', ['file://dir/x:1 -> b.io/x:1']],
  ])('reads %j', async (text, pairs) => expect(await resolve(text)).toEqual(pairs));

  it.each([
    ['a.io/x:1', 1, 'has no target'],
    ['\n\na.io/x:1=', 3, 'both source and target are needed'],
    ['=b.io/x', 1, 'both source and target are needed'],
    ['a.io/x:1=b.io/x:1 c.io/y', 1, '"c.io/y" has no target'],
    ['a.io/X:1=b.io/x:1', 1, 'source a.io/X:1: invalid reference format: repository name must be lowercase'],
    ['a.io/x:1=word', 1, 'target word: missing registry'],
    ['word=b.io/x', 1, 'source word: missing registry'],
    ['./word=b.io/x', 1, 'source ./word: a path, not an image reference'],
    [`a.io/x:1=b.io/x@${digest}`, 1, 'a target cannot have a digest'],
    ['a.io/x:v*=b.io/x:1', 1, 'a target of several tags cannot have one'],
    ['a.io/x:y*=b.io/x', 1, 'a.io/x: no tag matches y*'],
    ['a.io/x:1=a.io/x:1', 1, 'is both source and target'],
    [
      'a.io/x:1=b.io/x:1\na.io/y:1=b.io/x:1',
      2,
      'b.io/x:1: is the target of a.io/x:1 on line 1 and of a.io/y:1',
    ],
    [`a.io/x:1=b.io/${'y'.repeat(70_000)}`, 1, 'longer than 65536 bytes'],
    ['a.io/x:1\tb.io/x:1', 1, 'has no target'],
  ])('refuses %j', async (text, line, message) => {
    const error = (await failureOf(resolve(text))) as OpmateError;
    expect(error.message).toContain(message);
    expect(error.message).toMatch(new RegExp(`^mapping.txt:${line}: `));
    expect([error.file, error.line]).toEqual(['mapping.txt', line]);
  });

  it('reads any text or refuses it', async () => {
    const piece = fc.constantFrom(
      'a.io/x',
      ':1',
      '=',
      ' ',
      '*',
      '#',
      '\n',
      `@${digest}`,
      'file://',
      '/',
      'é',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
        await resolve(pieces.join('')).catch((error: OpmateError) =>
          expect(error.code).toMatch(/^(INVALID|UNSAFE|NOT_FOUND)$/),
        );
      }),
    );
  });
});
