import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { emptyFilter } from '../../../../src/catalog/selection/catalog-filter.js';
import { readFilterFile } from '../../../../src/catalog/selection/filter-file.js';
import { type FilterRequest, addRequest } from '../../../../src/catalog/selection/filter-request.js';

const schemaFile = new URL('../../../../schemas/catalog-filter.schema.json', import.meta.url);
const matchesSchema = new Ajv({ strict: true, allowUnionTypes: true }).compile(
  JSON.parse(readFileSync(schemaFile, 'utf8')) as object,
);
const today = new Date('2024-07-15T00:00:00Z');
const read = (text: string) => readFilterFile(text, 'filter.yaml', today);

function request(given: FilterRequest) {
  const filter = emptyFilter();
  addRequest(filter, given, today);
  return filter;
}

describe('catalog/selection/filter-request', () => {
  it('reads scopes', () => {
    const { criteria } = request({
      versions: [
        '>=1.0.0',
        'widget=>=1.0.0 <2.0.0',
        'widget/stable-1.0==1.2.0',
        '!=1.1.0',
        '1.0.0 || =1.2.0',
      ],
      latest: ['widget=3'],
      createdSince: '6 months',
    });
    expect(criteria.map((one) => [one.package, one.channel, one.criteria.versions?.text])).toEqual([
      [undefined, undefined, '>=1.0.0'],
      ['widget', undefined, '>=1.0.0 <2.0.0'],
      ['widget', 'stable-1.0', '=1.2.0'],
      [undefined, undefined, '!=1.1.0'],
      [undefined, undefined, '1.0.0 || =1.2.0'],
      ['widget', undefined, undefined],
      [undefined, undefined, undefined],
    ]);
    expect(criteria.at(-2)?.criteria.latest).toBe(3);
    expect(criteria.at(-1)?.criteria.createdSince).toBe('2024-01-15');
  });

  it.each<[FilterRequest, string]>([
    [{ versions: ['latest'] }, 'options.versions "latest": invalid version range'],
    [{ minVersions: ['widget=1.0'] }, 'options.minVersions "1.0": invalid version'],
    [{ latest: ['0'] }, 'options.latest "0": expected an integer from 1 to 1000000'],
    [
      { createdSince: 'May' },
      'options.createdSince "May": expected a date (YYYY-MM-DD) or a number of months',
    ],
    [{ defaultChannels: ['stable'] }, 'options.defaultChannels "stable": expected package=channel'],
    [
      { reachableFrom: ['widget='] },
      'options.reachableFrom "": expected the name or version of an installed bundle',
    ],
  ])('refuses %j', (given, message) => {
    expect(() => request(given)).toThrow(expect.objectContaining({ code: 'USAGE', message }) as Error);
  });

  it('reads a file, and places of it', () => {
    const text = `kind: CatalogFilter
headsOnly: true
packages:
  - gadget
  - name: widget
    defaultChannel: stable
    minVersion: 1.0.0
    channels:
      - fast
      - name: stable
        versions: '>=1.2.0'
        latest: 2
drop:
  channels: [widget/old]
  bundles: [widget.v1.0.1]
  deprecated: true
undated: drop
exact: true
`;
    expect(matchesSchema(load(text))).toBe(true);
    expect(read(text)).toMatchObject({
      packages: [
        { name: 'gadget', where: { file: 'filter.yaml', line: 4, column: 5 } },
        { name: 'widget', where: { file: 'filter.yaml', line: 5, column: 5 } },
      ],
      channels: [
        { package: 'widget', name: 'fast' },
        { package: 'widget', name: 'stable', where: { file: 'filter.yaml', line: 10, column: 9 } },
      ],
      criteria: [
        { package: undefined, channel: undefined, criteria: { latest: 1 } },
        { package: 'widget', channel: undefined, criteria: { minVersion: '1.0.0' } },
        { package: 'widget', channel: 'stable', criteria: { latest: 2, versions: { text: '>=1.2.0' } } },
      ],
      defaultChannels: [
        { package: 'widget', name: 'stable', where: { file: 'filter.yaml', line: 6, column: 5 } },
      ],
      dropPackages: [],
      dropChannels: [
        { package: 'widget', name: 'old', where: { file: 'filter.yaml', line: 14, column: 14 } },
      ],
      dropBundles: [{ package: undefined, name: 'widget.v1.0.1' }],
      dropDeprecated: true,
      undated: 'drop',
      keep: 'nothing',
    });
    expect(read('{"kind": "CatalogFilter"}')).toEqual(emptyFilter());
  });

  it('refuses a package or channel twice', () => {
    expect(() => read('kind: CatalogFilter\npackages:\n- a\n- {name: a}\n')).toThrow(
      'filter.yaml:4:3: packages[1]: duplicate package "a", first defined on line 3',
    );
    expect(() => read('kind: CatalogFilter\npackages: [{name: a, channels: [b, b]}]\n')).toThrow(
      'packages[0].channels[1]: duplicate channel "b", first defined on line 2',
    );
  });

  it.each([
    ['[]', 'filter.yaml:1:1: expected an object, got a list'],
    ['kind: Other', 'filter.yaml:1:1: kind: expected CatalogFilter, got "Other"'],
    ['kind: CatalogFilter\npackage: [a]', 'filter.yaml:2:1: package: unknown field'],
    ['kind: CatalogFilter\npackages: [{}]', 'filter.yaml:2:12: packages[0].name: missing'],
    [
      'kind: CatalogFilter\npackages: [1]',
      'filter.yaml:2:12: packages[0]: expected a name or an object, got the number 1',
    ],
    ['kind: CatalogFilter\nlatest: 0', 'filter.yaml:2:1: latest: expected an integer from 1 to 1000000'],
    ['kind: CatalogFilter\nminVersion: "1"', 'filter.yaml:2:1: minVersion: invalid version "1"'],
    ['kind: CatalogFilter\nundated: maybe', 'filter.yaml:2:1: undated: unsupported value "maybe"'],
    [
      'kind: CatalogFilter\ndrop: {bundles: [{}]}',
      'filter.yaml:2:18: drop.bundles[0]: expected a string, got an object',
    ],
    [
      'kind: CatalogFilter\npackages: [{name: a, channels: []}]',
      'filter.yaml:2:22: packages[0].channels: no channels',
    ],
    ['kind: CatalogFilter\npackages: [[]]', 'packages[0]: expected a name or an object, got a list'],
  ])('refuses %j, as its schema does', (text, message) => {
    expect(() => read(text)).toThrow(message);
    expect(matchesSchema(load(text))).toBe(false);
  });

  it('suggests no other field for apiVersion, which a filter does not have', () => {
    expect(() => read('apiVersion: v1\nkind: CatalogFilter')).toThrow(
      expect.objectContaining({
        diagnostics: [expect.objectContaining({ path: ['apiVersion'], hint: 'remove it' })],
      }) as Error,
    );
  });
});
