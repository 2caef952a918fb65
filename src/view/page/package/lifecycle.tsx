import type { LifecycleSupport } from '../../responses.js';
import { Badge, Fold, TableHead } from '../parts.js';

type Phase = LifecycleSupport['phases'][number];

/** Support phases and platforms of the minor versions of a package. */
export function LifecycleFold({ lifecycle }: { lifecycle: LifecycleSupport[] }) {
  if (lifecycle.length === 0) return null;
  const today = getToday();
  return (
    <Fold title="Lifecycle" amount={lifecycle.length}>
      <div class="table-box" tabIndex={0} role="region" aria-label="Lifecycle of the versions">
        <table>
          <TableHead columns={['Version', 'Phases', 'Platforms']} />
          <tbody>
            {lifecycle.map(({ version, phases, platforms }, index) => (
              <tr key={index}>
                <th scope="row" class="version">
                  {version}
                </th>
                <td>
                  <ul>
                    {phases.map((phase, place) => (
                      <li key={place}>
                        {phase.name} <span class="id">{getDates(phase)}</span>{' '}
                        {isCurrent(phase, today) && <Badge kind="head">now</Badge>}
                      </li>
                    ))}
                  </ul>
                  {hasEnded(phases, today) && <Badge kind="warning">all phases have ended</Badge>}
                </td>
                <td>
                  {platforms.map(({ name, versions }, place) => (
                    <p key={place}>
                      {name} {versions.join(', ')}
                    </p>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Fold>
  );
}

/** Current support phase of a bundle, if its package has a lifecycle. */
export function SupportLine({ lifecycle, version }: { lifecycle: LifecycleSupport[]; version: string }) {
  const [, minor] = /^(\d+\.\d+)\./.exec(version) ?? [];
  const support = lifecycle.find((item) => item.version === minor);
  if (support === undefined) return null;
  const today = getToday();
  const phase = support.phases.find((item) => isCurrent(item, today));
  return (
    <p class="sums">
      <span>Support of {support.version}:</span>
      {phase === undefined ? (
        <Badge kind="warning">
          {hasEnded(support.phases, today) ? 'all phases have ended' : 'no phase today'}
        </Badge>
      ) : (
        <span>
          {phase.name}
          {phase.endDate !== undefined && ` until ${phase.endDate}`}
        </span>
      )}
    </p>
  );
}

function getDates({ startDate, endDate }: Phase): string {
  if (startDate === undefined && endDate === undefined) return '';
  return `${startDate ?? '…'} – ${endDate ?? '…'}`;
}

function isCurrent({ startDate = '', endDate }: Phase, today: string): boolean {
  if (startDate === '' && endDate === undefined) return false;
  return startDate <= today && (endDate === undefined || today <= endDate);
}

function hasEnded(phases: readonly Phase[], today: string): boolean {
  return phases.length > 0 && phases.every(({ endDate }) => endDate !== undefined && endDate < today);
}

function getToday(): string {
  return new Date().toISOString().slice(0, 10);
}
