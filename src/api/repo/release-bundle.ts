import { checkPullSpec } from '../../core/reference.js';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { describeEdit } from '../../repo/changed-file.js';
import { planRelease } from '../../repo/release-bundle.js';
import { openRepository, requireOperators } from '../../repo/repository.js';
import { type CatalogState, compareCatalogs, writeRepository } from '../../repo/write-catalogs.js';
import type { Session } from '../../source/session.js';
import { withRendering } from './rendering-session.js';

/** Options of `releaseBundle`. */
export interface ReleaseBundleOptions {
  operator: string;
  /** Directory of the bundle below its operator. */
  version: string;
  /** Image of the bundle, by digest in a release that is to be reproducible. */
  image: string;
  /** Return the changes without writing them. */
  dryRun?: boolean | undefined;
}

/** Changes of a repository, written or, with `dryRun`, planned. */
export interface RepositoryEdit {
  /** Changes of templates and `ci.yaml` as a unified diff. */
  diff: string;
  /** Templates and `ci.yaml` that need no change, relative to the repository. */
  unchanged: string[];
  catalogs: CatalogState[];
}

/** Result of `releaseBundle`. */
export interface ReleasedBundleEdit extends RepositoryEdit {
  /** Name of the bundle. */
  bundle: string;
}

/**
 * Adds a bundle to the templates that its `release-config.yaml` names, and renders their catalogs, which are validated
 * with all of their operators. All files change or none. Throws OpmateError.
 */
export async function releaseBundle(
  root: string,
  session: Session,
  { operator, version, image, dryRun = false }: ReleaseBundleOptions,
): Promise<ReleasedBundleEdit> {
  const fault = checkPullSpec(image);
  if (fault !== undefined) throw new UsageError(`invalid image ${quoteGo(image)}: ${fault}`);
  const repository = await openRepository(root);
  await requireOperators(repository, [operator]);
  return withRendering(session, async (rendering) => {
    const plan = await planRelease(repository, session, { operator, version, image, ...rendering });
    const states = await compareCatalogs(repository, plan.catalogs);
    if (!dryRun) {
      await writeRepository(repository, { catalogs: plan.catalogs, states, files: plan.templates });
    }
    return { bundle: plan.bundle, ...describeEdit(plan.templates), catalogs: states };
  });
}
