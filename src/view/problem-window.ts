import { severities } from '../core/diagnostic.js';
import { groupBy } from '../core/groups.js';
import { compareBytes } from '../core/order.js';
import type { LocatedProblem, ProblemWindow } from './answers.js';

/** Problems that one answer has. */
const windowLength = 50;

/** What problems are narrowed to; empty texts for all. */
export interface ProblemFilter {
  /** Place of the first one among those that are left. */
  from: number;
  package: string;
  severity: string;
  check: string;
}

type Described = Pick<LocatedProblem, 'severity' | 'check' | 'package'>;

/** Orders the worst first, and keeps the order of those that are as bad as each other. */
export function compareSeverity(a: Pick<Described, 'severity'>, b: Pick<Described, 'severity'>): number {
  return severities.indexOf(a.severity) - severities.indexOf(b.severity);
}

/** Returns a window on problems, the worst first, and what they may be narrowed to. */
export function selectProblems<T>(
  all: readonly T[],
  { from, package: name, severity, check }: ProblemFilter,
  describe: (problem: T) => Described,
): Omit<ProblemWindow, 'problems'> & { window: T[] } {
  const described = all.map((problem) => ({ problem, ...describe(problem) }));
  const ofAllChecks = described.filter(
    (item) => (name === '' || item.package === name) && (severity === '' || item.severity === severity),
  );
  const selected = ofAllChecks.filter((item) => check === '' || item.check === check).sort(compareSeverity);
  return {
    window: selected.slice(from, from + windowLength).map(({ problem }) => problem),
    total: selected.length,
    severities: [...groupBy(selected, (item) => item.severity)].map(([level, problems]) => ({
      severity: level,
      count: problems.length,
    })),
    packages: [...new Set(described.map((item) => item.package))]
      .filter((text) => text !== '')
      .sort(compareBytes),
    checks: [...groupBy(ofAllChecks, (item) => item.check)]
      .map(([text, problems]) => ({ name: text, count: problems.length }))
      .sort((a, b) => b.count - a.count || compareBytes(a.name, b.name)),
  };
}
