import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { JsonObject } from '../../../src/document/json.js';
import type { ChannelEntry } from '../../../src/model/declarative-config.js';
import { decodeBundle, decodeChannel, decodeDeprecations, decodePackage } from '../../../src/model/decode.js';
import {
  describeBundle,
  describeChannel,
  describeDeprecations,
  describePackage,
} from '../../../src/model/describe.js';
import type { CatalogFacts } from '../../../src/model/facts.js';

/** The path of a file under fixtures/. */
export function fixture(path: string): string {
  return fileURLToPath(new URL(`../../../fixtures/${path}`, import.meta.url));
}

/** The facts of a catalog given as blobs; each blob's origin is its index. */
export function factsOf(blobs: readonly object[]): CatalogFacts {
  const facts: CatalogFacts = { packages: [], channels: [], bundles: [], deprecations: [] };
  for (const [offset, item] of blobs.entries()) {
    const blob = item as JsonObject;
    const origin = { file: 'catalog.json', offset, length: 1, syntax: 'json' } as const;
    const schema = Object.entries(blob).find(([key]) => key.toLowerCase() === 'schema')?.[1];
    if (schema === 'olm.package') facts.packages.push(describePackage(decodePackage(blob), origin));
    if (schema === 'olm.channel') facts.channels.push(describeChannel(decodeChannel(blob), origin));
    if (schema === 'olm.bundle') facts.bundles.push(describeBundle(decodeBundle(blob), origin));
    if (schema === 'olm.deprecations')
      facts.deprecations.push(describeDeprecations(decodeDeprecations(blob), origin));
  }
  return facts;
}

/** The facts of a fixture with one blob a line. */
export function readFacts(path: string): CatalogFacts {
  const lines = readFileSync(fixture(path), 'utf8').split('\n').filter(Boolean);
  return factsOf(lines.map((line) => JSON.parse(line) as object));
}

/** An entry with what is not given left empty. */
export function entry(name: string, rest: Partial<ChannelEntry> = {}): ChannelEntry {
  return { name, replaces: '', skips: [], skipRange: '', ...rest };
}

/** An `olm.bundle` blob of package `p`, version taken from what follows `v` in its name. */
export function bundle(name: string, version = name.replace(/^.*v/, ''), rest: object = {}): object {
  const property = { type: 'olm.package', value: { packageName: 'p', version } };
  return { schema: 'olm.bundle', package: 'p', name, image: 'x.test/p:1', properties: [property], ...rest };
}

/** A catalog of package `p` with one channel `c`, and a bundle for each entry. */
export function catalog(entries: readonly Partial<ChannelEntry>[]): object[] {
  return [
    { schema: 'olm.package', name: 'p', defaultChannel: 'c' },
    { schema: 'olm.channel', package: 'p', name: 'c', entries },
    ...entries.map(({ name = '' }) => bundle(name)),
  ];
}
