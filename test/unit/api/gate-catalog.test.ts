import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Session, findBreaking, gateCatalog, openSession } from '../../../src/index.js';
import { failureOf } from '../../support/connect.js';
import { directoryWith } from '../../support/temporary.js';

const digest = 'a'.repeat(64);

interface SmallCatalog {
  channel?: string;
  entries: string[];
  registry?: string;
  properties?: { type: string; value: unknown }[];
}

/** Returns the blobs of a package `widget`. */
function widget({
  channel = 'stable',
  entries,
  registry = 'registry.redhat.io',
  properties = [],
}: SmallCatalog): string {
  const image = (name: string): string => `${registry}/ns/${name}@sha256:${digest}`;
  return [
    { schema: 'olm.package', name: 'widget', defaultChannel: channel },
    {
      schema: 'olm.channel',
      package: 'widget',
      name: channel,
      entries: entries.map((name, index) => ({ name, ...(index > 0 && { replaces: entries[index - 1] }) })),
    },
    ...entries.map((name) => ({
      schema: 'olm.bundle',
      package: 'widget',
      name,
      image: image('bundle'),
      properties: [
        { type: 'olm.package', value: { packageName: 'widget', version: name.slice('widget.v'.length) } },
        ...properties,
      ],
      relatedImages: [{ name: 'manager', image: image('manager') }],
    })),
  ]
    .map((blob) => JSON.stringify(blob))
    .join('\n');
}

const metadata = (annotations: object) => [{ type: 'olm.csv.metadata', value: { annotations } }];

async function open(): Promise<Session> {
  const session = await openSession();
  onTestFinished(() => session.close());
  return session;
}

