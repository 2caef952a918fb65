import { amountOfBytes, shellWord } from '../../core/printable.js';
import type {
  MirrorDifference,
  MirrorGeneration,
  MirrorOverview,
  MirrorRun,
  MirrorState,
  MirrorStep,
} from '../responses.js';
import { Badge, Copyable, Fold, Lines, PageHeading, TableHead, Waiting, formatCount } from './parts.js';
import { useResponse } from './requests.js';

/** States with the kinds of their badges. */
const states = { done: 'head', incomplete: 'warning', failed: 'error' } as const satisfies Record<
  MirrorState,
  string
>;

/** Next steps with the flags of their commands. */
const steps: Record<MirrorStep, { purpose: string; flags: string[] }> = {
  retry: { purpose: 'Copy what is missing', flags: ['--retry-failed'] },
  update: { purpose: 'Mirror new content', flags: [] },
  prune: {
    purpose: 'Mirror new content, then delete images that no lock of the last 30 days selects, listed first',
    flags: ['--prune=30d'],
  },
};

function getCommand({ workspace, configuration, destination }: MirrorOverview, flags: string[]): string {
  const directory = workspace.startsWith('file://') ? workspace : `file://${workspace}`;
  const words = ['-c', configuration, '--workspace', directory, ...flags, destination];
  return `opmate mirror ${words.map(shellWord).join(' ')}`;
}

/** A mirror workspace: state, next commands, runs and generations. */
export function MirrorView() {
  const { value, error } = useResponse<MirrorOverview>('api/mirror');
  if (value === undefined) return <Waiting error={error} />;
  const { workspace, destination, state, reason, next, runs, generations, generationsTotal } = value;
  return (
    <>
      <div class="heading">
        <PageHeading title={destination === '' ? 'Mirror' : destination}>
          <bdi>{destination === '' ? 'Mirror' : destination}</bdi>
        </PageHeading>
        <p class="sums">
          {state !== undefined && <Badge kind={states[state]}>{state}</Badge>}
          <span>
            workspace <code>{workspace}</code>
          </span>
        </p>
      </div>
      {reason !== '' && <p class={`note ${state === 'failed' ? 'error' : 'warning'}`}>{reason}</p>}
      <h2>Next step</h2>
      {next.length === 0 ? (
        <p class="note">The configuration of the last run is unknown: repeat its command.</p>
      ) : (
        <ul class="next-steps">
          {next.map((step) => (
            <li key={step}>
              <p>{steps[step].purpose}:</p>
              <Copyable text={getCommand(value, steps[step].flags)} />
            </li>
          ))}
        </ul>
      )}
      <h2 id="runs">Runs</h2>
      <RunTable runs={runs} />
      <h2 id="generations">Generations</h2>
      {generationsTotal > generations.length && (
        <p class="note">
          The newest {generations.length} of {formatCount(generationsTotal, 'generation')}.
        </p>
      )}
      {generations.length === 0 && <p class="note">No generations.</p>}
      <ol class="generations" aria-labelledby="generations">
        {generations.map((generation) => (
          <GenerationItem key={generation.number} generation={generation} />
        ))}
      </ol>
    </>
  );
}

const columns = ['Started', 'Task', 'State', 'Images', 'Copied', 'Failed', 'Verification'];

function RunTable({ runs }: { runs: readonly MirrorRun[] }) {
  if (runs.length === 0) return <p class="note">No runs in the audit trail.</p>;
  return (
    <div class="table-box" role="region" aria-labelledby="runs" tabIndex={0}>
      <table class="runs">
        <caption class="unseen">Runs, newest first</caption>
        <TableHead columns={columns} />
        <tbody>
          {runs.map((run, index) => (
            <RunRow key={index} run={run} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RunRow({ run }: { run: MirrorRun }) {
  const { time, task, state, reason, images, bytes, failed, failures, verdicts } = run;
  return (
    <tr>
      <th scope="row">
        <time dateTime={time}>{formatMinute(time)}</time>
      </th>
      <td>{task}</td>
      <td>
        <Badge kind={states[state]} title={reason}>
          {state}
        </Badge>
      </td>
      <td>{images.toLocaleString('en')}</td>
      <td>{amountOfBytes(bytes)}</td>
      <td>
        {failures.length === 0 ? (
          failed.toLocaleString('en')
        ) : (
          <Fold title={failed.toLocaleString('en')}>
            <Lines lines={failures.map(({ image, problem }) => `${image}: ${problem}`)} />
          </Fold>
        )}
      </td>
      <td>
        {verdicts.length === 0
          ? 'none'
          : verdicts.map(({ status, images }) => `${images.toLocaleString('en')} ${status}`).join(', ')}
      </td>
    </tr>
  );
}

/** `2026-01-31 12:30` in UTC; other texts unchanged. */
function formatMinute(iso: string): string {
  return iso.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):.*Z$/, '$1 $2 UTC');
}

function GenerationItem({ generation }: { generation: MirrorGeneration }) {
  const { number, from, images, bytes, bytesAdded, bytesRemoved, differences } = generation;
  return (
    <li>
      <h3>
        Generation {number} <small>{formatMinute(from)}</small>
      </h3>
      <p>
        {formatCount(images, 'image')}, {amountOfBytes(bytes)}{' '}
        <small>
          (+{amountOfBytes(bytesAdded)}, −{amountOfBytes(bytesRemoved)})
        </small>
      </p>
      {differences.map((difference) => (
        <Difference key={`${difference.kind} ${difference.sign}`} difference={difference} />
      ))}
    </li>
  );
}

function Difference({ difference }: { difference: MirrorDifference }) {
  const { kind, sign, total, names } = difference;
  return (
    <Fold title={<span class={sign}>{`${formatCount(total, kind)} ${sign}`}</span>}>
      <Lines lines={names} class="names" />
      {names.length < total && <p class="note">The first {names.length.toLocaleString('en')}.</p>}
    </Fold>
  );
}
