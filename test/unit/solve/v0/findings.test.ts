import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { predictCluster } from '../../../../src/api/cluster/predict-cluster.js';
import { openSession } from '../../../../src/api/session.js';
import { toSnapshot } from '../../../../src/cluster/snapshot.js';
import type { JsonObject } from '../../../../src/document/json.js';

const session = await openSession();
const olm = 'operators.coreos.com/v1alpha1';
const app = (name: string) => ({ name, namespace: 'app' });

interface Bundle {
  name: string;
  version: string;
  replaces?: string;
  skips?: string[];
  skipRange?: string;
  requires?: string;
  modes?: string[];
  channels?: string[];
}

/** The blobs of packages with one bundle per entry, in channel `stable` unless others are named. */
function blobsOf(packages: Record<string, Bundle[]>): JsonObject[] {
  return Object.entries(packages).flatMap(([packageName, bundles]) => {
    const channels = [...new Set(bundles.flatMap((bundle) => bundle.channels ?? ['stable']))];
    return [
      { schema: 'olm.package', name: packageName, defaultChannel: channels[0] ?? '' },
      ...channels.map((channel) => ({
        ...{ schema: 'olm.channel', package: packageName, name: channel },
        entries: bundles
          .filter((bundle) => (bundle.channels ?? ['stable']).includes(channel))
          .map(({ name, replaces, skips, skipRange }) => ({
            ...{
              name,
              ...(replaces && { replaces }),
              ...(skips && { skips }),
              ...(skipRange && { skipRange }),
            },
          })),
      })),
      ...bundles.map(({ name, version, requires, modes }) => ({
        ...{ schema: 'olm.bundle', package: packageName, name, image: `quay.io/x/${name}` },
        properties: [
          { type: 'olm.package', value: { packageName, version } },
          ...(requires === undefined
            ? []
            : [{ type: 'olm.package.required', value: { packageName: requires, versionRange: '>=0.0.0' } }]),
          ...(modes === undefined
            ? []
            : [
                {
                  type: 'olm.csv.metadata',
                  value: { installModes: modes.map((type) => ({ type, supported: true })) },
                },
              ]),
        ],
      })),
    ];
  });
}

const source = (name: string): JsonObject => ({
  ...{ apiVersion: olm, kind: 'CatalogSource', metadata: { name, namespace: 'olm' }, spec: { image: 'x' } },
});
const group = (spec: JsonObject = {}): JsonObject => ({
  ...{ apiVersion: 'operators.coreos.com/v1', kind: 'OperatorGroup', metadata: app('group'), spec },
});
const subscription = (name: string, csv = '', spec: JsonObject = {}): JsonObject => ({
  ...{ apiVersion: olm, kind: 'Subscription', metadata: app(name) },
  spec: { name, channel: 'stable', source: 'main', sourceNamespace: 'olm', ...spec },
  status: csv === '' ? {} : { installedCSV: csv, currentCSV: csv },
});
const csv = (name: string, version: string, properties?: JsonObject[]): JsonObject => ({
  ...{ apiVersion: olm, kind: 'ClusterServiceVersion', spec: { version } },
  metadata: {
    ...app(name),
    ...(properties && {
      annotations: { 'operatorframework.io/properties': JSON.stringify({ properties }) },
    }),
  },
});

async function predict(
  objects: JsonObject[],
  packages: Record<string, Bundle[]>,
  contents: string[] = ['main'],
) {
  const { namespaces } = await predictCluster(
    {
      snapshot: toSnapshot([
        ...['main', ...contents.filter((name) => name !== 'main')].map(source),
        ...objects,
      ]),
      catalogs: new Map([
        ['main', { blobs: blobsOf(packages) }],
        ...contents.filter((name) => name !== 'main').map((name) => [name, null] as const),
      ]),
      globalNamespace: 'olm',
    },
    session,
  );
  const [prediction] = namespaces;
  if (prediction === undefined) throw new Error('no namespace');
  return { ...prediction, codes: prediction.findings.map(({ code }) => code) };
}

const a1 = { name: 'a.v1', version: '1.0.0' };
const a2 = { name: 'a.v2', version: '2.0.0', replaces: 'a.v1' };