describe('gates of a catalog fragment', () => {
  it('checks the form of metadata and images for the version of the base image', async () => {
    const session = await open();
    const root = await directoryWith({
      'fragment/widget/catalog.json': widget({ entries: ['widget.v1.0.0'], registry: 'quay.io' }),
    });
    const baseImage = 'registry.redhat.io/openshift4/ose-operator-registry-rhel9:v4.18';
    const fragment = path.join(root, 'fragment');
    const { verdicts } = await gateCatalog(fragment, session, { baseImage });
    expect(verdicts[0]).toMatchObject({
      gate: 'validate-fbc',
      result: 'FAILURE',
      failures: 2,
      successes: 10,
    });
    expect(verdicts[0]?.findings.map(({ code }) => code)).toEqual([
      'validate-fbc-metadata-missing',
      'validate-fbc-image-registry',
    ]);
    const profile = (text: string) => ({ text, file: 'profile.yaml' });
    const own = await gateCatalog(fragment, session, {
      baseImage,
      profile: profile('registries: [quay.io]\n'),
    });
    expect(own.verdicts[0]?.failures).toBe(1);
    await expect(
      gateCatalog(fragment, session, { profile: profile('registry: [quay.io]\n') }),
    ).rejects.toThrow('profile.yaml:1');
  });

  it('tells entries and channels by whole names', async () => {
    const session = await open();
    const root = await directoryWith({
      'fragment/widget/catalog.json': widget({ entries: ['widget.v1.0.0-rc1'] }),
      'index/widget/catalog.json': widget({ entries: ['widget.v1.0.0'] }),
      'preview/widget/catalog.json': widget({ entries: ['widget.v1.0.0'], channel: 'candidate-4' }),
    });
    const gate = (against: string) =>
      gateCatalog(path.join(root, 'fragment'), session, {
        against: path.join(root, against),
        gates: ['pruning'],
      });
    const { verdicts } = await gate('index');
    expect(verdicts[0]?.findings.map(({ problem }) => problem)).toEqual([
      'bundle "widget.v1.0.0" is removed from channel "stable" of package "widget"',
    ]);
    expect((await gate('preview')).verdicts[0]?.result).toBe('SUCCESS');
  });

  it('names file and line of the blob in a directory', async () => {
    const session = await open();
    const root = await directoryWith({
      'fragment/widget/catalog.json': widget({ entries: ['widget.v1.0.0', 'widget.v1.1.0'] }),
      'index/widget/catalog.json': [
        widget({ entries: ['widget.v0.9.0', 'widget.v1.0.0'], registry: 'quay.io' }),
        JSON.stringify({
          schema: 'olm.channel',
          package: 'widget',
          name: 'old',
          entries: [{ name: 'widget.v1.0.0' }],
        }),
      ].join('\n'),
    });
    const { verdicts } = await gateCatalog(path.join(root, 'fragment'), session, {
      against: path.join(root, 'index'),
      openshift: { major: 4, minor: 18 },
    });
    const file = path.join(root, 'fragment/widget/catalog.json');
    const places = verdicts.flatMap(({ findings }) =>
      findings.map((finding) => `${finding.code} ${finding.file === file ? finding.line : 'none'}`),
    );
    expect(places).toEqual([
      'validate-fbc-metadata-missing 3',
      'pruning-entry 2',
      'pruning-channel 1',
      'breaking-bundle-stranded 2',
      'breaking-edge-lost 2',
      'breaking-channel-removed 1',
      'breaking-image-changed 3',
    ]);
  });

  it('selects unreleased bundles for scans by their annotations', async () => {
    const session = await open();
    const claims = metadata({ 'features.operators.openshift.io/fips-compliant': 'true' });
    const root = await directoryWith({
      'fragment/widget/catalog.json': widget({ entries: ['widget.v1.0.0'], properties: claims }),
      'index/other/catalog.json': JSON.stringify({
        schema: 'olm.package',
        name: 'other',
        defaultChannel: 'a',
      }),
    });
    const against = path.join(root, 'index');
    const { scan } = await gateCatalog(path.join(root, 'fragment'), session, { against, gates: ['fips'] });
    expect(scan).toEqual({
      bundles: [{ image: `registry.redhat.io/ns/bundle@sha256:${digest}`, isScanned: true }],
      images: [`registry.redhat.io/ns/manager@sha256:${digest}`],
      newPackages: ['widget'],
    });
  });

  it('reports changes that break clusters, unless the profile allows them for some time', async () => {
    const session = await open();
    const root = await directoryWith({
      'fragment/widget/catalog.json': widget({ entries: ['widget.v1.1.0'] }),
      'index/widget/catalog.json': widget({ entries: ['widget.v1.0.0', 'widget.v1.2.0'] }),
    });
    const gate = async (text: string): Promise<string[]> => {
      const { verdicts } = await gateCatalog(path.join(root, 'fragment'), session, {
        against: path.join(root, 'index'),
        gates: ['breaking'],
        profile: { text, file: 'profile.yaml' },
      });
      return (verdicts[0]?.findings ?? []).map(({ severity, code }) => `${severity} ${code}`);
    };
    const found = await gate('{}');
    expect(found).toEqual([
      'error breaking-bundle-stranded',
      'error breaking-bundle-stranded',
      'error breaking-head-moved-back',
    ]);
    const allow = (expires: string): string =>
      `allowed:\n- code: head-moved-back\n  package: widget\n  reason: withdrawn\n  expires: "${expires}"\n`;
    expect(await gate(allow('2999-01-01'))).toContain('notice breaking-head-moved-back');
    expect(await gate(allow('2020-01-01'))).toContain('error breaking-head-moved-back');
    await expect(gate('allowed:\n- code: typo\n')).rejects.toThrow('profile.yaml:2');
  });

  it('fails for a fragment without packages and for one with errors, and refuses an index with errors', async () => {
    const session = await open();
    const root = await directoryWith({
      'empty/widget/README.md': '',
      'broken/widget/catalog.json': '{"schema":"olm.package","name":"widget"',
      'index/widget/catalog.json': widget({ entries: ['widget.v1.0.0'] }),
    });
    const gates = ['pruning', 'breaking', 'fips'] as const;
    const gate = (fragment: string, against: string) =>
      gateCatalog(path.join(root, fragment), session, { against: path.join(root, against), gates });
    const list = async (fragment: string): Promise<string[]> =>
      (await gate(fragment, 'index')).verdicts.map(
        ({ result, findings }) => `${result} ${findings.map(({ code }) => code).join(' ')}`,
      );
    expect(await list('empty')).toEqual([
      'FAILURE pruning-package',
      'FAILURE breaking-package',
      'FAILURE fips-package',
    ]);
    expect(await list('broken')).toEqual([
      'FAILURE pruning-unreadable',
      'FAILURE breaking-unreadable',
      'FAILURE fips-unreadable',
    ]);
    expect(await failureOf(gate('index', 'broken'))).toMatchObject({
      file: path.join(root, 'broken/widget/catalog.json'),
    });
  });

  it('refuses a gate that needs an index without one', async () => {
    const session = await open();
    const root = await directoryWith({ 'widget/catalog.json': widget({ entries: ['widget.v1.0.0'] }) });
    expect(await failureOf(gateCatalog(root, session, { gates: ['pruning'] }))).toMatchObject({
      code: 'USAGE',
    });
  });
});

