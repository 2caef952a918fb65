import { useState } from 'preact/hooks';
import type {
  BundleDetails,
  CatalogOverview,
  ChannelLayout,
  ChannelSummary,
  PackageDetails,
  UpgradePath,
  LocatedProblem,
} from '../../responses.js';
import { type Loaded, toApiUrl, useResponse } from '../requests.js';
import { BundlePanel } from './bundle-panel.js';
import { drawGraphs } from '../../graph-drawing.js';
import { PathBar } from './path-bar.js';
import { ChannelGraphView } from './channel-graph.js';
import { ChannelTable } from './channel-table.js';
import { LifecycleFold } from './lifecycle.js';
import { Markdown } from '../markdown-view.js';
import { PackageIconView } from '../packages-view.js';
import {
  Badge,
  Fold,
  Missing,
  PageHeading,
  ProblemBadges,
  ProblemList,
  SaveButton,
  Waiting,
  formatCount,
} from '../parts.js';
import { type PackageRoute, getUrl, getPackageUrl, allPackages, go } from '../route.js';

/** Problems of a package that its page shows. */
const maxFindings = 8;

/** Package with its channels, the graph of a channel, and the details of a bundle. */
export function PackageView({ route, catalog }: { route: PackageRoute; catalog: CatalogOverview }) {
  const { value, error, isUnreachable, bundle, details, channel, graph, path } = usePackage(route, catalog);
  if (value === undefined) {
    const isMissing = error !== undefined && isUnreachable !== true;
    return isMissing ? <Missing error={error} search={route.package} /> : <Waiting error={error} />;
  }
  return (
    <>
      <PackageHeader package={value} run={catalog.run} isChecking={catalog.isChecking} />
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
              problems={value.problems.filter(
                (problem) => problem.channel === channel && problem.severity !== 'notice',
              )}
            />
          )}
        </section>
        <section class="details-side" aria-label="Bundle">
          {bundle === '' ? (
            <p class="note">Choose a bundle to see its upgrades, APIs, images and permissions.</p>
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

/** Requests the package of a route, its bundle, the graph of its channel, and the upgrade path between two bundles. */
function usePackage(route: PackageRoute, { comparedWith }: CatalogOverview) {
  const { package: name, from, to } = route;
  const summary = useResponse<PackageDetails>(toApiUrl('package', { package: name }));
  const { value } = summary;
  // By default, select the head of the channel.
  const bundle =
    route.bundle ||
    (value?.channels.find((channelSummary) => channelSummary.name === route.channel) ?? value?.channels[0])
      ?.head ||
    '';
  const details = useResponse<BundleDetails>(
    bundle === '' ? undefined : toApiUrl('bundle', { package: name, bundle }),
  );
  const channel = findChannel(route, value, details);
  const shown = channel === undefined ? [] : [channel, ...route.beside.filter((text) => text !== channel)];
  const compare = comparedWith !== undefined && route.compare !== 'no' ? 'yes' : '';
  const graph = useResponse<ChannelLayout>(
    channel === undefined ? undefined : toApiUrl('channel', { package: name, channel: shown, compare }),
  );
  const hasPath = channel !== undefined && from !== '' && to !== '';
  const path = useResponse<UpgradePath>(
    hasPath ? toApiUrl('path', { package: name, channel: shown, from, to }) : undefined,
  );
  return { ...summary, bundle, details, channel, graph, path };
}

/** Returns the channel of the route; else one that contains the bundle of the route; else the first. */
function findChannel(
  { channel, bundle }: { channel: string; bundle: string },
  value: PackageDetails | undefined,
  details: Loaded<BundleDetails>,
): string | undefined {
  if (channel !== '') return channel;
  const first = value?.channels[0]?.name;
  if (bundle === '' || details.error !== undefined) return first;
  if (details.value === undefined) return undefined;
  const { places } = details.value;
  return (places.find(({ isDefault }) => isDefault) ?? places[0])?.channel ?? first;
}

function PackageHeader(props: { package: PackageDetails; run: string; isChecking: boolean }) {
  const { package: details, run, isChecking } = props;
  const { name, displayName, description, deprecation, lifecycle } = details;
  return (
    <>
      <PackageTitle details={details} run={run} />
      {deprecation !== undefined && (
        <p class="note warning">
          <strong>The package is deprecated.</strong> <bdi>{deprecation}</bdi>
        </p>
      )}
      <Findings details={details} isChecking={isChecking} />
      <LifecycleFold lifecycle={lifecycle} />
      {description !== '' && (
        <Fold
          title={
            <>
              About <bdi>{displayName || name}</bdi>
            </>
          }
        >
          <Markdown text={description} />
        </Fold>
      )}
    </>
  );
}

function PackageTitle({ details, run }: { details: PackageDetails; run: string }) {
  const { name, displayName, provider, hasIcon, bundles, deprecation, isDefined } = details;
  return (
    <div class="package-heading">
      <PackageIconView name={name} hasIcon={hasIcon} run={run} />
      <div>
        <PageHeading title={displayName || name} />
        <p class="sums">
          <span class="id">{name}</span>
          {provider !== '' && (
            <span>
              by <bdi>{provider}</bdi>
            </span>
          )}
          <span>{formatCount(bundles, 'bundle')}</span>
          <a href={getUrl({ ...allPackages, view: 'images', package: name, scope: 'all' })}>Images</a>
          {deprecation !== undefined && <Badge kind="deprecated">deprecated</Badge>}
          {!isDefined && <Badge kind="error">no olm.package blob</Badge>}
        </p>
      </div>
    </div>
  );
}

/** The first problems of a package, with a link to all. */
function Findings({ details, isChecking }: { details: PackageDetails; isChecking: boolean }) {
  const { name, problems, problemCount } = details;
  if (problemCount === 0)
    return (
      <p class="fold none" role="status">
        {isChecking ? 'Checking…' : 'No findings'}
      </p>
    );
  const hasErrors = problems.some(({ severity }) => severity === 'error');
  return (
    <Fold
      title={formatCount(problemCount, 'finding')}
      badge={hasErrors && <Badge kind="error">errors</Badge>}
    >
      <ProblemList problems={problems.slice(0, maxFindings)} showPackage />
      {problemCount > maxFindings && (
        <p class="links">
          <a href={getUrl({ view: 'problems', package: name, severity: '', check: '' })}>
            All {formatCount(problemCount, 'finding')}
          </a>
        </p>
      )}
    </Fold>
  );
}

/** Links to the channels, with switches that add them to the current graph. */
function Channels(props: { route: PackageRoute; channels: ChannelSummary[]; current: string | undefined }) {
  const { route, channels, current } = props;
  return (
    <nav class="channels" aria-label="Channels">
      <ul>
        {channels.map((channelSummary) => (
          <li key={channelSummary.name}>
            <a
              href={getPackageUrl(route.package, channelSummary.name)}
              {...(channelSummary.name === current && { 'aria-current': 'page' as const })}
            >
              <strong>{channelSummary.name}</strong>
              {channelSummary.isDefault && <Badge kind="default">default</Badge>}
              {channelSummary.deprecation !== undefined && <Badge kind="deprecated">deprecated</Badge>}
              <span class="id">{channelSummary.version || channelSummary.head || 'no head'}</span>
              <span class="unseen">{formatCount(channelSummary.entries, 'bundle')}</span>
              <ProblemBadges errors={channelSummary.errors} warnings={channelSummary.warnings} />
            </a>
            {channelSummary.name !== current && current !== undefined && (
              <BesideSwitch route={{ ...route, channel: current }} channel={channelSummary.name} />
            )}
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** Link that adds a channel to the graph of another one, or removes it. */
function BesideSwitch({ route, channel }: { route: PackageRoute; channel: string }) {
  const isShown = route.beside.includes(channel);
  const beside = isShown ? route.beside.filter((name) => name !== channel) : [...route.beside, channel];
  const label = isShown ? `Remove ${channel} from the graph` : `Add ${channel} to the graph`;
  return (
    <a
      class={`beside${isShown ? ' shown' : ''}`}
      href={getUrl({ ...route, beside })}
      aria-label={label}
      title={label}
    >
      {isShown ? '−' : '+'}
    </a>
  );
}

type ChannelForm = 'graph' | 'table';

function Channel(props: {
  channel: ChannelLayout;
  route: PackageRoute;
  path: Loaded<UpgradePath>;
  comparedWith: string | undefined;
  bundle: string;
  details: BundleDetails | undefined;
  problems: LocatedProblem[];
}) {
  const { channel, route, path, comparedWith, bundle, details, problems } = props;
  const [form, setForm] = useState<ChannelForm>('graph');
  const place = details?.places.find((bundlePlace) => bundlePlace.channel === channel.channel);
  return (
    <>
      <div class="channel-heading">
        <h2>{channel.channels.join(' + ')}</h2>
        <p class="sums">{formatCount(channel.rows.length, 'bundle')}</p>
        {comparedWith !== undefined && <CompareSwitch route={route} />}
        <SaveButtons channel={channel} path={path.value} />
        <FormChoice form={form} onChange={setForm} />
      </div>
      {channel.deprecation !== undefined && (
        <p class="note warning">
          <strong>The channel is deprecated.</strong> <bdi>{channel.deprecation}</bdi>
        </p>
      )}
      {channel.fault !== undefined && problems.length === 0 && (
        <p class="note error">
          <strong>Invalid graph.</strong> <bdi>{channel.fault}</bdi>
        </p>
      )}
      <PathBar route={route} rows={channel.rows} path={path} />
      {form === 'graph' ? (
        <ChannelGraphView
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
      {problems.length > 0 && <ProblemList problems={problems} />}
    </>
  );
}

/** Switch that shows the differences from the compared catalog in the graph. */
function CompareSwitch({ route }: { route: PackageRoute }) {
  return (
    <label class="filter">
      <input
        type="checkbox"
        checked={route.compare !== 'no'}
        onChange={(event) => go({ ...route, compare: event.currentTarget.checked ? '' : 'no' }, 'replace')}
      />{' '}
      Compare
    </label>
  );
}

/** Buttons that save the graph of a channel. */
function SaveButtons({ channel, path }: { channel: ChannelLayout; path: UpgradePath | undefined }) {
  const file = [channel.package, ...channel.channels].join('-');
  return (
    <span class="saves">
      <SaveButton
        label="Save SVG"
        file={`${file}.svg`}
        type="image/svg+xml"
        text={() => [...drawGraphs([{ ...channel, steps: path?.steps ?? [] }])].join('')}
      />
      <SaveButton
        label="Save JSON"
        file={`${file}.json`}
        type="application/json"
        text={() => `${JSON.stringify(channel, null, 2)}\n`}
      />
    </span>
  );
}

function FormChoice({ form, onChange }: { form: ChannelForm; onChange: (form: ChannelForm) => void }) {
  return (
    <div class="choice" role="group" aria-label="Show the channel as">
      {(['graph', 'table'] as const).map((item) => (
        <button key={item} type="button" aria-pressed={form === item} onClick={() => onChange(item)}>
          {item === 'graph' ? 'Graph' : 'Table'}
        </button>
      ))}
    </div>
  );
}
