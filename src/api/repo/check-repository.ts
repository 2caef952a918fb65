import { createWarning } from '../../core/diagnostic.js';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { logDiagnostic, silentLogger } from '../../core/log.js';
import { listNames } from '../../core/suggest.js';
import { findNearest } from '../../document/field.js';
import {
  type CheckTarget,
  chooseRepositoryChecks,
  type repositoryKinds,
  runRepositoryChecks,
} from '../../repo/checks/run-checks.js';
import type { RepositoryFinding } from '../../repo/checks/check.js';
import {
  type OperatorRepository,
  hasBundle,
  listBundleDirectories,
  listCatalogsOf,
  listOperators,
  openRepository,
  pathIn,
  requireCatalogs,
  requireOperators,
} from '../../repo/repository.js';
import { defaultSupported, parseSupportedVersions } from '../../repo/supported-versions.js';
import type { Session } from '../../source/session.js';
import { detectChanges } from './repository-changes.js';

export { repositoryChecks, repositoryKinds } from '../../repo/checks/run-checks.js';
export { defaultSupported } from '../../repo/supported-versions.js';

/** Options of `checkRepository`. */
export interface CheckRepositoryOptions {
  /** `OPERATOR` or `OPERATOR/VERSION`; default: all operators. A missing bundle passes, as one that a change deletes. */
  names?: readonly string[] | undefined;
  /** Check only what differs from this revision of Git. */
  base?: string | undefined;
  /** Check catalogs of these names, and no bundles except those in `names`. */
  catalogs?: readonly string[] | undefined;
  /** Default: `community`. */
  suite?: keyof typeof repositoryKinds | undefined;
  /** Names of checks that are not run. */
  skip?: readonly string[] | undefined;
  /** OpenShift versions that indexes exist for: `4.12..5.0` or a list. */
  supported?: string | undefined;
}

/**
 * Runs the static checks of operator-pipelines on an operator repository; findings have the names of those checks as
 * codes. Throws UsageError for an unknown check, OpmateError for an unknown operator or catalog.
 */
export async function checkRepository(
  root: string,
  session: Session,
  options: CheckRepositoryOptions = {},
): Promise<RepositoryFinding[]> {
  const checks = chooseRepositoryChecks(options.suite ?? 'community', options.skip);
  const supported = parseSupportedVersions(options.supported ?? defaultSupported);
  const repository = await openRepository(root);
  const targets =
    options.base === undefined
      ? await selectTargets(repository, session, options)
      : await selectChanged(repository, session, options.base);
  return runRepositoryChecks(repository, targets, session, { checks, supported });
}

async function selectTargets(
  repository: OperatorRepository,
  { logger = silentLogger }: Session,
  { names, catalogs }: CheckRepositoryOptions,
): Promise<CheckTarget[]> {
  const wanted = new Map<string, string[] | undefined>();
  for (const name of names ?? (await listOperators(repository))) {
    const [operator = '', version, ...others] = name.split('/');
    if (operator === '' || version === '' || others.length > 0) {
      throw new UsageError(`invalid bundle ${quoteGo(name)}`, { hint: 'use OPERATOR or OPERATOR/VERSION' });
    }
    const versions = wanted.get(operator) ?? [];
    wanted.set(operator, version === undefined ? undefined : [...versions, version]);
  }
  await requireOperators(repository, [...wanted.keys()]);
  await requireCatalogs(repository, catalogs ?? []);
  const targets: CheckTarget[] = [];
  for (const [operator, versions] of wanted) {
    for (const version of versions ?? []) {
      if (await hasBundle(repository, operator, version)) continue;
      const details = {
        subject: pathIn(repository, 'operators', operator, version),
        hint: suggestVersion(version, await listBundleDirectories(repository, operator)),
      };
      logDiagnostic(logger, createWarning('not-a-bundle', 'not a bundle, not checked', details));
    }
    const allCatalogs = versions === undefined ? await listCatalogsOf(repository, operator) : [];
    targets.push({
      operator,
      versions: versions ?? (catalogs === undefined ? undefined : []),
      catalogs: catalogs ?? allCatalogs,
    });
  }
  return targets;
}

function suggestVersion(version: string, known: readonly string[]): string | undefined {
  if (known.length === 0) return undefined;
  const near = findNearest(version, known);
  return near === undefined ? listNames('use a known version:', known) : `did you mean ${quoteGo(near)}?`;
}

/** Selects what differs from a revision: changed operators, bundles and catalogs. */
async function selectChanged(
  repository: OperatorRepository,
  session: Session,
  base: string,
): Promise<CheckTarget[]> {
  const { result } = await detectChanges(repository, session, base);
  const split = (items: readonly string[]): [string, string][] =>
    items.map((item) => item.split('/') as [string, string]);
  const bundles = split(result.added_or_modified_bundles);
  const catalogs = split(result.added_or_modified_catalog_operators);
  const operators = new Set([
    ...result.added_or_modified_operators,
    ...catalogs.map(([, operator]) => operator),
  ]);
  return [...operators].map((operator) => ({
    operator,
    versions: bundles.filter(([name]) => name === operator).map(([, version]) => version),
    catalogs: catalogs.filter(([, name]) => name === operator).map(([catalog]) => catalog),
  }));
}
