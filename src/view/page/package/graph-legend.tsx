import { GroupSign, NodeSign } from './marks.js';
import { formatCount } from '../parts.js';

/** Legend of the signs and keys of a graph. */
export function Legend({ hidden }: { hidden: number }) {
  const signs = [
    [[], 'bundle'],
    [['head'], 'head of the channel'],
    [['skipped'], 'skipped by a newer bundle'],
    [['deprecated'], 'deprecated'],
    [['stranded'], 'stranded: cannot reach the head'],
    [['undefined'], 'missing in the catalog'],
  ] as const;
  return (
    <details class="legend">
      <summary>Legend</summary>
      <div>
        <ul>
          {signs.map(([marks, text]) => (
            <li key={text}>
              <svg width="24" height="22" aria-hidden="true">
                <NodeSign marks={marks} x={12} y={11} />
              </svg>
              {text}
            </li>
          ))}
          <li>
            <svg width="24" height="22" aria-hidden="true">
              <GroupSign x={12} y={11} />
            </svg>
            bundles of a minor version
          </li>
          <li>
            <svg width="24" height="22" aria-hidden="true">
              <path class="edge" d="M12 2V20" />
            </svg>
            down to the replaced bundle
          </li>
          <li>
            <svg width="24" height="22" aria-hidden="true">
              <path class="bracket" d="M20 4H6V17H18m-3 -3l3 3l-3 3" />
            </svg>
            to skipped bundles
          </li>
        </ul>
        <p>
          Upgrades go upward. Select a bundle to highlight its skip range.
          {hidden > 0 &&
            ` ${formatCount(hidden, 'bundle')} of this channel skip others: select one to show them.`}
        </p>
        <p>
          <kbd>?</kbd> keys · the wheel with <kbd>Ctrl</kbd>: size · drag: move
        </p>
      </div>
    </details>
  );
}
