import { openTogether } from '../../core/concurrency.js';
import { describeEdit } from '../../repo/changed-file.js';
import { requireCatalogName } from '../../repo/ci-config.js';
import { planOnboarding } from '../../repo/onboard.js';
import { openRepository, requireOperators } from '../../repo/repository.js';
import { compareCatalogs, writeRepository } from '../../repo/write-catalogs.js';
import type { Session } from '../../source/session.js';
import { openCatalog } from '../open-catalog.js';
import type { RepositoryEdit } from './release-bundle.js';
import { withRendering } from './rendering-session.js';

/** Options of `onboardOperator`. */
export interface OnboardOperatorOptions {
  operator: string;
  /** References of published indexes by catalog: `v4.18`. */
  indexes: Readonly<Record<string, string>>;
  /** Return the changes without writing them. */
  dryRun?: boolean | undefined;
}

/** Result of `onboardOperator`. */
export interface OnboardedOperator extends RepositoryEdit {
  packageName: string;
  /** Catalogs whose index lacks the package. */
  absent: string[];
}

/**
 * Converts an operator to file-based catalogs: a basic template per index that has its package, their mapping in
 * `ci.yaml`, and the rendered catalogs. All files change or none. Throws OpmateError.
 */
export async function onboardOperator(
  root: string,
  session: Session,
  { operator, indexes, dryRun = false }: OnboardOperatorOptions,
): Promise<OnboardedOperator> {
  const repository = await openRepository(root);
  await requireOperators(repository, [operator]);
  for (const name of Object.keys(indexes)) requireCatalogName(name);
  const opened = await openTogether(session.signal, async (open) => {
    const list = [];
    for (const [catalog, reference] of Object.entries(indexes)) {
      const source = await openCatalog(reference, session);
      open.push(source);
      list.push({ catalog, content: source.catalog });
    }
    return { list };
  });
  try {
    return await withRendering(session, async (rendering) => {
      const plan = await planOnboarding(repository, operator, opened.list, session, rendering);
      const states = await compareCatalogs(repository, plan.catalogs);
      if (!dryRun) await writeRepository(repository, { catalogs: plan.catalogs, states, files: plan.files });
      const { packageName, absent, files } = plan;
      return { packageName, absent, ...describeEdit(files), catalogs: states };
    });
  } finally {
    await opened.close();
  }
}
