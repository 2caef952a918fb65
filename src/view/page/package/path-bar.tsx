import type { GraphRow, UpgradePath } from '../../answers.js';
import type { Loaded } from '../requests.js';
import { count } from '../parts.js';
import { type Route, getAddress, go } from '../route.js';

/** Chooses the ends of an update path, and shows its steps. */
export function PathBar({
  route,
  rows,
  path,
}: {
  route: Extract<Route, { view: 'package' }>;
  rows: readonly GraphRow[];
  path: Loaded<UpgradePath>;
}) {
  const { from, to } = route;
  const isOpen = from !== '' || to !== '';
  const choices = rows.filter(({ marks }) => !marks.includes('removed'));
  const select = (label: string, value: string, onChange: (value: string) => void) => (
    <label class="filter">
      {label}{' '}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">–</option>
        {value !== '' && choices.every(({ name }) => name !== value) && (
          <option value={value}>{value}</option>
        )}
        {choices.map(({ name, version }) => (
          <option key={name} value={name}>
            {version || name}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <details class="path" open={isOpen}>
      <summary>Update path</summary>
      <div class="filters" role="group" aria-label="Update path">
        {select('From', from, (value) =>
          go({ ...route, from: value, to: to || (choices[0]?.name ?? '') }, 'replace'),
        )}
        {select('To', to, (value) => go({ ...route, to: value }, 'replace'))}
        {isOpen && (
          <button type="button" class="quiet" onClick={() => go({ ...route, from: '', to: '' }, 'replace')}>
            Clear
          </button>
        )}
      </div>
      {from !== '' && to !== '' && <Steps route={route} path={path} />}
    </details>
  );
}

function Steps({
  route,
  path: { value, error },
}: {
  route: Extract<Route, { view: 'package' }>;
  path: Loaded<UpgradePath>;
}) {
  if (error !== undefined) return <p class="note error">{error}</p>;
  if (value === undefined) return null;
  const { steps, longest } = value;
  if (steps === undefined) {
    return (
      <p class="note warning" role="status">
        No update leads from <bdi>{value.from}</bdi> to <bdi>{value.to}</bdi> in these channels.
      </p>
    );
  }
  return (
    <>
      <p class="sums" role="status">
        {steps.length === 0 ? 'It is installed already.' : count(steps.length, 'update')}
        {longest !== undefined && longest > steps.length && ` · ${longest} through every version`}
      </p>
      <ol class="steps">
        {steps.map((step) => (
          <li key={step.to}>
            <a href={getAddress({ ...route, bundle: step.to })}>{step.version || step.to}</a>{' '}
            <small>
              {step.kind === 'skipRange' ? (
                <>
                  skip range <code>{step.range}</code> has <bdi>{step.from}</bdi>
                </>
              ) : (
                <>
                  {step.kind} <bdi>{step.from}</bdi>
                </>
              )}
              , channel <bdi>{step.channel}</bdi>
            </small>
          </li>
        ))}
      </ol>
    </>
  );
}
