import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { diagnosticsFrom } from '../../core/diagnostics-error.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { findNearest } from '../../document/field.js';
import { getValue } from '../../document/json-fields.js';
import type { SourceSession } from '../../source/session.js';
import { listCatalogBundles } from '../catalog-bundles.js';
import { readCiDocument } from '../ci-config.js';
import { PackageOwners } from '../package-owners.js';
import { type OperatorRepository, findCatalogFile, listBundleDirectories, pathIn } from '../repository.js';
import { readCheckedBundle, readCheckedFile, toCheckedFile } from './bundle-model.js';
import type {
  Check,
  CheckContext,
  CheckedOperator,
  ReportFinding,
  RepositoryFinding,
  Suite,
} from './check.js';
import { configChecks } from './config-checks.js';
import { contentChecks } from './content-checks.js';
import { fieldChecks } from './field-checks.js';
import { graphChecks } from './graph-checks.js';
import { nameChecks } from './name-checks.js';
import { versionChecks } from './version-checks.js';

/** All checks by their names in operator-pipelines. */
export const repositoryChecks: readonly Check[] = [
  ...nameChecks,
  ...configChecks,
  ...contentChecks,
  ...versionChecks,
  ...fieldChecks,
  ...graphChecks,
];

/** Kinds of repositories with the suites that are run on them. */
export const repositoryKinds = {
  community: ['community', 'common'],
  certified: ['isv', 'common'],
} as const satisfies Record<string, readonly Suite[]>;

/** Parts of a repository to check. */
export interface CheckTarget {
  operator: string;
  /** Bundles to check; undefined means all. */
  versions: readonly string[] | undefined;
  /** Catalogs to check. */
  catalogs: readonly string[];
}

/** Selects the checks of a kind of repository without skipped ones. Throws UsageError for an unknown name. */
export function chooseRepositoryChecks(
  kind: keyof typeof repositoryKinds,
  skipped: readonly string[] = [],
): Check[] {
  const names = repositoryChecks.map(({ name }) => name);
  for (const name of skipped) {
    if (names.includes(name) || name.startsWith('check_osdk_')) continue;
    const near = findNearest(name, names);
    const hint = near === undefined ? undefined : `did you mean ${quoteGo(near)}?`;
    throw new UsageError(`unknown check ${quoteGo(name)}`, { hint });
  }
  const suites: readonly Suite[] = repositoryKinds[kind];
  return repositoryChecks.filter(({ name, suite }) => suites.includes(suite) && !skipped.includes(name));
}

/** Runs checks on parts of a repository. What a check cannot read is a finding of that check. */
export async function runRepositoryChecks(
  repository: OperatorRepository,
  targets: readonly CheckTarget[],
  session: SourceSession,
  { checks, supported }: { checks: readonly Check[]; supported: readonly string[] },
): Promise<RepositoryFinding[]> {
  const repositoryConfig = await readCheckedFile(repository, pathIn(repository, 'config.yaml'));
  const owners = new PackageOwners(repository, session);
  const context: CheckContext = { repositoryConfig, supported, owners };
  const findings = await mapConcurrent(
    targets,
    4,
    (target) => checkTarget(repository, target, session, checks, context),
    session,
  );
  return findings.flat();
}

/** Check that reports an operator whose files cannot be read, as none can be run on it. */
const unreadableCode = 'check_schema_operator_ci_config';

async function checkTarget(
  repository: OperatorRepository,
  { operator: name, versions, catalogs }: CheckTarget,
  session: SourceSession,
  checks: readonly Check[],
  context: CheckContext,
): Promise<RepositoryFinding[]> {
  const findings: RepositoryFinding[] = [];
  const operator = await readOperator(repository, name, session).catch((error: unknown) => {
    if (!(error instanceof OpmateError) || error.code === 'CANCELLED') throw error;
    return error;
  });
  if (operator instanceof OpmateError) {
    const faults = diagnosticsFrom(operator);
    return faults.map((fault) => ({ ...fault, severity: 'error', code: unreadableCode, package: name }));
  }
  const run = async (check: Check, work: (report: ReportFinding) => void | Promise<void>): Promise<void> => {
    const report: ReportFinding = (severity, problem, details = {}) =>
      void findings.push({ severity, code: check.name, problem, package: name, ...details });
    try {
      await work(report);
    } catch (error) {
      if (!(error instanceof OpmateError) || error.code === 'CANCELLED') throw error;
      const [{ problem, subject, file, line, hint } = error] = diagnosticsFrom(error);
      report('error', subject === undefined ? problem : `${subject}: ${problem}`, { file, line, hint });
    }
  };
  const all = checks.filter(({ skipsFbc = false }) => !(skipsFbc && operator.isFbc));
  for (const check of all) {
    if (check.of === 'operator') await run(check, (report) => check.run(operator, report, context));
    for (const bundle of operator.bundles.filter(({ version }) => versions?.includes(version) !== false)) {
      if (check.of === 'bundle') await run(check, (report) => check.run(bundle, operator, report, context));
    }
  }
  for (const catalog of catalogs) {
    const file = await findCatalogFile(repository, catalog, name);
    if (file === undefined) continue;
    const path = pathIn(repository, file);
    const reading = listCatalogBundles(path, session).then((bundles) => ({
      catalog,
      operator: name,
      file: path,
      bundles,
    }));
    reading.catch(() => undefined);
    for (const check of all) {
      if (check.of === 'catalog')
        await run(check, async (report) => check.run(await reading, report, context));
    }
  }
  return findings;
}

async function readOperator(
  repository: OperatorRepository,
  name: string,
  options: CancelOptions,
): Promise<CheckedOperator> {
  const directory = pathIn(repository, 'operators', name);
  const configFile = pathIn(repository, 'operators', name, 'ci.yaml');
  const config = toCheckedFile(await readCiDocument(repository, name), configFile);
  const versions = await listBundleDirectories(repository, name);
  const bundles = await mapConcurrent(
    versions,
    8,
    (version) => readCheckedBundle(repository, name, version),
    options,
  );
  const isFbc = getValue(config.value, 'fbc', 'enabled') === true;
  return { name, directory, config, isFbc, bundles };
}