describe('findings of a prediction', () => {
  it('reports nothing where nothing is against expectation', async () => {
    const { codes, end } = await predict([group(), subscription('a', 'a.v1'), csv('a.v1', '1.0.0')], {
      a: [a1, a2],
    });
    expect({ codes, end }).toEqual({ codes: [], end: 'stable' });
  });

  it.each<[string, JsonObject[], Record<string, Bundle[]>]>([
    [
      'any-channel',
      [group(), subscription('a', '', { channel: '' })],
      {
        a: [
          { ...a1, channels: ['stable'] },
          { ...a2, channels: ['fast'] },
        ],
      },
    ],
    [
      'downgrade',
      [group(), subscription('a', 'a.v2'), csv('a.v2', '2.0.0')],
      { a: [{ name: 'a.v1', version: '1.0.0', skipRange: '>=1.5.0 <3.0.0' }] },
    ],
    [
      'upgrade-cycle',
      [group(), subscription('a', 'a.v1'), csv('a.v1', '1.0.0')],
      {
        a: [
          { ...a1, skipRange: '>=2.0.0 <9.0.0', replaces: 'a.v2' },
          { name: 'a.v2', version: '2.0.0', skipRange: '<2.0.0' },
        ],
      },
    ],
    ['dead-end', [group(), subscription('a', 'a.v0'), csv('a.v0', '0.1.0')], { a: [a1, a2] }],
    [
      'unplanned-dependency',
      [
        group(),
        subscription('a', 'a.v1'),
        csv('a.v1', '1.0.0', [
          { type: 'olm.package', value: { packageName: 'a', version: '1.0.0' } },
          { type: 'olm.package.required', value: { packageName: 'b', versionRange: '>=1.0.0' } },
        ]),
      ],
      { a: [a1], b: [{ name: 'b.v1', version: '1.0.0' }] },
    ],
    [
      'manual-approval',
      [group(), subscription('a'), subscription('b', '', { installPlanApproval: 'Manual' })],
      { a: [a1], b: [{ name: 'b.v1', version: '1.0.0' }] },
    ],
    ['operator-group', [subscription('a')], { a: [a1] }],
    [
      'install-mode',
      [group({ targetNamespaces: ['app'] }), subscription('a')],
      { a: [{ ...a1, modes: ['AllNamespaces'] }] },
    ],
    [
      'ignored-starting-csv',
      [group(), subscription('a', 'a.v1', { startingCSV: 'a.v2' }), csv('a.v1', '1.0.0')],
      { a: [a1] },
    ],
    [
      'pending-plan',
      [
        group(),
        {
          ...subscription('a'),
          status: { state: 'UpgradePending', installPlanRef: { name: 'install-1' }, currentCSV: 'a.v1' },
        },
      ],
      { a: [a1] },
    ],
  ])('reports %s', async (code, objects, packages) => {
    const { codes } = await predict(objects, packages);
    expect(codes).toContain(code);
  });

  it('reports a catalog without content that stops a namespace, although nothing uses it', async () => {
    const { findings, end } = await predict([group(), subscription('a')], { a: [a1] }, ['main', 'broken']);
    expect(end).toBe('error');
    expect(findings.map(({ code, subject, problem }) => [code, subject, problem])).toEqual([
      [
        'unreachable-catalog',
        'CatalogSource olm/broken',
        'no content: OLM resolves nothing in this namespace, although no Subscription uses it',
      ],
    ]);
  });

  it('names what a Manual Subscription holds back', async () => {
    const manual = subscription('b', '', { installPlanApproval: 'Manual' });
    const { findings, rounds } = await predict([group(), subscription('a'), manual], {
      a: [a1],
      b: [{ name: 'b.v1', version: '1.0.0' }],
    });
    expect(rounds[0]?.installPlan).toBe('Manual');
    expect(findings[0]?.problem).toBe('Manual approval of b also holds back a');
  });

  it('predicts the same with thousands of copies, and reads each once', async () => {
    const objects = [group(), subscription('a', 'a.v1'), csv('a.v1', '1.0.0')];
    const copies = Array.from({ length: 5_000 }, (_, index): JsonObject => ({
      ...{ apiVersion: olm, kind: 'ClusterServiceVersion', spec: { version: '1.0.0' } },
      metadata: { name: 'a.v1', namespace: `team-${index}`, labels: { 'olm.copiedFrom': 'app' } },
      status: { reason: 'Copied' },
    }));
    const further = copies.slice(0, 200).map((copy): JsonObject => ({
      ...copy,
      metadata: {
        name: `copy.v${String((copy['metadata'] as JsonObject)['namespace'])}`,
        namespace: 'app',
        labels: { 'olm.copiedFrom': 'else' },
      },
    }));
    const packages = { a: [a1, a2] };
    expect(await predict([...copies, ...objects, ...further], packages)).toEqual(
      await predict(objects, packages),
    );
  });

  it('predicts with hostile names, without an exception', async () => {
    const name = fc.oneof(
      fc.constantFrom(
        '__proto__',
        'constructor',
        'toString',
        '',
        '\u0000\u001b[31m',
        'a'.repeat(100_000),
        '\ud800',
      ),
      fc.string(),
    );
    await fc.assert(
      fc.asyncProperty(name, name, name, async (packageName, channel, bundle) => {
        const { rounds } = await predict(
          [
            group(),
            subscription('x', bundle, { name: packageName, channel }),
            csv(bundle === '' ? 'some' : bundle, '1.0.0'),
          ],
          {
            [packageName === '' ? 'some' : packageName]: [
              { name: bundle || 'some', version: '1.0.0', channels: [channel || 'c'] },
            ],
          },
        );
        expect(rounds.length).toBeGreaterThan(0);
      }),
      { numRuns: 60 },
    );
  });
});
