import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { diffChangedFiles } from '../../repo/changed-file.js';
import { isPlainName } from '../../repo/ci-config.js';
import { type PromotedOperator, planPromotion, writePromotion } from '../../repo/promote.js';
import { openRepository } from '../../repo/repository.js';
import type { Session } from '../../source/session.js';
import { renderRepository } from './render-repository.js';

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
  for (const name of [from, to]) {
    if (!isPlainName(name)) throw new UsageError(`invalid catalog ${quoteGo(name)}`, { hint: 'use v4.18' });
  }
  if (from === to) throw new UsageError('the catalogs are the same');
  const repository = await openRepository(root);
  const operators = await planPromotion(repository, from, to);
  const diff = diffChangedFiles(operators.flatMap(({ config }) => config ?? []));
  if (dryRun) return { operators, diff };
  await writePromotion(repository, operators, from, to);
  const mapped = operators.filter(({ config }) => config !== undefined).map(({ operator }) => operator);
  if (rerender && mapped.length > 0) {
    await renderRepository(root, session, { operators: mapped, catalogs: [to] });
  }
  return { operators, diff };
}
