import { readFileSync } from 'node:fs';
import path from 'node:path';
import { load } from 'js-yaml';
import { beforeAll, describe, expect, it } from 'vitest';
import { projectRoot, useSandbox } from '../support/command-line.js';
import { serve } from './served-catalogs.js';

const sandbox = useSandbox();

function caseOf(name: string): string {
  return readFileSync(path.join(projectRoot, 'fixtures/fbc-cases', `${name}.json`), 'utf8');
}

interface Shown {
  outcome: string;
  reason: string;
  chosen?: { name: string; image: string; catalog: string };
  catalogs: { name: string; matched: number; candidates: { name: string; reasons: string[] }[] }[];
  deprecations: unknown[];
  successors: unknown[];
}

beforeAll(async () => {
  await sandbox.write({
    'plain/catalog.json': caseOf('valid'),
    'deprecated/catalog.json': caseOf('deprecation-ok'),
    'broken/catalog.json': '{"schema":"olm.channel","package":"widget","name":1}',
    'needy/catalog.json': [
      { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
      { schema: 'olm.channel', package: 'widget', name: 'stable', entries: [{ name: 'widget.v1' }] },
      {
        schema: 'olm.bundle',
        package: 'widget',
        name: 'widget.v1',
        image: 'quay.io/example/widget:1',
        properties: [
          { type: 'olm.package', value: { packageName: 'widget', version: '1.0.0' } },
          { type: 'olm.package.required', value: { packageName: 'other', versionRange: '>0.0.0' } },
        ],
      },
    ]
      .map((blob) => JSON.stringify(blob))
      .join('\n'),
  });
});

describe('opmate bundle resolve', () => {
  it('prints the selected bundle, its image, and why others are not selected', async () => {
    const args = ['bundle', 'resolve', 'widget', '--catalog=plain', '--version=>=1.1, <1.3'];
    const { code, stdout, stderr } = await sandbox.run(args);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^bundle: +widget\.v1\.2\.0\nversion: +1\.2\.0\nimage: +quay\.io\/example\/widget-bundle:v1\.2\.0\n/,
    );
    expect(stdout).toMatch(
      /^plain +widget\.v1\.3\.0 +1\.3\.0 +- +version 1\.3\.0 is not in ">=1\.1, <1\.3"$/m,
    );
    expect(stdout).toMatch(/^plain +widget\.v1\.1\.0 +1\.1\.0 +- +lower version than widget\.v1\.2\.0$/m);
  });

  it('prints the same as JSON and as YAML', async () => {
    const args = ['bundle', 'resolve', 'widget', '--catalog', 'plain', '--installed', 'widget.v1.1.0', '-o'];
    const json = JSON.parse((await sandbox.run([...args, 'json'])).stdout) as Shown;
    expect(json).toMatchObject({
      request: { packageName: 'widget', installed: { name: 'widget.v1.1.0', version: '1.1.0' } },
      outcome: 'resolved',
      chosen: { name: 'widget.v1.2.0', upgrade: 'replaces the installed bundle in channel beta' },
    });
    expect(load((await sandbox.run([...args, 'yaml'])).stdout)).toEqual(json);
  });

  it('selects a catalog by priority, and by labels', async () => {
    const run = async (...more: string[]): Promise<[number | null, string | undefined, string]> => {
      const catalogs = ['--catalog=a=plain,labels=tier=gold,zone=eu', ...more];
      const { code, stdout, stderr } = await sandbox.run([
        'bundle',
        'resolve',
        'widget',
        ...catalogs,
        '-o',
        'json',
      ]);
      return [code, stdout === '' ? undefined : (JSON.parse(stdout) as Shown).chosen?.catalog, stderr];
    };
    const [code, chosen, said] = await run('--catalog=b=deprecated');
    expect([code, chosen]).toEqual([3, undefined]);
    expect(said).toContain('in multiple catalogs with the same priority [a b]\n');
    expect((await run('--catalog=b=deprecated,priority=2')).slice(0, 2)).toEqual([0, 'b']);
    expect((await run('--catalog=b=deprecated', '--selector=tier=gold')).slice(0, 2)).toEqual([0, 'a']);
    const byName = '--selector=olm.operatorframework.io/metadata.name in (b)';
    expect((await run('--catalog=b=deprecated', byName)).slice(0, 2)).toEqual([0, 'b']);
  });

  it('warns about deprecations, and fails on request', async () => {
    const args = ['bundle', 'resolve', 'widget', '--catalog=deprecated', '--channel=beta', '--version=1.0'];
    const { code, stderr } = await sandbox.run(args);
    expect([code, stderr]).toEqual([
      0,
      'warn: package widget is deprecated: gone\n' +
        'warn: channel beta is deprecated: old\n' +
        'warn: bundle widget.v1.0.0 is deprecated: cve\n',
    ]);
    expect((await sandbox.run([...args, '--fail-on-deprecated'])).code).toBe(3);
  });

  it('lists available upgrades if none is in range', async () => {
    const args = ['--catalog=plain', '--installed=widget.v1.0.0', '--version=2.x'];
    const { code, stdout, stderr } = await sandbox.run(['bundle', 'resolve', 'widget', ...args]);
    expect(code).toBe(3);
    expect(stdout).toMatch(/^plain +0 +found +4 +0 +no bundle matches$/m);
    expect(stderr).toContain(
      'error upgrading from currently installed version "1.0.0": no bundles found for package "widget" matching version "2.x"\n',
    );
    expect(stderr).toContain('y-stream: widget.v1.1.0 (channel beta, stable of plain)');
  });

  it('does not select bundles that OLM v1 would not install', async () => {
    const { code, stderr } = await sandbox.run(['bundle', 'resolve', 'widget', '--catalog=needy']);
    expect(code).toBe(3);
    expect(stderr).toContain(
      'bundle "widget.v1" has a dependency declared via property "olm.package.required" which is currently not supported',
    );
  });

  it('requests only the package from a server', async () => {
    const { url } = await serve({ main: { 'catalog.json': caseOf('valid') } });
    const catalog = `--catalog=main=${url}/catalogs/main`;
    const { code, stdout } = await sandbox.run(['bundle', 'resolve', 'widget', catalog, '--version=~1.1']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^bundle: +widget\.v1\.1\.0$/m);
  });

  it.each([
    [['widget'], 2, '--catalog: missing'],
    [['Widget', '--catalog=plain'], 2, 'package "Widget": not a DNS-1123 subdomain'],
    [['widget', '--catalog=plain', '--version=>>1'], 2, '--version ">>1": invalid version range'],
    [
      ['widget', '--catalog=plain', `--version=${'1||'.repeat(30)}1`],
      2,
      '--version: longer than 64 characters',
    ],
    [['widget', '--catalog=plain', '--policy=x'], 2, 'invalid --policy value "x"'],
    [['widget', '--catalog=plain', '-o', 'table'], 2, 'invalid --output value "table"'],
    [['widget', '--catalog=plain', '--installed=a@b'], 2, 'installed bundle "a@b": version "b": '],
    [['widget', '--catalog=plain', '--installed=a'], 1, 'installed bundle "a": not found in any catalog'],
    [['widget', '--catalog=plain', '--catalog=plain'], 2, '--catalog "plain": duplicate name'],
    [['widget', '--catalog=a=plain,priority=x'], 2, 'priority "x" is not a number of 32 bits'],
    [['widget', '--catalog=a=plain,labels=x'], 2, 'label "x" is not KEY=VALUE'],
    [['widget', '--catalog=a=plain', '--selector=x=y'], 2, '--selector "x=y": no catalog has such labels'],
    [['widget', '--catalog=a=plain', '--selector=x y'], 2, '--selector "x y": invalid requirement'],
    [['widget', '--catalog=./none'], 1, './none: no such file or directory'],
    [['widget', '--catalog=plain', '--catalog=broken'], 1, 'at: broken/catalog.json:1'],
  ])('refuses %j', async (args, wanted, said) => {
    const { code, stdout, stderr } = await sandbox.run(['bundle', 'resolve', ...args]);
    expect({ code, stdout }).toEqual({ code: wanted, stdout: '' });
    expect(stderr).toContain(said);
  });
});

