import { UsageError } from '../core/errors.js';

/**
 * Returns a git repository as it is written: a URL (`https`, `ssh`, `file`, or `http`, which fetching may refuse), or
 * `[USER@]HOST:PATH`. Throws UsageError, which never shows the text.
 */
export function parseGitRepository(text: string): string {
  const isScp = /^(?:[\w.-]+@)?[\w.-]+:(?!\/\/)[\w./~-]+$/.test(text) && !text.startsWith('-');
  if (isScp) return text;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isKnown = url !== undefined && /^(?:https?|ssh|file):$/.test(url.protocol) && url.pathname.length > 1;
  // A host that begins with a dash would be an option of ssh.
  if (!isKnown || /^[a-z]+:\/\/-/.test(text) || (url.protocol === 'file:' && url.host !== '')) {
    throw new UsageError('not the URL of a git repository', {
      hint: 'use https://HOST/PATH, git@HOST:PATH or file:///PATH',
    });
  }
  if (url.password !== '' || (url.username !== '' && url.protocol !== 'ssh:')) {
    throw new UsageError('credentials do not belong into a URL', { hint: 'move them to a Secret' });
  }
  return text;
}

/** Whether a text may name a branch or tag; none of these could be a pattern. (Source: git check-ref-format.) */
export function isGitRefName(text: string): boolean {
  return /^(?!.*(?:\.\.|@\{|\/\/|\/\.|\.lock(?:\/|$)))[^\0-\x20\x7f~^:?*[\\/.-][^\0-\x20\x7f~^:?*[\\]*(?<![/.])$|^[\w]$/.test(
    text,
  );
}
