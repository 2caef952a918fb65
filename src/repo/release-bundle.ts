import path from 'node:path';
import { makeDirectory } from '../files/make-directory.js';
import { collectFacts } from '../catalog/facts.js';
import { withOpen } from '../core/concurrency.js';
import { type Diagnostic, createFault } from '../core/diagnostic.js';
import { DiagnosticsError, ErrorList } from '../core/diagnostics-error.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { getOrAdd } from '../core/groups.js';
import { decodeFile } from '../document/document.js';
import { getText } from '../document/json-fields.js';
import { statIfPresent } from '../files/file-status.js';
import { validateCatalog } from '../graph/validate.js';
import { type CatalogDiagnostic, formatCatalogMessage } from '../model/catalog-diagnostic.js';
import { type CatalogFacts, emptyFacts, joinFacts } from '../model/facts.js';
import { writeNewFile } from '../files/write-new-file.js';
import type { SourceSession } from '../source/session.js';
import { catalogsOnly } from '../source/source-types.js';
import { openSource } from '../source/source.js';
import type { BundleStore } from './bundle-store.js';
import { getReleaseLevel } from './catalog-level.js';
import { getPackageName, readCheckedBundle } from './checks/bundle-model.js';
import { type CatalogMapping, isPlainName, requireMappings, templateTypes } from './ci-config.js';
import type { ChangedFile } from './changed-file.js';
import { readReleaseConfig } from './release-config.js';
import {
  type ReleasedBundle,
  type TemplateRelease,
  addToBasicTemplate,
  addToSemverTemplate,
} from './edit/release-template.js';
import type { OperatorCatalog } from './render-catalogs.js';
import { maxTemplateSize, renderTemplateToFile } from './rendered-template.js';
import { type OperatorRepository, hasBundle, isFile, pathIn, readInRepository } from './repository.js';

/** Changes that release a bundle. */
interface ReleasePlan {
  /** Name of the bundle. */
  bundle: string;
  templates: ChangedFile[];
  catalogs: OperatorCatalog[];
}

interface ReleaseOptions {
  operator: string;
  version: string;
  image: string;
  bundles: BundleStore;
  /** Directory for rendered catalogs. */
  directory: string;
}

/**
 * Adds a bundle to the templates that its `release-config.yaml` names, renders their catalogs, and validates each of
 * these with all of its operators. Writes nothing. Throws OpmateError with all problems of the configuration.
 */
export async function planRelease(
  repository: OperatorRepository,
  session: SourceSession,
  { operator, version, image, bundles, directory }: ReleaseOptions,
): Promise<ReleasePlan> {
  if (!(await hasBundle(repository, operator, version))) {
    throw new OpmateError('NOT_FOUND', 'not a bundle', {
      about: pathIn(repository, 'operators', operator, version),
    });
  }
  const checked = await readCheckedBundle(repository, operator, version);
  const { name, version: csvVersion } = checked.getCsvName();
  const packageName = getPackageName(checked) || name;
  const csvName = getText(checked.getCsv().value, 'metadata', 'name') || `${name}.v${csvVersion}`;
  const bundle: ReleasedBundle = { packageName, name: csvName, image };
  const releases = await matchMappings(repository, operator, version);
  await requireSameBundle(bundles, bundle);
  const templates = new Map<string, ChangedFile>();
  const catalogs = new Map<string, OperatorCatalog>();
  for (const [index, { release, mapping }] of releases.entries()) {
    const file = path.join('operators', operator, 'catalog-templates', release.templateName);
    const before = templates.get(file)?.after ?? (await readIfPresent(repository, pathIn(repository, file)));
    const add = mapping.type === 'olm.semver' ? addToSemverTemplate : addToBasicTemplate;
    const after = add(before, pathIn(repository, file), bundle, release);
    const first = templates.get(file)?.before;
    templates.set(file, { path: file, before: templates.has(file) ? first : before, after });
    const changed = path.join(directory, `template-${index}`, path.basename(release.templateName));
    await makeDirectory(path.dirname(changed));
    await writeNewFile(changed, after);
    for (const catalog of mapping.catalogNames) {
      const target = path.join(directory, `${index}-${catalogs.size}-${catalog}.yaml`);
      const type = templateTypes[mapping.type as keyof typeof templateTypes];
      const options = {
        type,
        level: getReleaseLevel(catalog),
        bundles,
        target,
        label: pathIn(repository, file),
      };
      catalogs.set(catalog, {
        operator,
        catalog,
        rendered: await renderTemplateToFile(changed, session, options),
      });
    }
  }
  await validateCatalogs(repository, [...catalogs.values()], session);
  return { bundle: csvName, templates: [...templates.values()], catalogs: [...catalogs.values()] };
}

