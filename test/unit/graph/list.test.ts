import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { formatTable } from '../../../src/cli/table.js';
import { findDefaultHeads, listBundles, listChannels, listPackages } from '../../../src/graph/list.js';
import { catalog, factsOf, fixture, readFacts } from '../model/read-facts.js';

describe('graph/list', () => {
  it.each(['bpfman-operator', 'cluster-aas-operator', 'node-maintenance-operator'])(
    'lists %s as opm does',
    (op) => {
      const facts = readFacts(`lists/${op}.json`);
      const golden = (what: string): string => readFileSync(fixture(`lists/${op}.list-${what}.txt`), 'utf8');
      const packages = listPackages(facts).map((row) => Object.values(row));
      expect(formatTable(['NAME', 'DISPLAY NAME', 'DEFAULT CHANNEL'], packages)).toBe(golden('packages'));
      const channels = listChannels(facts).map((row) => Object.values(row));
      expect(formatTable(['PACKAGE', 'CHANNEL', 'HEAD'], channels)).toBe(golden('channels'));
      const bundles = listBundles(facts).map((row) => Object.values(row).map(String));
      const header = ['PACKAGE', 'CHANNEL', 'BUNDLE', 'REPLACES', 'SKIPS', 'SKIP RANGE', 'IMAGE'];
      expect(formatTable(header, bundles)).toBe(golden('bundles'));
    },
  );

  it('shows in place of a head why it is missing', () => {
    const facts = factsOf(catalog([{ name: 'b.v1.0.0' }, { name: 'a.v2.0.0' }]));
    expect(listChannels(facts)).toEqual([
      {
        package: 'p',
        channel: 'c',
        head: 'ERROR: multiple channel heads found in graph: a.v2.0.0, b.v1.0.0',
      },
    ]);
    expect(findDefaultHeads(facts)).toEqual(new Map());
  });

  it('shows the display names that the caller found', () => {
    const facts = factsOf(catalog([{ name: 'a.v1.0.0' }]));
    expect(findDefaultHeads(facts)).toEqual(new Map([['p', 'a.v1.0.0']]));
    expect(listPackages(facts, new Map([['p', 'The P']]))).toEqual([
      { name: 'p', displayName: 'The P', defaultChannel: 'c' },
    ]);
  });

  it('lists one package, and refuses an unknown one', () => {
    const facts = factsOf([...catalog([{ name: 'a.v1.0.0' }]), { schema: 'olm.package', name: 'q' }]);
    expect(listBundles(facts, 'p').map(({ bundle }) => bundle)).toEqual(['a.v1.0.0']);
    expect(listChannels(facts, 'q')).toEqual([]);
    expect(() => listBundles(facts, 'r"')).toThrow('package "r\\"" not found');
  });
});
