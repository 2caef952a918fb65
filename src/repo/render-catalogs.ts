import path from 'node:path';
import { mapConcurrent } from '../core/concurrency.js';
import { createFault } from '../core/diagnostic.js';
import { DiagnosticsError, ErrorList } from '../core/diagnostics-error.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { getOrAdd } from '../core/groups.js';
import { logDiagnostic, silentLogger } from '../core/log.js';
import { sortedByBytes } from '../core/order.js';
import { findNearest } from '../document/field.js';
import { readdirIfPresent } from '../files/file-status.js';
import type { SourceSession } from '../source/session.js';
import type { BundleStore } from './bundle-store.js';
import { type CatalogLevel, getCatalogLevel } from './catalog-level.js';
import {
  type CatalogMapping,
  type CiConfig,
  readCiConfig,
  requireMappings,
  templateTypes,
} from './ci-config.js';
import { PackageOwners } from './package-owners.js';
import { type RenderedTemplateFile, renderTemplateToFile } from './rendered-template.js';
import {
  type OperatorRepository,
  isFile,
  listOperators,
  listSubdirectories,
  pathIn,
  requireInRepository,
  requireOperators,
  suggestCatalog,
} from './repository.js';

/** A catalog of an operator with its new content; undefined if the operator is mapped to it no longer. */
export interface OperatorCatalog {
  operator: string;
  catalog: string;
  rendered: RenderedTemplateFile | undefined;
}

interface RenderCatalogsOptions {
  /** Operators to render; default: all with mappings. */
  operators?: readonly string[] | undefined;
  /** Catalogs to render; default: all. */
  catalogs?: readonly string[] | undefined;
  /** Packages of several renderings of a repository; default: those of this one. */
  owners?: PackageOwners | undefined;
  bundles: BundleStore;
  /** Directory for the rendered catalogs. */
  directory: string;
}

/** A template and level, which several catalogs may share. */
interface Job {
  operator: string;
  config: CiConfig;
  mapping: CatalogMapping;
  level: CatalogLevel;
  catalogs: string[];
}

/** Maximum number of templates rendered at the same time. */
const maxConcurrent = 4;

/**
 * Renders the templates of operators to the catalogs that `ci.yaml` maps them to; of several templates for a catalog the
 * last one takes precedence. Each template is rendered once per form of catalog. Throws OpmateError with all problems of
 * all operators.
 */
export async function renderCatalogs(
  repository: OperatorRepository,
  session: SourceSession,
  options: RenderCatalogsOptions,
): Promise<OperatorCatalog[]> {
  const errors = new ErrorList(session.signal);
  const configs = await readConfigs(repository, options.operators, errors);
  return renderConfigs(repository, session, configs, options, errors);
}

/** Renders the templates of operators whose `ci.yaml` was read, as `renderCatalogs` does; also throws `errors`. */
export async function renderConfigs(
  repository: OperatorRepository,
  session: SourceSession,
  configs: ReadonlyMap<string, CiConfig>,
  options: Omit<RenderCatalogsOptions, 'operators'>,
  errors = new ErrorList(session.signal),
): Promise<OperatorCatalog[]> {
  const { logger = silentLogger } = session;
  for (const { document } of configs.values()) {
    for (const warning of document.diagnostics.warnings) logDiagnostic(logger, warning);
  }
  const jobs = [...configs].flatMap(([operator, config]) => planJobs(operator, config, options.catalogs));
  requireKnownCatalogs(configs, options.catalogs, errors);
  const outputs = await mapConcurrent(
    jobs,
    maxConcurrent,
    (job, index) => errors.try(() => renderJob(repository, session, job, index, options)),
    session,
  );
  const rendered = jobs.flatMap((job, index) =>
    outputs[index] === undefined ? [] : [{ job, output: outputs[index] }],
  );
  const owners = options.owners ?? new PackageOwners(repository, session, (name) => configs.has(name));
  await reportSharedPackages(rendered, owners, errors);
  errors.throwIfAny();
  const catalogs = rendered.flatMap(({ job, output }) =>
    job.catalogs.map((catalog) => ({ operator: job.operator, catalog, rendered: output })),
  );
  return [...catalogs, ...(await findUnmapped(repository, configs, options.catalogs))];
}

async function readConfigs(
  repository: OperatorRepository,
  operators: readonly string[] | undefined,
  errors: ErrorList,
): Promise<Map<string, CiConfig>> {
  if (operators !== undefined) await requireOperators(repository, operators);
  const configs = new Map<string, CiConfig>();
  for (const operator of operators ?? (await listOperators(repository))) {
    const config = await errors.try(() =>
      operators === undefined ? readCiConfig(repository, operator) : requireMappings(repository, operator),
    );
    if (config !== undefined && config.mappings.length > 0) configs.set(operator, config);
  }
  return configs;
}

