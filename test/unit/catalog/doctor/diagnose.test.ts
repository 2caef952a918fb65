import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DirectoryCatalog } from '../../../../src/catalog/catalog.js';
import { parseOpenShiftVersion } from '../../../../src/core/openshift-version.js';
import { type CheckName, checkNames, chooseChecks } from '../../../../src/catalog/doctor/checks.js';
import { type DiagnoseOptions, examineCatalog } from '../../../../src/catalog/doctor/diagnose.js';
import type { CatalogDiagnostic } from '../../../../src/model/catalog-diagnostic.js';
import { directoryWith } from '../../../support/temporary.js';

interface Entry {
  name: string;
  replaces?: string;
  skips?: string[];
  skipRange?: string;
}

const digest = (letter: string): string => `@sha256:${letter.repeat(64)}`;
const icon = {
  base64data: Buffer.from('<svg xmlns="a"></svg>').toString('base64'),
  mediatype: 'image/svg+xml',
};

function widget(more: object = {}): object {
  return {
    schema: 'olm.package',
    name: 'widget',
    defaultChannel: 'stable',
    description: 'Widgets.',
    icon,
    ...more,
  };
}

function channel(name: string, entries: Entry[]): object {
  return { schema: 'olm.channel', package: 'widget', name, entries };
}

const metadata = { type: 'olm.csv.metadata', value: { displayName: 'Widget', description: 'It widgets.' } };

function bundle(
  version: string,
  { properties = [metadata] as object[], ...more }: Record<string, unknown> = {},
): object {
  const image = `registry.test/widget@sha256:${createHash('sha256').update(version).digest('hex')}`;
  return {
    schema: 'olm.bundle',
    package: 'widget',
    name: `widget.v${version}`,
    image,
    properties: [
      { type: 'olm.package', value: { packageName: 'widget', version } },
      ...(properties as object[]),
    ],
    relatedImages: [{ name: '', image: (more['image'] as string | undefined) ?? image }],
    ...more,
  };
}

function deprecations(...references: { schema: string; name?: string }[]): object {
  const entries = references.map((reference) => ({ reference, message: 'do not use it' }));
  return { schema: 'olm.deprecations', package: 'widget', entries };
}

function lifecycleOf(...versions: object[]): object {
  return { schema: 'io.openshift.operators.lifecycles.v1alpha1', package: 'widget', versions };
}

async function diagnose(
  blobs: readonly object[],
  options: DiagnoseOptions = {},
): Promise<CatalogDiagnostic[]> {
  const text = blobs.map((blob) => `${JSON.stringify(blob, null, 2)}\n`).join('');
  const root = await directoryWith({ 'catalog.json': text });
  const catalog = new DirectoryCatalog(root, 'catalog');
  try {
    return await examineCatalog(catalog, options);
  } finally {
    await catalog.close();
  }
}

const one = [widget(), channel('stable', [{ name: 'widget.v1.0.0' }]), bundle('1.0.0')];
const withBundle = (more: Record<string, unknown>): object[] => [...one.slice(0, 2), bundle('1.0.0', more)];
const versions = (...list: string[]): object[] => list.map((version) => bundle(version));
const withProperty = (type: string, value: unknown): object[] =>
  withBundle({ properties: [metadata, { type, value }] });
const withIcon = (content: string | Buffer, mediatype: string): object[] => [
  widget({ icon: { base64data: Buffer.from(content).toString('base64'), mediatype } }),
  ...one.slice(1),
];
const csvObject = (spec: object): object => ({
  type: 'olm.bundle.object',
  value: {
    data: Buffer.from(
      JSON.stringify({
        apiVersion: 'operators.coreos.com/v1alpha1',
        kind: 'ClusterServiceVersion',
        metadata: { name: 'widget.v1.0.0' },
        spec: { displayName: 'Widget', description: 'It widgets.', ...spec },
      }),
    ).toString('base64'),
  },
});
const pod = { containers: [{ name: 'manager', image: `registry.test/manager${digest('b')}` }] };
const install = {
  strategy: 'deployment',
  spec: { deployments: [{ name: 'w', spec: { template: { spec: pod } } }] },
};

