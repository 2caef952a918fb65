import { useState } from 'preact/hooks';
import type {
  BundleAnswer,
  CatalogAnswer,
  ChannelAnswer,
  ChannelSummary,
  PackageAnswer,
  PathAnswer,
  ProblemAnswer,
} from '../../answers.js';
import { type Asked, question, useAnswer } from '../ask.js';
import { BundlePanel } from './bundle-panel.js';
import { staticPage } from '../static-answers.js';
import { PathBar } from './path-bar.js';
import { ChannelGraph } from './channel-graph.js';
import { ChannelTable } from './channel-table.js';
import { LifecycleFold } from './lifecycle.js';
import { Markdown } from '../markdown-view.js';
import { PackageIcon } from '../packages-view.js';
import {
  Badge,
  Missing,
  PageHeading,
  ProblemBadges,
  ProblemList,
  SaveButton,
  Waiting,
  count,
} from '../parts.js';
import { type Route, addressOf, addressOfPackage, allPackages, go } from '../route.js';

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
  const isCompared = catalog.comparedWith !== undefined && route.compare !== 'no';
  const shown = channel === undefined ? [] : [channel, ...route.beside.filter((one) => one !== channel)];
  const compare = isCompared ? 'yes' : '';
  const graph = useAnswer<ChannelAnswer>(
    channel === undefined ? undefined : question('channel', { package: name, channel: shown, compare }),
  );
  const hasPath = channel !== undefined && route.from !== '' && route.to !== '';
  const path = useAnswer<PathAnswer>(
    hasPath ? question('path', { package: name, channel: shown, from: route.from, to: route.to }) : undefined,
  );
  if (value === undefined) {
    return error === undefined ? <Waiting error={undefined} /> : <Missing error={error} search={name} />;
  }
  return (
    <>
      <PackageHeader package={value} run={catalog.run} />
      {value.channels.length === 0 ? (
        <p class="note">The package has no channels.</p>
      ) : (
        <Channels route={route} channels={value.channels} current={channel} />
      )}
      <div class="workbench">
        <section class="graph-side" aria-label={`Channel ${channel ?? ''}`}>
          {graph.value === undefined ? (
            channel !== undefined && <Waiting error={graph.error} />
          ) : (
            <Channel
              channel={graph.value}
              route={{ ...route, channel: channel ?? '' }}
              path={path}
              comparedWith={catalog.comparedWith}
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
            <a href={addressOf({ ...allPackages, view: 'images', package: name, scope: 'all' })}>Images</a>
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
              <a href={addressOf({ view: 'problems', package: name, severity: '', check: '' })}>
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

/** The channels, one of which is shown; others may be added to its graph. */
function Channels({
  route,
  channels,
  current,
}: {
  route: Extract<Route, { view: 'package' }>;
  channels: ChannelSummary[];
  current: string | undefined;
}) {
  return (
    <nav class="channels" aria-label="Channels">
      <ul>
        {channels.map((one) => (
          <li key={one.name}>
            <a
              href={addressOfPackage(route.package, one.name)}
              {...(one.name === current && { 'aria-current': 'page' as const })}
            >
              <strong>{one.name}</strong>
              {one.isDefault && <Badge kind="default">default</Badge>}
              {one.deprecation !== undefined && <Badge kind="deprecated">deprecated</Badge>}
              <span class="id">{one.version || one.head || 'no head'}</span>
              <span class="unseen">{count(one.entries, 'bundle')}</span>
              <ProblemBadges errors={one.errors} warnings={one.warnings} />
            </a>
            {one.name !== current && current !== undefined && staticPage === undefined && (
              <BesideSwitch route={{ ...route, channel: current }} channel={one.name} />
            )}
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** Adds a channel to the graph of another one, or takes it out again. */
function BesideSwitch({ route, channel }: { route: Extract<Route, { view: 'package' }>; channel: string }) {
  const isShown = route.beside.includes(channel);
  const beside = isShown ? route.beside.filter((one) => one !== channel) : [...route.beside, channel];
  const label = isShown ? `Take ${channel} out of the graph` : `Show ${channel} in the same graph`;
  return (
    <a
      class={`beside${isShown ? ' shown' : ''}`}
      href={addressOf({ ...route, beside })}
      aria-label={label}
      title={label}
    >
      {isShown ? '−' : '+'}
    </a>
  );
}

function Channel({
  channel,
  route,
  path,
  comparedWith,
  bundle,
  details,
  problems,
}: {
  channel: ChannelAnswer;
  route: Extract<Route, { view: 'package' }>;
  path: Asked<PathAnswer>;
  comparedWith: string | undefined;
  bundle: string;
  details: BundleAnswer | undefined;
  problems: ProblemAnswer[];
}) {
  const [form, setForm] = useState<'graph' | 'table'>('graph');
  const place = details?.places.find((one) => one.channel === channel.channel);
  return (
    <>
      <div class="channel-heading">
        <h2>{channel.channels.join(' + ')}</h2>
        <p class="sums">{count(channel.rows.length, 'bundle')}</p>
        {comparedWith !== undefined && (
          <label class="filter">
            <input
              type="checkbox"
              checked={route.compare !== 'no'}
              onChange={(event) =>
                go({ ...route, compare: event.currentTarget.checked ? '' : 'no' }, 'replace')
              }
            />{' '}
            Compare
          </label>
        )}
        <span class="saves">
          <a href={graphAddress(channel)} download={`${channel.package}-${channel.channel}.svg`}>
            Save SVG
          </a>
          <SaveButton
            label="Save JSON"
            file={`${channel.package}-${channel.channel}.json`}
            type="application/json"
            text={() => `${JSON.stringify(channel, null, 2)}\n`}
          />
        </span>
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
      {staticPage === undefined && <PathBar route={route} rows={channel.rows} path={path} />}
      {form === 'graph' ? (
        <ChannelGraph
          key={`${channel.package}/${channel.channel}`}
          channel={channel}
          route={route}
          selected={bundle}
          place={place}
          path={path.value}
        />
      ) : (
        <ChannelTable channel={channel} selected={bundle} />
      )}
    </>
  );
}

function graphAddress({ package: name, channel }: ChannelAnswer): string {
  const exported = staticPage?.files[name]?.graphs[channel];
  if (exported !== undefined) return exported;
  return `graph.svg?${new URLSearchParams({ package: name, channel }).toString()}`;
}
