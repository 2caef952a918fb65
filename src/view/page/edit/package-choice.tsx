import { useState } from 'preact/hooks';
import type {
  CatalogOverview,
  ChannelSummary,
  PackageDetails,
  SelectionPick,
  SelectionRequest,
} from '../../responses.js';
import { toApiUrl, useResponse } from '../requests.js';
import { Badge, Choice, formatCount } from '../parts.js';
import { getPackageUrl } from '../route.js';
import { VersionChoice } from './version-choice.js';

/** Maximum suggested packages. */
const maxSuggested = 40;

/** Packages to add, filtered by the typed text. */
export function PackageSuggestions(props: {
  catalog: CatalogOverview;
  selected: string[];
  onAdd: (name: string) => void;
}) {
  const { catalog, selected, onAdd } = props;
  const [text, setText] = useState('');
  const word = text.trim().toLowerCase();
  const suggestions = catalog.packages.filter(
    ({ name, displayName }) =>
      !selected.includes(name) && `${name} ${displayName}`.toLowerCase().includes(word),
  );
  return (
    <div class="offer">
      <label class="filter">
        Add a package{' '}
        <input
          type="text"
          value={text}
          maxLength={200}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <ul class="names">
        {suggestions.slice(0, maxSuggested).map(({ name }) => (
          <li key={name}>
            <button type="button" onClick={() => onAdd(name)} aria-label={`Add ${name}`}>
              + {name}
            </button>
          </li>
        ))}
      </ul>
      {suggestions.length > maxSuggested && (
        <small>{formatCount(suggestions.length - maxSuggested, 'package')} more: type to narrow</small>
      )}
    </div>
  );
}

/** Form for a selected package: channels, versions and default channel. */
export function PickedPackage(props: {
  name: string;
  kind: SelectionRequest['kind'];
  picks: SelectionPick[];
  /** Empty for the default channel of the catalog. */
  defaultChannel: string;
  onChange: (picks: SelectionPick[]) => void;
  onDefault: (channel: string) => void;
}) {
  const { name, kind, picks, defaultChannel, onChange, onDefault } = props;
  const { value, error } = useResponse<PackageDetails>(toApiUrl('package', { package: name }));
  const channels = value?.channels ?? [];
  const whole = picks.find((pick) => pick.channel === undefined);
  return (
    <fieldset class="picked">
      <legend>
        <a href={getPackageUrl(name)}>{name}</a>{' '}
        <button type="button" class="quiet" onClick={() => onChange([])} aria-label={`Remove ${name}`}>
          remove
        </button>
      </legend>
      {error !== undefined && <p class="note error">{error}</p>}
      {whole !== undefined && channels.length > 0 && (
        <p>
          <span class="id">All channels</span>{' '}
          <VersionChoice
            channels={channels.map((channel) => channel.name)}
            pick={whole}
            kind={kind}
            onChange={(pick) => onChange([pick])}
          />
        </p>
      )}
      <ChannelChoice {...{ name, kind, picks, channels, onChange }} />
      {channels.length > 1 && (
        <Choice
          label="Default channel"
          name={`Default channel of ${name}`}
          all="as in the catalog"
          options={channels
            .filter((channel) => whole !== undefined || picks.some((pick) => pick.channel === channel.name))
            .map((channel) => ({ value: channel.name, label: channel.name }))}
          value={defaultChannel}
          onChange={onDefault}
        />
      )}
    </fieldset>
  );
}

/** Channels of a selected package, with the versions of the selected ones. */
function ChannelChoice(props: {
  name: string;
  kind: SelectionRequest['kind'];
  picks: SelectionPick[];
  channels: ChannelSummary[];
  onChange: (picks: SelectionPick[]) => void;
}) {
  const { name, kind, picks, channels, onChange } = props;
  const toggle = (channel: string, isSelected: boolean): void => {
    const others = picks.filter((pick) => pick.channel !== undefined && pick.channel !== channel);
    const next = isSelected ? [...others, { package: name, channel }] : others;
    onChange(next.length === 0 ? [{ package: name }] : next);
  };
  return (
    <ul>
      {channels.map(({ name: channel, isDefault, version }) => {
        const pick = picks.find((request) => request.channel === channel);
        return (
          <li key={channel}>
            <label>
              <input
                type="checkbox"
                checked={pick !== undefined}
                onChange={(event) => toggle(channel, event.currentTarget.checked)}
              />{' '}
              {channel}
            </label>{' '}
            {isDefault && <Badge kind="default">default</Badge>} <span class="id">{version}</span>{' '}
            {pick !== undefined && (
              <VersionChoice
                channels={[channel]}
                pick={pick}
                kind={kind}
                onChange={(next) => onChange(picks.map((request) => (request === pick ? next : request)))}
              />
            )}
          </li>
        );
      })}
    </ul>
  );
}
