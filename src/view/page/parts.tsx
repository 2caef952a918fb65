import { type ComponentChildren, Fragment } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { printable } from '../../core/printable.js';
import type { LocatedProblem, ProblemCounts, SelectionImages } from '../responses.js';
import { foldNames } from './fold-names.js';
import { getUrl, getPackageUrl, allPackages } from './route.js';

/** Placeholder of a pending or failed request. */
export function Waiting({ error }: { error: string | undefined }) {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 250);
    return () => clearTimeout(timer);
  }, []);
  if (error !== undefined) {
    return (
      <p class="note error" role="alert">
        {error}
      </p>
    );
  }
  return (
    <p class="note" role="status">
      {isLate ? 'Reading…' : ''}
    </p>
  );
}

/** View of a route to something unknown. */
export function Missing({ error, search = '' }: { error: string; search?: string }) {
  return (
    <>
      <div class="heading">
        <PageHeading title="Not found" />
      </div>
      <p class="note error" role="alert">
        {error}
      </p>
      <p class="links">
        <a href={getUrl(allPackages)}>All packages</a>
        {search !== '' && (
          <a href={getUrl({ ...allPackages, query: search })}>
            Search for <bdi>{search}</bdi>
          </a>
        )}
      </p>
    </>
  );
}

/** Button that saves a text as a file. */
export function SaveButton({ label, file, type, text }: SaveButtonProps) {
  const save = async (): Promise<void> => {
    const url = URL.createObjectURL(new Blob([await text()], { type }));
    const link = document.createElement('a');
    link.href = url;
    link.download = file.replace(/[^A-Za-z0-9._-]+/g, '-');
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return (
    <button type="button" class="quiet" onClick={() => void save()}>
      {label}
    </button>
  );
}

interface SaveButtonProps {
  label: string;
  /** File name; characters that file systems reject are replaced. */
  file: string;
  type: string;
  text: () => string | Promise<string>;
}

/** Button that copies a text. */
export function CopyButton(props: { label: string; name: string; text: () => string | Promise<string> }) {
  const { label, name, text } = props;
  const [state, setState] = useState<'copied' | 'not copied'>();
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(await text());
      setState('copied');
    } catch {
      setState('not copied');
    }
    setTimeout(() => setState(undefined), 1_500);
  };
  return (
    <button
      type="button"
      class="quiet"
      onClick={() => void copy()}
      aria-label={state === undefined ? name : `${name}: ${state}`}
    >
      {state ?? label}
    </button>
  );
}

