import { CancelledError } from '../../../src/core/errors.js';
import { readFileSync, readdirSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ChannelEntry } from '../../../src/model/declarative-config.js';
import type { CatalogDiagnostic } from '../../../src/model/catalog-diagnostic.js';
import { validateCatalog, validateInTurns, type ValidationReport } from '../../../src/graph/validate.js';
import { bundle, catalog, factsOf, fixture, readFacts } from '../model/read-facts.js';

function validate(blobs: object[]): ValidationReport {
  return validateCatalog(factsOf(blobs));
}

function texts(problems: CatalogDiagnostic[]): string[] {
  return problems.map(({ problem }) => problem);
}

function hintFor(entries: Partial<ChannelEntry>[]): string | undefined {
  const { problems } = validate(catalog(entries));
  expect(problems).toHaveLength(1);
  return problems[0]?.hint;
}

/** The lines of a tree without its drawing, in an order that does not depend on upstream's. */
function sortedLines(message: string): string[] {
  return message
    .split('\n')
    .map((line) => line.replace(/^[├└│─ ]+/, ''))
    .sort();
}

const cases = readdirSync(fixture('fbc-cases'))
  .filter((name) => name.endsWith('.json'))
  .map((name) => name.slice(0, -'.json'.length));

const vectors = readFileSync(fixture('vectors/validate.jsonl'), 'utf8')
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line) as { blobs: object[]; message: string });

describe('graph/validate, against the reference implementation', () => {
  it.each(cases)('answers as opm does: %s', (name) => {
    const report = validateCatalog(readFacts(`fbc-cases/${name}.json`));
    const expected = readFileSync(fixture(`fbc-cases/${name}.txt`), 'utf8').trimEnd();
    expect(report.message ?? '').toBe(expected);
    expect(report.passed).toBe(expected === '');
    expect(report.problems.length > 0).toBe(expected !== '');
  });

  it.each(vectors.map((vector, index) => ({ ...vector, index })))(
    'finds what it finds in catalog $index',
    (vector) => {
      const { message } = validate(vector.blobs);
      expect(sortedLines(message ?? '')).toEqual(sortedLines(vector.message));
    },
  );
});

