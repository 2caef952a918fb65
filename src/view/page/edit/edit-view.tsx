import { useState } from 'preact/hooks';
import type {
  CatalogAnswer,
  ChannelAnswer,
  EditBytesAnswer,
  EditPlanAnswer,
  EditRequest,
  EditWriteAnswer,
  PackageAnswer,
  PickRequest,
} from '../../answers.js';
import { question, useAnswer } from '../ask.js';
import { Badge, CopyButton, Missing, PageHeading, count } from '../parts.js';
import { type EditRoute, addressOfPackage, go } from '../route.js';
import { formatPick, parsePicks, replacePicks } from './picks.js';
import { post, usePosted } from './post.js';

/** Packages that are offered at a time. */
const maxOffered = 40;
/** Names of a list that are shown. */
const firstNames = 12;

/** Chooses packages, channels and versions, shows what that keeps, and writes it to the file of `--to`. */
export function EditView({ catalog, route }: { catalog: CatalogAnswer; route: EditRoute }) {
  const picks = parsePicks(route.picks);
  const image = route.catalog || catalog.edit?.catalog || '';
  // A catalog that is no image is filtered; an image is mirrored.
  const kind =
    route.kind === 'filter' || route.kind === 'imageset' ? route.kind : image === '' ? 'filter' : 'imageset';
  const request: EditRequest = { kind, catalog: image, picks };
  const plan = usePosted<EditPlanAnswer>('api/edit/plan', catalog.edit === undefined ? undefined : request);
  if (catalog.edit === undefined) {
    return (
      <Missing error="This page shows the catalog only: run opmate view --edit to select a part of it" />
    );
  }
  const change = (next: Partial<EditRoute>): void => go({ view: 'edit', ...route, ...next }, 'replace');
  const setPicks = (next: PickRequest[]): void => change({ picks: next.map(formatPick) });
  const names = [...new Set(picks.map((pick) => pick.package))];
  return (
    <>
      <div class="heading">
        <PageHeading title="Selection" />
        <p class="sums" role="status">
          {plan.value === undefined
            ? ''
            : [
                count(plan.value.packages.length, 'package'),
                count(plan.value.bundles, 'bundle'),
                count(plan.value.images, 'image'),
              ].join(' · ')}
        </p>
        <label class="filter">
          Write{' '}
          <select value={kind} onChange={(event) => change({ kind: event.currentTarget.value })}>
            <option value="imageset">ImageSetConfiguration</option>
            <option value="filter">CatalogFilter</option>
          </select>
        </label>
        {kind === 'imageset' && (
          <label class="filter">
            Catalog image{' '}
            <input
              type="text"
              class="image-name"
              value={image}
              maxLength={500}
              spellcheck={false}
              onChange={(event) => change({ catalog: event.currentTarget.value.trim() })}
            />
          </label>
        )}
      </div>
      <div class="workbench">
        <section aria-label="Packages" class="graph-side picks">
          <Offer catalog={catalog} chosen={names} onAdd={(name) => setPicks([...picks, { package: name }])} />
          {names.map((name) => (
            <PickedPackage
              key={name}
              name={name}
              picks={picks.filter((pick) => pick.package === name)}
              onChange={(own) => setPicks(replacePicks(picks, name, own))}
            />
          ))}
        </section>
        <section aria-label="Result" class="details-side">
          <div class="panel">
            {plan.error !== undefined && !plan.isPending && (
              <p class="note error" role="alert">
                {plan.error}
              </p>
            )}
            {plan.value !== undefined && (
              <Result
                plan={plan.value}
                request={request}
                file={catalog.edit.file}
                canWrite={
                  plan.error === undefined &&
                  !plan.isPending &&
                  names.length > 0 &&
                  (kind === 'filter' || image !== '')
                }
                onAdd={(name) => setPicks([...picks, { package: name }])}
              />
            )}
          </div>
        </section>
      </div>
    </>
  );
}

/** The packages that may be added, narrowed by what is typed. */
function Offer({
  catalog,
  chosen,
  onAdd,
}: {
  catalog: CatalogAnswer;
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

/** A chosen package: its channels, and bounds of versions. */
function PickedPackage({
  name,
  picks,
  onChange,
}: {
  name: string;
  picks: PickRequest[];
  onChange: (picks: PickRequest[]) => void;
}) {
  const { value, error } = useAnswer<PackageAnswer>(question('package', { package: name }));
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
          <Bounds channel={channels[0]?.name ?? ''} pick={whole} onChange={(pick) => onChange([pick])} />
        </p>
      )}
      <ul>
        {channels.map(({ name: channel, isDefault, version }) => {
          const pick = picks.find((one) => one.channel === channel);
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
                <Bounds
                  channel={channel}
                  pick={pick}
                  onChange={(next) => onChange(picks.map((one) => (one === pick ? next : one)))}
                />
              )}
            </li>
          );
        })}
      </ul>
    </fieldset>
  );
}

/** The oldest and newest version of a pick; without them, an image set takes the head of each channel. */
function Bounds({
  channel,
  pick,
  onChange,
}: {
  channel: string;
  pick: PickRequest;
  onChange: (pick: PickRequest) => void;
}) {
  const { value } = useAnswer<ChannelAnswer>(
    question('channel', { package: pick.package, channel, compare: '' }),
  );
  const versions = [
    ...new Set(value?.rows.map(({ version }) => version).filter((version) => version !== '')),
  ];
  const select = (label: string, key: 'minVersion' | 'maxVersion') => {
    const current = pick[key] ?? '';
    const change = (version: string): void => {
      const next = { ...pick, [key]: version };
      if (version === '') delete next[key];
      onChange(next);
    };
    return (
      <label class="filter">
        {label}{' '}
        <select
          value={current}
          aria-label={`${label} version of ${pick.package} ${pick.channel ?? ''}`}
          onChange={(event) => change(event.currentTarget.value)}
        >
          <option value="">–</option>
          {(current === '' || versions.includes(current) ? versions : [current, ...versions]).map(
            (version) => (
              <option key={version} value={version}>
                {version}
              </option>
            ),
          )}
        </select>
      </label>
    );
  };
  return (
    <span class="bounds">
      {select('From', 'minVersion')} {select('to', 'maxVersion')}
    </span>
  );
}

