import { UsageError } from '../core/errors.js';

/**
 * Validates a git repository and returns it unchanged: a URL (`https`, `ssh`, `file`, or `http`, which fetching may
 * reject) or `[USER@]HOST:PATH`. Throws UsageError, which never contains the text.
 */
export function parseGitRepository(text: string): string {
  const isScp = /^(?:[\w.-]+@)?[\w.-]+:(?!\/\/)[\w./~-]+$/.test(text) && !text.startsWith('-');
  if (isScp) return text;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isKnown = url !== undefined && /^(?:https?|ssh|file):$/.test(url.protocol) && url.pathname.length > 1;
  // A host that begins with a dash would be an option of ssh.
  if (!isKnown || /^[a-z]+:\/\/-/.test(text) || (url.protocol === 'file:' && url.host !== '')) {
    throw new UsageError('invalid git repository URL', {
      hint: 'use https://HOST/PATH, git@HOST:PATH or file:///PATH',
    });
  }
  if (url.password !== '' || (url.username !== '' && url.protocol !== 'ssh:')) {
    throw new UsageError('URL must not contain credentials', { hint: 'move them to a Secret' });
  }
  return text;
}

/** Reports whether a text is a valid branch or tag name without wildcards. (Source: git check-ref-format.) */
export function isGitRefName(text: string): boolean {
  return /^(?!.*(?:\.\.|@\{|\/\/|\/\.|\.lock(?:\/|$)))[^\0-\x20\x7f~^:?*[\\/.-][^\0-\x20\x7f~^:?*[\\]*(?<![/.])$|^[\w]$/.test(
    text,
  );
}
