import path from 'node:path';
import { makeDirectory } from '../files/make-directory.js';
import type { Catalog } from '../catalog/catalog.js';
import { readLocated } from '../catalog/locate.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { sortKeysDeep } from '../document/go-json.js';
import type { JsonObject } from '../document/json.js';
import { encodeYaml } from '../document/yaml.js';
import { schemas } from '../model/declarative-config.js';
import { writeNewFile } from '../files/write-new-file.js';
import type { SourceSession } from '../source/session.js';
import type { BundleStore } from './bundle-store.js';
import type { ChangedFile } from './changed-file.js';
import { type NewMapping, enableCatalogs } from './edit/ci-config-edit.js';
import { getPackageName, readCheckedBundle } from './checks/bundle-model.js';
import type { OperatorCatalog } from './render-catalogs.js';
import { renderTemplateToFile } from './rendered-template.js';
import { readRepositoryFile } from './repository-file.js';
import { type OperatorRepository, listBundleDirectories } from './repository.js';

/** A published catalog of an OpenShift version. */
interface OnboardingIndex {
  /** Name of the catalog in the repository: `v4.18`. */
  catalog: string;
  content: Catalog;
}

/** Changes that give an operator file-based catalogs. */
interface OnboardingPlan {
  packageName: string;
  files: ChangedFile[];
  catalogs: OperatorCatalog[];
  /** Catalogs without the package. */
  absent: string[];
}

/**
 * Creates a basic template per index that has the package of an operator, maps it, and renders it. Writes nothing.
 * Throws OpmateError NOT_FOUND if no index has the package. (Source: fbc-onboarding of operator-pipelines.)
 */
export async function planOnboarding(
  repository: OperatorRepository,
  operator: string,
  indexes: readonly OnboardingIndex[],
  session: SourceSession,
  { bundles, directory }: { bundles: BundleStore; directory: string },
): Promise<OnboardingPlan> {
  const packageName = await findPackageName(repository, operator);
  const plan: OnboardingPlan = { packageName, files: [], catalogs: [], absent: [] };
  const mappings: NewMapping[] = [];
  for (const { catalog, content } of indexes) {
    const entries = await selectEntries(content, packageName, session);
    if (entries.length === 0) {
      plan.absent.push(catalog);
      continue;
    }
    const name = `${catalog}.yaml`;
    const template = sortKeysDeep({ schema: 'olm.template.basic', entries });
    const text = `---\n${encodeYaml(template)}`;
    const parts = ['operators', operator, 'catalog-templates', name];
    const before = (await readRepositoryFile(repository, parts, 'template'))?.text;
    plan.files.push({ path: path.join(...parts), before, after: text });
    mappings.push({ template_name: name, catalog_names: [catalog], type: 'olm.template.basic' });
    const file = path.join(directory, 'templates', name);
    await makeDirectory(path.dirname(file));
    await writeNewFile(file, text);
    const target = path.join(directory, `${catalog}.yaml`);
    const options = { type: 'basic', level: 'none', bundles, target, label: path.join(...parts) } as const;
    plan.catalogs.push({ operator, catalog, rendered: await renderTemplateToFile(file, session, options) });
  }
  if (mappings.length === 0) {
    throw new OpmateError('NOT_FOUND', `package ${quoteGo(packageName)} is in none of the indexes`);
  }
  const config = await readRepositoryFile(repository, ['operators', operator, 'ci.yaml'], 'configuration');
  config?.diagnostics.throwIfErrors();
  plan.files.push({
    path: path.join('operators', operator, 'ci.yaml'),
    before: config?.text,
    after: enableCatalogs(config?.text ?? '', mappings),
  });
  return plan;
}

/** Returns the package of any bundle of an operator, else the name of its ClusterServiceVersion, else the directory. */
async function findPackageName(repository: OperatorRepository, operator: string): Promise<string> {
  let csvName = '';
  for (const version of await listBundleDirectories(repository, operator)) {
    const bundle = await readCheckedBundle(repository, operator, version);
    const packageName = getPackageName(bundle);
    if (packageName !== '') return packageName;
    csvName ||= bundle.getCsvName().name;
  }
  return csvName || operator;
}

/** Returns the blobs of a package as entries of a basic template: bundles by image, others whole. */
async function selectEntries(
  catalog: Catalog,
  packageName: string,
  session: SourceSession,
): Promise<JsonObject[]> {
  const entries: JsonObject[] = [];
  const { signal, logger } = session;
  await readLocated(catalog, { signal, logger }, ({ schema, name, package: owner, value }) => {
    const isOwn =
      schema === schemas.package ? name === packageName : owner === packageName || name === packageName;
    if (!isOwn || value === undefined) return;
    entries.push(schema === schemas.bundle ? { schema, image: value['image'] ?? '' } : value);
  });
  return entries;
}