function Result({
  plan,
  request,
  file,
  canWrite,
  onAdd,
}: {
  plan: EditPlanAnswer;
  request: EditRequest;
  file: string;
  canWrite: boolean;
  onAdd: (name: string) => void;
}) {
  const [written, setWritten] = useState<{ text: string; isError: boolean }>();
  const write = async (): Promise<void> => {
    try {
      const { file: name, bytes } = await post<EditWriteAnswer>('api/edit/write', request);
      setWritten({ text: `Written: ${name}, ${count(bytes, 'byte')}`, isError: false });
    } catch (error) {
      setWritten({ text: error instanceof Error ? error.message : String(error), isError: true });
    }
  };
  return (
    <>
      <p>
        <button type="button" disabled={!canWrite} onClick={() => void write()}>
          {plan.exists ? `Overwrite ${file}` : `Write ${file}`}
        </button>{' '}
        <CopyButton label="Copy" name="Copy the document" text={() => plan.text} />
      </p>
      {written !== undefined && (
        <p class={`note ${written.isError ? 'error' : 'good'}`} role="status">
          {written.text}
        </p>
      )}
      <Bytes request={request} images={plan.images} />
      {plan.unmet.length > 0 && (
        <section class="part">
          <h3>Unmet dependencies</h3>
          <Lines lines={plan.unmet} />
          {plan.missingPackages.map((name) => (
            <button key={name} type="button" onClick={() => onAdd(name)}>
              Add {name}
            </button>
          ))}
        </section>
      )}
      {plan.packages.length > 0 && (
        <section class="part">
          <h3>Upgrades</h3>
          <ul class="apis">
            {plan.packages.flatMap(({ name, channels }) =>
              channels.map((channel) => (
                <li key={`${name}/${channel.name}`}>
                  <strong>{name}</strong> {channel.name} <span class="id">{channel.head}</span>{' '}
                  <small>{count(channel.entries, 'bundle')} kept</small>
                  <p>
                    {channel.strandedCount === 0
                      ? 'every version of the channel still upgrades to the head'
                      : `${channel.upgradable} of ${channel.upgradable + channel.strandedCount} versions upgrade to the head`}
                  </p>
                  {channel.strandedCount > 0 && (
                    <details>
                      <summary>{count(channel.strandedCount, 'version')} without an upgrade</summary>
                      <Lines lines={channel.stranded} />
                    </details>
                  )}
                </li>
              )),
            )}
          </ul>
        </section>
      )}
      {plan.kept.length > 0 && (
        <section class="part">
          <h3>Kept in addition</h3>
          <Lines lines={plan.kept.map(({ bundle, reason }) => `${bundle} ${reason}`)} />
        </section>
      )}
      {plan.warnings.length + plan.changes.length > 0 && (
        <section class="part">
          <h3>Warnings and changes</h3>
          <Lines lines={[...plan.warnings, ...plan.changes]} />
        </section>
      )}
      <section class="part">
        <h3>Document</h3>
        <pre class="document">{plan.text}</pre>
      </section>
    </>
  );
}

/** Bytes of the images; registries are asked only once the user wants it. */
function Bytes({ request, images }: { request: EditRequest; images: number }) {
  const [isWanted, setWanted] = useState(false);
  const { value, error, isPending } = usePosted<EditBytesAnswer>(
    'api/edit/bytes',
    isWanted && request.picks.length > 0 ? request : undefined,
  );
  return (
    <section class="part">
      <h3>Size</h3>
      <label class="filter">
        <input
          type="checkbox"
          checked={isWanted}
          onChange={(event) => setWanted(event.currentTarget.checked)}
        />{' '}
        Read the sizes of {count(images, 'image')} from their registries
      </label>
      {isWanted && error !== undefined && !isPending && <p class="note error">{error}</p>}
      {isWanted && isPending && <p role="status">Reading manifests…</p>}
      {isWanted && !isPending && value !== undefined && (
        <>
          <p role="status">
            <strong>{amountOf(value.bytes)}</strong> in {count(value.images, 'image')}
          </p>
          <ul class="apis">
            {value.packages.map(({ name, bytes, ownBytes }) => (
              <li key={name}>
                {name}{' '}
                <small>
                  {amountOf(bytes)}, unique {amountOf(ownBytes)}
                </small>
              </li>
            ))}
          </ul>
          {value.unavailableCount > 0 && (
            <details>
              <summary>{count(value.unavailableCount, 'image')} unavailable, not counted</summary>
              <Lines lines={value.unavailable.map(({ image, reason }) => `${image}: ${reason}`)} />
            </details>
          )}
        </>
      )}
    </section>
  );
}

function Lines({ lines }: { lines: readonly string[] }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? lines : lines.slice(0, firstNames);
  return (
    <>
      <ul class="apis">
        {shown.map((line, at) => (
          <li key={at}>{line}</li>
        ))}
      </ul>
      {lines.length > shown.length && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          {lines.length - shown.length} more
        </button>
      )}
    </>
  );
}

function amountOf(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const at = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), units.length - 1);
  return `${(bytes / 1024 ** at).toFixed(at === 0 ? 0 : 1)} ${units[at]}`;
}