describe('graph/validate, beyond it', () => {
  it('reports every problem of both stages at once, each with its place and a hint', () => {
    const blobs = catalog([
      { name: 'a.v1.0.0' },
      { name: 'a.v1.1.0', skipRange: '~1' },
      { name: 'a.v1.2.0', replaces: 'a.v1.1.0', skips: [''] },
    ]);
    blobs.push(bundle('a.v1.3.0', 'x', { image: 'A' }), { schema: 'olm.deprecations', package: 'z' });
    blobs.push({ schema: 'olm.package', name: 'q' }, { schema: 'olm.package', name: 'q' });
    const { message, problems } = validate(blobs);
    expect(message).toBe('duplicate package "q"');
    expect(texts(problems)).toEqual([
      'package "p" channel "c": multiple channel heads found in graph: a.v1.0.0, a.v1.2.0',
      'package "p" channel "c" entry "a.v1.1.0": invalid skipRange "~1": ' +
        'Could not parse Range "~1": Could not parse comparator "~" in "~1"',
      'package "p" channel "c" entry "a.v1.2.0": skip[0] is empty',
      expect.stringMatching(/^package "p" bundle "a.v1.3.0" image: invalid image pull spec "A": /),
      'error parsing bundle "a.v1.3.0" version "x": No Major.Minor.Patch elements found',
      'package "p", bundle "a.v1.3.0" not found in any channel entries',
      'duplicate package "q"',
      'package "q": default channel must be set',
      'package "q": package must contain at least one channel',
      'cannot apply deprecations to an unknown package "z"',
    ]);
    for (const { origin, hint, path } of problems) {
      expect(origin?.file).toBe('catalog.json');
      expect(hint).not.toBe('');
      expect(path ?? []).toBeInstanceOf(Array);
    }
    expect(problems[2]).toMatchObject({
      bundle: 'a.v1.2.0',
      path: ['entries', 2, 'skips', 0],
      origin: { offset: 1 },
    });
    expect(problems[4]).toMatchObject({ path: ['properties', 0, 'value'], origin: { offset: 5 } });
  });

  it('finds entries without a bundle in every channel, opm in the last one only', () => {
    const blobs = catalog([{ name: 'a.v1.0.0' }]);
    blobs.splice(1, 0, {
      schema: 'olm.channel',
      package: 'p',
      name: 'b',
      entries: [{ name: 'gone.v2.0.0' }],
    });
    blobs.push({ schema: 'olm.channel', package: 'p', name: 'd', entries: [{ name: 'lost.v3.0.0' }] });
    const { message, problems } = validate(blobs);
    expect(message).toBe('no olm.bundle blobs found in package "p" for olm.channel entries [lost.v3.0.0]');
    expect(texts(problems)).toEqual([
      'package "p" channel "b": entry "gone.v2.0.0" has no olm.bundle blob',
      'package "p" channel "d": entry "lost.v3.0.0" has no olm.bundle blob',
    ]);
  });

  it('reports an unknown package once, and knows which one was meant', () => {
    const blobs = catalog([{ name: 'a.v1.0.0' }, { name: 'a.v1.1.0', replaces: 'a.v1.0.0' }]);
    for (const at of [2, 3]) blobs[at] = { ...blobs[at], package: 'P' };
    const { problems } = validate(blobs);
    expect(texts(problems)).toEqual(['unknown package "P" for bundle "a.v1.0.0"']);
    expect(problems[0]?.hint).toBe('use "p", or add an olm.package blob named "P"');
  });

  it('does not miss the default channel where a channel has no name', () => {
    const blobs = catalog([{ name: 'a.v1.0.0' }]);
    blobs[1] = { ...blobs[1], name: '' };
    expect(texts(validate(blobs).problems)).toEqual(['package "p" contains channel with no name']);
  });

  it('does not call two unreadable versions equal, nor a misnamed release wrong twice', () => {
    const blobs = catalog([{ name: 'a' }, { name: 'b', replaces: 'a' }]);
    blobs[2] = bundle('a', 'x');
    blobs[3] = bundle('b', 'x');
    expect(texts(validate(blobs).problems)).toEqual([
      'error parsing bundle "a" version "x": No Major.Minor.Patch elements found',
      'error parsing bundle "b" version "x": No Major.Minor.Patch elements found',
    ]);
  });

  it.each<[string, Partial<ChannelEntry>[], string]>([
    [
      'a name without its beginning',
      [{ name: 'w.v1.0.0' }, { name: 'w.v1.1.0', replaces: 'v1.0.0' }],
      'change replaces of "w.v1.1.0" from "v1.0.0", not an entry, to "w.v1.0.0"',
    ],
    [
      'an entry that nothing leads away from',
      [
        { name: 'w.v1.0.0' },
        { name: 'w.v1.1.0', replaces: 'w.v1.0.0' },
        { name: 'w.v1.2.0', replaces: 'w.v1.0.0' },
      ],
      'add "w.v1.1.0" to the skips of "w.v1.2.0"',
    ],
    [
      'an entry that replaces what is no entry',
      [{ name: 'w.v1.0.0' }, { name: 'w.v1.1.0', replaces: 'w.v1.0.1' }],
      'change replaces of "w.v1.1.0" from "w.v1.0.1", not an entry, to "w.v1.0.0"',
    ],
    [
      'an entry that replaces nothing',
      [{ name: 'w.v1.0.0' }, { name: 'w.v1.1.0' }],
      'set replaces of "w.v1.1.0" to "w.v1.0.0"',
    ],
    [
      'a circle through the newest entry',
      [
        { name: 'w.v1.0.0', replaces: 'w.v1.1.0' },
        { name: 'w.v1.1.0', replaces: 'w.v1.0.0' },
      ],
      'remove "w.v1.1.0", the newest entry, from replaces of "w.v1.0.0"',
    ],
    [
      'an entry that skips itself',
      [{ name: 'w.v1.0.0', skips: ['w.v1.0.0'] }],
      'remove "w.v1.0.0" from its own skips',
    ],
    [
      'a circle below the head',
      [
        { name: 'w.v1.0.0', replaces: 'w.v1.1.0' },
        { name: 'w.v1.1.0', replaces: 'w.v1.0.0' },
        { name: 'w.v1.2.0', replaces: 'w.v1.1.0' },
      ],
      'set replaces of "w.v1.0.0" to an entry older than "w.v1.1.0", or remove it',
    ],
    [
      'an entry below the head that replaces itself',
      [
        { name: 'w.v1.0.0', replaces: 'w.v1.0.0' },
        { name: 'w.v1.1.0', replaces: 'w.v1.0.0' },
      ],
      'remove "w.v1.0.0" from its own replaces',
    ],
    [
      'a skip that cuts the chain',
      [
        { name: 'w.v1.0.0' },
        { name: 'w.v1.1.0', replaces: 'w.v1.0.0' },
        { name: 'w.v1.2.0', replaces: 'w.v1.1.0', skips: ['w.v1.1.0'] },
      ],
      'set replaces of "w.v1.2.0" to "w.v1.0.0", or remove that skip: the chain of upgrades from "w.v1.2.0" ' +
        'ends at "w.v1.2.0", as "w.v1.2.0" skips "w.v1.1.0"',
    ],
  ])('says what to change: %s', (_, entries, hint) => {
    expect(hintFor(entries)).toContain(hint);
  });

  it('says what to change where versions are not known', () => {
    const blobs = catalog([
      { name: 'a', replaces: 'b' },
      { name: 'b', replaces: 'a' },
    ]);
    const problem = validate(blobs).problems.find((one) => one.problem.includes('no channel head'));
    expect(problem?.hint).toContain('keep one entry, the newest, that no entry replaces or skips');
  });

  it('says nothing of a skipped bundle in the chain from which an entry leads on', () => {
    const report = validate(
      catalog([
        { name: 'w.v1.0.0' },
        { name: 'w.v1.1.0', replaces: 'w.v1.0.0' },
        { name: 'w.v1.2.0', skips: ['w.v1.0.0'], replaces: 'w.v1.1.0' },
      ]),
    );
    expect(report).toMatchObject({ passed: true, problems: [], warnings: [] });
  });

  it('warns of a catalog without blobs, and passes', () => {
    const empty = { packages: [], channels: [], bundles: [], deprecations: [] };
    const report = validateCatalog(empty);
    expect(report).toMatchObject({ passed: true, problems: [] });
    expect(report.warnings).toMatchObject([{ code: 'empty-catalog', problem: 'the catalog has no blobs' }]);
    expect(validateCatalog({ ...empty, otherSchemas: new Map([['a', { package: '' }]]) }).warnings).toEqual(
      [],
    );
  });

  it('leads from a misspelled entry to its bundle, with a letter for a digit too', () => {
    const entries = [{ name: 'w.v1.0.O' }, { name: 'w.v1.1.0', replaces: 'w.v1.0.0' }];
    const [, , , ...bundles] = catalog(entries);
    const { problems } = validate([...catalog(entries).slice(0, 2), bundle('w.v1.0.0'), ...bundles]);
    expect(problems.map(({ hint }) => hint)).toEqual([
      'use "w.v1.0.0", or add the bundle',
      'fix the name of entry "w.v1.0.O" first',
      'use the same name for the bundle and for the entry "w.v1.0.O", which has no bundle',
    ]);
  });

  it('warns of schemas that resemble known ones, once for each', () => {
    const origin = { file: 'a.yaml', offset: 7, length: 1, syntax: 'yaml' } as const;
    const others = ['olm.chanel', 'example.note', 'olm.bundles'].map(
      (schema) => [schema, { package: 'p', origin }] as const,
    );
    const { passed, warnings } = validateCatalog({
      ...factsOf(catalog([{ name: 'w.v1.0.0' }])),
      otherSchemas: new Map(others),
    });
    expect(passed).toBe(true);
    expect(warnings).toMatchObject([
      {
        problem: 'unknown schema "olm.chanel"',
        hint: 'use "olm.channel" if you mean that schema',
        package: 'p',
        path: ['schema'],
        origin,
      },
      { problem: 'unknown schema "olm.bundles"' },
    ]);
  });

  it('warns of a bundle in the chain that an entry of a dead end skips, and passes', () => {
    const report = validate(
      catalog([
        { name: 'w.v1.0.0' },
        { name: 'w.v1.1.0', replaces: 'w.v1.0.0' },
        { name: 'w.v1.2.0', replaces: 'w.v1.1.0' },
        { name: 'w.v1.0.1', skips: ['w.v1.0.0', 'w.v1.0.2'] },
        { name: 'w.v1.0.2', skips: ['w.v1.0.1'] },
      ]),
    );
    expect(report).toMatchObject({ passed: true, problems: [] });
    expect(texts(report.warnings)).toEqual([
      'package "p" channel "c": entry "w.v1.1.0" replaces "w.v1.0.0", which "w.v1.0.1" skips, and "w.v1.0.1" has no upgrade',
    ]);
    expect(report.warnings[0]?.path).toEqual(['entries', 1, 'replaces']);
  });

  it('warns of a name that looks like an entry, not of one that was cut off', () => {
    const { passed, warnings } = validate(
      catalog([
        { name: 'w.v1.0.0', replaces: 'w.v0.9.0' },
        { name: 'w.v1.1.0', replaces: 'w.v1.0.0', skips: ['W.v1.0.0', 'w.v0.8.0'] },
      ]),
    );
    expect(passed).toBe(true);
    expect(texts(warnings)).toEqual([
      'package "p" channel "c": entry "w.v1.1.0" skips "W.v1.0.0", which is not an entry',
    ]);
    expect(warnings[0]?.hint).toBe('use "w.v1.0.0" if you mean that entry');
  });

  it('warns of versions that differ in build metadata only', () => {
    const { passed, warnings } = validate(
      catalog([{ name: 'v1.0.0+a' }, { name: 'v1.0.0+b', replaces: 'v1.0.0+a' }]),
    );
    expect(passed).toBe(true);
    expect(texts(warnings)).toEqual([
      'package "p": versions of bundles "v1.0.0+a" and "v1.0.0+b" differ in build metadata only',
    ]);
  });

  it('copes with large channels, sound or not', () => {
    const count = 5_000;
    const chain = (replaces: (i: number) => string): object[] =>
      catalog(Array.from({ length: count }, (_, i) => ({ name: `w.v1.${i}.0`, replaces: replaces(i) })));
    expect(validate(chain((i) => (i > 0 ? `w.v1.${i - 1}.0` : ''))).passed).toBe(true);
    expect(validate(chain((i) => `w.v1.${(i + 1) % count}.0`)).message).toContain('no channel head found');
    expect(validate(chain((i) => `v1.${i}.0`)).message).toContain('multiple channel heads found');
    expect(validate(chain(() => '')).problems).toHaveLength(1);
    expect(validate(chain((i) => `w.v1.${i}.0`)).problems).toHaveLength(1);
  });

  it('answers for every catalog, and passes it exactly when there is no problem', () => {
    const name = fc.constantFrom('', 'a.v1.0.0', 'a.v1.1.0', 'a.v1.2.0', 'b.v1.0.0+x', 'c');
    const packageName = fc.constantFrom('', 'p', 'q');
    const list = fc.array(
      fc.record({
        name,
        replaces: name,
        skips: fc.array(name, { maxLength: 2 }),
        skipRange: fc.constantFrom('', 'x'),
      }),
      { maxLength: 5 },
    );
    const blob = fc.oneof(
      fc.record({
        schema: fc.constant('olm.package'),
        name: packageName,
        defaultChannel: fc.constantFrom('', 'c', 'd'),
      }),
      fc.record({
        schema: fc.constant('olm.channel'),
        package: packageName,
        name: fc.constantFrom('', 'c', 'd'),
        entries: list,
      }),
      fc.tuple(name, fc.constantFrom('1.0.0', '', '2.0.0')).map(([key, version]) => bundle(key, version)),
      fc.record({
        schema: fc.constant('olm.deprecations'),
        package: packageName,
        entries: fc.array(
          fc.record({
            reference: fc.record({
              schema: fc.constantFrom('', 'olm.package', 'olm.bundle', 'olm.channel'),
              name,
            }),
            message: fc.constantFrom('', 'm'),
          }),
          { maxLength: 3 },
        ),
      }),
    );
    fc.assert(
      fc.property(fc.array(blob, { maxLength: 10 }), (blobs) => {
        const { passed, message, problems } = validate(blobs);
        expect(passed).toBe(problems.length === 0);
        expect(passed).toBe(message === undefined);
        for (const problem of problems) expect(problem.hint).toBeTruthy();
      }),
      { numRuns: 1000 },
    );
  });
});

