import { UsageError } from '../../core/errors.js';
import { diffChangedFiles } from '../../repo/changed-file.js';
import { requireCatalogName } from '../../repo/ci-config.js';
import { type PromotedOperator, planPromotion, writePromotion } from '../../repo/promote.js';
import { renderConfigs } from '../../repo/render-catalogs.js';
import { openRepository } from '../../repo/repository.js';
import { compareCatalogs } from '../../repo/write-catalogs.js';
import type { Session } from '../../source/session.js';
import { withRendering } from './rendering-session.js';

/** Options of `promoteCatalog`. */
export interface PromoteCatalogOptions {
  /** Catalog to copy from: `v4.22`. */
  from: string;
  /** Catalog to create: `v5.0`. */
  to: string;
  /** Render the new catalog from the templates instead of copying it. */
  rerender?: boolean | undefined;
  /** Return the changes without writing them. */
  dryRun?: boolean | undefined;
}

/** Operators of a promotion, and the changes of their `ci.yaml` as a unified diff. */
export interface PromotedCatalog {
  operators: PromotedOperator[];
  diff: string;
  /** Operators whose catalog was rendered anew. */
  rendered: string[];
}

/**
 * Creates the catalog of an OpenShift version from that of another one, for operators whose
 * `version_promotion_strategy` allows it. All files change or none. Throws OpmateError.
 */
export async function promoteCatalog(
  root: string,
  session: Session,
  { from, to, rerender = false, dryRun = false }: PromoteCatalogOptions,
): Promise<PromotedCatalog> {
  for (const name of [from, to]) requireCatalogName(name);
  if (from === to) throw new UsageError('the catalogs are the same');
  const repository = await openRepository(root);
  const operators = await planPromotion(repository, from, to);
  const diff = diffChangedFiles(operators.flatMap(({ config }) => config ?? []));
  const write = async (rendered: ReadonlyMap<string, string>): Promise<PromotedCatalog> => {
    if (!dryRun) await writePromotion(repository, operators, { source: from, target: to, rendered });
    return { operators, diff, rendered: [...rendered.keys()] };
  };
  if (!rerender) return write(new Map());
  const configs = new Map(
    operators.flatMap(({ operator, promotion, mapped }) =>
      promotion === 'never' || mapped === undefined ? [] : [[operator, mapped] as const],
    ),
  );
  return withRendering(session, async (rendering) => {
    const options = { catalogs: [to], ...rendering };
    const catalogs = configs.size === 0 ? [] : await renderConfigs(repository, session, configs, options);
    const states = await compareCatalogs(repository, catalogs);
    const changed = catalogs.flatMap(({ operator, rendered }, index) =>
      rendered === undefined || states[index]?.state === 'unchanged'
        ? []
        : [[operator, rendered.file] as const],
    );
    return write(new Map(changed));
  });
}
