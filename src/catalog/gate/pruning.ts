import { createFault } from '../../core/diagnostic.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { groupBy } from '../../core/groups.js';
import type { ChannelFacts } from '../../model/facts.js';
import { GateReport, type GateVerdict, findUncomparable } from './gate.js';
import type { GateContent } from './gate-content.js';
import { type GateProfile, isPrunable } from './gate-profile.js';

/**
 * Checks that a fragment keeps the channels and entries that an index has for its packages, as the task
 * `fbc-target-index-pruning-check` does, with whole names.
 */
export function checkPruning(fragment: GateContent, index: GateContent, profile: GateProfile): GateVerdict {
  const report = new GateReport('pruning').addAll(findUncomparable(fragment));
  const packages = new Set(fragment.facts.packages.map(({ name }) => name));
  const own = groupChannels(fragment);
  for (const [key, entries] of groupChannels(index)) {
    const [packageName = '', channel = ''] = key.split('\0');
    if (!packages.has(packageName) || isPrunable(channel, profile)) continue;
    const kept = own.get(key);
    const place = { package: packageName, channel };
    if (kept === undefined) {
      const problem = `channel ${quoteGo(channel)} of package ${quoteGo(packageName)} is removed`;
      report.add({ ...createFault('channel', problem, { hint: 'keep the channel' }), ...place });
      continue;
    }
    for (const name of entries) {
      if (kept.has(name)) continue;
      const problem = `bundle ${quoteGo(name)} is removed from channel ${quoteGo(channel)} of package ${quoteGo(packageName)}`;
      report.add({
        ...createFault('entry', problem, { hint: 'keep the entry' }),
        ...place,
        bundle: name,
      } as never);
    }
  }
  return report.verdict(1);
}

function groupChannels({ facts }: GateContent): Map<string, Set<string>> {
  const key = (channel: ChannelFacts): string => `${channel.package}\0${channel.name}`;
  const groups = groupBy(facts.channels, key);
  return new Map(
    [...groups].map(([name, channels]) => [
      name,
      new Set(channels.flatMap(({ entries }) => entries.map((entry) => entry.name))),
    ]),
  );
}
