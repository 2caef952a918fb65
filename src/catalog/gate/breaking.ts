import { findBreakingChanges } from '../diff/breaking.js';
import { GateReport, type GateVerdict, findUncomparable } from './gate.js';
import type { GateContent } from './gate-content.js';
import type { AllowedChange, GateProfile } from './gate-profile.js';

/** Checks that a fragment breaks no cluster that uses the index; the profile allows changes until they expire. */
export function checkBreaking(
  fragment: GateContent,
  index: GateContent,
  { allowed }: GateProfile,
  now: Date,
): GateVerdict {
  const report = new GateReport('breaking').addAll(findUncomparable(fragment));
  const packages = new Set(fragment.facts.packages.map(({ name }) => name));
  for (const change of findBreakingChanges(index.facts, fragment.facts, packages)) {
    const match = allowed.find((item) => isMatch(item, change));
    if (match === undefined) report.add(change);
    else if (Date.parse(match.expires) <= now.getTime()) {
      report.add({
        ...change,
        hint: `remove it from the allowed changes, where it expired on ${match.expires}`,
      });
    } else report.add({ ...change, severity: 'notice', hint: `see the reason: ${match.reason}` });
  }
  return report.verdict(1);
}

function isMatch(
  item: AllowedChange,
  change: {
    code: string;
    package?: string | undefined;
    channel?: string | undefined;
    bundle?: string | undefined;
  },
): boolean {
  return (['code', 'package', 'channel', 'bundle'] as const).every(
    (key) => item[key] === undefined || item[key] === change[key],
  );
}
