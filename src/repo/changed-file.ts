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

/** Changes of files as a unified diff, and the files that have the new content already. */
interface FileChanges {
  diff: string;
  /** Relative to the repository. */
  unchanged: string[];
}

/** Returns the changes, and the paths of unchanged files. */
export function describeEdit(files: readonly ChangedFile[]): FileChanges {
  const unchanged = files.filter(({ before, after }) => before === after).map(({ path }) => path);
  return { diff: diffChangedFiles(files), unchanged };
}
