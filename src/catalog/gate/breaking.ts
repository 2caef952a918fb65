import { type BreakingChange, findBreakingChanges } from '../diff/breaking.js';
import { GateReport, type GateVerdict, findUncomparable } from './gate.js';
import type { GateContent } from './gate-content.js';
import { type AllowedChange, type GateProfile, isPrunable } from './gate-profile.js';

/** Checks that a fragment breaks no cluster that uses the index; the profile allows changes until they expire. */
export function checkBreaking(
  fragment: GateContent,
  index: GateContent,
  profile: GateProfile,
  now: Date,
): GateVerdict {
  const report = new GateReport('breaking').addAll(findUncomparable(fragment));
  const packages = new Set(fragment.facts.packages.map(({ name }) => name));
  const changes = findBreakingChanges(index.facts, fragment.facts, packages);
  for (const change of allowChanges(changes, profile, now))
    if (change.code !== 'channel-removed' || !isPrunable(change.channel ?? '', profile)) report.add(change);
  return report.verdict(1);
}

/** Returns breaking changes, of which those that a profile allows are notices with the reason, until they expire. */
export function allowChanges(
  changes: readonly BreakingChange[],
  { allowed }: Pick<GateProfile, 'allowed'>,
  now: Date,
): BreakingChange[] {
  return changes.map((change): BreakingChange => {
    const matches = allowed.filter((item) => isMatch(item, change));
    const [match = matches[0]] = matches.filter(({ expires }) => Date.parse(expires) > now.getTime());
    if (match === undefined) return change;
    if (Date.parse(match.expires) > now.getTime())
      return {
        ...change,
        severity: 'notice',
        hint: `see the reason: ${match.reason} (allowed until ${match.expires})`,
      };
    return { ...change, hint: `${change.hint}; the allowed change expired on ${match.expires}` };
  });
}

function isMatch(item: AllowedChange, change: BreakingChange): boolean {
  return (['code', 'package', 'channel', 'bundle'] as const).every(
    (key) => item[key] === undefined || item[key] === change[key],
  );
}
