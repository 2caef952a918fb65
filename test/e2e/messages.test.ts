import { describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();

describe('a refused connection', () => {
  it('is reported at once with --retry-timeout 0', async () => {
    const { code, stderr } = await sandbox.run(['render', '127.0.0.1:1/a/b:v1', '--retry-timeout', '0']);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'render reference "127.0.0.1:1/a/b:v1": connection refused\n',
    });
  });
});

describe('a missing file or directory', () => {
  it.each([
    ['init', 'widget', '-d', 'none'],
    ['init', 'widget', '-i', 'none'],
    ['generate', 'dockerfile', 'none'],
    ['validate', 'none'],
    ['list', 'bundles', 'none'],
    ['template', 'render', 'none'],
    ['template', 'convert', 'basic', 'none'],
    ['catalog', 'doctor', 'none'],
    ['catalog', 'filter', 'none', '-f', 'none', '--dry-run'],
    ['bundle', 'validate', 'none'],
    ['bundle', 'render', 'none', '--install-namespace', 'x', '--config', 'none'],
    ['bundle', 'deployment', 'render', '-f', 'none'],
    ['bundle', 'deployment', 'diff', '-f', 'none', '--against', 'none'],
    ['registry', 'serve', '-d', 'none'],
    ['archive', 'verify', 'none'],
    ['mirror', '-c', 'none', 'file://x'],
    ['mirror', 'diff', 'none', 'none'],
    ['mirror', 'capture', 'none'],
    ['verify', '--policy', 'none', 'registry.example.com/demo/x:v1'],
    ['verify', '--key', 'none', 'registry.example.com/demo/x:v1'],
    ['serve', '--catalogs', 'none'],
    ['serve', 'none'],
  ])('is reported alike by %s %s', async (...args) => {
    const { code, stderr } = await sandbox.run(args);
    expect({ code, line: stderr.split('\n')[0] }).toEqual({
      code: 1,
      line: 'none: no such file or directory',
    });
  });
});
