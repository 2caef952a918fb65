import { OpmateError } from '../../core/errors.js';
import { getText } from '../../document/json-fields.js';
import { listCatalogBundles } from '../../repo/catalog-bundles.js';
import { readCheckedBundle } from '../../repo/checks/bundle-model.js';
import { readCiConfig } from '../../repo/ci-config.js';
import {
  type OperatorRepository,
  findCatalogFile,
  listBundleDirectories,
  listCatalogsOf,
  listOperators,
  openRepository,
  pathIn,
} from '../../repo/repository.js';
import type { Session } from '../../source/session.js';
import { renderRepository } from './render-repository.js';

/** A part of a repository that is out of date. */
export interface OutdatedPart {
  operator: string;
  /** Relative to the repository. */
  path: string;
  reason: string;
}

const reasons = {
  created: 'not rendered yet',
  changed: 'differs from its template and bundles',
  removed: 'no longer mapped in ci.yaml',
} as const;

/**
 * Returns the catalogs that differ from their templates, and the bundles of operators with file-based catalogs that no
 * catalog contains. Writes nothing. Throws OpmateError.
 */
export async function readRepositoryStatus(
  root: string,
  session: Session,
  { operators }: { operators?: readonly string[] | undefined } = {},
): Promise<OutdatedPart[]> {
  const { catalogs } = await renderRepository(root, session, { operators, check: true });
  const parts: OutdatedPart[] = catalogs.flatMap(({ operator, directory, state }) =>
    state === 'unchanged' ? [] : [{ operator, path: directory, reason: reasons[state] }],
  );
  const repository = await openRepository(root);
  for (const operator of operators ?? (await listOperators(repository))) {
    const config = await readCiConfig(repository, operator);
    if (config?.isFbcEnabled === true) parts.push(...(await findUnreleased(repository, operator, session)));
  }
  return parts;
}

async function findUnreleased(
  repository: OperatorRepository,
  operator: string,
  session: Session,
): Promise<OutdatedPart[]> {
  const versions = await listBundleDirectories(repository, operator);
  if (versions.length === 0) return [];
  const published = new Set<string>();
  for (const catalog of await listCatalogsOf(repository, operator)) {
    const file = await findCatalogFile(repository, catalog, operator);
    const bundles = file === undefined ? [] : await listCatalogBundles(pathIn(repository, file), session);
    for (const { name } of bundles) published.add(name);
  }
  const parts: OutdatedPart[] = [];
  for (const version of versions) {
    const bundle = await readCheckedBundle(repository, operator, version);
    const path = `operators/${operator}/${version}`;
    try {
      const name = getText(bundle.getCsv().value, 'metadata', 'name');
      if (!published.has(name)) parts.push({ operator, path, reason: 'in no catalog' });
    } catch (error) {
      if (!(error instanceof OpmateError) || error.code === 'CANCELLED') throw error;
      parts.push({ operator, path, reason: error.message });
    }
  }
  return parts;
}
