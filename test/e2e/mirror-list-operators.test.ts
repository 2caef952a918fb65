import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandResult, useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { makeCatalogImage, makeImage, serveBuilt } from './images.js';

const sandbox = useSandbox();
let registry: FaultRegistry;

const blob = (schema: string, fields: object): string => `${JSON.stringify({ schema, ...fields })}\n`;
function bundle(name: string, version: string, ...more: object[]): string {
  const [packageName] = name.split('.') as [string];
  return blob('olm.bundle', {
    ...{ package: packageName, name, image: `quay.io/acme/${name}` },
    properties: [{ type: 'olm.package', value: { packageName, version } }, ...more],
  });
}
const titled = (displayName: string): object => ({ type: 'olm.csv.metadata', value: { displayName } });
const csv = (displayName: string): object => {
  const text = JSON.stringify({
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    spec: { displayName },
  });
  return { type: 'olm.bundle.object', value: { data: Buffer.from(text).toString('base64') } };
};
const catalog = [
  blob('olm.package', { name: 'widget', defaultChannel: 'stable' }),
  blob('olm.channel', {
    ...{ package: 'widget', name: 'stable' },
    entries: [
      { name: 'widget.v1.9.0' },
      { name: 'widget.v1.10.0', replaces: 'widget.v1.9.0' },
      { name: 'widget.v1.2.0' },
      { name: 'widget.v1.10.1', replaces: 'widget.v1.10.0', skips: ['widget.v1.2.0'] },
    ],
  }),
  blob('olm.channel', { package: 'widget', name: 'alpha', entries: [{ name: 'widget.v2.0.0-rc.1' }] }),
  bundle('widget.v1.2.0', '1.2.0', titled('Old Widget')),
  bundle('widget.v1.9.0', '1.9.0', titled('Old Widget')),
  bundle('widget.v1.10.0', '1.10.0', titled('Old Widget')),
  bundle('widget.v1.10.1', '1.10.1', titled('Old Widget')),
  bundle('widget.v2.0.0-rc.1', '2.0.0-rc.1', titled('Widget')),
  blob('olm.package', { name: 'gadget', defaultChannel: 'only' }),
  blob('olm.channel', { package: 'gadget', name: 'only', entries: [{ name: 'gadget.v1.0.0' }] }),
  bundle('gadget.v1.0.0', '1.0.0', csv('The Gadget')),
  blob('olm.package', { name: 'plain', defaultChannel: 'only' }),
  blob('olm.channel', { package: 'plain', name: 'only', entries: [{ name: 'plain.v1.0.0' }] }),
  bundle('plain.v1.0.0', '1.0.0'),
].join('');

beforeAll(async () => {
  registry = await startFaultRegistry();
  const image = await makeCatalogImage({ 'catalog.json': catalog });
  serveBuilt(registry, 'acme/index', 'v1', image);
  serveBuilt(registry, 'acme/other', 'v1', await makeImage({ files: { 'etc/motd': 'hello' } }));
  for (const name of ['redhat-operator', 'community-operator', 'redhat-marketplace']) {
    for (const version of ['v4.18', 'v4.22', 'v4.23', 'v5.0', 'v5.1'])
      serveBuilt(registry, `redhat/${name}-index`, version, image);
  }
  await sandbox.write({
    'catalog/catalog.json': catalog,
    'registries.conf': `[[registry]]\nprefix = "registry.redhat.io"\nlocation = "${registry.host}"\n`,
  });
});
afterAll(() => registry.close());

const list = (...args: string[]): Promise<CommandResult> =>
  sandbox.run(['mirror', 'list', 'operators', ...args, '--use-http'], {
    env: { CONTAINERS_REGISTRIES_CONF: `${sandbox.work}/registries.conf` },
  });
const lines = (...all: string[]): string => all.map((line) => `${line}\n`).join('');

