import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/document/json.js';
import { decodeBundle, decodeChannel, decodePackage } from '../../../../src/model/decode.js';
import { CatalogEntries } from '../../../../src/solve/v0/catalog-entries.js';
import type { AppliedConstraint } from '../../../../src/solve/v0/choose.js';
import { readNamespace } from '../../../../src/solve/v0/namespace-state.js';
import { predictNamespace } from '../../../../src/solve/v0/predict.js';
import { readPredicate } from '../../../../src/solve/v0/predicates.js';
import { resolveNamespace } from '../../../../src/solve/v0/resolve.js';
import type { ResolverCatalog, ResolverEntry } from '../../../../src/solve/v0/resolver-types.js';

const limits = { maxSteps: 1_000_000 };
const key = { namespace: 'olm', name: 'catalog' };
const packages = ['a', 'b', 'c'];

interface Bundle {
  apis: string[];
  requires: { package?: string; range?: string; api?: string }[];
}

const bundle: fc.Arbitrary<Bundle> = fc.record({
  apis: fc.uniqueArray(fc.constantFrom('X', 'Y', 'Z'), { maxLength: 2 }),
  requires: fc.array(
    fc.oneof(
      fc.record({
        package: fc.constantFrom(...packages),
        range: fc.constantFrom('>=1.0.0', '<2.0.0', '>9.0.0'),
      }),
      fc.record({ api: fc.constantFrom('X', 'Y', 'Z', 'W') }),
    ),
    { maxLength: 2 },
  ),
});

interface World {
  bundles: Record<string, Bundle[]>;
  subscribed: string[];
  installed: string[];
  freestanding: string[];
}

const world: fc.Arbitrary<World> = fc.record({
  bundles: fc.record(
    Object.fromEntries(packages.map((name) => [name, fc.array(bundle, { minLength: 1, maxLength: 3 })])),
  ) as fc.Arbitrary<World['bundles']>,
  subscribed: fc.subarray(packages, { minLength: 1 }),
  installed: fc.subarray(packages),
  freestanding: fc.subarray(packages, { maxLength: 1 }),
});

function propertiesOf(name: string, index: number, { apis, requires }: Bundle): JsonObject[] {
  return [
    { type: 'olm.package', value: { packageName: name, version: `${index + 1}.0.0` } },
    ...apis.map((kind) => ({ type: 'olm.gvk', value: { group: 'g', version: 'v1', kind } })),
    ...requires.map(({ package: packageName, range, api }) =>
      packageName === undefined
        ? { type: 'olm.gvk.required', value: { group: 'g', version: 'v1', kind: api as string } }
        : { type: 'olm.package.required', value: { packageName, versionRange: range as string } },
    ),
  ];
}

function toCatalog({ bundles }: World): ResolverCatalog {
  const entries = new CatalogEntries();
  for (const [name, versions] of Object.entries(bundles)) {
    entries.addPackage(decodePackage({ schema: 'olm.package', name, defaultChannel: 'stable' }));
    entries.addChannel(
      decodeChannel({
        schema: 'olm.channel',
        package: name,
        name: 'stable',
        entries: versions.map((_, index) => ({
          name: `${name}.v${index + 1}`,
          ...(index > 0 && { replaces: `${name}.v${index}` }),
        })),
      }),
    );
    for (const [index, version] of versions.entries())
      entries.addBundle(
        decodeBundle({
          schema: 'olm.bundle',
          package: name,
          name: `${name}.v${index + 1}`,
          image: 'example.com/bundle',
          properties: propertiesOf(name, index, version),
        }),
      );
  }
  return { key, priority: 0, entries: entries.list(key) };
}

function toObjects({ bundles, subscribed, installed, freestanding }: World): JsonObject[] {
  const csv = (name: string): JsonObject => ({
    kind: 'ClusterServiceVersion',
    metadata: {
      name: `${name}.v1`,
      namespace: 'app',
      annotations: {
        'operatorframework.io/properties': JSON.stringify({
          properties: propertiesOf(name, 0, bundles[name]?.[0] as Bundle),
        }),
      },
    },
    spec: { version: '1.0.0' },
    status: { phase: 'Succeeded' },
  });
  const isInstalled = (name: string): boolean => installed.includes(name) && subscribed.includes(name);
  return [
    { kind: 'OperatorGroup', metadata: { name: 'og', namespace: 'app' }, spec: {} },
    ...subscribed.map((name) => ({
      kind: 'Subscription',
      metadata: { name, namespace: 'app' },
      spec: { name, channel: 'stable', source: 'catalog', sourceNamespace: 'olm' },
      status: isInstalled(name) ? { installedCSV: `${name}.v1`, currentCSV: `${name}.v1` } : {},
    })),
    ...packages
      .filter((name) => isInstalled(name) || (freestanding.includes(name) && !subscribed.includes(name)))
      .map(csv),
  ];
}

