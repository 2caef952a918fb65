import type { GraphRow, UpgradePath } from '../../responses.js';
import type { Loaded } from '../requests.js';
import { Choice, formatCount } from '../parts.js';
import { type PackageRoute, getUrl, go } from '../route.js';

const collator = new Intl.Collator('en', { numeric: true });

/** Compares versions: numbers by value, prereleases before their release. */
function compareVersions(a: string, b: string): number {
  const [[release, prerelease], [other, otherPrerelease]] = [splitVersion(a), splitVersion(b)];
  const order = collator.compare(release, other);
  if (order !== 0 || prerelease === otherPrerelease) return order;
  if (prerelease === '' || otherPrerelease === '') return prerelease === '' ? 1 : -1;
  return collator.compare(prerelease, otherPrerelease);
}

function splitVersion(version: string): [release: string, prerelease: string] {
  const dash = version.indexOf('-');
  return dash === -1 ? [version, ''] : [version.slice(0, dash), version.slice(dash + 1)];
}

/** Form for the ends of an upgrade path, with its steps. */
export function PathBar(props: {
  route: PackageRoute;
  rows: readonly GraphRow[];
  path: Loaded<UpgradePath>;
}) {
  const { route, rows, path } = props;
  const { from, to } = route;
  const isOpen = from !== '' || to !== '';
  // Rows follow the lanes of the graph; lists of versions are newest first.
  const options = rows
    .filter(({ marks }) => !marks.includes('removed'))
    .map(({ name, version }) => ({ value: name, label: version || name }))
    .sort((a, b) => compareVersions(b.label, a.label));
  return (
    <details class="path" open={isOpen}>
      <summary>Upgrade path</summary>
      <div class="filters" role="group" aria-label="Upgrade path">
        <Choice
          label="From"
          all="–"
          options={options}
          value={from}
          onChange={(value) => go({ ...route, from: value, to: to || (options[0]?.value ?? '') }, 'replace')}
        />
        <Choice
          label="To"
          all="–"
          options={options}
          value={to}
          onChange={(value) => go({ ...route, to: value }, 'replace')}
        />
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

function Steps({ route, path: { value, error } }: { route: PackageRoute; path: Loaded<UpgradePath> }) {
  if (error !== undefined) return <p class="note error">{error}</p>;
  if (value === undefined) return null;
  const { steps, longest } = value;
  if (steps === undefined) {
    return (
      <p class="note warning" role="status">
        No upgrade leads from <bdi>{value.from}</bdi> to <bdi>{value.to}</bdi> in these channels.
      </p>
    );
  }
  return (
    <>
      <p class="sums" role="status">
        {steps.length === 0 ? 'Already installed.' : formatCount(steps.length, 'upgrade')}
        {longest !== undefined && longest > steps.length && ` · ${longest} through every version`}
      </p>
      <ol class="steps">
        {steps.map((step) => (
          <li key={step.to}>
            <a href={getUrl({ ...route, bundle: step.to })}>{step.version || step.to}</a>{' '}
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
