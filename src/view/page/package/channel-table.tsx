import { useState } from 'preact/hooks';
import type { ChannelLayout } from '../../responses.js';
import { MoreButton, TableHead } from '../parts.js';
import { RowMarks } from './marks.js';
import { getPackageUrl } from '../route.js';

/** Rows that are shown at first. */
const firstRows = 200;

/** Bundles of a channel as a table. */
export function ChannelTable({ channel, selected }: { channel: ChannelLayout; selected: string }) {
  const [limit, setLimit] = useState(firstRows);
  const { rows } = channel;
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label={`Table of ${channel.channel}`}>
      <table>
        <caption class="unseen">
          Bundles of <bdi>{channel.channel}</bdi>, newest first
        </caption>
        <TableHead columns={['Version', 'Bundle', 'Replaces', 'Skips', 'Skip range', 'State']} />
        <tbody>
          {rows.slice(0, limit).map((row) => (
            <tr key={row.name} class={row.name === selected ? 'chosen' : undefined}>
              <td class="version">{row.version}</td>
              <th scope="row">
                <a
                  href={getPackageUrl(channel.package, channel.channel, row.name)}
                  {...(row.name === selected && { 'aria-current': 'true' as const })}
                >
                  {row.name}
                </a>
              </th>
              <td>{row.replaces}</td>
              <td class="amount">{row.skips > 0 ? row.skips : ''}</td>
              <td>
                <code>{row.skipRange}</code>
              </td>
              <td>
                <RowMarks row={row} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > limit && (
        <MoreButton shown={limit} total={rows.length} onClick={() => setLimit(limit + 5 * firstRows)} />
      )}
    </div>
  );
}
