import { describe, expect, it } from 'vitest';
import { parseVersion } from '../../../src/core/semver.js';
import { OfferIndex } from '../../../src/graph/offer-index.js';
import { type Need, readNeed } from '../../../src/model/dependency-needs.js';

const needOf = (value: Parameters<typeof readNeed>[1]): Need => readNeed('olm.constraint', value) as Need;
const widget = { package: { packageName: 'widget', versionRange: '>=1.0.0' } };

describe('graph/offer-index', () => {
  it('meets a need by what was added, also after it was missing', () => {
    const offers = new OfferIndex({ meetsUnclear: false });
    expect(offers.unmetParts(needOf(widget))).toHaveLength(1);
    offers.add({ package: 'widget', version: parseVersion('1.2.0'), apis: [] });
    expect(offers.meets(needOf(widget))).toBe(true);
  });

  it('does not take a need with exclusions for the same need without them', () => {
    const offers = new OfferIndex({ meetsUnclear: true });
    offers.add({ package: 'widget', version: parseVersion('1.2.0'), apis: [] });
    expect(offers.meets(needOf(widget))).toBe(true);
    const excluded = { package: { packageName: 'widget', versionRange: '<2.0.0' } };
    const need = needOf({ all: { constraints: [widget, { not: { constraints: [excluded] } }] } });
    expect(offers.meets(need)).toBe(false);
    expect(offers.unmetParts(need).map(({ text }) => text)).toEqual(['package "widget" ">=1.0.0"']);
  });

  it.each([true, false])('meets unclear needs only if requested (%s)', (meetsUnclear) => {
    const offers = new OfferIndex({ meetsUnclear });
    expect(offers.meets(needOf({ cel: { rule: 'true' } }))).toBe(meetsUnclear);
  });
});
