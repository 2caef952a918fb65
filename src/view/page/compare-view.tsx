import { useState } from 'preact/hooks';
import type { CatalogComparison, ComparedPackage, PackageDifferences, Difference } from '../answers.js';
import { requestPath, useAnswer } from './requests.js';
import { Badge, PageHeading, Waiting } from './parts.js';
import { getAddress, addressOfPackage } from './route.js';

/** Differences and details that are shown before one asks for more. */
const firstDifferences = 100;
const firstDetails = 12;

/** What differs between two catalogs: sums, then package by package. */
export function CompareView({ package: name }: { package: string }) {
  const { value, error } = useAnswer<CatalogComparison>('api/compare');
  if (value === undefined) return <Waiting error={error} />;
  const { from, to, sums, packages } = value;
  const isSame = sums.every(({ added, removed, changed }) => added + removed + changed === 0);
  return (
    <>
      <div class="heading">
        <PageHeading title="Compare" />
        <p class="sums">
          from <code>{from}</code> to <code>{to}</code>
        </p>
      </div>
      {isSame ? (
        <p class="note good">No difference between the catalogs.</p>
      ) : (
        <>
          <table class="sums-table">
            <caption class="unseen">How many of what differ</caption>
            <thead>
              <tr>
                <th scope="col">What</th>
                <th scope="col">Added</th>
                <th scope="col">Removed</th>
                <th scope="col">Changed</th>
              </tr>
            </thead>
            <tbody>
              {sums.map(({ kind, added, removed, changed }) => (
                <tr key={kind}>
                  <th scope="row">{kind}</th>
                  <Amount sign="added" amount={added} />
                  <Amount sign="removed" amount={removed} />
                  <Amount sign="changed" amount={changed} />
                </tr>
              ))}
            </tbody>
          </table>
          <h2>By package</h2>
          <ul class="compared">
            {packages.map((comparedPackage) => (
              <ComparedItem
                key={comparedPackage.package}
                compared={comparedPackage}
                isOpen={comparedPackage.package === name || packages.length === 1}
              />
            ))}
          </ul>
        </>
      )}
    </>
  );
}

const signs = { added: '+', removed: '−', changed: '~' } as const;

function Amount({ sign, amount }: { sign: Difference['sign']; amount: number }) {
  if (amount === 0) return <td class="none">–</td>;
  return (
    <td class={sign}>
      {signs[sign]}
      {amount.toLocaleString('en')}
    </td>
  );
}

function ComparedItem({ compared, isOpen: isOpenFirst }: { compared: ComparedPackage; isOpen: boolean }) {
  const [isOpen, setOpen] = useState(isOpenFirst);
  const { package: name, state } = compared;
  return (
    <li>
      <details open={isOpenFirst} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <strong>{name || 'of no package'}</strong>
          {state !== 'changed' && (
            <Badge kind={state}>{state === 'added' ? 'new package' : 'package removed'}</Badge>
          )}
          <span class="amounts">
            {(['added', 'removed', 'changed'] as const)
              .filter((sign) => compared[sign] > 0)
              .map((sign) => (
                <span key={sign} class={sign}>
                  {signs[sign]}
                  {compared[sign].toLocaleString('en')} <span class="unseen">{sign}</span>
                </span>
              ))}
          </span>
        </summary>
        {isOpen && <Differences package={name} isHere={state !== 'removed' && name !== ''} />}
      </details>
    </li>
  );
}

function Differences({ package: name, isHere }: { package: string; isHere: boolean }) {
  const { value, error } = useAnswer<PackageDifferences>(requestPath('compare/package', { package: name }));
  const [limit, setLimit] = useState(firstDifferences);
  if (value === undefined) return <Waiting error={error} />;
  const { differences } = value;
  return (
    <>
      {isHere && (
        <p class="links">
          <a href={addressOfPackage(name)}>
            Upgrade graph of <bdi>{name}</bdi>
          </a>
          <a href={getAddress({ view: 'compare', package: name })}>Link to this</a>
        </p>
      )}
      <ul class="differences">
        {differences.slice(0, limit).map((item, index) => (
          <DifferenceItem key={index} package={name} difference={item} />
        ))}
      </ul>
      {differences.length > limit && (
        <button type="button" class="more" onClick={() => setLimit(limit * 5)}>
          Show more ({limit} of {differences.length.toLocaleString('en')})
        </button>
      )}
    </>
  );
}

function DifferenceItem({ package: packageName, difference }: { package: string; difference: Difference }) {
  const [isWhole, setWhole] = useState(false);
  const { sign, kind, name, details } = difference;
  const target =
    sign === 'removed' || (kind !== 'channel' && kind !== 'bundle')
      ? undefined
      : kind === 'channel'
        ? addressOfPackage(packageName, name)
        : addressOfPackage(packageName, '', name);
  const shown = isWhole ? details : details.slice(0, firstDetails);
  return (
    <li class={sign}>
      <p>
        <span class="sign" aria-hidden="true">
          {signs[sign]}
        </span>
        <span class="unseen">{sign} </span>
        <span class="kind">{kind}</span> {target === undefined ? <b>{name}</b> : <a href={target}>{name}</a>}
      </p>
      {shown.length > 0 && (
        <ul>
          {shown.map((text, index) => (
            <li key={index}>{text}</li>
          ))}
        </ul>
      )}
      {details.length > shown.length && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          {details.length - shown.length} more
        </button>
      )}
    </li>
  );
}
