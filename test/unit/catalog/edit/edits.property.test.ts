import { cp, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { dump } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { applyEdits } from '../../../../src/catalog/edit/apply-edits.js';
import { type EditableCatalog, readEditableCatalog } from '../../../../src/catalog/edit/editable-catalog.js';
import type { NewBundle } from '../../../../src/catalog/edit/new-bundle.js';
import type { Orphans } from '../../../../src/catalog/edit/orphans.js';
import { type AddMode, planAdd } from '../../../../src/catalog/edit/plan-add.js';
import { planDeprecate } from '../../../../src/catalog/edit/plan-deprecate.js';
import { planRemove } from '../../../../src/catalog/edit/plan-remove.js';
import { schemas } from '../../../../src/model/declarative-config.js';
import { readGraph } from '../../../../src/graph/channel-graph.js';
import { validateCatalog } from '../../../../src/graph/validate.js';
import { directoryWith } from '../../../support/temporary.js';

interface Entry {
  name: string;
  replaces?: string;
  skips?: string[];
  skipRange?: string;
}

interface RandomPackage {
  blobs: object[];
  versions: string[];
  channels: Map<string, Entry[]>;
}

function nameOf(version: string): string {
  return `widget.v${version}`;
}

function bundleBlob(version: string): object {
  return {
    schema: 'olm.bundle',
    package: 'widget',
    name: nameOf(version),
    image: `registry.test/widget:v${version}`,
    properties: [{ type: 'olm.package', value: { packageName: 'widget', version } }],
  };
}

function newBundle(version: string, more: Partial<NewBundle> = {}): NewBundle {
  const name = nameOf(version);
  const value = { packageName: 'widget', version };
  const blob = {
    schema: schemas.bundle,
    name,
    package: 'widget',
    image: `registry.test/widget:v${version}`,
    properties: [{ type: 'olm.package', value }],
    relatedImages: [],
  };
  const none = { replaces: '', skips: [], skipRange: '', icon: undefined, description: '' };
  return { reference: name, blob, channels: ['stable'], defaultChannel: 'stable', ...none, ...more };
}

/** Channels whose entries each replace or skip what is below them. */
const randomPackage: fc.Arbitrary<RandomPackage> = fc
  .record({
    numbers: fc.uniqueArray(fc.integer({ min: 0, max: 29 }), { minLength: 1, maxLength: 8 }),
    channels: fc.array(fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 8, maxLength: 8 }), {
      minLength: 1,
      maxLength: 3,
    }),
    descending: fc.boolean(),
  })
  .map(({ numbers, channels: choices, descending }) => {
    const versions = numbers.sort((a, b) => a - b).map((n) => `1.${Math.floor(n / 3)}.${n % 3}`);
    const channels = new Map<string, Entry[]>();
    for (const [at, choice] of choices.entries()) {
      const entries: Entry[] = [];
      let previous: string | undefined;
      let skipped: string[] = [];
      for (const [index, version] of versions.entries()) {
        // Every bundle is in the first channel.
        if (at > 0 && choice[index] === 0 && index < versions.length - 1) continue;
        const name = nameOf(version);
        const entry: Entry = { name };
        if (choice[index] === 1 && index < versions.length - 1) {
          // Left to be skipped by the next one.
          skipped.push(name);
        } else {
          if (previous !== undefined) entry.replaces = previous;
          else if (choice[index] === 2) entry.replaces = 'widget.v0.9.0';
          if (skipped.length > 0) entry.skips = skipped;
          if (choice[index] === 3) entry.skipRange = `<${version}`;
          skipped = [];
          previous = name;
        }
        entries.push(entry);
      }
      channels.set(at === 0 ? 'stable' : `channel-${at}`, descending ? entries.reverse() : entries);
    }
    const blobs = [
      { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
      ...[...channels].map(([name, entries]) => ({
        schema: 'olm.channel',
        package: 'widget',
        name,
        entries,
      })),
      ...versions.map(bundleBlob),
      { schema: 'example.note', package: 'widget', name: 'note', text: 'kept' },
    ];
    return { blobs, versions, channels };
  });

type Style = 'json' | 'json-2' | 'json-lines' | 'json-tabs' | 'yaml' | 'js-yaml' | 'files';

const styles = fc.constantFrom<Style>(
  'json',
  'json-2',
  'json-lines',
  'json-tabs',
  'yaml',
  'js-yaml',
  'files',
);

function filesOf(blobs: readonly object[], style: Style): Record<string, string> {
  const yaml = (blob: object, at: number): string =>
    `# blob ${at}\n${dump(blob, { seqNoIndent: style !== 'js-yaml' }).replace(/^ *- name: .*$/gm, '$& # kept')}`;
  switch (style) {
    case 'yaml':
    case 'js-yaml':
      return { 'widget/catalog.yaml': blobs.map((blob, at) => `---\n${yaml(blob, at)}`).join('') };
    case 'files':
      return Object.fromEntries(blobs.map((blob, at) => [`widget/${10 + at}.yaml`, yaml(blob, at)]));
    default: {
      const indent = { json: 4, 'json-2': 2, 'json-lines': 0, 'json-tabs': '\t' }[style];
      return {
        'widget/catalog.json': blobs.map((blob) => `${JSON.stringify(blob, null, indent)}\n`).join(''),
      };
    }
  }
}

async function contentOf(directory: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    found[path.relative(directory, file)] = await readFile(file, 'utf8');
  }
  return found;
}

