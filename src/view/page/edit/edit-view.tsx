import { useState } from 'preact/hooks';
import type {
  CatalogOverview,
  SelectionBytes,
  SelectionImages,
  SelectionSummary,
  SelectionRequest,
  WrittenFile,
  SelectionWrite,
  PackageDetails,
  SelectionPick,
} from '../../answers.js';
import { requestPath, useAnswer } from '../requests.js';
import { Badge, CopyButton, Missing, PageHeading, SaveButton, count } from '../parts.js';
import { type EditRoute, addressOfPackage, go } from '../route.js';
import { formatPick, parseDefaults, parsePicks, replacePicks } from './picks.js';
import { post, usePosted } from './post.js';
import { VersionChoice } from './version-choice.js';

/** Packages that are offered at a time. */
const maxOffered = 40;
/** Names of a list that are shown. */
const firstNames = 12;

/** Chooses packages, channels and versions, shows what that keeps, and writes it to the file of `--to`. */
export function EditView({ catalog, route }: { catalog: CatalogOverview; route: EditRoute }) {
  const picks = parsePicks(route.picks);
  const image = route.catalog || catalog.edit?.catalog || '';
  // A catalog that is no image is filtered; an image is mirrored.
  const kind =
    route.kind === 'filter' || route.kind === 'imageset' ? route.kind : image === '' ? 'filter' : 'imageset';
  const defaultChannels = parseDefaults(route.defaults);
  const isExact = kind === 'filter' && route.exact === 'yes';
  const request: SelectionRequest = { kind, catalog: image, picks, defaultChannels, isExact };
  // After each write the file is another one, or was changed by somebody else.
  const [writes, setWrites] = useState(0);
  const plan = usePosted<SelectionSummary>(
    'api/edit/plan',
    catalog.edit === undefined ? undefined : request,
    writes,
  );
  if (catalog.edit === undefined) {
    return (
      <Missing error="This page shows the catalog only: run opmate view --edit to select a part of it" />
    );
  }
  const change = (next: Partial<EditRoute>): void => go({ view: 'edit', ...route, ...next }, 'replace');
  const setPicks = (next: SelectionPick[]): void => change({ picks: next.map(formatPick) });
  const setDefault = (name: string, channel: string): void => {
    const others = defaultChannels.filter((choice) => choice.package !== name);
    const next = channel === '' ? others : [...others, { package: name, channel }];
    change({ defaults: next.map(formatPick) });
  };
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
        {kind === 'filter' && (
          <label class="filter">
            <input
              type="checkbox"
              checked={isExact}
              onChange={(event) => change({ exact: event.currentTarget.checked ? 'yes' : '' })}
            />{' '}
            Only the selected bundles
          </label>
        )}
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
              kind={kind}
              picks={picks.filter((pick) => pick.package === name)}
              defaultChannel={defaultChannels.find((choice) => choice.package === name)?.channel ?? ''}
              onChange={(own) => setPicks(replacePicks(picks, name, own))}
              onDefault={(channel) => setDefault(name, channel)}
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
                onWrite={() => setWrites(writes + 1)}
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
function PickedPackage({
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

function Result({
  plan,
  request,
  file,
  canWrite,
  onAdd,
  onWrite,
}: {
  plan: SelectionSummary;
  request: SelectionRequest;
  file: string;
  canWrite: boolean;
  onAdd: (name: string) => void;
  /** Called after each attempt to write. */
  onWrite: () => void;
}) {
  const [written, setWritten] = useState<{ text: string; isError: boolean }>();
  const write = async (): Promise<void> => {
    const body: SelectionWrite = { ...request, fileDigest: plan.fileDigest };
    try {
      const { file: name, bytes } = await post<WrittenFile>('api/edit/write', body);
      setWritten({ text: `Written: ${name}, ${count(bytes, 'byte')}`, isError: false });
    } catch (error) {
      setWritten({ text: error instanceof Error ? error.message : String(error), isError: true });
    }
    onWrite();
  };
  return (
    <>
      <p>
        <button type="button" disabled={!canWrite} onClick={() => void write()}>
          {plan.fileDigest !== '' ? `Overwrite ${file}` : `Write ${file}`}
        </button>{' '}
        <CopyButton label="Copy" name="Copy the document" text={() => plan.text} />
      </p>
      {written !== undefined && (
        <p class={`note ${written.isError ? 'error' : 'good'}`} role={written.isError ? 'alert' : 'status'}>
          {written.text}
        </p>
      )}
      <Images request={request} images={plan.images} />
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

/** The images of the selection, to take along. */
function Images({ request, images }: { request: SelectionRequest; images: number }) {
  const list = async (): Promise<SelectionImages> => post<SelectionImages>('api/edit/images', request);
  const lines = async (): Promise<string> => (await list()).images.map(({ image }) => `${image}\n`).join('');
  if (images === 0) return null;
  return (
    <section class="part">
      <h3>Images</h3>
      <p>
        {count(images, 'image')} <CopyButton label="Copy all" name="Copy all images" text={lines} />
        <SaveButton label="Save text" file="selection-images.txt" type="text/plain" text={lines} />
        <SaveButton
          label="Save JSON"
          file="selection-images.json"
          type="application/json"
          text={async () => `${JSON.stringify(await list(), null, 2)}\n`}
        />
      </p>
    </section>
  );
}

/** Bytes of the images; registries are read only once the user wants it. */
function Bytes({ request, images }: { request: SelectionRequest; images: number }) {
  const [isWanted, setWanted] = useState(false);
  const { value, error, isPending } = usePosted<SelectionBytes>(
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
            <strong>{formatAmount(value.bytes)}</strong> in {count(value.images, 'image')}
          </p>
          <ul class="apis">
            {value.packages.map(({ name, bytes, ownBytes }) => (
              <li key={name}>
                {name}{' '}
                <small>
                  {formatAmount(bytes)}, unique {formatAmount(ownBytes)}
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
        {shown.map((line, index) => (
          <li key={index}>{line}</li>
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

function formatAmount(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const position = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), units.length - 1);
  return `${(bytes / 1024 ** position).toFixed(position === 0 ? 0 : 1)} ${units[position]}`;
}
