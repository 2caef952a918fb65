import { describe, expect, it } from 'vitest';
import { run } from '../../../../src/cli/main.js';
import { createWorld } from '../world.js';

describe('cli/index/edit: wrong use', () => {
  it.each<[string, string[], string]>([
    ['no place for the image', ['add', '-b', 'x'], '--tag, --save or --generate: missing'],
    ['no bundles', ['add', '-t', 'r.io/a:v1'], '--bundles or --from-file: missing'],
    ['no index', ['rm', '-o', 'x', '-t', 'r.io/a:v1'], 'required flag(s) "from-index" not set'],
    ['no packages', ['prune', '-f', 'x', '-t', 'r.io/a:v1'], 'required flag(s) "package" not set'],
    [
      'a tool twice',
      ['add', '-b', 'x', '-t', 'r.io/a:v1', '-c', 'docker', '-p', 'none'],
      'container-tool cannot be set alongside',
    ],
    [
      'an unknown mode',
      ['add', '-b', 'x', '-t', 'r.io/a:v1', '--mode', 'other'],
      'Invalid channel update mode other',
    ],
    ['two places', ['add', '-b', 'x', '-t', 'r.io/a:v1', '--save', 'f'], 'cannot be used together'],
    ['no tag', ['add', '-b', 'x', '-t', 'r.io/a'], 'missing tag'],
    ['a digest', ['add', '-b', 'x', '-t', `r.io/a@sha256:${'0'.repeat(64)}`], 'names a digest'],
    ['an archive', ['add', '-b', 'x', '-t', 'oci-archive:f:v1'], 'use --save FILE'],
    ['both package options', ['export', '-i', 'x', '-p', 'a', '-o', 'b'], "remove '-o'"],
  ])('refuses %s', async (_, args, message) => {
    const world = createWorld();
    expect(await run(['index', ...args], world)).toBe(1);
    expect(world.stdout.text).toBe('');
    expect(world.stderr.text).toContain(message);
  });
});
