import { useState } from 'preact/hooks';
import type { CatalogComparison, ComparedPackage, PackageDifferences, Difference } from '../responses.js';
import { toApiUrl, useResponse } from './requests.js';
import { Badge, Lines, MoreButton, PageHeading, TableHead, Waiting } from './parts.js';
import { getUrl, getPackageUrl } from './route.js';

/** Differences that are shown at first. */
const firstDifferences = 100;

/** Differences between two catalogs: totals, then by package. */
export function CompareView({ package: name }: { package: string }) {
  const { value, error } = useResponse<CatalogComparison>('api/compare');
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
            <caption class="unseen">Number of differences</caption>
            <TableHead columns={['Kind', 'Added', 'Removed', 'Changed']} />
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
          <strong>{name || 'without a package'}</strong>
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
        {isOpen && <Differences package={name} isPresent={state !== 'removed' && name !== ''} />}
      </details>
    </li>
  );
}

function Differences({ package: name, isPresent }: { package: string; isPresent: boolean }) {
  const { value, error } = useResponse<PackageDifferences>(toApiUrl('compare/package', { package: name }));
  const [limit, setLimit] = useState(firstDifferences);
  if (value === undefined) return <Waiting error={error} />;
  const { differences } = value;
  return (
    <>
      {isPresent && (
        <p class="links">
          <a href={getPackageUrl(name)}>
            Upgrade graph of <bdi>{name}</bdi>
          </a>
          <a href={getUrl({ view: 'compare', package: name })}>Link to this</a>
        </p>
      )}
      <ul class="differences">
        {differences.slice(0, limit).map((item, index) => (
          <DifferenceItem key={index} package={name} difference={item} />
        ))}
      </ul>
      {differences.length > limit && (
        <MoreButton shown={limit} total={differences.length} onClick={() => setLimit(limit * 5)} />
      )}
    </>
  );
}

function DifferenceItem({ package: packageName, difference }: { package: string; difference: Difference }) {
  const { sign, kind, name, details } = difference;
  const urls: Partial<Record<Difference['kind'], string>> = {
    channel: getPackageUrl(packageName, name),
    bundle: getPackageUrl(packageName, '', name),
  };
  const url = sign === 'removed' ? undefined : urls[kind];
  return (
    <li class={sign}>
      <p>
        <span class="sign" aria-hidden="true">
          {signs[sign]}
        </span>
        <span class="unseen">{sign} </span>
        <span class="kind">{kind}</span> {url === undefined ? <b>{name}</b> : <a href={url}>{name}</a>}
      </p>
      {details.length > 0 && <Lines lines={details} />}
    </li>
  );
}
