import { useEffect, useState } from 'preact/hooks';
import type { LocatedProblem, ProblemWindow } from '../responses.js';
import { toApiUrl, useResponse } from './requests.js';
import { Choice, MoreButton, PageHeading, ProblemList, Waiting, formatCount } from './parts.js';
import { type ProblemsRoute, go } from './route.js';

/** Findings of all checks, with filters. */
export function ProblemsView({ route, isChecking }: { route: ProblemsRoute; isChecking: boolean }) {
  const { window, error, problems, showMore } = useProblems(route, isChecking);
  return (
    <>
      <div class="heading">
        <PageHeading title="Problems" />
        <p class="sums" role="status">
          {window?.severities.map((item) => formatCount(item.count, item.severity)).join(' · ')}
          {isChecking && ' · more checks are running'}
        </p>
        <ProblemFilters route={route} window={window} />
      </div>
      <ProblemList problems={problems} showPackage />
      {window === undefined ? (
        <Waiting error={error} />
      ) : window.total === 0 ? (
        <p class="note good">No problems found.</p>
      ) : (
        problems.length < window.total &&
        problems.length > 0 && <MoreButton shown={problems.length} total={window.total} onClick={showMore} />
      )}
    </>
  );
}

/** Requests the problems that match the filters, one window after the other; the list grows with each. */
function useProblems(
  { package: name, severity, check }: ProblemsRoute,
  isChecking: boolean,
): {
  window: ProblemWindow | undefined;
  error: string | undefined;
  problems: LocatedProblem[];
  showMore: () => void;
} {
  const [shown, setShown] = useState<{ filter: string; problems: LocatedProblem[] }>({
    filter: '',
    problems: [],
  });
  const [from, setFrom] = useState(0);
  const filter = `${name}\0${severity}\0${check}\0${isChecking}`;
  useEffect(() => setFrom(0), [filter]);
  const { value, error } = useResponse<ProblemWindow>(
    toApiUrl('problems', { from: String(from), package: name, severity, check }),
  );
  useEffect(() => {
    if (value === undefined) return;
    setShown((before) => ({
      filter,
      problems: [...(before.filter === filter ? before.problems.slice(0, from) : []), ...value.problems],
    }));
  }, [value, filter, from]);
  const problems = shown.filter === filter ? shown.problems : [];
  return { window: value, error, problems, showMore: () => setFrom(problems.length) };
}

/** Choices of severity, check and package. */
function ProblemFilters({ route, window }: { route: ProblemsRoute; window: ProblemWindow | undefined }) {
  const { checks = [], packages = [] } = window ?? {};
  const change = (next: Partial<ProblemsRoute>): void => go({ ...route, ...next }, 'replace');
  return (
    <>
      <Choice
        label="Severity"
        all="all"
        options={['error', 'warning', 'notice'].map((value) => ({ value, label: `${value}s` }))}
        value={route.severity}
        onChange={(severity) => change({ severity })}
      />
      <Choice
        label="Check"
        all="all"
        options={checks.map((item) => ({
          value: item.name,
          label: `${item.name} (${item.count.toLocaleString('en')})`,
        }))}
        value={route.check}
        onChange={(check) => change({ check })}
      />
      <Choice
        label="Package"
        all="all"
        options={packages.map((text) => ({ value: text, label: text }))}
        value={route.package}
        onChange={(name) => change({ package: name })}
      />
    </>
  );
}