/** Returns the renderings of an operator; only those whose catalogs no later mapping replaces. */
function planJobs(operator: string, config: CiConfig, only: readonly string[] | undefined): Job[] {
  const mappingOf = new Map<string, CatalogMapping>();
  for (const mapping of config.mappings) {
    for (const catalog of mapping.catalogNames) mappingOf.set(catalog, mapping);
  }
  const jobs = new Map<string, Job>();
  // A template without remaining catalogs is rendered too, so that its problems are reported.
  for (const [index, mapping] of config.mappings.entries()) {
    for (const catalog of mapping.catalogNames) {
      const level = getCatalogLevel(catalog);
      const isWritten = mappingOf.get(catalog) === mapping && only?.includes(catalog) !== false;
      if (!isWritten && only !== undefined) continue;
      const job = getOrAdd(jobs, `${index} ${level}`, () => ({
        operator,
        config,
        mapping,
        level,
        catalogs: [],
      }));
      if (isWritten && !job.catalogs.includes(catalog)) job.catalogs.push(catalog);
    }
  }
  return [...jobs.values()];
}

function requireKnownCatalogs(
  configs: ReadonlyMap<string, CiConfig>,
  catalogs: readonly string[] | undefined,
  errors: ErrorList,
): void {
  const mappings = [...configs.values()].flatMap((config) => config.mappings);
  const known = new Set(mappings.flatMap(({ catalogNames }) => catalogNames));
  const missing = (catalogs ?? []).filter((name) => !known.has(name));
  const [first] = missing;
  if (first === undefined || !errors.isEmpty) return;
  const names = missing.map(quoteGo).join(', ');
  const hint = suggestCatalog(first, sortedByBytes(known));
  errors.add(new OpmateError('NOT_FOUND', `no operator is mapped to catalog ${names}`, { hint }));
}

async function renderJob(
  repository: OperatorRepository,
  session: SourceSession,
  { operator, config, mapping, level }: Job,
  index: number,
  { bundles, directory }: Pick<RenderCatalogsOptions, 'bundles' | 'directory'>,
): Promise<RenderedTemplateFile> {
  const { templateName, type } = mapping;
  const file = pathIn(repository, 'operators', operator, 'catalog-templates', templateName);
  if (!(await isFile(file))) throw await describeMissingTemplate(repository, operator, config, mapping);
  await requireInRepository(repository, file);
  return renderTemplateToFile(file, session, {
    type: templateTypes[type as keyof typeof templateTypes],
    level,
    bundles,
    target: path.join(directory, `${index}.yaml`),
    trimsEnd: true,
  });
}

/** Returns the error for a template that `ci.yaml` names and the operator lacks. */
async function describeMissingTemplate(
  repository: OperatorRepository,
  operator: string,
  { file }: Pick<CiConfig, 'file'>,
  { templateName, place }: CatalogMapping,
): Promise<OpmateError> {
  const directory = pathIn(repository, 'operators', operator, 'catalog-templates');
  const names = await readdirIfPresent(directory);
  const isTaken = names.includes(templateName);
  const near = isTaken ? undefined : findNearest(templateName, names);
  const problem = isTaken ? 'is not a regular file' : 'not found in catalog-templates';
  const hint =
    near === undefined ? 'add the template or remove its mapping' : `did you mean ${quoteGo(near)}?`;
  return new DiagnosticsError(
    [createFault('not-found', `template ${quoteGo(templateName)} ${problem}`, { file, ...place, hint })],
    { code: 'NOT_FOUND' },
  );
}

/** Reports packages that two operators have in one catalog, which could not be served. */
async function reportSharedPackages(
  rendered: readonly { job: Job; output: RenderedTemplateFile }[],
  owners: PackageOwners,
  errors: ErrorList,
): Promise<void> {
  const reported = new Set<string>();
  for (const { job, output } of rendered) {
    const { operator, config } = job;
    for (const catalog of job.catalogs) {
      for (const { name } of output.facts.packages) {
        const owner = await owners.claim(catalog, name, operator);
        const key = `${owner} ${operator} ${name}`;
        if (owner === undefined || reported.has(key)) continue;
        reported.add(key);
        const problem = `package ${quoteGo(name)} of operator ${operator} is also in operator ${owner}`;
        errors.add(
          new OpmateError('INVALID', `${problem}, both in catalog ${catalog}`, {
            about: config.file,
            hint: 'keep a package in one operator',
          }),
        );
      }
    }
  }
}

/** Returns the existing catalogs of operators that `ci.yaml` no longer maps. */
async function findUnmapped(
  repository: OperatorRepository,
  configs: ReadonlyMap<string, CiConfig>,
  only: readonly string[] | undefined,
): Promise<OperatorCatalog[]> {
  const unmapped: OperatorCatalog[] = [];
  for (const catalog of await listSubdirectories(repository, 'catalogs')) {
    if (only?.includes(catalog) === false) continue;
    const present = await listSubdirectories(repository, 'catalogs', catalog);
    for (const operator of present) {
      const config = configs.get(operator);
      const isMapped = config?.mappings.some(({ catalogNames }) => catalogNames.includes(catalog));
      if (isMapped === false) unmapped.push({ operator, catalog, rendered: undefined });
    }
  }
  return unmapped;
}
