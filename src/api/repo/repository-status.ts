import path from 'node:path';
import { ErrorList } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { PackageOwners } from '../../repo/package-owners.js';
import { makeDirectory } from '../../files/make-directory.js';
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
  requireOperators,
} from '../../repo/repository.js';
import { renderConfigs } from '../../repo/render-catalogs.js';
import { type CatalogState, compareCatalogs } from '../../repo/write-catalogs.js';
import { type Session, withChanges } from '../../source/session.js';
import { withRendering } from './rendering-session.js';

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

/** Parts of a repository that are out of date, as far as they could be compared. */
export interface RepositoryStatus {
  parts: OutdatedPart[];
  /** Errors of operators that could not be compared. */
  errors: OpmateError[];
}

/** Options of `readRepositoryStatus`. */
export interface RepositoryStatusOptions {
  operators?: readonly string[] | undefined;
  /** Total retry time of a request; default: that of the session. */
  retryTimeoutMs?: number | undefined;
}

/**
 * Returns the catalogs that differ from their templates, and the bundles of operators with file-based catalogs that
 * neither a catalog nor a template contains. Operators are compared one by one, and a registry that became unreachable is not requested again.
 * Writes nothing. Throws OpmateError for a directory that is no repository and unknown operators.
 */
export async function readRepositoryStatus(
  root: string,
  session: Session,
  { operators, retryTimeoutMs }: RepositoryStatusOptions = {},
): Promise<RepositoryStatus> {
  const repository = await openRepository(root);
  if (operators !== undefined) await requireOperators(repository, operators);
  const parts: OutdatedPart[] = [];
  const list = new ErrorList(session.signal);
  const names = operators ?? (await listOperators(repository));
  const compared = new Set(names);
  const owners = new PackageOwners(repository, session, (name) => compared.has(name));
  await withRetryTime(session, retryTimeoutMs, (waiting) =>
    withRendering(waiting, async ({ bundles, directory }) => {
      for (const operator of names) {
        const config = await list.try(() => readCiConfig(repository, operator));
        if (config === undefined) continue;
        const rendered = new Set<string>();
        const outdated = await list.try(async () => {
          if (config.mappings.length === 0) return [];
          const own = path.join(directory, operator);
          await makeDirectory(own);
          const configs = new Map([[operator, config]]);
          const options = { bundles, directory: own, owners };
          const catalogs = await renderConfigs(repository, waiting, configs, options);
          for (const catalog of catalogs)
            for (const { name } of catalog.rendered?.facts.bundles ?? []) rendered.add(name);
          return listOutdated(await compareCatalogs(repository, catalogs));
        });
        const unreleased = await list.try(() =>
          config.isFbcEnabled ? findUnreleased(repository, operator, rendered, session) : [],
        );
        parts.push(...(outdated ?? []), ...(unreleased ?? []));
      }
    }),
  );
  return { parts, errors: [...new Map(list.errors.map((error) => [error.message, error])).values()] };
}

/** Runs `work` with a session whose requests are retried for another time. */
async function withRetryTime<T>(
  session: Session,
  retryTimeoutMs: number | undefined,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  if (retryTimeoutMs === undefined) return work(session);
  const connection = await session.connectAnew({ retryTimeoutMs });
  try {
    return await work(withChanges(session, { connect: () => Promise.resolve(connection) }));
  } finally {
    connection.close();
  }
}

function listOutdated(catalogs: readonly CatalogState[]): OutdatedPart[] {
  return catalogs
    .flatMap(({ operator, directory, state }) =>
      state === 'unchanged' ? [] : [{ operator, path: directory, reason: reasons[state] }],
    )
    .sort((a, b) => compareBytes(a.path, b.path));
}

/** Returns the bundles of an operator that are neither in its committed nor in its rendered catalogs. */
async function findUnreleased(
  repository: OperatorRepository,
  operator: string,
  rendered: ReadonlySet<string>,
  session: Session,
): Promise<OutdatedPart[]> {
  const versions = await listBundleDirectories(repository, operator);
  if (versions.length === 0) return [];
  const published = new Set(rendered);
  for (const catalog of await listCatalogsOf(repository, operator)) {
    const file = await findCatalogFile(repository, catalog, operator);
    const bundles = file === undefined ? [] : await listCatalogBundles(pathIn(repository, file), session);
    for (const { name } of bundles) published.add(name);
  }
  const parts: OutdatedPart[] = [];
  for (const version of versions) {
    const bundle = await readCheckedBundle(repository, operator, version);
    const place = `operators/${operator}/${version}`;
    try {
      const name = getText(bundle.getCsv().value, 'metadata', 'name');
      if (!published.has(name)) parts.push({ operator, path: place, reason: 'in no catalog' });
    } catch (error) {
      if (!(error instanceof OpmateError) || error.code === 'CANCELLED') throw error;
      parts.push({ operator, path: place, reason: error.message });
    }
  }
  return parts;
}