describe('changes that break clusters', () => {
  interface Edges {
    name: string;
    replaces?: string;
    skipRange?: string;
  }

  /** Returns the blobs of a package `widget` with these channels, each with a bundle per entry. */
  function withChannels(channels: Record<string, Edges[]>): string {
    const names = new Set(Object.values(channels).flatMap((entries) => entries.map(({ name }) => name)));
    return [
      { schema: 'olm.package', name: 'widget', defaultChannel: Object.keys(channels)[0] },
      ...Object.entries(channels).map(([name, entries]) => ({
        ...{ schema: 'olm.channel', package: 'widget', name, entries },
      })),
      ...[...names].map((name) => ({
        ...{ schema: 'olm.bundle', package: 'widget', name, image: `registry.example.com/${name}` },
        properties: [
          { type: 'olm.package', value: { packageName: 'widget', version: name.slice('widget.v'.length) } },
        ],
      })),
    ]
      .map((blob) => JSON.stringify(blob))
      .join('\n');
  }

  const [first, second, third] = ['widget.v1.0.0', 'widget.v1.1.0', 'widget.v1.2.0'] as const;
  const chain: Edges[] = [{ name: first }, { name: second, replaces: first }];

  async function list(
    from: Record<string, Edges[]>,
    to: Record<string, Edges[]>,
    profile?: string,
  ): Promise<string[]> {
    const session = await open();
    const root = await directoryWith({
      'from/widget/catalog.json': withChannels(from),
      'to/widget/catalog.json': withChannels(to),
    });
    const changes = await findBreaking(path.join(root, 'from'), path.join(root, 'to'), session, {
      profile: profile === undefined ? undefined : { text: profile, file: 'profile.yaml' },
    });
    return changes.map(({ severity, problem, hint }) =>
      severity === 'error' ? problem : `${severity}: ${problem} (${hint})`,
    );
  }

  it('are removed channels, whose subscriptions find nothing', async () => {
    const [from, to] = [{ stable: chain, fast: chain }, { stable: chain }];
    const problem = 'package "widget", channel "fast": removed';
    expect(await list(from, to)).toEqual([problem]);
    const allowed =
      'allowed:\n- {code: channel-removed, package: widget, channel: fast, reason: merged, expires: "2999-01-01"}\n';
    expect(await list(from, to, allowed)).toEqual([
      `notice: ${problem} (see the reason: merged (allowed until 2999-01-01))`,
    ]);
  });

  it('are upgrades that a skip range had', async () => {
    const head = (skipRange: string): Edges[] => [...chain, { name: third, replaces: second, skipRange }];
    const lost = await list({ stable: head('>=1.0.0 <1.2.0') }, { stable: head('>=1.1.0 <1.2.0') });
    expect(lost).toEqual([
      'package "widget", channel "stable": upgrade from "widget.v1.0.0" to "widget.v1.2.0" is lost',
    ]);
    expect(await list({ stable: head('>=1.0.0 <1.2.0') }, { stable: head('<1.2.0') })).toEqual([]);
  });

  it('are asked for packages that one of the catalogs has', async () => {
    const session = await open();
    const root = await directoryWith({ 'widget/catalog.json': withChannels({ stable: chain }) });
    expect(await failureOf(findBreaking(root, root, session, { packages: ['wigdet'] }))).toMatchObject({
      code: 'NOT_FOUND',
    });
  });
});
