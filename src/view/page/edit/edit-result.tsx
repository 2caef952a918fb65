import { useState } from 'preact/hooks';
import type {
  SelectionBytes,
  SelectionImages,
  SelectionSummary,
  SelectionRequest,
  WrittenFile,
  SelectionWrite,
} from '../../answers.js';
import { CopyButton, Part, SaveButton, count } from '../parts.js';
import { post, usePosted } from './post.js';

/** Names of a list that are shown. */
const firstNames = 12;

/** What a selection keeps, and the document that it makes, to be written. */
export function Result({
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
        <Part title="Unmet dependencies">
          <Lines lines={plan.unmet} />
          {plan.missingPackages.map((name) => (
            <button key={name} type="button" onClick={() => onAdd(name)}>
              Add {name}
            </button>
          ))}
        </Part>
      )}
      {plan.packages.length > 0 && (
        <Part title="Upgrades">
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
        </Part>
      )}
      {plan.kept.length > 0 && (
        <Part title="Kept in addition">
          <Lines lines={plan.kept.map(({ bundle, reason }) => `${bundle} ${reason}`)} />
        </Part>
      )}
      {plan.warnings.length + plan.changes.length > 0 && (
        <Part title="Warnings and changes">
          <Lines lines={[...plan.warnings, ...plan.changes]} />
        </Part>
      )}
      <Part title="Document">
        <pre class="document">{plan.text}</pre>
      </Part>
    </>
  );
}

/** The images of the selection, to take along. */
function Images({ request, images }: { request: SelectionRequest; images: number }) {
  const list = async (): Promise<SelectionImages> => post<SelectionImages>('api/edit/images', request);
  const lines = async (): Promise<string> => (await list()).images.map(({ image }) => `${image}\n`).join('');
  if (images === 0) return null;
  return (
    <Part title="Images">
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
    </Part>
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
    <Part title="Size">
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
    </Part>
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