describe('mirror list operators', () => {
  it('lists packages with the display name of their highest version', async () => {
    const expected = lines(
      'NAME    DISPLAY NAME  DEFAULT CHANNEL',
      'gadget  The Gadget    only',
      'plain                 only',
      'widget  Widget        stable',
    );
    for (const reference of ['catalog', `${registry.host}/acme/index:v1`]) {
      expect(await list('--catalog', reference)).toMatchObject({ code: 0, stdout: expected, stderr: '' });
    }
  });

  it('lists the channels of a package, and the versions in a channel, oldest first', async () => {
    const channels = await list('--catalog', 'catalog', '--package', 'widget');
    expect(channels).toMatchObject({ code: 0, stderr: '' });
    expect(channels.stdout).toBe(
      lines(
        'NAME    DISPLAY NAME  DEFAULT CHANNEL',
        'widget  Widget        stable',
        '',
        'PACKAGE  CHANNEL  HEAD',
        'widget   alpha    widget.v2.0.0-rc.1',
        'widget   stable   widget.v1.10.1',
      ),
    );
    const versions = await list('--catalog=catalog', '--package=widget', '--channel=stable', '--v2');
    expect(versions.stdout).toBe(lines('VERSIONS', '1.2.0', '1.9.0', '1.10.0', '1.10.1'));
  });

  it('lists the available well-known catalogs of a version', async () => {
    const index = (name: string, version = 'v4.18'): string =>
      `registry.redhat.io/redhat/${name}-index:${version}`;
    const invalid = 'Invalid catalog reference, please check version: ';
    const result = await list('--catalogs', '--version', '4.18');
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(result.stdout).toBe(
      lines(
        'Available OpenShift OperatorHub catalogs:',
        'OpenShift 4.18:',
        index('redhat-operator'),
        invalid + index('certified-operator'),
        index('community-operator'),
        index('redhat-marketplace'),
      ),
    );
    for (const version of ['4.22', '4.23', '5.0', '5.1']) {
      const newer = await list('--catalogs', `--version=${version}`);
      expect(newer.stdout.split('\n')).toContain(index('redhat-operator', `v${version}`));
      expect(newer.stdout).not.toContain('marketplace');
    }
    const methods = new Set(registry.requests.map(({ method, path: url }) => `${method} ${url}`));
    expect(methods).toContain('HEAD /v2/redhat/redhat-operator-index/manifests/v4.22');
  });

  it.each([
    ['catalog', ['--package', 'widgt'], 'package "widgt" not found in catalog', 'did you mean "widget"?'],
    [
      'catalog',
      ['--package', 'x'],
      'package "x" not found in catalog',
      'use a known package: "gadget", "plain", "widget"',
    ],
    [
      'catalog',
      ['--package', 'widget', '--channel', 'stabel'],
      'channel "stabel" not found in package "widget" of catalog',
      'did you mean "stable"?',
    ],
  ])('names the nearest of what %s has, for %j', async (reference, args, problem, hint) => {
    const result = await list('--catalog', reference, ...args);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain(problem);
    expect(result.stderr).toContain(hint);
  });

  it.each([
    [[], '--catalog or --catalogs: missing'],
    [['--catalogs'], '--catalogs: needs --version'],
    [['--catalog', 'catalog', '--version', '4.18'], '--version: needs --catalogs'],
    [
      ['--catalogs', '--version', '4.18', '--catalog', 'catalog'],
      '--catalogs and --catalog cannot be used together',
    ],
    [['--package', 'widget'], '--package: needs --catalog'],
    [['--catalog', 'catalog', '--channel', 'stable'], '--channel: needs --package'],
    [['--catalogs', '--version', 'latest'], 'invalid OpenShift version "latest"'],
  ])('refuses %j', async (args, message) => {
    const result = await list(...args);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain(message);
  });

  it('refuses other images and missing catalogs', async () => {
    const other = await list('--catalog', `${registry.host}/acme/other:v1`);
    expect(other).toMatchObject({ code: 1, stdout: '' });
    const gone = await list('--catalog', `${registry.host}/acme/gone:v1`);
    expect(gone).toMatchObject({ code: 1, stdout: '' });
    expect(gone.stderr).toContain('acme/gone');
  });
});
