import type { ChannelLayout, SelectionRequest, SelectionPick } from '../../answers.js';
import { requestPath, useAnswer } from '../requests.js';

type Mode = 'default' | 'range' | 'single' | 'list';

/** Chooses versions of a pick: what the document takes by default, a range, one version, or a list of them. */
export function VersionChoice({
  channels,
  pick,
  kind,
  onChange,
}: {
  channels: string[];
  pick: SelectionPick;
  kind: SelectionRequest['kind'];
  onChange: (pick: SelectionPick) => void;
}) {
  const { value } = useAnswer<ChannelLayout>(
    requestPath('channel', { package: pick.package, channel: channels, compare: '' }),
  );
  const versions = [
    ...new Set(value?.rows.map(({ version }) => version).filter((version) => version !== '')),
  ];
  const { package: name, channel, minVersion, maxVersion } = pick;
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
          <VersionSelect
            label="From"
            name={`From version of ${label}`}
            versions={versions}
            value={minVersion}
            onChange={(version) => onChange(withBounds(target, version, maxVersion))}
          />
          <VersionSelect
            label="to"
            name={`to version of ${label}`}
            versions={versions}
            value={maxVersion}
            onChange={(version) => onChange(withBounds(target, minVersion, version))}
          />
        </>
      )}
      {mode === 'single' && (
        <VersionSelect
          label=""
          name={`Version of ${label}`}
          versions={versions}
          value={minVersion}
          isRequired
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

function withBounds(
  target: SelectionPick,
  minVersion: string | undefined,
  maxVersion: string | undefined,
): SelectionPick {
  return { ...target, ...(minVersion && { minVersion }), ...(maxVersion && { maxVersion }) };
}

function VersionSelect({
  label,
  name,
  versions,
  value = '',
  isRequired = false,
  onChange,
}: {
  label: string;
  name: string;
  versions: string[];
  value: string | undefined;
  isRequired?: boolean;
  onChange: (version: string) => void;
}) {
  // What the address has stays a choice, even if no bundle has it.
  const choices = value === '' || versions.includes(value) ? versions : [value, ...versions];
  return (
    <label class="filter">
      {label}{' '}
      <select value={value} aria-label={name} onChange={(event) => onChange(event.currentTarget.value)}>
        {!isRequired && <option value="">–</option>}
        {choices.map((version) => (
          <option key={version} value={version}>
            {version}
          </option>
        ))}
      </select>
    </label>
  );
}

function VersionList({
  label,
  versions,
  chosen,
  onChange,
}: {
  label: string;
  versions: string[];
  chosen: readonly string[];
  onChange: (versions: string[]) => void;
}) {
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
