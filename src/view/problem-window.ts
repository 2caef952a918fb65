import { severities } from '../core/diagnostic.js';
import { groupBy } from '../core/groups.js';
import { compareBytes } from '../core/order.js';
import type { LocatedProblem, ProblemWindow } from './responses.js';

/** Maximum problems of a response. */
const maxProblems = 50;

/** Filter of problems; an empty text matches all. */
export interface ProblemFilter {
  /** Index of the first problem of the window. */
  from: number;
  package: string;
  severity: string;
  check: string;
}

type ProblemKeys = Pick<LocatedProblem, 'severity' | 'check' | 'package'>;

/** Orders by severity, most severe first. */
export function compareSeverity(a: Pick<ProblemKeys, 'severity'>, b: Pick<ProblemKeys, 'severity'>): number {
  return severities.indexOf(a.severity) - severities.indexOf(b.severity);
}

/** Returns the first problems of a package or bundle, most severe first. */
export function selectFirst<P extends Pick<ProblemKeys, 'severity'>>(problems: readonly P[]): P[] {
  return [...problems].sort(compareSeverity).slice(0, maxProblems);
}

/** Returns a window of the matching problems, most severe first, and the choices of each filter. */
export function selectProblems<T>(
  all: readonly T[],
  { from, package: name, severity, check }: ProblemFilter,
  getKeys: (problem: T) => ProblemKeys,
): Omit<ProblemWindow, 'problems'> & { window: T[] } {
  const items = all.map((problem) => ({ problem, ...getKeys(problem) }));
  const ofAllChecks = items.filter(
    (item) => (name === '' || item.package === name) && (severity === '' || item.severity === severity),
  );
  const selected = ofAllChecks.filter((item) => check === '' || item.check === check).sort(compareSeverity);
  return {
    window: selected.slice(from, from + maxProblems).map(({ problem }) => problem),
    total: selected.length,
    severities: [...groupBy(selected, (item) => item.severity)].map(([level, problems]) => ({
      severity: level,
      count: problems.length,
    })),
    packages: [...new Set(items.map((item) => item.package))]
      .filter((text) => text !== '')
      .sort(compareBytes),
    checks: [...groupBy(ofAllChecks, (item) => item.check)]
      .map(([text, problems]) => ({ name: text, count: problems.length }))
      .sort((a, b) => b.count - a.count || compareBytes(a.name, b.name)),
  };
}
