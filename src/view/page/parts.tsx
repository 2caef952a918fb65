import { type ComponentChildren, Fragment } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { printable } from '../../core/printable.js';
import type { LocatedProblem } from '../answers.js';
import { foldNames } from './fold-names.js';
import { getAddress, addressOfPackage, allPackages } from './route.js';

/** What is shown in the place of something that is not there yet, or unavailable. */
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

/** Stands for a view whose address names what is not there. */
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
        <a href={getAddress(allPackages)}>All packages</a>
        {search !== '' && (
          <a href={getAddress({ ...allPackages, query: search })}>
            Search for <bdi>{search}</bdi>
          </a>
        )}
      </p>
    </>
  );
}

/** A button that saves a text as a file; the text is made when it is pressed. */
export function SaveButton({ label, file, type, text }: SaveButtonProps) {
  const save = async (): Promise<void> => {
    const address = URL.createObjectURL(new Blob([await text()], { type }));
    const link = document.createElement('a');
    link.href = address;
    link.download = file.replace(/[^A-Za-z0-9._-]+/g, '-');
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  };
  return (
    <button type="button" class="quiet" onClick={() => void save()}>
      {label}
    </button>
  );
}

interface SaveButtonProps {
  label: string;
  /** Name of the file; characters that file systems refuse are replaced. */
  file: string;
  type: string;
  text: () => string | Promise<string>;
}

/** A button that copies a text. */
export function CopyButton({
  label,
  name,
  text,
}: {
  label: string;
  name: string;
  text: () => string | Promise<string>;
}) {
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

/** The heading of what is shown. It takes the focus when it changes, so that whoever listens hears what is new. */
export function PageHeading({ title, children }: { title: string; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${printable(title)} · opmate`;
    // Who is typing stays where they are.
    if (!(document.activeElement instanceof HTMLInputElement))
      heading.current?.focus({ preventScroll: true });
  }, [title]);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children ?? title}
    </h1>
  );
}

/** A few words that stand out; `kind` gives the color, the words say it. */
export function Badge({
  kind,
  title,
  children,
}: {
  kind: string;
  title?: string;
  children: ComponentChildren;
}) {
  return (
    <span class={`badge ${kind}`} title={title}>
      {children}
    </span>
  );
}

/** How many errors and warnings there are; nothing where there are none. */
export function ProblemBadges({ errors, warnings }: { errors: number; warnings: number }) {
  return (
    <>
      {errors > 0 && <Badge kind="error">{count(errors, 'error')}</Badge>}
      {warnings > 0 && <Badge kind="warning">{count(warnings, 'warning')}</Badge>}
    </>
  );
}

/** A text with a button that copies it. */
export function Copyable({ text }: { text: string }) {
  return (
    <span class="copyable">
      <code>{text}</code>
      <CopyButton label="copy" name={`Copy ${text}`} text={() => text} />
    </span>
  );
}

/** Findings of the checks, each with where it is and what to do. */
export function ProblemList({
  problems,
  showPackage = false,
}: {
  problems: LocatedProblem[];
  showPackage?: boolean;
}) {
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
                <a href={addressOfPackage(problem.package, problem.channel, problem.bundle)}>
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

/** A message; the names beyond the third of a list at its end are shown on request. */
function Message({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  const message = useRef<HTMLParagraphElement>(null);
  const folded = foldNames(text);
  // The button goes away: who pressed it by the keyboard goes on at the message.
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

/** Names from the outer to the inner, `package › channel › bundle`; empty ones are left out. */
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

/** An amount with its noun: `1 bundle`, `1,200 bundles`. */
export function count(amount: number, noun: string): string {
  const plural = noun === 'entry' ? 'entries' : `${noun}s`;
  return `${amount.toLocaleString('en')} ${amount === 1 ? noun : plural}`;
}

/** A part of a panel, below a heading of its own. */
export function Part({
  title,
  amount,
  children,
}: {
  title: string;
  amount?: number;
  children: ComponentChildren;
}) {
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