describe('graph/validate validateInTurns', () => {
  it('reports the same, and leaves the event loop to others', async () => {
    const entries = Array.from({ length: 5000 }, (_, index) => ({
      name: `w.v0.0.${index}`,
      replaces: `w.v0.0.${index - 1}`,
      skips: [],
      skipRange: '',
    }));
    const facts = {
      packages: [{ name: 'p', defaultChannel: 'c' }],
      channels: [{ package: 'p', name: 'c', entries }],
      bundles: [],
      deprecations: [],
    };
    let turns = 0;
    const count = (): void => {
      turns++;
      immediate = setImmediate(count);
    };
    let immediate = setImmediate(count);
    const report = await validateInTurns(facts);
    clearImmediate(immediate);
    expect(report.problems).toHaveLength(5000);
    expect(report).toEqual(validateCatalog(facts));
    expect(turns).toBeGreaterThan(0);
    await expect(validateInTurns(facts, { signal: AbortSignal.abort() })).rejects.toThrow();
  });

  it('stops in the middle of one long channel', async () => {
    const entries = Array.from({ length: 20_000 }, (_, index) => ({
      name: `w.v0.0.${index}`,
      replaces: '',
      skips: [],
      skipRange: '',
    }));
    const facts = {
      packages: [{ name: 'p', defaultChannel: 'c' }],
      channels: [{ package: 'p', name: 'c', entries }],
      bundles: [],
      deprecations: [],
    };
    const stop = new AbortController();
    setImmediate(() => stop.abort());
    await expect(validateInTurns(facts, { signal: stop.signal })).rejects.toThrow(CancelledError);
  });
});
