import { useState } from 'preact/hooks';
import type {
  BundleAnswer,
  CatalogAnswer,
  ChannelAnswer,
  ChannelSummary,
  PackageAnswer,
  ProblemAnswer,
} from '../../answers.js';
import { type Asked, question, useAnswer } from '../ask.js';
import { BundlePanel } from './bundle-panel.js';
import { ChannelGraph } from './channel-graph.js';
import { ChannelTable } from './channel-table.js';
import { LifecycleFold } from './lifecycle.js';
import { Markdown } from '../markdown-view.js';
import { PackageIcon } from '../packages-view.js';
import { Badge, PageHeading, ProblemBadges, ProblemList, Waiting, count } from '../parts.js';
import { type Route, addressOf, addressOfPackage } from '../route.js';

/** A package: its channels, the upgrade graph of one of them, and a bundle's details. */
export function PackageView({
  route,
  catalog,
}: {
  route: Extract<Route, { view: 'package' }>;
  catalog: CatalogAnswer;
}) {
  const { package: name } = route;
  const { value, error } = useAnswer<PackageAnswer>(question('package', { package: name }));
  // As long as none is chosen, the head of the channel is.
  const bundle =
    route.bundle ||
    (value?.channels.find((one) => one.name === route.channel) ?? value?.channels[0])?.head ||
    '';
  const details = useAnswer<BundleAnswer>(
    bundle === '' ? undefined : question('bundle', { package: name, bundle }),
  );
  const channel = channelOf(route, value, details);
  const graph = useAnswer<ChannelAnswer>(
    channel === undefined ? undefined : question('channel', { package: name, channel }),
  );
  if (value === undefined) return <Waiting error={error} />;
  return (
    <>
      <PackageHeader package={value} run={catalog.run} />
      {value.channels.length === 0 ? (
        <p class="note">The package has no channels.</p>
      ) : (
        <Channels package={name} channels={value.channels} current={channel} />
      )}
      <div class="workbench">
        <section class="graph-side" aria-label={`Channel ${channel ?? ''}`}>
          {graph.value === undefined ? (
            channel !== undefined && <Waiting error={graph.error} />
          ) : (
            <Channel
              channel={graph.value}
              bundle={bundle}
              details={details.value}
              problems={value.problems.filter((one) => one.channel === channel && one.severity !== 'notice')}
            />
          )}
        </section>
        <section class="details-side" aria-label="Bundle">
          {bundle === '' ? (
            <p class="note">Choose a bundle to see its updates, APIs, images and permissions.</p>
          ) : details.value === undefined ? (
            <Waiting error={details.error} />
          ) : (
            <BundlePanel
              key={details.value.name}
              bundle={details.value}
              channel={channel ?? ''}
              lifecycle={value.lifecycle}
              takesFocus={route.bundle !== ''}
            />
          )}
        </section>
      </div>
    </>
  );
}

/** The channel of the address; else one in which the bundle of the address is; else the first. */
function channelOf(
  { channel, bundle }: { channel: string; bundle: string },
  value: PackageAnswer | undefined,
  details: Asked<BundleAnswer>,
): string | undefined {
  if (channel !== '') return channel;
  const first = value?.channels[0]?.name;
  if (bundle === '' || details.error !== undefined) return first;
  if (details.value === undefined) return undefined;
  const { places } = details.value;
  return (places.find(({ isDefault }) => isDefault) ?? places[0])?.channel ?? first;
}

function PackageHeader({ package: one, run }: { package: PackageAnswer; run: string }) {
  const { name, displayName, provider, description, deprecation, isDefined, problems, problemCount } = one;
  return (
    <>
      <div class="package-heading">
        <PackageIcon name={name} hasIcon={one.hasIcon} run={run} />
        <div>
          <PageHeading title={displayName || name} />
          <p class="sums">
            <span class="id">{name}</span>
            {provider !== '' && (
              <span>
                by <bdi>{provider}</bdi>
              </span>
            )}
            <span>{count(one.bundles, 'bundle')}</span>
            {deprecation !== undefined && <Badge kind="deprecated">deprecated</Badge>}
            {!isDefined && <Badge kind="error">no olm.package blob</Badge>}
          </p>
        </div>
      </div>
      {deprecation !== undefined && (
        <p class="note warning">
          <strong>The package is deprecated.</strong> <bdi>{deprecation}</bdi>
        </p>
      )}
      {problemCount > 0 && (
        <details class="fold">
          <summary>
            {count(problemCount, 'finding')} of the checks
            {problems.some(({ severity }) => severity === 'error') && <Badge kind="error">errors</Badge>}
          </summary>
          <ProblemList problems={problems.slice(0, 8)} showPackage />
          {problemCount > 8 && (
            <p class="links">
              <a href={addressOf({ view: 'problems', package: name, severity: '' })}>
                All {count(problemCount, 'finding')}
              </a>
            </p>
          )}
        </details>
      )}
      <LifecycleFold lifecycle={one.lifecycle} />
      {description !== '' && (
        <details class="fold">
          <summary>
            About <bdi>{displayName || name}</bdi>
          </summary>
          <Markdown text={description} />
        </details>
      )}
    </>
  );
}

function Channels({
  package: name,
  channels,
  current,
}: {
  package: string;
  channels: ChannelSummary[];
  current: string | undefined;
}) {
  return (
    <nav class="channels" aria-label="Channels">
      <ul>
        {channels.map((one) => (
          <li key={one.name}>
            <a
              href={addressOfPackage(name, one.name)}
              {...(one.name === current && { 'aria-current': 'page' as const })}
            >
              <strong>{one.name}</strong>
              {one.isDefault && <Badge kind="default">default</Badge>}
              {one.deprecation !== undefined && <Badge kind="deprecated">deprecated</Badge>}
              <span class="id">{one.version || one.head || 'no head'}</span>
              <span class="unseen">{count(one.entries, 'bundle')}</span>
              <ProblemBadges errors={one.errors} warnings={one.warnings} />
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Channel({
  channel,
  bundle,
  details,
  problems,
}: {
  channel: ChannelAnswer;
  bundle: string;
  details: BundleAnswer | undefined;
  problems: ProblemAnswer[];
}) {
  const [form, setForm] = useState<'graph' | 'table'>('graph');
  const place = details?.places.find((one) => one.channel === channel.channel);
  return (
    <>
      <div class="channel-heading">
        <h2>{channel.channel}</h2>
        <p class="sums">{count(channel.rows.length, 'bundle')}</p>
        <div class="choice" role="group" aria-label="Show the channel as">
          {(['graph', 'table'] as const).map((one) => (
            <button key={one} type="button" aria-pressed={form === one} onClick={() => setForm(one)}>
              {one === 'graph' ? 'Graph' : 'Table'}
            </button>
          ))}
        </div>
      </div>
      {channel.deprecation !== undefined && (
        <p class="note warning">
          <strong>The channel is deprecated.</strong> <bdi>{channel.deprecation}</bdi>
        </p>
      )}
      {problems.length > 0 && <ProblemList problems={problems} />}
      {channel.fault !== undefined && problems.length === 0 && (
        <p class="note error">
          <strong>The graph is not valid.</strong> <bdi>{channel.fault}</bdi>
        </p>
      )}
      {form === 'graph' ? (
        <ChannelGraph
          key={`${channel.package}/${channel.channel}`}
          channel={channel}
          selected={bundle}
          place={place}
        />
      ) : (
        <ChannelTable channel={channel} selected={bundle} />
      )}
    </>
  );
}
