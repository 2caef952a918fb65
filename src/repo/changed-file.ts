import { diffLines } from '../core/text/line-diff.js';

/** A file of a repository with its new content. */
export interface ChangedFile {
  /** Relative to the repository. */
  path: string;
  /** Undefined for a new file. */
  before: string | undefined;
  after: string;
}

/** Returns the changes as a unified diff. */
export function diffChangedFiles(files: readonly ChangedFile[]): string {
  return files
    .filter(({ before, after }) => before !== after)
    .map(({ path, before, after }) => {
      const old = before === undefined ? '/dev/null' : `a/${path}`;
      return `--- ${old}\n+++ b/${path}\n${diffLines(before ?? '', after).text}`;
    })
    .join('');
}
