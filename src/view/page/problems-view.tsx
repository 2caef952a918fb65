import { useEffect, useState } from 'preact/hooks';
import type { LocatedProblem, ProblemWindow } from '../responses.js';
import { toApiUrl, useResponse } from './requests.js';
import { Choice, MoreButton, PageHeading, ProblemList, Waiting, formatCount } from './parts.js';
import { type ProblemsRoute, go } from './route.js';

/** Findings of all checks, with filters. */
export function ProblemsView(props: { route: ProblemsRoute; isChecking: boolean }) {
  const {
    route: { package: name, severity, check },
    isChecking,
  } = props;
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
  const change = (next: Partial<ProblemsRoute>): void =>
    go({ view: 'problems', package: name, severity, check, ...next }, 'replace');
  const { checks = [], packages = [] } = value ?? {};
  return (
    <>
      <div class="heading">
        <PageHeading title="Problems" />
        <p class="sums" role="status">
          {value?.severities.map((item) => formatCount(item.count, item.severity)).join(' · ')}
          {isChecking && ' · more checks are running'}
        </p>
        <Choice
          label="Severity"
          all="all"
          options={['error', 'warning', 'notice'].map((value) => ({ value, label: `${value}s` }))}
          value={severity}
          onChange={(next) => change({ severity: next })}
        />
        <Choice
          label="Check"
          all="all"
          options={checks.map((item) => ({
            value: item.name,
            label: `${item.name} (${item.count.toLocaleString('en')})`,
          }))}
          value={check}
          onChange={(next) => change({ check: next })}
        />
        <Choice
          label="Package"
          all="all"
          options={packages.map((text) => ({ value: text, label: text }))}
          value={name}
          onChange={(next) => change({ package: next })}
        />
      </div>
      <ProblemList problems={problems} showPackage />
      {value === undefined ? (
        <Waiting error={error} />
      ) : value.total === 0 ? (
        <p class="note good">No problems found.</p>
      ) : (
        problems.length < value.total &&
        problems.length > 0 && (
          <MoreButton shown={problems.length} total={value.total} onClick={() => setFrom(problems.length)} />
        )
      )}
    </>
  );
}
