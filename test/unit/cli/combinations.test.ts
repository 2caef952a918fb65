import { describe, expect, it } from 'vitest';
import { run } from '../../../src/cli/main.js';
import { createWorld } from './world.js';

describe('options that had no effect', () => {
  it.each([
    [['catalogs', 'status', '--catalogs', 'd', '--url', 'http://h'], '--catalogs and --url cannot be used'],
    [['catalogs', 'wait', '--storage', 's', '--catalogs', 'd'], '--catalogs and --storage cannot be used'],
    [
      ['catalogs', 'status', '--url', 'http://h', '--external-url', 'u'],
      '--external-url and --url cannot be',
    ],
    [['catalog', 'publish', 'c', '--to', 'd', '--prune'], '--prune: needs --update'],
    [['catalog', 'publish', 'c', '--to', 'd', '--older-than', '2h'], '--older-than: needs --prune'],
    [['catalog', 'filter', 'c', '--dry-run', '-o', 'yaml'], '--dry-run and --output yaml cannot be used'],
    [['registry', 'images', '--from', 'c', '--manifests', 'd'], '--manifests: needs --to'],
    [
      ['bundle', 'permissions', 'b', '--installer', 'i', '--install-namespace', 'n'],
      '--installer: needs --output',
    ],
    [
      ['bundle', 'permissions', 'b', '--install-namespace', 'n', '--can-i', 'f', '--fail-on', 'secrets'],
      '--can-i and --fail-on cannot be used',
    ],
    [['deployment', 'apply', '-f', 'f', '--yes', '--approve', 'h'], '--yes and --approve cannot be used'],
    [['deployment', 'apply', '-f', 'f', '--watch'], '--watch: needs --yes or --approve'],
  ])('%j are refused with 2', async (args, message) => {
    const world = createWorld();
    expect(await run(args, world)).toBe(2);
    expect(world.stderr.text).toContain(message);
  });

  it.each([
    [['serve', 'c', '--external-url', 'http://h'], '--external-url: needs --http or --catalogs'],
    [['serve', 'c', '--storage', 's'], '--storage: needs --http or --catalogs'],
    [['serve', 'c', '--name', 'n'], '--name: needs --http'],
    [['serve', 'c', '--secrets', 's'], '--secrets: needs --catalogs'],
    [['serve', '--catalogs', 'd', '--port', '8080'], '--port and --catalogs cannot be used together'],
    [['serve', '--catalogs', 'd', '--workers', '2'], '--workers and --catalogs cannot be used together'],
    [['serve', '--catalogs', 'd', 'c'], '--catalogs and <catalog> cannot be used together'],
    [['registry', 'serve', 'd.db', '--configmap', 'f'], '--configmap and <database> cannot be used together'],
    [['mirror', '-c', 'f', 'docker://h', '--shard-wait', '1s'], '--shard-wait: needs --locked'],
    [['mirror', 'a.test/b=c.test/b', '--strict-archive'], '--strict-archive: needs --config'],
    [
      ['mirror', 'a.test/b=c.test/b', '--dest-creds', 'a:b', '--dest-no-creds'],
      '--dest-creds and --dest-no-creds cannot be used together',
    ],
    [['mirror', 'a.test/b=c.test/b', '--src-username', 'u'], '--src-username: needs --src-password'],
  ])('%j are refused with 1, as wrong usage of commands that other tools have', async (args, message) => {
    const world = createWorld();
    expect(await run(args, world)).toBe(1);
    expect(world.stderr.text).toContain(message);
  });

  it('takes an option with its default beside one that excludes it', async () => {
    const world = createWorld();
    expect(await run(['serve', './absent', '--workers', '1', '--http', '--port', '50051'], world)).toBe(1);
    expect(world.stderr.text).toContain('absent: no such file or directory');
  });
});