describe('opmate bundle successors', () => {
  it('shows direct successors and further paths', async () => {
    const args = ['bundle', 'successors', 'widget', 'widget.v1.1.0', '--catalog=plain', '--channel=stable'];
    const { code, stdout, stderr } = await sandbox.run([...args, '--path-to=1.3.0']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toBe(
      [
        'CHANNEL  SUCCESSOR      VERSION  STREAM  HOW       DEPRECATED',
        'stable   widget.v1.2.0  1.2.0    y       replaces  -',
        '',
        'CHANNEL  HEAD           LONGEST PATH                                SHORTEST PATH',
        'stable   widget.v1.3.0  2 upgrades: widget.v1.2.0 -> widget.v1.3.0  widget.v1.2.0 -> widget.v1.3.0',
        '',
        'to 1.3.0: widget.v1.2.0 -> widget.v1.3.0',
        '',
      ].join('\n'),
    );
    const { channels } = JSON.parse((await sandbox.run([...args, '-o', 'json'])).stdout) as {
      channels: { longestPath: { name: string; how: string }[] }[];
    };
    expect(channels[0]?.longestPath.map(({ name, how }) => [name, how])).toEqual([
      ['widget.v1.2.0', 'replaces'],
      ['widget.v1.3.0', 'replaces'],
    ]);
  });

  it.each([
    [
      ['widget', 'widget.v1.3.0', '--catalog=plain', '--path-to=1.0.0'],
      3,
      'no upgrade path from widget.v1.3.0 to 1.0.0',
    ],
    [['widget', 'x', '--catalog=plain'], 1, 'bundle "x" not found in package "widget"'],
    [['gadget', 'x', '--catalog=plain'], 1, 'package "gadget" not found in catalog plain'],
    [
      ['widget', 'widget.v1.3.0', '--catalog=plain', '--channel=x'],
      1,
      'channel "x" not found in package "widget"',
    ],
    [['widget', 'widget.v1.3.0'], 2, '--catalog: missing'],
    [['widget', 'widget.v1.3.0', '--catalog=plain', '--path-to=x'], 2, '--path-to "x": '],
  ])('says why not: %j', async (args, wanted, said) => {
    const { code, stderr } = await sandbox.run(['bundle', 'successors', ...args]);
    expect(code).toBe(wanted);
    expect(stderr).toContain(said);
  });
});
