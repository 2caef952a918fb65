import { useState } from 'preact/hooks';
import type { CatalogOverview, SelectionRequest, PackageDetails, SelectionPick } from '../../answers.js';
import { requestPath, useAnswer } from '../requests.js';
import { Badge, count } from '../parts.js';
import { addressOfPackage } from '../route.js';
import { VersionChoice } from './version-choice.js';

/** Packages that are offered at a time. */
const maxOffered = 40;

/** The packages that may be added, narrowed by what is typed. */
export function Offer({
  catalog,
  chosen,
  onAdd,
}: {
  catalog: CatalogOverview;
  chosen: string[];
  onAdd: (name: string) => void;
}) {
  const [text, setText] = useState('');
  const word = text.trim().toLowerCase();
  const offered = catalog.packages.filter(
    ({ name, displayName }) =>
      !chosen.includes(name) && `${name} ${displayName}`.toLowerCase().includes(word),
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
        {offered.slice(0, maxOffered).map(({ name }) => (
          <li key={name}>
            <button type="button" onClick={() => onAdd(name)} aria-label={`Add ${name}`}>
              + {name}
            </button>
          </li>
        ))}
      </ul>
      {offered.length > maxOffered && (
        <small>{count(offered.length - maxOffered, 'package')} more: type to narrow</small>
      )}
    </div>
  );
}

/** A chosen package: its channels, their versions, and its default channel. */
export function PickedPackage({
  name,
  kind,
  picks,
  defaultChannel,
  onChange,
  onDefault,
}: {
  name: string;
  kind: SelectionRequest['kind'];
  picks: SelectionPick[];
  /** Empty to keep that of the catalog. */
  defaultChannel: string;
  onChange: (picks: SelectionPick[]) => void;
  onDefault: (channel: string) => void;
}) {
  const { value, error } = useAnswer<PackageDetails>(requestPath('package', { package: name }));
  const channels = value?.channels ?? [];
  const toggle = (channel: string, isChosen: boolean): void => {
    const own = picks.filter((pick) => pick.channel !== undefined && pick.channel !== channel);
    const next = isChosen ? [...own, { package: name, channel }] : own;
    onChange(next.length === 0 ? [{ package: name }] : next);
  };
  const whole = picks.find((pick) => pick.channel === undefined);
  return (
    <fieldset class="picked">
      <legend>
        <a href={addressOfPackage(name)}>{name}</a>{' '}
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
      {channels.length > 1 && (
        <label class="filter">
          Default channel{' '}
          <select
            value={defaultChannel}
            aria-label={`Default channel of ${name}`}
            onChange={(event) => onDefault(event.currentTarget.value)}
          >
            <option value="">as in the catalog</option>
            {channels
              .filter((channel) => whole !== undefined || picks.some((pick) => pick.channel === channel.name))
              .map((channel) => (
                <option key={channel.name} value={channel.name}>
                  {channel.name}
                </option>
              ))}
          </select>
        </label>
      )}
    </fieldset>
  );
}