/** Returns what is wrong with a set of bundles, by the rules alone. */
function findFaults(entries: readonly ResolverEntry[]): string[] {
  const faults: string[] = [];
  const providers = new Map<string, string[]>();
  const own = new Map<string, string[]>();
  for (const entry of entries) {
    for (const property of entry.properties) {
      const predicate = readPredicate(property);
      if (predicate !== undefined && !entries.some(predicate.test))
        faults.push(`${entry.name}: ${predicate.text}`);
    }
    for (const { kind } of entry.apis) providers.set(kind, [...(providers.get(kind) ?? []), entry.name]);
    own.set(entry.package, [...(own.get(entry.package) ?? []), entry.name]);
  }
  for (const names of [...providers.values(), ...own.values()])
    if (names.length > 1) faults.push(names.join());
  return faults;
}

/** Tries all sets of variables. */
function canHold(constraints: readonly AppliedConstraint[]): boolean {
  const ids = new Set<string>();
  for (const { variable, constraint } of constraints) {
    ids.add(variable.id);
    if (constraint.kind === 'dependency') for (const id of constraint.candidates) ids.add(id);
    if (constraint.kind === 'conflict') ids.add(constraint.other);
    if (constraint.kind === 'at-most-one') for (const id of constraint.members) ids.add(id);
  }
  const list = [...ids];
  for (let bits = 0; bits < 2 ** list.length; bits++) {
    const has = (id: string): boolean => ((bits >> list.indexOf(id)) & 1) === 1;
    const holds = constraints.every(({ variable, constraint }) => {
      switch (constraint.kind) {
        case 'mandatory':
          return has(variable.id);
        case 'prohibited':
          return !has(variable.id);
        case 'dependency':
          return !has(variable.id) || constraint.candidates.some(has);
        case 'conflict':
          return !has(variable.id) || !has(constraint.other);
        case 'at-most-one':
          return constraint.members.filter(has).length <= 1;
      }
    });
    if (holds) return true;
  }
  return false;
}

describe('resolveNamespace', () => {
  it('chooses a valid set of bundles, or a conflict of which every line is needed', () => {
    let [resolved, refused] = [0, 0];
    fc.assert(
      fc.property(world, (given) => {
        const state = readNamespace('app', toObjects(given));
        const resolution = resolveNamespace(state, [toCatalog(given)], limits);
        if (resolution.outcome === 'resolved') {
          resolved++;
          const entries = resolution.variables.flatMap(({ entry }) => entry ?? []);
          expect(findFaults(entries)).toEqual([]);
          const names = entries.map(({ package: name }) => name);
          expect(names).toEqual(expect.arrayContaining(given.subscribed));
        } else if (resolution.outcome === 'unsatisfiable') {
          refused++;
          const { conflict } = resolution;
          expect(canHold(conflict)).toBe(false);
          for (const line of conflict) expect(canHold(conflict.filter((other) => other !== line))).toBe(true);
        }
      }),
      { numRuns: 1000 },
    );
    expect(resolved).toBeGreaterThan(50);
    expect(refused).toBeGreaterThan(50);
  });

  it('installs nothing that no Subscription leads to', () => {
    fc.assert(
      fc.property(world, (given) => {
        const state = readNamespace('app', toObjects(given));
        const { rounds } = predictNamespace(state, [toCatalog(given)], { limits });
        for (const { resolution, plan } of rounds) {
          if (resolution.outcome !== 'resolved' || plan === undefined) continue;
          const required = new Set(
            resolution.variables.flatMap(({ constraints }) =>
              constraints.flatMap((constraint) =>
                constraint.kind === 'dependency' ? constraint.candidates : [],
              ),
            ),
          );
          for (const { entry } of plan.installs)
            expect(required).toContain(`catalog/olm/${entry.channel}/${entry.name}`);
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe('predictNamespace', () => {
  const chain: World = {
    bundles: {
      a: [1, 2, 3].map(() => ({ apis: [], requires: [] })),
      b: [{ apis: ['X'], requires: [] }],
      c: [{ apis: [], requires: [{ api: 'X' }] }],
    },
    subscribed: ['a', 'c'],
    installed: ['a'],
    freestanding: [],
  };

  it('walks a channel one edge per round until nothing changes, and subscribes to dependencies', () => {
    const { rounds, end } = predictNamespace(readNamespace('app', toObjects(chain)), [toCatalog(chain)], {
      limits,
    });
    expect(rounds.map(({ plan }) => plan?.installs.map(({ entry }) => entry.name))).toEqual([
      ['a.v2', 'b.v1', 'c.v1'],
      ['a.v3'],
      [],
    ]);
    expect(rounds[0]?.plan?.newSubscriptions.map(({ name }) => name)).toEqual(['b-stable-catalog-olm']);
    expect(end).toBe('stable');
  });

  it('resolves nothing while a catalog has no content', () => {
    const broken = { key: { namespace: 'olm', name: 'other' }, priority: 0, entries: [], error: 'gone' };
    const state = readNamespace('app', toObjects(chain));
    const { end, rounds } = predictNamespace(state, [toCatalog(chain), broken], { limits });
    expect(end).toBe('error');
    expect(rounds[0]?.resolution).toMatchObject({ message: 'error using catalogsource olm/other: gone' });
  });
});
