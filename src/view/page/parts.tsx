import { type ComponentChildren, Fragment } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { printable } from '../../core/printable.js';
import type { ProblemAnswer } from '../answers.js';
import { addressOfPackage } from './route.js';

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

/** A few words that stand out; `kind` gives the colour, the words say it. */
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
  const [isCopied, setCopied] = useState(false);
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(
      () => {
        setCopied(true);
        setTimeout(() => setCopied(false), 1_500);
      },
      () => undefined,
    );
  };
  return (
    <span class="copyable">
      <code>{text}</code>
      <button type="button" class="quiet" onClick={copy} aria-label={`Copy ${text}`}>
        {isCopied ? 'copied' : 'copy'}
      </button>
    </span>
  );
}

/** Findings of the checks, each with where it is and what to do. */
export function ProblemList({
  problems,
  showPackage = false,
}: {
  problems: ProblemAnswer[];
  showPackage?: boolean;
}) {
  return (
    <ul class={`problems${problems.every(({ severity }) => severity !== 'error') ? ' only-warnings' : ''}`}>
      {problems.map((problem, at) => (
        <li key={at} class={problem.severity}>
          <Badge kind={problem.severity}>{problem.severity}</Badge>
          <div>
            <p class="message">{problem.message}</p>
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

/** Names from the outer to the inner, `package › channel › bundle`; empty ones are left out. */
export function NamePath({ names }: { names: string[] }) {
  return (
    <>
      {names.filter(Boolean).map((name, at) => (
        <Fragment key={at}>
          {at > 0 && ' › '}
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
