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
  const { package: name, channel } = pick;
  const target = { package: name, ...(channel !== undefined && { channel }) };
  const label = [name, channel].filter(Boolean).join(' ');
  const setBounds = (minVersion: string, maxVersion: string): void =>
    onChange({ ...target, ...(minVersion && { minVersion }), ...(maxVersion && { maxVersion }) });
  const mode = parseMode(pick);
  return (
    <span class="bounds">
      <label class="filter">
        Versions{' '}
        <select
          value={mode}
          disabled={versions.length === 0}
          aria-label={`Versions of ${label}`}
          onChange={(event) => onChange(changeMode(target, event.currentTarget.value as Mode, versions))}
        >
          <option value="default">{kind === 'imageset' ? 'channel head' : 'all'}</option>
          <option value="range">range</option>
          <option value="single">one version</option>
          {(kind === 'filter' || mode === 'list') && <option value="list">list</option>}
        </select>
      </label>
      {(mode === 'range' || mode === 'single') && (
        <VersionBounds {...{ mode, label, options, pick }} onChange={setBounds} />
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

/** Returns the pick of a mode, with the newest or all versions at first; `versions` are sorted, newest first. */
function changeMode(target: SelectionPick, mode: Mode, versions: readonly string[]): SelectionPick {
  const [newest = '', oldest = newest] = [versions[0], versions.at(-1)];
  switch (mode) {
    case 'default':
      return target;
    case 'range':
      return { ...target, minVersion: oldest };
    case 'single':
      return { ...target, minVersion: newest, maxVersion: newest };
    case 'list':
      return { ...target, versions: [newest] };
  }
}

function parseMode({ minVersion, maxVersion, versions }: SelectionPick): Mode {
  if (versions !== undefined) return 'list';
  if (minVersion === undefined && maxVersion === undefined) return 'default';
  return minVersion === maxVersion ? 'single' : 'range';
}

/** Choices of the first and last version of a range, or of a single one. */
function VersionBounds(props: {
  mode: 'range' | 'single';
  label: string;
  options: { value: string; label: string }[];
  pick: SelectionPick;
  onChange: (minVersion: string, maxVersion: string) => void;
}) {
  const { mode, label, options, onChange } = props;
  const { minVersion = '', maxVersion = '' } = props.pick;
  if (mode === 'single')
    return (
      <Choice
        label=""
        name={`Version of ${label}`}
        all={undefined}
        options={options}
        value={minVersion}
        onChange={(version) => onChange(version, version)}
      />
    );
  return (
    <>
      <Choice
        label="From"
        name={`From version of ${label}`}
        all="–"
        options={options}
        value={minVersion}
        onChange={(version) => onChange(version, maxVersion)}
      />
      <Choice
        label="to"
        name={`to version of ${label}`}
        all="–"
        options={options}
        value={maxVersion}
        onChange={(version) => onChange(minVersion, version)}
      />
    </>
  );
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