/** A mistake: what there is, what is found, and part of what is said of it. */
const mistakes: { what: string; blobs: object[]; check: CheckName; says: string; severity?: string }[] = [
  {
    what: 'a head below another entry',
    blobs: [
      widget(),
      channel('stable', [{ name: 'widget.v1.0.0', skips: ['widget.v1.1.0'] }, { name: 'widget.v1.1.0' }]),
      ...versions('1.0.0', '1.1.0'),
    ],
    check: 'head-not-highest',
    says: '"widget.v1.0.0" (1.0.0) is lower than "widget.v1.1.0" (1.1.0)',
  },
  {
    what: 'an entry that skips a higher version',
    blobs: [
      widget(),
      channel('stable', [
        { name: 'widget.v1.0.0', skips: ['widget.v1.1.0'] },
        { name: 'widget.v1.1.0' },
        { name: 'widget.v2.0.0', replaces: 'widget.v1.0.0' },
      ]),
      ...versions('1.0.0', '1.1.0', '2.0.0'),
    ],
    check: 'downgrade',
    says: 'with version 1.0.0 it skips higher versions: "widget.v1.1.0"',
  },
  {
    what: 'a skipRange over higher versions',
    blobs: [
      widget(),
      channel('stable', [
        { name: 'widget.v1.0.0', skipRange: '<99.0.0' },
        { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' },
      ]),
      ...versions('1.0.0', '1.1.0'),
    ],
    check: 'downgrade',
    says: 'its skipRange "<99.0.0" covers higher versions: "widget.v1.1.0"',
  },
  {
    what: 'a skipRange over its own version',
    blobs: [widget(), channel('stable', [{ name: 'widget.v1.0.0', skipRange: '<=1.0.0' }]), bundle('1.0.0')],
    check: 'skip-range-self',
    says: 'its own version 1.0.0 is in its skipRange "<=1.0.0"',
  },
  {
    what: 'a skipRange without versions',
    blobs: [
      widget(),
      channel('stable', [{ name: 'widget.v1.0.0', skipRange: '>=1.0.0 <0.9.0' }]),
      bundle('1.0.0'),
    ],
    check: 'skip-range-empty',
    says: 'matches no version',
  },
  {
    what: 'a hole in a skipRange',
    blobs: [
      widget(),
      channel('stable', [
        { name: 'widget.v1.0.0' },
        { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' },
        { name: 'widget.v1.2.0', replaces: 'widget.v1.1.0' },
        { name: 'widget.v1.3.0', replaces: 'widget.v1.2.0', skipRange: '<1.1.0 || >=1.2.0 <1.3.0' },
      ]),
      ...versions('1.0.0', '1.1.0', '1.2.0', '1.3.0'),
    ],
    check: 'skip-range-hole',
    says: 'does not cover "widget.v1.1.0"',
  },
  {
    what: 'entries that skip each other',
    blobs: [
      widget(),
      channel('stable', [
        { name: 'widget.v1.0.0', skips: ['widget.v1.1.0'] },
        { name: 'widget.v1.1.0', skips: ['widget.v1.0.0'] },
        { name: 'widget.v2.0.0' },
      ]),
      ...versions('1.0.0', '1.1.0', '2.0.0'),
    ],
    check: 'unreachable',
    says: 'has no upgrade path to the head "widget.v2.0.0"',
  },
  {
    what: 'a chain that runs into an entry that one of a dead end skips',
    blobs: [
      widget(),
      channel('stable', [
        { name: 'widget.v1.0.0' },
        { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' },
        { name: 'widget.v1.2.0', replaces: 'widget.v1.1.0' },
        { name: 'widget.v1.0.1', skips: ['widget.v1.0.0', 'widget.v1.0.2'] },
        { name: 'widget.v1.0.2', skips: ['widget.v1.0.1'] },
      ]),
      ...versions('1.0.0', '1.0.1', '1.0.2', '1.1.0', '1.2.0'),
    ],
    check: 'skipped-in-chain',
    says: 'which "widget.v1.0.1" skips',
  },
  {
    what: 'a replaced bundle that is not there',
    blobs: [widget(), channel('stable', [{ name: 'widget.v1.0.0', replaces: 'old' }]), bundle('1.0.0')],
    check: 'replaces-outside',
    says: 'replaces "old", which is not an entry',
  },
  {
    what: 'versions that differ after the plus sign only',
    blobs: [
      widget(),
      channel('stable', [
        { name: 'widget.v1.0.0+a' },
        { name: 'widget.v1.0.0+b', replaces: 'widget.v1.0.0+a' },
      ]),
      ...versions('1.0.0+a', '1.0.0+b'),
    ],
    check: 'equal-versions',
    says: 'differ in build metadata only',
  },
  {
    what: 'a name that was misspelled',
    blobs: [
      widget(),
      channel('stable', [
        { name: 'widget.v1.0.0' },
        { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0', skips: ['wigdet.v1.0.0'] },
      ]),
      ...versions('1.0.0', '1.1.0'),
    ],
    check: 'misspelled-name',
    says: 'which is not an entry',
  },
  {
    what: 'a channel with the head of another version',
    blobs: [
      widget({ defaultChannel: 'v1.0' }),
      channel('v1.0', [{ name: 'widget.v1.0.0' }]),
      channel('v1.1', [{ name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' }]),
      channel('v1.2', [{ name: 'widget.v1.1.0' }]),
      ...versions('1.0.0', '1.1.0'),
    ],
    check: 'channel-version',
    says: 'has version 1.1.0, not the version',
  },
  {
    what: 'channels without a way from one to the next',
    blobs: [
      widget({ defaultChannel: 'v1.1' }),
      channel('v1.0', [{ name: 'widget.v1.0.0' }]),
      channel('v1.1', [{ name: 'widget.v1.1.0' }]),
      ...versions('1.0.0', '1.1.0'),
    ],
    check: 'channel-gap',
    says: 'head "widget.v1.0.0" of channel "v1.0" has no upgrade in this channel',
  },
  {
    what: 'a default channel that is not the highest',
    blobs: [
      widget(),
      channel('stable', [{ name: 'widget.v1.0.0' }]),
      channel('stable-2', [{ name: 'widget.v2.0.0', replaces: 'widget.v1.0.0' }]),
      ...versions('1.0.0', '2.0.0'),
    ],
    check: 'default-channel-lower',
    says: 'ends with 1.0.0, channel "stable-2" with 2.0.0',
  },
  {
    what: 'a deprecated default channel',
    blobs: [
      widget(),
      channel('stable', [{ name: 'widget.v1.0.0' }]),
      channel('other', [{ name: 'widget.v1.0.0' }]),
      bundle('1.0.0'),
      deprecations({ schema: 'olm.channel', name: 'stable' }),
    ],
    check: 'default-channel-deprecated',
    says: 'the default channel is deprecated',
  },
  {
    what: 'deprecated channels of a package that is not',
    blobs: [...one, deprecations({ schema: 'olm.channel', name: 'stable' })],
    check: 'all-channels-deprecated',
    says: 'all its channels are deprecated',
  },
  {
    what: 'a deprecated head',
    blobs: [...one, deprecations({ schema: 'olm.bundle', name: 'widget.v1.0.0' })],
    check: 'head-deprecated',
    says: '"widget.v1.0.0" is deprecated',
  },
  {
    what: 'a head that OLM v1 does not install',
    blobs: withBundle({
      properties: [
        {
          type: 'olm.csv.metadata',
          value: {
            displayName: 'Widget',
            description: 'It widgets.',
            installModes: [{ type: 'AllNamespaces', supported: false }],
          },
        },
      ],
    }),
    check: 'v1-support',
    says: 'does not support the install mode AllNamespaces',
  },
  {
    what: 'a bundle that tells nothing of itself',
    blobs: withBundle({ properties: [] }),
    check: 'csv-metadata',
    says: 'neither olm.csv.metadata nor olm.bundle.object',
  },
  {
    what: 'no display name',
    blobs: withBundle({ properties: [{ type: 'olm.csv.metadata', value: { description: 'a' } }] }),
    check: 'display-name',
    says: 'no display name',
  },
  {
    what: 'no description anywhere',
    blobs: [
      widget({ description: '' }),
      ...withBundle({ properties: [{ type: 'olm.csv.metadata', value: { displayName: 'W' } }] }).slice(1),
    ],
    check: 'description',
    says: 'has no description',
  },
  {
    what: 'a maximal version that is a number',
    blobs: withProperty('olm.maxOpenShiftVersion', 4.1),
    check: 'max-openshift',
    says: '4.1 equals 4.10',
  },
  {
    what: 'a maximal version that is none',
    blobs: withProperty('olm.maxOpenShiftVersion', 'latest'),
    check: 'max-openshift',
    says: 'is not an OpenShift version',
  },
  {
    what: 'versions of OpenShift that cannot be read',
    blobs: withProperty('com.redhat.openshift.versions', '>=4.16'),
    check: 'openshift-versions',
    says: 'is invalid',
  },
  {
    what: 'a least version of Kubernetes that is none',
    blobs: withBundle({
      properties: [{ type: 'olm.csv.metadata', value: { ...metadata.value, minKubeVersion: 'new' } }],
    }),
    check: 'min-kube',
    says: 'is not a version',
  },
  {
    what: 'no icon',
    blobs: [widget({ icon: undefined }), ...one.slice(1)],
    check: 'icon',
    says: 'package has no icon',
    severity: 'notice',
  },
  {
    what: 'an icon of another type',
    blobs: withIcon(Buffer.from('\x89PNG\r\n', 'latin1'), 'image/svg+xml'),
    check: 'icon',
    says: 'media type',
  },
  {
    what: 'an icon that is none',
    blobs: withIcon('hello', 'image/png'),
    check: 'icon',
    says: 'is not an image',
  },
  {
    what: 'an icon with a script',
    blobs: withIcon('<svg xmlns="a" onload="alert(1)"></svg>', 'image/svg+xml'),
    check: 'icon',
    says: 'contains a script',
  },
  {
    what: 'a large icon',
    blobs: withIcon(
      Buffer.concat([Buffer.from([0xff, 0xd8, 0xff]), Buffer.alloc(1024 * 1024)]),
      'image/jpeg',
    ),
    check: 'icon',
    says: '1.0 MiB',
  },
  {
    what: 'a lifecycle with a date that is none',
    blobs: [...one, lifecycleOf({ name: '1.0', phases: [{ name: 'GA', endDate: '2026-02-30' }] })],
    check: 'lifecycle',
    says: 'versions[0].phases[0].endDate: expected a date as in 2026-01-31, got "2026-02-30"',
  },
  {
    what: 'a lifecycle phase that ends before it begins',
    blobs: [
      ...one,
      lifecycleOf({ name: '1.0', phases: [{ name: 'GA', startDate: '2026-02-01', endDate: '2026-01-01' }] }),
    ],
    check: 'lifecycle',
    says: '2026-01-01 is before the start date 2026-02-01',
  },
  {
    what: 'a lifecycle phase of no length',
    blobs: [
      ...one,
      lifecycleOf({ name: '1.0', phases: [{ name: 'P0', startDate: '2026-02-01', endDate: '2026-02-01' }] }),
    ],
    check: 'lifecycle',
    says: '2026-02-01 is equal to the start date 2026-02-01',
  },
  {
    what: 'lifecycle phases that overlap',
    blobs: [
      ...one,
      lifecycleOf({
        name: '1.0',
        phases: [
          { name: 'P0', startDate: '2026-01-01', endDate: '2026-02-01' },
          { name: 'P1', startDate: '2026-02-01', endDate: '2026-03-01' },
        ],
      }),
    ],
    check: 'lifecycle',
    says: 'versions[0].phases[1].startDate: 2026-02-01 overlaps the phase before it, which ends on 2026-02-01',
  },
  {
    what: 'lifecycle phases with a gap, in any order',
    blobs: [
      ...one,
      lifecycleOf({
        name: '1.0',
        phases: [
          { name: 'P0', startDate: '2026-02-03', endDate: '2026-03-01' },
          { name: 'P1', startDate: '2026-01-01', endDate: '2026-02-01' },
        ],
      }),
    ],
    check: 'lifecycle',
    says: 'versions[0].phases[0].startDate: 2026-02-03 leaves a gap after the phase before it, which ends on 2026-02-01',
  },
  {
    what: 'a lifecycle version that is a number',
    blobs: [...one, lifecycleOf({ name: '1.0', phases: [] }, { name: 1.1, phases: [] })],
    check: 'lifecycle',
    says: 'versions[1].name: expected a string, got the number 1.1',
  },
  {
    what: 'two lifecycles of a package',
    blobs: [...one, lifecycleOf({ name: '1.0', phases: [] }), lifecycleOf({ name: '1.0', phases: [] })],
    check: 'lifecycle',
    says: 'more than one lifecycle blob',
  },
  {
    what: 'a lifecycle without the version of a head',
    blobs: [...one, lifecycleOf({ name: '0.9', phases: [] })],
    check: 'lifecycle',
    says: 'does not list version "1.0"',
    severity: 'notice',
  },
  {
    what: 'a bundle without an image',
    blobs: withBundle({
      image: '',
      properties: [
        { type: 'olm.package', value: { packageName: 'widget', version: '1.0.0' } },
        { type: 'olm.bundle.object', value: { data: 'e30=' } },
      ],
    }),
    check: 'bundle-image-missing',
    says: 'no image',
  },
  {
    what: 'an image by tag',
    blobs: withBundle({ image: 'registry.test/w:1' }),
    check: 'bundle-image-tag',
    says: 'by tag',
  },
  {
    what: 'a related image by tag',
    blobs: withBundle({
      image: `a/b${digest('a')}`,
      relatedImages: [{ image: `a/b${digest('a')}` }, { image: 'a/c:1' }],
    }),
    check: 'related-image-tag',
    says: '"a/c:1"',
  },
  {
    what: 'a misspelled field of an entry, but no other unknown ones',
    blobs: [
      { ...(widget() as object), vendor: 'acme', DESCRIPTION: 'x' },
      channel('stable', [{ name: 'widget.v1.0.0', repalces: 'widget.v0.9.0' } as never]),
      bundle('1.0.0'),
    ],
    check: 'misspelled-field',
    says: 'unknown field "repalces"',
  },
  {
    what: 'a related image that is empty',
    blobs: withBundle({
      image: `a/b${digest('a')}`,
      relatedImages: [{ image: `a/b${digest('a')}` }, { name: 'proxy', image: '' }],
    }),
    check: 'related-image-empty',
    says: '"proxy" is empty',
  },
  {
    what: 'an image of its own that is not listed',
    blobs: withBundle({ relatedImages: [{ image: `a/c${digest('c')}` }] }),
    check: 'related-image-missing',
    says: 'its own image',
    severity: 'notice',
  },
  {
    what: 'an image of its deployments that is not listed',
    blobs: withBundle({ properties: [csvObject({ install })] }),
    check: 'related-image-missing',
    says: `"registry.test/manager${digest('b')}"`,
    severity: 'warning',
  },
  {
    what: 'one image for two bundles',
    blobs: [
      widget(),
      channel('stable', [{ name: 'widget.v1.0.0' }, { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' }]),
      bundle('1.0.0', { image: `a/b${digest('a')}` }),
      bundle('1.1.0', { image: `a/b${digest('a')}` }),
    ],
    check: 'bundle-image-shared',
    says: 'has the same image as "widget.v1.0.0"',
  },
  {
    what: 'one tag for two digests',
    blobs: withBundle({
      image: `a/b${digest('a')}`,
      relatedImages: ['a', 'b', 'c'].map((letter) => ({
        image: letter === 'a' ? `a/b${digest('a')}` : `a/c:v1${digest(letter)}`,
      })),
    }),
    check: 'image-two-digests',
    says: '"a/c:v1" refers to',
  },
  {
    what: 'a package that is not there',
    blobs: withProperty('olm.package.required', { packageName: 'gadget', versionRange: '>=1.0.0' }),
    check: 'dependency-unmet',
    says: 'package "gadget" ">=1.0.0"',
    severity: 'notice',
  },
  {
    what: 'a version that is not there',
    blobs: withProperty('olm.package.required', { packageName: 'widget', versionRange: '>=2.0.0' }),
    check: 'dependency-unmet',
    says: 'package "widget" ">=2.0.0"',
    severity: 'warning',
  },
  {
    what: 'a dependency that cannot be read',
    blobs: withProperty('olm.package.required', { packageName: 'gadget', versionRange: '^1.0.0' }),
    check: 'dependency-unclear',
    says: 'does not say clearly',
  },
  {
    what: 'a property twice',
    blobs: withBundle({ properties: [metadata, { type: 'x', value: 1 }, { type: 'x', value: 1 }] }),
    check: 'property-repeated',
    says: 'duplicate property of type "x"',
  },
  {
    what: 'a large bundle',
    blobs: withProperty('x', 'a'.repeat(5 * 1024 * 1024)),
    check: 'bundle-size',
    says: '5.0 MiB',
    severity: 'warning',
  },
];

describe('diagnoseCatalog', () => {
  it('finds a lifecycle of a package that the catalog lacks, only if it is asked for', async () => {
    const gone = { ...lifecycleOf({ name: '1.0', phases: [] }), package: 'gone' };
    const checks = chooseChecks(['lifecycle']);
    expect(await diagnose([...one, gone], { checks })).toMatchObject([
      {
        code: 'lifecycle',
        package: 'gone',
        problem: expect.stringContaining('not in the catalog') as string,
      },
    ]);
    expect(await diagnose([...one, gone], { checks, packages: new Set(['widget']) })).toEqual([]);
  });

  it('has nothing to say of a healthy catalog', async () => {
    expect(await diagnose(one)).toEqual([]);
    const grown = [
      widget(),
      channel('stable', [
        { name: 'widget.v1.0.0' },
        { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0', skipRange: '<1.1.0' },
      ]),
      channel('candidate', [
        { name: 'widget.v1.2.0-rc.1', replaces: 'widget.v1.1.0' },
        { name: 'widget.v1.1.0' },
      ]),
      ...versions('1.0.0', '1.1.0', '1.2.0-rc.1'),
      deprecations({ schema: 'olm.bundle', name: 'widget.v1.0.0' }),
    ];
    expect(await diagnose(grown)).toEqual([]);
  });

  it.each(mistakes)('finds $what ($check)', async ({ blobs, check, says, severity }) => {
    const findings = await diagnose(blobs);
    const found = findings.filter((finding) => finding.code === check && finding.problem.includes(says));
    expect(found, JSON.stringify(findings)).toHaveLength(check === 'unreachable' ? 2 : 1);
    expect(found[0]).toMatchObject({ package: 'widget', file: 'catalog/catalog.json' });
    expect(found[0]?.line).toBeGreaterThan(0);
    if (severity !== undefined) expect(found[0]?.severity).toBe(severity);
  });

  it('has a test for each check', () => {
    const tested = new Set<string>([...mistakes.map(({ check }) => check), 'invalid', 'empty-catalog']);
    expect(checkNames.filter((name) => !tested.has(name))).toEqual([]);
  });

  it('finds a catalog without blobs', async () => {
    expect(await diagnose([])).toMatchObject([
      { code: 'empty-catalog', severity: 'error', problem: 'the catalog has no blobs' },
    ]);
  });

  it('accepts lifecycle phases that follow one another day by day', async () => {
    const phases = [
      { name: 'Full support', startDate: '2024-01-17', endDate: '2024-02-28' },
      { name: 'Maintenance support', startDate: '2024-02-29', endDate: '2024-12-31' },
      { name: 'Extended', startDate: '2025-01-01' },
    ];
    expect(await diagnose([...one, lifecycleOf({ name: '1.0', phases })])).toEqual([]);
  });

  it('reports the line to change', async () => {
    const blobs = withProperty('olm.maxOpenShiftVersion', 'latest');
    const text = blobs.map((blob) => `${JSON.stringify(blob, null, 2)}\n`).join('');
    const [finding] = await diagnose(blobs);
    expect(text.split('\n')[(finding?.line ?? 0) - 1]).toContain('"latest"');
  });

  it('takes the version of OpenShift into account', async () => {
    const at = async (minor: number, blobs: object[]): Promise<string[]> =>
      (await diagnose(blobs, { openshift: { major: 4, minor } })).map(({ code }) => code);
    const max = withProperty('olm.maxOpenShiftVersion', '4.17');
    expect(await at(17, max)).toEqual([]);
    expect(await at(18, max)).toEqual(['max-openshift']);
    const label = withProperty('com.redhat.openshift.versions', 'v4.17-v4.18');
    expect([await at(17, label), await at(19, label)]).toEqual([[], ['openshift-versions']]);
    const kube = withBundle({
      properties: [{ type: 'olm.csv.metadata', value: { ...metadata.value, minKubeVersion: '1.31.0' } }],
    });
    expect([await at(17, kube), await at(18, kube)]).toEqual([['min-kube'], []]);
    const objects = withBundle({ properties: [csvObject({})] });
    expect([await at(16, objects), await at(17, objects)]).toEqual([[], ['csv-metadata']]);
    expect(await at(16, one)).toEqual(['csv-metadata']);
  });

  it.each([
    ['4.14', 27, 'olm.bundle.object'],
    ['4.15', 28, 'olm.bundle.object'],
    ['4.16', 29, 'olm.bundle.object'],
    ['4.17', 30, 'olm.csv.metadata'],
    ['4.18', 31, 'olm.csv.metadata'],
    ['4.19', 32, 'olm.csv.metadata'],
    ['4.20', 33, 'olm.csv.metadata'],
    ['4.21', 34, 'olm.csv.metadata'],
    ['4.22', 35, 'olm.csv.metadata'],
    ['4.23', 36, 'olm.csv.metadata', '5.0'],
    ['5.0', 36, 'olm.csv.metadata', '4.23'],
    ['5.1', 37, 'olm.csv.metadata'],
  ])('compares the limits of bundles with OpenShift %s', async (name, kubernetes, form, alias = name) => {
    const openshift = parseOpenShiftVersion(name);
    const codes = async (blobs: object[]): Promise<string[]> =>
      (await diagnose(blobs, { openshift }))
        .map(({ code }) => code)
        .filter((code) => code !== 'csv-metadata');
    for (const maximum of [name, alias])
      expect(await codes(withProperty('olm.maxOpenShiftVersion', maximum))).toEqual([]);
    expect(await codes(withProperty('olm.maxOpenShiftVersion', '4.13'))).toEqual(['max-openshift']);
    for (const label of [`v${name}`, `=v${alias}`, `v4.13-v${alias}`, `v${name}-v5.2`])
      expect(await codes(withProperty('com.redhat.openshift.versions', label))).toEqual([]);
    for (const label of ['v5.2', '=v4.13', 'v4.12-v4.13'])
      expect(await codes(withProperty('com.redhat.openshift.versions', label))).toEqual([
        'openshift-versions',
      ]);
    const withKube = (minor: number): object[] =>
      withBundle({
        properties: [
          { type: 'olm.csv.metadata', value: { ...metadata.value, minKubeVersion: `1.${minor}.0` } },
        ],
      });
    expect([await codes(withKube(kubernetes)), await codes(withKube(kubernetes + 1))]).toEqual([
      [],
      ['min-kube'],
    ]);
    const objects = await diagnose(withBundle({ properties: [csvObject({})] }), { openshift });
    expect(objects.some(({ code }) => code === 'csv-metadata')).toBe(form === 'olm.csv.metadata');
  });

  it('reads a maximum version as OLM does: several or an invalid one block upgrades', async () => {
    const at = async (...values: unknown[]): Promise<string[]> => {
      const limits = values.map((value) => ({ type: 'olm.maxOpenShiftVersion', value }));
      const blobs = withBundle({ properties: [metadata, ...limits] });
      const checks = chooseChecks(['max-openshift']);
      const findings = await diagnose(blobs, { openshift: { major: 4, minor: 20 }, checks });
      return findings.map(({ problem }) => problem);
    };
    expect(await at('4.20.0')).toEqual([]);
    expect(await at(4.21)).toEqual(['olm.maxOpenShiftVersion 4.21: is a number, for which 4.1 equals 4.10']);
    for (const value of ['4.20.1', '', true, null, { max: '4.21' }, '4.20-rc.1'])
      expect((await at(value)).join()).toContain('OLM blocks upgrades');
    expect((await at('4.21', '4.22')).join()).toContain('duplicate property: OLM blocks upgrades');
  });

  it('keeps to the checks and packages that are chosen', async () => {
    const blobs = [
      ...withBundle({ image: 'registry.test/w:1', properties: [] }),
      { schema: 'olm.package', name: 'gadget', defaultChannel: 'a' },
    ];
    const names = async (options: DiagnoseOptions): Promise<string[]> =>
      (await diagnose(blobs, options)).map(({ package: name, code }) => `${name} ${code}`);
    expect(await names({ packages: new Set(['widget']) })).toEqual([
      'widget csv-metadata',
      'widget bundle-image-tag',
    ]);
    expect(await names({ checks: chooseChecks(['bundle-image-tag']) })).toEqual(['widget bundle-image-tag']);
    expect(await names({ checks: chooseChecks(undefined, ['invalid', 'icon', 'csv-metadata']) })).toEqual([
      'widget bundle-image-tag',
    ]);
    await expect(diagnose(blobs, { packages: new Set(['gizmo']) })).rejects.toThrow(
      'package "gizmo" not found',
    );
    expect(() => chooseChecks(['icons'])).toThrow('unknown check "icons"');
  });

  it('reports what makes a catalog invalid, and what of it cannot be read', async () => {
    const twoHeads = [widget(), channel('stable', [{ name: 'widget.v1.0.0' }, { name: 'widget.v2.0.0' }])];
    const invalid = await diagnose([...twoHeads, ...versions('1.0.0', '2.0.0')]);
    expect(invalid.map(({ code, severity }) => `${severity} ${code}`)).toEqual(['error invalid']);
    expect(invalid[0]?.problem).toContain('multiple channel heads');
    const unreadable = await diagnose([
      ...one,
      { schema: 'olm.channel', package: 'widget', name: 'x', entries: 3 },
    ]);
    expect(unreadable).toMatchObject([{ code: 'invalid', severity: 'error', file: 'catalog/catalog.json' }]);
  });

  it('says the same of any catalog, however its blobs are ordered', async () => {
    const names = ['1.0.0', '1.0.1', '1.1.0', '2.0.0'];
    const name = fc.constantFrom(...names.map((version) => `widget.v${version}`));
    const entry = fc.record({
      name,
      replaces: fc.option(name, { nil: '' }),
      skips: fc.uniqueArray(name, { maxLength: 2 }),
      skipRange: fc.constantFrom('', '<1.1.0', '>=1.0.0 <2.0.0', '>=2.0.0 <1.0.0', '*'),
    });
    const channels = fc.uniqueArray(fc.constantFrom('stable', 'v1.0', 'v1.1', 'v2'), { minLength: 1 });
    const lists = fc.array(fc.uniqueArray(entry, { selector: (one) => one.name, minLength: 1 }), {
      minLength: 4,
      maxLength: 4,
    });
    await fc.assert(
      fc.asyncProperty(channels, lists, async (chosen, entries) => {
        const blobs = [
          widget(),
          ...chosen.map((one, at) => channel(one, entries[at] as Entry[])),
          ...versions(...names),
        ];
        const told = (findings: CatalogDiagnostic[]): string[] =>
          findings.map(({ code, channel: where = '', bundle: what = '', problem }) =>
            // Of two heads and the like validation blames the first that it meets.
            code === 'invalid' ? code : `${code} ${where} ${what} ${problem}`,
          );
        const forth = told(await diagnose(blobs));
        const back = told(await diagnose([...blobs].reverse()));
        expect([...back].sort()).toEqual([...forth].sort());
      }),
      { numRuns: 30 },
    );
  });
});