/** Throws OpmateError INVALID if the image has another bundle than the directory. */
async function requireSameBundle(bundles: BundleStore, { image, name }: ReleasedBundle): Promise<void> {
  const other = (await bundles.read(image)).name;
  if (other === name) return;
  throw new OpmateError('INVALID', `has bundle ${quoteGo(other)}, but the directory has ${quoteGo(name)}`, {
    subject: image,
    hint: 'use the image that was built from the directory',
  });
}

/** Returns the mapping of each template that a release names. Throws OpmateError with all unmapped ones. */
async function matchMappings(
  repository: OperatorRepository,
  operator: string,
  version: string,
): Promise<{ release: TemplateRelease; mapping: CatalogMapping }[]> {
  const { document, templates } = await readReleaseConfig(repository, operator, version);
  const config = await requireMappings(repository, operator);
  const errors = new ErrorList();
  const matched = templates.flatMap((release) => {
    const mapping = config.mappings.find(({ templateName }) => templateName === release.templateName);
    if (mapping !== undefined && release.templateName.split('/').every(isPlainName))
      return [{ release, mapping }];
    const place = document.findPlace([...release.path, 'template_name']);
    const problem = `template ${quoteGo(release.templateName)} is not mapped to a catalog in ${config.file}`;
    const hint = 'add it to fbc.catalog_mapping';
    errors.add(
      new DiagnosticsError([createFault('not-found', problem, { file: document.name, ...place, hint })]),
    );
    return [];
  });
  errors.throwIfAny();
  return matched;
}

async function readIfPresent(repository: OperatorRepository, file: string): Promise<string | undefined> {
  if (!(await isFile(file))) return undefined;
  return decodeFile(await readInRepository(repository, file, maxTemplateSize), file);
}

/** Maximum number of problems in the error for invalid catalogs. */
const maxProblems = 20;

/**
 * Validates catalogs with the new content of one operator. Throws OpmateError with each problem once, with the catalogs
 * that have it; problems of other operators are those of the repository.
 */
async function validateCatalogs(
  repository: OperatorRepository,
  catalogs: readonly OperatorCatalog[],
  session: SourceSession,
): Promise<void> {
  const errors = new ErrorList(session.signal);
  const found = new Map<string, { fault: Diagnostic; roots: string[] }>();
  for (const { operator, catalog, rendered } of catalogs) {
    const root = pathIn(repository, 'catalogs', catalog);
    const own = rendered?.facts ?? emptyFacts();
    const others = await errors.try(() => readOthers(root, operator, session));
    if (others === undefined) continue;
    const { message, problems } = validateCatalog(joinFacts([others, own]));
    const names = new Set(own.packages.map(({ name }) => name));
    const listed = problems.length > 0 ? problems : message === undefined ? [] : [{ problem: message }];
    for (const problem of listed as readonly CatalogDiagnostic[]) {
      const isForeign = problem.package !== undefined && !names.has(problem.package);
      const state = isForeign ? 'the catalog is invalid already' : 'the catalog would be invalid';
      const text = `${state}: ${formatCatalogMessage(problem)}`;
      const fault = createFault(problem.code ?? 'invalid', text, { hint: problem.hint });
      getOrAdd(found, text, () => ({ fault, roots: [] })).roots.push(root);
    }
  }
  const faults = [...found.values()].map(({ fault, roots: [first = '', ...more] }) => ({
    ...fault,
    subject: more.length === 0 ? first : `${first} and ${more.length} more`,
  }));
  const shown = faults.slice(0, maxProblems);
  const more = faults.length - shown.length;
  if (more > 0) shown.push({ ...createFault('more', `and ${more} more`), subject: 'catalogs' });
  if (shown.length > 0) errors.add(new DiagnosticsError(shown));
  errors.throwIfAny();
}

/** Returns the facts of all other operators in a catalog. */
async function readOthers(root: string, operator: string, session: SourceSession): Promise<CatalogFacts> {
  if ((await statIfPresent(root)) === undefined) return emptyFacts();
  return withOpen(openSource(root, session, catalogsOnly), async (source) => {
    if (source.kind !== 'catalog') throw new OpmateError('UNSUPPORTED', 'not a catalog', { about: root });
    const { signal, logger } = session;
    const facts = await collectFacts(source.catalog, { signal, logger });
    const isOther = ({ origin }: { origin?: { file: string } | undefined }): boolean => {
      const file = origin?.file ?? '';
      const relative = file.startsWith(`${root}/`) ? file.slice(root.length + 1) : file;
      return relative.split('/')[0] !== operator;
    };
    return {
      ...facts,
      packages: facts.packages.filter(isOther),
      channels: facts.channels.filter(isOther),
      bundles: facts.bundles.filter(isOther),
      deprecations: facts.deprecations.filter(isOther),
    };
  });
}
