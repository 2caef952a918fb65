import { useState } from 'preact/hooks';
import type {
  SelectionBytes,
  SelectionImages,
  SelectionSummary,
  SelectionRequest,
  WrittenFile,
  SelectionWrite,
} from '../../responses.js';
import { CopyButton, ImageButtons, Lines, Part, formatCount } from '../parts.js';
import { describeError } from '../requests.js';
import { post, usePosted } from './post.js';

interface ResultProps {
  plan: SelectionSummary;
  request: SelectionRequest;
  file: string;
  canWrite: boolean;
  onAdd: (name: string) => void;
  /** Called after each attempt to write. */
  onWrite: () => void;
}

/** Contents of a selection, with buttons that write and copy its document. */
export function Result(props: ResultProps) {
  const { plan, request, onAdd } = props;
  return (
    <>
      <h2 class="unseen">Selected content</h2>
      <Writing {...props} />
      <Images request={request} images={plan.images} />
      <Bytes request={request} images={plan.images} />
      {plan.unmet.length > 0 && (
        <Part title="Unmet dependencies">
          <Lines class="apis" lines={plan.unmet} />
          {plan.missingPackages.map((name) => (
            <button key={name} type="button" onClick={() => onAdd(name)}>
              Add {name}
            </button>
          ))}
        </Part>
      )}
      <Upgrades plan={plan} />
      {plan.kept.length > 0 && (
        <Part title="Kept in addition">
          <Lines class="apis" lines={plan.kept.map(({ bundle, reason }) => `${bundle} ${reason}`)} />
        </Part>
      )}
      {plan.warnings.length + plan.changes.length > 0 && (
        <Part title="Warnings and changes">
          <Lines class="apis" lines={[...plan.warnings, ...plan.changes]} />
        </Part>
      )}
      <Part title="Document">
        <pre class="document">{plan.text}</pre>
      </Part>
    </>
  );
}

/** Buttons that write and copy the document, and what the last attempt to write resulted in. */
function Writing(props: Pick<ResultProps, 'plan' | 'request' | 'file' | 'canWrite' | 'onWrite'>) {
  const { plan, request, file, canWrite, onWrite } = props;
  const [written, setWritten] = useState<{ text: string; isError: boolean }>();
  const write = async (): Promise<void> => {
    const body: SelectionWrite = { ...request, fileDigest: plan.fileDigest };
    try {
      const { file: name, bytes } = await post<WrittenFile>('api/edit/write', body);
      setWritten({ text: `Written: ${name}, ${formatCount(bytes, 'byte')}`, isError: false });
    } catch (error) {
      setWritten({ text: describeError(error), isError: true });
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
    </>
  );
}

/** What of each selected channel still upgrades to its head. */
function Upgrades({ plan: { packages } }: { plan: SelectionSummary }) {
  if (packages.length === 0) return null;
  return (
    <Part title="Upgrades">
      <ul class="apis">
        {packages.flatMap(({ name, channels }) =>
          channels.map((channel) => (
            <li key={`${name}/${channel.name}`}>
              <strong>{name}</strong> {channel.name} <span class="id">{channel.head}</span>{' '}
              <small>{formatCount(channel.entries, 'bundle')} kept</small>
              <p>
                {channel.strandedCount === 0
                  ? 'every version of the channel still upgrades to the head'
                  : `${channel.upgradable} of ${channel.upgradable + channel.strandedCount} versions upgrade to the head`}
              </p>
              {channel.strandedCount > 0 && (
                <details>
                  <summary>{formatCount(channel.strandedCount, 'version')} without an upgrade</summary>
                  <Lines class="apis" lines={channel.stranded} />
                </details>
              )}
            </li>
          )),
        )}
      </ul>
    </Part>
  );
}

function Images({ request, images }: { request: SelectionRequest; images: number }) {
  if (images === 0) return null;
  return (
    <Part title="Images">
      <p>
        {formatCount(images, 'image')}{' '}
        <ImageButtons
          file="selection-images"
          list={async () => (await post<SelectionImages>('api/edit/images', request)).images}
        />
      </p>
    </Part>
  );
}

/** Size of the images, read from registries on request. */
function Bytes({ request, images }: { request: SelectionRequest; images: number }) {
  const [isWanted, setWanted] = useState(false);
  const { value, error, isPending } = usePosted<SelectionBytes>(
    'api/edit/bytes',
    isWanted && request.picks.length > 0 ? request : undefined,
  );
  return (
    <Part title="Size">
      <label class="filter">
        <input
          type="checkbox"
          checked={isWanted}
          onChange={(event) => setWanted(event.currentTarget.checked)}
        />{' '}
        Read the sizes of {formatCount(images, 'image')} from their registries
      </label>
      {isWanted && error !== undefined && !isPending && <p class="note error">{error}</p>}
      {isWanted && isPending && <p role="status">Reading manifests…</p>}
      {isWanted && !isPending && value !== undefined && (
        <>
          <p role="status">
            <strong>{formatAmount(value.bytes)}</strong> in {formatCount(value.images, 'image')}
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
              <summary>{formatCount(value.unavailableCount, 'image')} unavailable, not counted</summary>
              <Lines
                class="apis"
                lines={value.unavailable.map(({ image, reason }) => `${image}: ${reason}`)}
              />
            </details>
          )}
        </>
      )}
    </Part>
  );
}

function formatAmount(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const position = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), units.length - 1);
  return `${(bytes / 1024 ** position).toFixed(position === 0 ? 0 : 1)} ${units[position]}`;
}
