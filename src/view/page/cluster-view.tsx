import type {
  CatalogOverview,
  ClusterFinding,
  ClusterHop,
  ClusterHopOperator,
  ClusterOperator,
  ClusterOverview,
} from '../responses.js';
import { Badge, Choice, PageHeading, Waiting, formatCount } from './parts.js';
import { useResponse } from './requests.js';
import { type ClusterRoute, getPackageUrl, getPathUrl, go } from './route.js';

/** States with the kinds of their badges. */
const states = {
  blocked: 'error',
  'held-back': 'warning',
  upgrades: 'changed',
  current: 'head',
} as const satisfies Record<ClusterOperator['state'], string>;

/** Operators of a cluster with their next steps, and its updates in order. */
export function ClusterView({ catalog, route }: { catalog: CatalogOverview; route: ClusterRoute }) {
  const { value, error } = useResponse<ClusterOverview>('api/cluster');
  const known = new Set(catalog.packages.map(({ name }) => name));
  if (value === undefined) return <Waiting error={error} />;
  const { operators, hops, findings, release } = value;
  const shown = operators.filter(({ state }) => route.state === '' || state === route.state);
  return (
    <>
      <div class="heading">
        <PageHeading title="Cluster" />
        <p class="sums">
          {release !== '' && <span>OpenShift {release}</span>}
          <span role="status">
            {shown.length === operators.length
              ? formatCount(operators.length, 'operator')
              : `${shown.length} of ${formatCount(operators.length, 'operator')}`}
          </span>
        </p>
        <Choice
          label="State"
          all="all"
          options={Object.keys(states).map((state) => ({ value: state, label: state }))}
          value={route.state}
          onChange={(state) => go({ ...route, state }, 'replace')}
        />
      </div>
      <Findings findings={findings} />
      <h2 id="operators">Operators</h2>
      {shown.length === 0 && <p class="note">No operators in this state.</p>}
      <ul class="rows operators" aria-labelledby="operators">
        {shown.map((operator, index) => (
          <OperatorItem key={index} operator={operator} isKnown={known.has(operator.package)} />
        ))}
      </ul>
      {hops.length > 0 && (
        <>
          <h2 id="updates">Updates</h2>
          <ol class="hops" aria-labelledby="updates">
            {hops.map((hop) => (
              <HopItem key={hop.to} hop={hop} known={known} />
            ))}
          </ol>
        </>
      )}
    </>
  );
}

function OperatorItem({ operator, isKnown }: { operator: ClusterOperator; isKnown: boolean }) {
  const { namespace, package: name, installed, channel, state, reason, upgrades, heldBackBy } = operator;
  const last = upgrades.at(-1);
  const url =
    last === undefined || installed === ''
      ? getPackageUrl(name, channel, installed)
      : getPathUrl(name, channel, installed, last.name);
  return (
    <li>
      <span>
        {isKnown ? <a href={url}>{name}</a> : <strong>{name || installed}</strong>} <small>{namespace}</small>
      </span>
      <Badge kind={states[state]}>{state}</Badge>
      <div class="about">
        <p>
          {installed === '' ? 'not installed' : <code>{installed}</code>} <small>{reason}</small>
        </p>
        {upgrades.map((upgrade) => (
          <p key={upgrade.name} class="next">
            → <b>{upgrade.name}</b> <small>{upgrade.reason}</small>
          </p>
        ))}
        {heldBackBy.length > 0 && (
          <ul class="obstacles" aria-label={`Held back: ${name || installed}`}>
            {heldBackBy.map(({ by, problem, remedy }, index) => (
              <li key={index}>
                <strong>{by}</strong>: {problem}
                {remedy !== '' && <p class="hint">Remedy: {remedy}</p>}
              </li>
            ))}
          </ul>
        )}
      </div>
    </li>
  );
}

function HopItem({ hop, known }: { hop: ClusterHop; known: ReadonlySet<string> }) {
  const { from, to, isBlocked, releases, operators, steps, findings } = hop;
  return (
    <li class={isBlocked ? 'blocked' : 'possible'}>
      <h3>
        {from} → {to}
        <Badge kind={isBlocked ? 'error' : 'head'}>{isBlocked ? 'blocked' : 'possible'}</Badge>
      </h3>
      {releases.length > 0 && (
        <p>
          Releases:{' '}
          {releases.map(({ version, channel, risks }, index) => (
            <span key={version}>
              {index > 0 && ', '}
              <b>{version}</b> <small>{channel}</small>
              {risks.length > 0 && (
                <>
                  {' '}
                  <Badge kind="warning">conditional: {risks.join(', ')}</Badge>
                </>
              )}
            </span>
          ))}
        </p>
      )}
      <Findings findings={findings} />
      {operators.length > 0 && (
        <>
          <h4>Operators that change</h4>
          <ul class="moves">
            {operators.map((operator, index) => (
              <MoveItem key={index} operator={operator} isKnown={known.has(operator.package)} />
            ))}
          </ul>
        </>
      )}
      {!isBlocked && (
        <>
          <h4>Steps</h4>
          <ol>
            {steps.map(({ namespace, text, reason }, index) => (
              <li key={index}>
                {namespace !== '' && <strong>{namespace}: </strong>}
                {text} <small>{reason}</small>
              </li>
            ))}
          </ol>
        </>
      )}
    </li>
  );
}

/** Bundles of an operator before and after an update, with a link to the path in its graph. */
function MoveItem({ operator, isKnown }: { operator: ClusterHopOperator; isKnown: boolean }) {
  const { namespace, package: name, status, reason, installed, before, after, channel } = operator;
  const bundles = [installed, before, after].filter(
    (bundle, index, all) => bundle !== '' && all[index - 1] !== bundle,
  );
  // The shown catalog is that before the update.
  const url =
    installed === '' || before === '' || before === installed
      ? getPackageUrl(name, channel)
      : getPathUrl(name, channel, installed, before);
  return (
    <li>
      {isKnown ? <a href={url}>{name}</a> : <strong>{name || installed}</strong>} <small>{namespace}</small>{' '}
      {status === 'blocked' && <Badge kind="error">blocked</Badge>} <b>{bundles.join(' → ')}</b>{' '}
      <small>{reason}</small>
    </li>
  );
}

function Findings({ findings }: { findings: readonly ClusterFinding[] }) {
  if (findings.length === 0) return null;
  return (
    <ul class="problems">
      {findings.map(({ severity, subject, problem, hint }, index) => (
        <li key={index} class={severity}>
          <Badge kind={severity}>{severity}</Badge>
          <div>
            <p class="message">{subject === '' ? problem : `${subject}: ${problem}`}</p>
            {hint !== '' && <p class="hint">{hint}</p>}
          </div>
        </li>
      ))}
    </ul>
  );
}
