import { type RepositoryChanges, compareWithBase } from '../../repo/changes.js';
import { openGitTree } from '../../repo/git-tree.js';
import { type OperatorRepository, openRepository } from '../../repo/repository.js';
import type { Session } from '../../source/session.js';

/** Options of `readRepositoryChanges`. */
export interface RepositoryChangesOptions {
  /** Revision of Git that the working tree is compared with. */
  base: string;
  /** Changed paths; default: those that differ from the merge base. */
  files?: readonly string[] | undefined;
}

/**
 * Returns the operators, bundles and catalogs that differ from a revision of Git, and the rules of pull requests that
 * they break. Requires git. Throws OpmateError.
 */
export async function readRepositoryChanges(
  root: string,
  session: Session,
  { base, files }: RepositoryChangesOptions,
): Promise<RepositoryChanges> {
  return detectChanges(await openRepository(root), session, base, files);
}

/** Does the same in an opened repository. */
export async function detectChanges(
  repository: OperatorRepository,
  session: Session,
  base: string,
  files?: readonly string[],
): Promise<RepositoryChanges> {
  const git = await openGitTree(repository, base, session);
  return compareWithBase(repository, git, files ?? (await git.listChangedFiles()), session);
}
