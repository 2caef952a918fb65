/** Channels for tests of what is chosen of them. */
import fc from 'fast-check';
import { type Version, parseRange, parseVersion } from '../../../../src/core/semver.js';
import type { ChannelEntry } from '../../../../src/model/declarative-config.js';

/** An entry as `name replaces skips… <skipRange>`; names are versions without their zeros. */
export function entryOf(text: string): ChannelEntry {
  const [, names = '', skipRange = ''] = /^([^<>]*?) ?(>.*)?$/.exec(text) ?? [];
  const [name = '', replaces = '-', ...skips] = names.split(' ');
  return { name, replaces: replaces === '-' ? '' : replaces, skips, skipRange };
}

export function entriesOf(texts: readonly string[]): ChannelEntry[] {
  return texts.map(entryOf);
}

const versionOf = (name: string): Version => parseVersion(`${name}.0.0`.split('.').slice(0, 3).join('.'));

export function versionsOf(entries: readonly ChannelEntry[]): Map<string, Version> {
  return new Map(entries.map(({ name }) => [name, versionOf(name)]));
}

/** The names from which the head is reached, in the plainest way. */
export function reaching(entries: readonly ChannelEntry[], head: string): Set<string> {
  const found = new Set([head]);
  for (let size = 0; size !== found.size;) {
    size = found.size;
    for (const { name, replaces, skips, skipRange } of entries) {
      if (!found.has(name)) continue;
      for (const other of entries) {
        const isInRange = skipRange !== '' && parseRange(skipRange).contains(versionOf(other.name));
        if (replaces === other.name || skips.includes(other.name) || isInRange) found.add(other.name);
      }
    }
  }
  return found;
}

/** Channels as they may come: a chain, entries beside it that some entry skips, ranges, and names that are nowhere. */
const channels = fc
  .record({
    size: fc.integer({ min: 1, max: 9 }),
    links: fc.array(fc.nat(), { minLength: 60, maxLength: 60 }),
  })
  .map(({ size, links }) => {
    let at = 0;
    const pick = (most: number): number => (links[at++ % links.length] as number) % most;
    const names = Array.from({ length: size }, (_, minor) => `1.${minor}`);
    const nowhere = ['0.1', '0.2', ''];
    const some = (): string => [...names, ...nowhere][pick(size + nowhere.length)] as string;
    return names.map((name): ChannelEntry => {
      const skips = Array.from({ length: pick(3) }, some).filter((one) => one !== '');
      const below = pick(size + 1);
      const skipRange = pick(4) === 0 ? `>=1.${pick(below + 1)}.0 <1.${below}.0` : '';
      return { name, replaces: some(), skips, skipRange };
    });
  });

/** Mostly sound ones: the last entry leads a chain, what is not on it is skipped by a later one. */
const orderly = fc
  .array(fc.record({ onChain: fc.boolean(), by: fc.nat(), also: fc.nat(), range: fc.nat(), to: fc.nat() }), {
    minLength: 1,
    maxLength: 10,
  })
  .map((plan) => {
    const entries = plan.map((_, minor): ChannelEntry => {
      return { name: `1.${minor}`, replaces: '', skips: [], skipRange: '' };
    });
    const last = entries.length - 1;
    let below = '';
    for (const [at, { onChain, by, also, range, to }] of plan.entries()) {
      const entry = entries[at] as ChannelEntry;
      if (onChain || at === last) {
        entry.replaces = below;
        below = entry.name;
      } else {
        entries[at + 1 + (by % (last - at))]?.skips.push(entry.name);
        if (also % 3 > 0) entry.replaces = `1.${also % entries.length}`;
      }
      if (range % 3 === 0) entry.skipRange = `>=1.${range % (at + 1)}.0 <1.${at}.0`;
      if (to % 4 === 0) entry.skips.push(`0.${to % 5}`);
    }
    return entries;
  });

/** Both, with their names. */
export const randomChannels = [
  ['orderly', orderly],
  ['any', channels],
] as const;
