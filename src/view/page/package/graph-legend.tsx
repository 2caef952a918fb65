import { NodeSign } from './marks.js';
import { count } from '../parts.js';

/** What the signs and keys of a graph mean. */
export function Legend({ hidden }: { hidden: number }) {
  const signs = [
    [[], 'a bundle'],
    [['head'], 'head of the channel'],
    [['skipped'], 'skipped by a newer bundle'],
    [['deprecated'], 'deprecated'],
    [['stranded'], 'stranded: no way to the head'],
    [['undefined'], 'named, but not in the catalog'],
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
              <path class="edge" d="M12 2V20" />
            </svg>
            down to the bundle that is replaced
          </li>
          <li>
            <svg width="24" height="22" aria-hidden="true">
              <path class="bracket" d="M20 4H6V17H18m-3 -3l3 3l-3 3" />
            </svg>
            to the bundles that are skipped
          </li>
        </ul>
        <p>
          Updates go upwards. A chosen bundle also shows which bundles its skip range covers.
          {hidden > 0 &&
            ` ${count(hidden, 'bundle')} of this channel skip others that are shown only while it is chosen.`}
        </p>
        <p>
          <kbd>↑</kbd> <kbd>↓</kbd> next row · <kbd>→</kbd> what it replaces · <kbd>←</kbd> what replaces it ·{' '}
          <kbd>Enter</kbd> details · <kbd>+</kbd> <kbd>−</kbd> <kbd>0</kbd> or the wheel over the lines: size
          · drag: move
        </p>
      </div>
    </details>
  );
}