async function fill(directory: string, files: Record<string, string>): Promise<void> {
  await rm(directory, { recursive: true, force: true });
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(directory, name)), { recursive: true });
    await writeFile(path.join(directory, name), text);
  }
}

/** Opens a catalog, changes it, and gives what is there then. */
async function edit(
  root: string,
  plan: (catalog: EditableCatalog) => ReturnType<typeof planAdd>,
): Promise<EditableCatalog> {
  const catalog = await readEditableCatalog(path.join(root, 'catalog'));
  try {
    await applyEdits(catalog, plan(catalog).edits, { temporaryDirectory: root });
  } finally {
    await catalog.catalog.close();
  }
  const after = await readEditableCatalog(path.join(root, 'catalog'));
  await after.catalog.close();
  return after;
}

/** Every bundle from which the head is reached: told anew, by asking again until nothing is added. */
function waysToHead(entries: readonly Entry[], versions: readonly string[]): Set<string> {
  const names = new Set([
    ...versions.map(nameOf),
    ...entries.flatMap(({ replaces, skips = [] }) => [replaces ?? '', ...skips]),
  ]);
  const isNamed = (name: string): boolean =>
    entries.some(({ replaces, skips }) => replaces === name || skips?.includes(name) === true);
  const found = new Set(entries.map(({ name }) => name).filter((name) => !isNamed(name)));
  for (let before = -1; before !== found.size;) {
    before = found.size;
    for (const { name, replaces, skips, skipRange = '' } of entries) {
      if (!found.has(name)) continue;
      for (const one of names) {
        const isNamedHere = replaces === one || skips?.includes(one) === true;
        const version = versions.find((candidate) => nameOf(candidate) === one);
        if (isNamedHere || (version !== undefined && skipRange !== '' && isInRange(version, skipRange)))
          found.add(one);
      }
    }
  }
  found.delete('');
  return found;
}

/** Ranges of these tests are `<1.2.3`, or several with `||` between them. */
function isInRange(version: string, range: string): boolean {
  const number = (text: string): number => text.split('.').reduce((sum, part) => sum * 100 + Number(part), 0);
  return range.split('||').some((part) => number(version) < number(part.trim().slice(1)));
}

const modes = fc.constantFrom<AddMode>('replaces', 'semver', 'semver-skippatch');

