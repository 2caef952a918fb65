import { useEffect, useState } from 'preact/hooks';
import type { LocatedProblem, ProblemWindow } from '../answers.js';
import { requestPath, useAnswer } from './requests.js';
import { PageHeading, ProblemList, Waiting, count } from './parts.js';
import { go } from './route.js';

/** Everything that the checks found, piece by piece. */
export function ProblemsView({
  package: name,
  severity,
  check,
  isChecking,
}: {
  package: string;
  severity: string;
  check: string;
  isChecking: boolean;
}) {
  const [shown, setShown] = useState<{ of: string; problems: LocatedProblem[] }>({ of: '', problems: [] });
  const [from, setFrom] = useState(0);
  const of = `${name}\0${severity}\0${check}\0${isChecking}`;
  useEffect(() => setFrom(0), [of]);
  const { value, error } = useAnswer<ProblemWindow>(
    requestPath('problems', { from: String(from), package: name, severity, check }),
  );
  useEffect(() => {
    if (value === undefined) return;
    setShown((before) => ({
      of,
      problems: [...(before.of === of ? before.problems.slice(0, from) : []), ...value.problems],
    }));
  }, [value, of, from]);
  const problems = shown.of === of ? shown.problems : [];
  const change = (next: { package?: string; severity?: string; check?: string }): void =>
    go({ view: 'problems', package: name, severity, check, ...next }, 'replace');
  return (
    <>
      <div class="heading">
        <PageHeading title="Problems" />
        <p class="sums" role="status">
          {value?.severities.map((item) => count(item.count, item.severity)).join(' · ')}
          {isChecking && ' · more checks are running'}
        </p>
        <label class="filter">
          Severity{' '}
          <select value={severity} onChange={(event) => change({ severity: event.currentTarget.value })}>
            <option value="">all</option>
            <option value="error">errors</option>
            <option value="warning">warnings</option>
            <option value="notice">notices</option>
          </select>
        </label>
        <label class="filter">
          Check{' '}
          <select value={check} onChange={(event) => change({ check: event.currentTarget.value })}>
            <option value="">all</option>
            {getChecks(value, check).map((item) => (
              <option key={item.name} value={item.name}>
                {`${item.name} (${item.count.toLocaleString('en')})`}
              </option>
            ))}
          </select>
        </label>
        <label class="filter">
          Package{' '}
          <select value={name} onChange={(event) => change({ package: event.currentTarget.value })}>
            <option value="">all</option>
            {(value?.packages ?? [name]).filter(Boolean).map((text) => (
              <option key={text} value={text}>
                {text}
              </option>
            ))}
          </select>
        </label>
      </div>
      <ProblemList problems={problems} showPackage />
      {value === undefined ? (
        <Waiting error={error} />
      ) : value.total === 0 ? (
        <p class="note good">No problems found.</p>
      ) : (
        problems.length < value.total &&
        problems.length > 0 && (
          <button type="button" class="more" onClick={() => setFrom(problems.length)}>
            Show more ({problems.length} of {value.total.toLocaleString('en')})
          </button>
        )
      )}
    </>
  );
}

/** The checks to choose from; the chosen one is among them, also where it has found nothing. */
function getChecks(value: ProblemWindow | undefined, check: string): ProblemWindow['checks'] {
  const checks = value?.checks ?? [];
  return check === '' || checks.some(({ name }) => name === check)
    ? checks
    : [...checks, { name: check, count: 0 }];
}