/** Heading of a view. Takes the focus when it changes, for screen readers. */
export function PageHeading({ title, children }: { title: string; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${printable(title)} · opmate`;
    // Do not interrupt typing.
    if (!(document.activeElement instanceof HTMLInputElement))
      heading.current?.focus({ preventScroll: true });
  }, [title]);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children ?? title}
    </h1>
  );
}

/** Label with the color of a kind. */
export function Badge(props: { kind: string; title?: string; children: ComponentChildren }) {
  const { kind, title, children } = props;
  return (
    <span class={`badge ${kind}`} title={title}>
      {children}
    </span>
  );
}

/** Numbers of errors and warnings, if any. */
export function ProblemBadges({ errors, warnings }: ProblemCounts) {
  return (
    <>
      {errors > 0 && <Badge kind="error">{formatCount(errors, 'error')}</Badge>}
      {warnings > 0 && <Badge kind="warning">{formatCount(warnings, 'warning')}</Badge>}
    </>
  );
}

/** Text with a copy button. */
export function Copyable({ text }: { text: string }) {
  return (
    <span class="copyable">
      <code>{text}</code>
      <CopyButton label="copy" name={`Copy ${text}`} text={() => text} />
    </span>
  );
}

/** Findings with their places and hints. */
export function ProblemList(props: { problems: LocatedProblem[]; showPackage?: boolean }) {
  const { problems, showPackage = false } = props;
  return (
    <ul class={`problems${problems.every(({ severity }) => severity !== 'error') ? ' only-warnings' : ''}`}>
      {problems.map((problem, index) => (
        <li key={index} class={problem.severity}>
          <Badge kind={problem.severity}>{problem.severity}</Badge>
          <div>
            <Message key={problem.message} text={problem.message} />
            {problem.hint !== '' && <p class="hint">{problem.hint}</p>}
            <p class="place">
              {showPackage && problem.package !== '' && (
                <a href={getPackageUrl(problem.package, problem.channel, problem.bundle)}>
                  <NamePath names={[problem.package, problem.channel, problem.bundle]} />
                </a>
              )}
              {problem.check !== '' && <span>{problem.check}</span>}
              {problem.file !== '' && (
                <code>
                  <bdi>{problem.file}</bdi>
                  {problem.line !== undefined && `:${problem.line}`}
                </code>
              )}
            </p>
          </div>
        </li>
      ))}
    </ul>
  );
}

/** Message; the names after the third of a list at its end are collapsed. */
function Message({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  const message = useRef<HTMLParagraphElement>(null);
  const folded = foldNames(text);
  // The focused button disappears: move the focus to the message.
  const unfold = (): void => {
    setWhole(true);
    message.current?.focus();
  };
  return (
    <p class="message" ref={message} tabIndex={-1}>
      {isWhole || folded === undefined ? (
        text
      ) : (
        <>
          {folded.shown}{' '}
          <button type="button" class="quiet" onClick={unfold}>
            and {folded.hidden.toLocaleString('en')} more
          </button>
        </>
      )}
    </p>
  );
}

/** Nested names, `package › channel › bundle`, without empty ones. */
export function NamePath({ names }: { names: string[] }) {
  return (
    <>
      {names.filter(Boolean).map((name, index) => (
        <Fragment key={index}>
          {index > 0 && ' › '}
          <bdi>{name}</bdi>
        </Fragment>
      ))}
    </>
  );
}

/** Formats a number with its noun: `1 bundle`, `1,200 bundles`. */
export function formatCount(amount: number, noun: string): string {
  const plural = noun === 'entry' ? 'entries' : `${noun}s`;
  return `${amount.toLocaleString('en')} ${amount === 1 ? noun : plural}`;
}

/** Drop-down list. A value that is not an option is listed too, since it may come from the URL. */
export function Choice(props: {
  label: string;
  /** Accessible name; default: the label. */
  name?: string;
  /** Label of the empty value; undefined if a value is required. */
  all: string | undefined;
  options: readonly { value: string; label: string }[];
  value: string;
  onChange: (value: string) => void;
}) {
  const { label, name, all, options, value, onChange } = props;
  const isListed = value === '' || options.some((option) => option.value === value);
  return (
    <label class="filter">
      {label}{' '}
      <select value={value} aria-label={name} onChange={(event) => onChange(event.currentTarget.value)}>
        {all !== undefined && <option value="">{all}</option>}
        {(isListed ? options : [{ value, label: value }, ...options]).map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </label>
  );
}

const firstLines = 12;

/** Shows the first 12 texts of a list, and a button for the others. */
export function Lines({ lines, class: name }: { lines: readonly string[]; class?: string }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? lines : lines.slice(0, firstLines);
  return (
    <>
      <ul class={name}>
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

/** Button that shows more items of a long list. */
export function MoreButton({ shown, total, onClick }: { shown: number; total: number; onClick: () => void }) {
  return (
    <button type="button" class="more" onClick={onClick}>
      Show more ({shown.toLocaleString('en')} of {total.toLocaleString('en')})
    </button>
  );
}

/** Buttons that copy and save a list of images. */
export function ImageButtons(props: {
  /** File name without extension. */
  file: string;
  list: () => SelectionImages['images'] | Promise<SelectionImages['images']>;
}) {
  const { file, list } = props;
  const lines = async (): Promise<string> => (await list()).map(({ image }) => `${image}\n`).join('');
  const json = async (): Promise<string> => `${JSON.stringify({ images: await list() }, null, 2)}\n`;
  return (
    <>
      <CopyButton label="Copy all" name="Copy all images" text={lines} />
      <SaveButton label="Save text" file={`${file}.txt`} type="text/plain" text={lines} />
      <SaveButton label="Save JSON" file={`${file}.json`} type="application/json" text={json} />
    </>
  );
}

/** Collapsed section. */
export function Fold(props: {
  title: ComponentChildren;
  amount?: number | string;
  badge?: ComponentChildren;
  children: ComponentChildren;
}) {
  const { title, amount, badge, children } = props;
  return (
    <details class="fold">
      <summary>
        {title}
        {amount !== undefined && (
          <>
            {' '}
            <small>{amount}</small>
          </>
        )}
        {badge}
      </summary>
      {children}
    </details>
  );
}

/** Term of a description list with its description. */
export function Item({ term, children }: { term: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Head of a table. */
export function TableHead({ columns }: { columns: string[] }) {
  return (
    <thead>
      <tr>
        {columns.map((column) => (
          <th key={column} scope="col">
            {column}
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** Section of a panel. */
export function Part(props: { title: string; amount?: number; children: ComponentChildren }) {
  const { title, amount, children } = props;
  return (
    <section class="part">
      <h3>
        {title}
        {amount !== undefined && <small> {amount}</small>}
      </h3>
      {children}
    </section>
  );
}