describe('edits of random catalogs', () => {
  it('give back the same bytes when a head is added and removed again', async () => {
    const root = await directoryWith();
    await fc.assert(
      fc.asyncProperty(
        randomPackage,
        styles,
        modes,
        fc.boolean(),
        async ({ blobs, channels }, style, mode, isNew) => {
          const files = filesOf(blobs, style);
          await fill(path.join(root, 'catalog'), files);
          const wanted = isNew ? ['stable', 'brand-new'] : ['stable'];
          const head = readGraph(
            (channels.get('stable') as Entry[]).map((entry) => ({
              replaces: '',
              skips: [],
              skipRange: '',
              ...entry,
            })),
          ).heads[0] as string;
          // Its major is higher, so that no patch is skipped.
          const bundle = newBundle('2.0.0');
          const replaces = mode === 'replaces' && !isNew ? head : undefined;
          const sane = {
            mode: isNew && mode === 'replaces' ? 'semver' : mode,
            channels: wanted,
            replaces,
          } as const;
          const added = await edit(root, (catalog) => planAdd(catalog, [bundle], sane));
          const stable = added.facts.channels.find(({ name }) => name === 'stable');
          expect(readGraph(stable?.entries ?? []).heads).toEqual(['widget.v2.0.0']);
          await edit(root, (catalog) =>
            planRemove(catalog, { package: 'widget', bundles: ['widget.v2.0.0'] }),
          );
          expect(await contentOf(path.join(root, 'catalog'))).toEqual(files);
        },
      ),
      { numRuns: 40, endOnFailure: true },
    );
  });

  it('stay valid when bundles come by version, in the order of versions, and the rest stays byte for byte', async () => {
    const root = await directoryWith();
    await fc.assert(
      fc.asyncProperty(
        randomPackage,
        styles,
        fc.constantFrom<AddMode>('semver', 'semver-skippatch'),
        fc.uniqueArray(fc.integer({ min: 0, max: 29 }), { minLength: 1, maxLength: 4 }),
        async ({ blobs, versions }, style, mode, numbers) => {
          const fresh = numbers
            .map((n) => `1.${Math.floor(n / 3)}.${n % 3}`)
            .filter((version) => !versions.includes(version));
          fc.pre(fresh.length > 0);
          const files = filesOf(blobs, style);
          await fill(path.join(root, 'catalog'), files);
          let after: EditableCatalog;
          try {
            after = await edit(root, (catalog) =>
              planAdd(
                catalog,
                fresh.map((one) => newBundle(one)),
                { mode },
              ),
            );
          } catch (error) {
            // Not every random line goes by version where the bundle belongs; then nothing has changed.
            expect(String(error)).toMatch(/Invalid graph/);
            expect(await contentOf(path.join(root, 'catalog'))).toEqual(files);
            return;
          }
          expect(validateCatalog(after.facts).passed).toBe(true);
          const stable = after.facts.channels.find(({ name }) => name === 'stable')?.entries ?? [];
          for (const version of fresh) expect(stable.map(({ name }) => name)).toContain(nameOf(version));
          const text = Object.values(await contentOf(path.join(root, 'catalog'))).join('');
          const untouched = Object.values(filesOf(blobs, style))
            .join('')
            .split(style.startsWith('json') ? /^(?=\{)/m : /^---\n/m)
            .filter((blob) => !/name"?: ?"?stable/.test(blob));
          for (const blob of untouched) if (style !== 'files') expect(text).toContain(blob.trimEnd());
        },
      ),
      { numRuns: 40, endOnFailure: true },
    );
  });

  it('stay valid when bundles or channels are removed, and nobody who had a way is left unlisted', async () => {
    const root = await directoryWith();
    await fc.assert(
      fc.asyncProperty(
        randomPackage,
        styles,
        fc.array(fc.nat(), { minLength: 1, maxLength: 3 }),
        fc.boolean(),
        async ({ blobs, versions, channels }, style, picks, isChannel) => {
          await fill(path.join(root, 'catalog'), filesOf(blobs, style));
          const pick = (list: readonly string[]): string[] => [
            ...new Set(picks.map((at) => list[at % list.length] as string)),
          ];
          const removal = isChannel
            ? { channels: pick([...channels.keys()].filter((name) => name !== 'stable')) }
            : { bundles: pick(versions.map(nameOf)) };
          fc.pre(removal.channels?.[0] !== undefined || removal.bundles !== undefined);
          const gone = new Set(removal.bundles);
          let orphans: Orphans[] = [];
          const after = await edit(root, (catalog) => {
            const plan = planRemove(catalog, { package: 'widget', ...removal });
            ({ orphans } = plan);
            return plan;
          });
          const left = new Map(
            after.facts.channels.map((one) => [one.name, waysToHead(one.entries, versions)]),
          );
          for (const [name, entries] of channels) {
            const has = left.get(name) ?? new Set([...left.values()].flatMap((ways) => [...ways]));
            const lost = [...waysToHead(entries, versions)].filter((one) => !has.has(one)).sort();
            expect(orphans.find(({ channel }) => channel === name)?.bundles ?? []).toEqual(lost);
          }
          if (gone.size === versions.length) {
            expect(await contentOf(path.join(root, 'catalog'))).toEqual({});
            return;
          }
          expect(validateCatalog(after.facts).passed).toBe(true);
          expect(after.facts.bundles.filter(({ name }) => gone.has(name))).toEqual([]);
          const kept = versions.map(nameOf).filter((name) => !gone.has(name));
          expect(after.facts.bundles.map(({ name }) => name)).toEqual(kept);
          expect(
            after.files.flatMap((file) => file.blobs).some(({ schema }) => schema === 'example.note'),
          ).toBe(true);
        },
      ),
      { numRuns: 40, endOnFailure: true },
    );
  });

  it('give back the same bytes when a deprecation is written and taken back', async () => {
    const root = await directoryWith();
    const messages = fc.string({ minLength: 1, maxLength: 200 }).filter((text) => text.trim() !== '');
    await fc.assert(
      fc.asyncProperty(
        randomPackage,
        styles,
        messages,
        messages,
        async ({ blobs, versions }, style, first, second) => {
          const files = filesOf(blobs, style);
          await fill(path.join(root, 'catalog'), files);
          const bundle = nameOf(versions[0] as string);
          const deprecate = (more: object, message: string | undefined): Promise<EditableCatalog> =>
            edit(root, (catalog) => planDeprecate(catalog, { package: 'widget', ...more, message }));
          await deprecate({ bundle }, first);
          const whole = await deprecate({}, second);
          expect(whole.facts.deprecations[0]?.entries).toEqual([
            { reference: { schema: 'olm.bundle', name: bundle }, message: first },
            { reference: { schema: 'olm.package', name: '' }, message: second },
          ]);
          const one = await contentOf(path.join(root, 'catalog'));
          await deprecate({ bundle }, second);
          await deprecate({ bundle }, first);
          expect(await contentOf(path.join(root, 'catalog'))).toEqual(one);
          await deprecate({}, undefined);
          await deprecate({ bundle }, undefined);
          expect(await contentOf(path.join(root, 'catalog'))).toEqual(files);
        },
      ),
      { numRuns: 20, endOnFailure: true },
    );
  });

  it('are the same for the same catalog', async () => {
    const root = await directoryWith();
    const [{ blobs }] = fc.sample(randomPackage, { numRuns: 1, seed: 7 }) as [RandomPackage];
    const results: unknown[] = [];
    for (let round = 0; round < 2; round++) {
      await fill(path.join(root, 'catalog'), filesOf(blobs, 'yaml'));
      await edit(root, (catalog) =>
        planAdd(catalog, [newBundle('3.1.0'), newBundle('3.0.0')], { mode: 'semver' }),
      );
      await cp(path.join(root, 'catalog'), path.join(root, String(round)), { recursive: true });
      results.push(await contentOf(path.join(root, String(round))));
    }
    expect(results[0]).toEqual(results[1]);
  });
});
