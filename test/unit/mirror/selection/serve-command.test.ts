import { describe, expect, it } from 'vitest';
import { getCaches, serveCommand } from '../../../../src/mirror/selection/serve-command.js';

const split = (text: string | undefined): string[] | undefined =>
  text?.split(' ').filter((word) => word !== '');

describe('mirror/serve-command', () => {
  it.each([
    // entrypoint, command; entrypoint and command afterwards
    ['/bin/opm', 'serve /configs --cache-dir=/tmp/cache', '/bin/opm', 'serve /catalog'],
    ['/bin/opm', 'serve /configs --cache-dir /tmp/cache --debug', '/bin/opm', 'serve /catalog --debug'],
    [
      '/bin/opm',
      'serve -p 5000 /configs --cache-enforce-integrity=false',
      '/bin/opm',
      'serve /catalog -p 5000',
    ],
    [
      '/bin/opm',
      'serve /configs --cache-only --port=1 -t /dev/null',
      '/bin/opm',
      'serve /catalog --port=1 -t /dev/null',
    ],
    ['/bin/opm', undefined, '/bin/opm', 'serve /catalog'],
    [undefined, '/bin/opm serve /configs --cache-dir=/c', undefined, '/bin/opm serve /catalog'],
    ['/bin/opm serve /configs', '--cache-dir=/c --debug', '/bin/opm serve /catalog', '--debug'],
    ['/bin/opm serve /configs --cache-dir=/c', undefined, '/bin/opm serve /catalog', undefined],
    ['/bin/opm', 'registry serve --database /index.db -p 1', '/bin/opm', 'serve /catalog'],
    [undefined, '/bin/opm registry serve -d index.db', undefined, '/bin/opm serve /catalog'],
    ['/bin/registry-server', '--database bundles.db', '/bin/registry-server', 'serve /catalog'],
    // An image of files alone.
    [undefined, undefined, undefined, undefined],
    ['', '', '', ''],
  ])('of %j and %j makes %j and %j', (entrypoint, cmd, newEntrypoint, newCmd) => {
    const made = serveCommand({ entrypoint: split(entrypoint), cmd: split(cmd) }, '/catalog');
    expect(made).toEqual({ entrypoint: split(newEntrypoint), cmd: split(newCmd) });
  });

  it.each([
    ['/bin/opm', 'serve /configs --cache-dir=/c', '/bin/opm', 'serve /catalog --cache-dir=/c'],
    [
      '/bin/opm serve /configs --cache-dir /c',
      '--cache-enforce-integrity --cache-only --debug',
      '/bin/opm serve /catalog --cache-dir /c',
      '--cache-enforce-integrity --debug',
    ],
    ['/bin/opm', 'registry serve --cache-dir=/c', '/bin/opm', 'serve /catalog'],
  ])('keeps the cache in %j and %j', (entrypoint, cmd, newEntrypoint, newCmd) => {
    const command = { entrypoint: split(entrypoint), cmd: split(cmd) };
    const made = serveCommand(command, '/catalog', { keepsCache: true });
    expect(made).toEqual({ entrypoint: split(newEntrypoint), cmd: split(newCmd) });
  });

  it.each([
    ['serve /configs --cache-dir=/tmp/cache/', undefined, ['/tmp/cache']],
    ['serve /configs --cache-dir cache', '/work', ['/work/cache']],
    ['serve /configs --cache-dir=../../cache --cache-dir=/b', '/work', ['/cache', '/b']],
    ['serve /configs --cache-dir', undefined, []],
    ['serve /configs --cache-dir= --cache-only', undefined, []],
    ['serve /configs', '/work', []],
  ])('finds the caches of %j in %j', (cmd, directory, caches) => {
    expect(getCaches({ entrypoint: ['/bin/opm'], cmd: split(cmd) }, directory)).toEqual(caches);
  });
});
