import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { getMessage } from '../../../src/core/errors.js';
import { type DrawOptions, drawGraph } from '../../../src/graph/mermaid.js';
import { bundle, catalog, factsOf, fixture, readFacts } from '../model/read-facts.js';

function draw(blobs: object[], options: DrawOptions = {}): string {
  return [...drawGraph(factsOf(blobs), options).text].join('');
}

interface Vector {
  blobs: object[];
  v0: boolean;
  minimumEdge: string;
  package: string;
  text?: string;
  error?: string;
}

const vectors = readFileSync(fixture('vectors/graph.jsonl'), 'utf8')
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line) as Vector);

describe('graph/mermaid', () => {
  it.each(['bpfman-operator', 'cluster-aas-operator', 'node-maintenance-operator'])(
    'draws %s as opm does',
    (op) => {
      const text = [...drawGraph(readFacts(`lists/${op}.json`)).text].join('');
      expect(text).toBe(readFileSync(fixture(`lists/${op}.graph.txt`), 'utf8'));
    },
  );

  it.each(vectors.map((vector, index) => ({ ...vector, index })))(
    'draws catalog $index as the reference library: minimum edge "$minimumEdge", package "$package", v0 $v0',
    ({ blobs, v0, minimumEdge, package: packageName, text, error }) => {
      const options = { drawV0Semantics: v0, minimumEdge, packages: packageName === '' ? [] : [packageName] };
      let answer: string | undefined;
      try {
        answer = draw(blobs, options);
      } catch (problem) {
        // The reference says "multiple" of none, too.
        answer = getMessage(problem).replace('has no "olm.package"', 'has multiple "olm.package"');
      }
      expect(answer).toBe(error ?? text);
    },
  );

  it('escapes what could rewrite a terminal or begin a line of its own', () => {
    const name = 'a\u001b[31m\u202e\nclick x.v1.0.0';
    const text = draw(catalog([{ name: 'a.v1.1.0', replaces: name }]));
    expect(text).toContain('a\\x1b[31m\\u202e\\x0aclick x.v1.0.0');
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
    expect(text).not.toMatch(/^click/m);
  });

  it('leaves out a range that does not parse, and says so', () => {
    const drawing = drawGraph(factsOf(catalog([{ name: 'a.v1.0.0', skipRange: '^1' }])));
    expect(drawing.warnings).toEqual([
      'ignoring invalid SkipRange for package/edge "p"/"a.v1.0.0": ' +
        'Could not parse Range "^1": Could not parse comparator "^" in "^1"',
    ]);
    expect([...drawing.text].join('')).not.toContain('skipRange');
  });

  it.each([
    [bundle('a', '1'), 'bundle "a" has invalid version "1": No Major.Minor.Patch elements found'],
    [
      bundle('a', '1.0.0', { properties: [] }),
      'bundle "a" has no "olm.package" properties, expected exactly 1',
    ],
    [
      bundle('a', '1.0.0', { properties: [{ type: 'olm.gvk', value: 1 }] }),
      'parse properties for bundle "a": parse property[0] of type "olm.gvk": json: cannot unmarshal number',
    ],
  ])('refuses a bundle whose version is not known: %#', (blob, message) => {
    expect(() => drawGraph(factsOf([blob]))).toThrow(message);
  });

  it('refuses an unknown minimum edge', () => {
    expect(() => drawGraph(factsOf(catalog([{ name: 'a.v1.0.0' }])), { minimumEdge: 'b' })).toThrow(
      'unknown minimum edge name: "b"',
    );
  });

  it('can be read twice', () => {
    const skips = ['a.v1.0.0'];
    const blobs = catalog([{ name: 'a.v1.0.0' }, { name: 'b.v2.0.0', skips }, { name: 'c.v3.0.0', skips }]);
    const { text } = drawGraph(factsOf(blobs), { drawV0Semantics: true });
    expect([...text].at(-1)).toBe('linkStyle 1 stroke:#FF0000,stroke-width:3px,stroke-dasharray:5;\n');
    expect([...text].at(-1)).toBe('linkStyle 1 stroke:#FF0000,stroke-width:3px,stroke-dasharray:5;\n');
  });

  it('hands out a large channel with ranges piece by piece', () => {
    const entries = Array.from({ length: 5_000 }, (_, i) => ({
      name: `a.v1.${i}.0`,
      replaces: i > 0 ? `a.v1.${i - 1}.0` : '',
      skipRange: i % 250 === 0 ? `<1.${i}.0` : '',
    }));
    let longest = 0;
    for (const piece of drawGraph(factsOf(catalog(entries))).text) longest = Math.max(longest, piece.length);
    expect(longest).toBeLessThan(1 << 17);
  });

  it('draws each range as one node where its links would be too many', () => {
    const rangesOnly = (count: number): object[] =>
      catalog(
        Array.from({ length: count }, (_, i) => ({ name: `a.v1.${i}.0`, skipRange: `<1.${i & ~1}.0` })),
      );
    expect(draw(rangesOnly(4), { maxRangeLinks: 4 })).toBe(draw(rangesOnly(4)));
    const { text, warnings } = drawGraph(factsOf(rangesOnly(4)), { maxRangeLinks: 3 });
    const lines = [...text].join('').split('\n');
    expect(lines.filter((line) => line.includes('-- skipRange -->'))).toEqual([
      '      p-c-skipRange-0(["<1.2.0"])-- skipRange --> p-c-a.v1.3.0["a.v1.3.0"]',
      '      p-c-skipRange-0(["<1.2.0"])-- skipRange --> p-c-a.v1.2.0["a.v1.2.0"]',
      '      p-c-skipRange-1(["<1.0.0"])-- skipRange --> p-c-a.v1.1.0["a.v1.1.0"]',
      '      p-c-skipRange-1(["<1.0.0"])-- skipRange --> p-c-a.v1.0.0["a.v1.0.0"]',
    ]);
    expect(warnings).toEqual([
      'drawing each SkipRange as one node for package/channel "p"/"c": more than 3 links',
    ]);
    const sizes = [3_000, 6_000].map((count) => draw(rangesOnly(count), { maxRangeLinks: 100 }).length);
    expect((sizes[1] as number) / (sizes[0] as number)).toBeLessThan(2.2);
  });

  it('draws long names shortened, each to a text of its own, so that the drawing grows with the catalog', () => {
    const long = 'n'.repeat(300);
    const entries = [
      { name: `${long}.v2.0.0`, replaces: `${long}.v1.0.0` },
      { name: `${long}.v1.0.0` },
      { name: 'a.v1.0.0' },
    ];
    const { text, warnings } = drawGraph(factsOf(catalog(entries)), { maxNameLength: 20 });
    const lines = [...text].join('').split('\n');
    const start = 'n'.repeat(20);
    expect(lines.filter((line) => line.includes('-- replace -->'))).toEqual([
      `      p-c-${start}…2["${start}…2"]-- replace --> p-c-${start}…1["${start}…1"]`,
    ]);
    expect(lines).toContain('      p-c-a.v1.0.0["a.v1.0.0"]');
    expect(warnings).toEqual(['drawing 2 names shortened: more than 20 characters']);
    expect(draw(catalog(entries))).toContain(`${long}.v2.0.0`);
  });

  it('draws a range with a long text as one node where its links would repeat the text', () => {
    const skipRange = `${Array.from({ length: 2_000 }, (_, i) => `>9.${i}.0`).join(' || ')} || >=0.0.0`;
    const entries = Array.from({ length: 40 }, (_, i) => ({
      name: `a.v1.${i}.0`,
      ...(i === 39 && { skipRange }),
    }));
    const { text, warnings } = drawGraph(factsOf(catalog(entries)), { maxRangeLinks: 100 });
    expect([...text].join('').split(skipRange)).toHaveLength(2);
    expect(warnings).toEqual([
      'drawing each SkipRange as one node for package/channel "p"/"c": more than 262144 characters in links',
    ]);
    expect(draw(catalog(entries)).split(skipRange)).toHaveLength(41);
  });

  it('hands out the links of one entry, and the numbers of skipped links, piece by piece', () => {
    const names = Array.from({ length: 300 }, (_, i) => `a.v1.${i}.0`);
    const entries = [
      ...names.map((name) => ({ name, skipRange: '<1.300.0' })),
      { name: `a.v2.0.0-${'x'.repeat(1_000)}`, skips: names },
    ];
    const pieces = [...drawGraph(factsOf(catalog(entries)), { drawV0Semantics: true }).text];
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(1 << 17);
    const style = /^linkStyle ([0-9,]+) stroke/m.exec(pieces.join(''))?.[1];
    // Each entry but the newest is skipped, and so are its 300 links.
    expect(style).toBe(Array.from({ length: 300 * 300 }, (_, i) => 300 + i).join(','));
  });

  it('draws every link of every entry once', () => {
    const name = fc.constantFrom('a.v1.0.0', 'b.v1.1.0', 'c.v2.0.0', 'd.v2.0.0-rc.1', 'gone');
    const entries = fc.uniqueArray(
      fc.record({ name, replaces: name, skips: fc.array(name, { maxLength: 3 }) }),
      {
        selector: (item) => item.name,
      },
    );
    fc.assert(
      fc.property(entries, fc.boolean(), (list, drawV0Semantics) => {
        const blobs = catalog(list).filter((blob) => (blob as { name: string }).name !== 'gone');
        const lines = draw(blobs, { drawV0Semantics }).split('\n');
        const count = (verb: string): number =>
          lines.filter((line) => line.includes(`-- ${verb} -->`)).length;
        expect(count('replace')).toBe(list.length);
        expect(count('skip')).toBe(list.reduce((sum, item) => sum + item.skips.length, 0));
      }),
    );
  });
});
