import type { ChannelLayout, SelectionRequest, SelectionPick } from '../../responses.js';
import { Choice } from '../parts.js';
import { toApiUrl, useResponse } from '../requests.js';

type Mode = 'default' | 'range' | 'single' | 'list';

/** Form for the versions of a pick: the default of the document, a range, one version, or a list. */
export function VersionChoice(props: {
  channels: string[];
  pick: SelectionPick;
  kind: SelectionRequest['kind'];
  onChange: (pick: SelectionPick) => void;
}) {
  const { channels, pick, kind, onChange } = props;
  const { value } = useResponse<ChannelLayout>(
    toApiUrl('channel', { package: pick.package, channel: channels, compare: '' }),
  );
  const versions = [
    ...new Set(value?.rows.map(({ version }) => version).filter((version) => version !== '')),
  ];
  const options = versions.map((version) => ({ value: version, label: version }));
  const { package: name, channel, minVersion = '', maxVersion = '' } = pick;
  const target = { package: name, ...(channel !== undefined && { channel }) };
  const label = [name, channel].filter(Boolean).join(' ');
  const changeMode = (mode: string): void => {
    const [newest = '', oldest = newest] = [versions[0], versions.at(-1)];
    switch (mode as Mode) {
      case 'default':
        return onChange(target);
      case 'range':
        return onChange({ ...target, minVersion: oldest });
      case 'single':
        return onChange({ ...target, minVersion: newest, maxVersion: newest });
      case 'list':
        return onChange({ ...target, versions: [newest] });
    }
  };
  const mode = parseMode(pick);
  return (
    <span class="bounds">
      <label class="filter">
        Versions{' '}
        <select
          value={mode}
          disabled={versions.length === 0}
          aria-label={`Versions of ${label}`}
          onChange={(event) => changeMode(event.currentTarget.value)}
        >
          <option value="default">{kind === 'imageset' ? 'channel head' : 'all'}</option>
          <option value="range">range</option>
          <option value="single">one version</option>
          {(kind === 'filter' || mode === 'list') && <option value="list">list</option>}
        </select>
      </label>
      {mode === 'range' && (
        <>
          <Choice
            label="From"
            name={`From version of ${label}`}
            all="–"
            options={options}
            value={minVersion}
            onChange={(version) => onChange(withBounds(target, version, maxVersion))}
          />
          <Choice
            label="to"
            name={`to version of ${label}`}
            all="–"
            options={options}
            value={maxVersion}
            onChange={(version) => onChange(withBounds(target, minVersion, version))}
          />
        </>
      )}
      {mode === 'single' && (
        <Choice
          label=""
          name={`Version of ${label}`}
          all={undefined}
          options={options}
          value={minVersion}
          onChange={(version) => onChange(withBounds(target, version, version))}
        />
      )}
      {mode === 'list' && (
        <VersionList
          label={`List of versions of ${label}`}
          versions={versions}
          chosen={pick.versions ?? []}
          onChange={(chosen) => onChange(chosen.length === 0 ? target : { ...target, versions: chosen })}
        />
      )}
    </span>
  );
}

function parseMode({ minVersion, maxVersion, versions }: SelectionPick): Mode {
  if (versions !== undefined) return 'list';
  if (minVersion === undefined && maxVersion === undefined) return 'default';
  return minVersion === maxVersion ? 'single' : 'range';
}

function withBounds(target: SelectionPick, minVersion: string, maxVersion: string): SelectionPick {
  return { ...target, ...(minVersion && { minVersion }), ...(maxVersion && { maxVersion }) };
}

function VersionList(props: {
  label: string;
  versions: string[];
  chosen: readonly string[];
  onChange: (versions: string[]) => void;
}) {
  const { label, versions, chosen, onChange } = props;
  const choices = [...chosen.filter((version) => !versions.includes(version)), ...versions];
  return (
    <span class="version-list" role="group" aria-label={label}>
      {choices.map((version) => (
        <label key={version}>
          <input
            type="checkbox"
            checked={chosen.includes(version)}
            onChange={(event) => {
              const { checked } = event.currentTarget;
              onChange(choices.filter((other) => (other === version ? checked : chosen.includes(other))));
            }}
          />{' '}
          {version}
        </label>
      ))}
    </span>
  );
}
