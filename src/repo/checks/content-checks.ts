import path from 'node:path';
import { quoteGo } from '../../core/go-json-quote.js';
import { formatOpenShift, openShiftMilestones } from '../../core/openshift-version.js';
import { joinNames } from '../../core/suggest.js';
import { readObjects } from '../../document/document.js';
import { getText, getTexts } from '../../document/json-fields.js';
import { readRegularFile } from '../../files/read-file.js';
import { throwFileError } from '../../core/errors.js';
import { getCatalogLevel } from '../catalog-level.js';
import { type CheckedBundle, maxManifestSize } from './bundle-model.js';
import type { Check, CheckContext, CheckedCatalog, CheckedOperator, ReportFinding } from './check.js';

const firstWithMetadata = formatOpenShift(openShiftMilestones.csvMetadata);

async function checkNetworkPolicy(
  bundle: CheckedBundle,
  _operator: CheckedOperator,
  report: ReportFinding,
): Promise<void> {
  for (const name of bundle.manifests.filter((file) => /\.(?:ya?ml|json)$/i.test(file))) {
    const file = path.join(bundle.directory, 'manifests', name);
    const bytes = await readRegularFile(file, maxManifestSize).catch(throwFileError(file, { file }));
    const text = bytes.toString();
    // Parsing every manifest with places would take most of the time.
    if (!text.includes('NetworkPolicy')) continue;
    for (const { root } of readObjects(text, file).objects) {
      const isPolicy = getText(root.value, 'kind') === 'NetworkPolicy';
      if (!isPolicy || !getText(root.value, 'apiVersion').startsWith('networking.k8s.io/')) continue;
      const { line } = root.field('kind').place;
      const hint = 'remove it: OLM does not install network policies of bundles';
      report('error', 'the bundle has a NetworkPolicy', { file, line, hint });
    }
  }
}

/** Reports bundle images outside of `allowed_bundle_registries`. A prefix ends at a component of a name. */
function checkBundleImages(
  catalog: CheckedCatalog,
  report: ReportFinding,
  { repositoryConfig }: CheckContext,
): void {
  const allowed = getTexts(repositoryConfig.value, 'allowed_bundle_registries');
  if (allowed.length === 0) return;
  const isAllowed = (image: string): boolean =>
    allowed.some((prefix) => {
      const rest = image.slice(prefix.length);
      return image.startsWith(prefix) && (prefix.endsWith('/') || rest === '' || /^[/:@]/.test(rest));
    });
  const wrong = catalog.bundles.filter(({ image }) => !isAllowed(image));
  const [first] = wrong;
  if (first === undefined) return;
  const images = joinNames(wrong.map(({ image }) => image));
  const hint = `use images of ${allowed.join(', ')}`;
  report('error', `bundle images of other registries: ${images}`, {
    file: catalog.file,
    line: first.line,
    hint,
  });
}

function checkBundleObjects(catalog: CheckedCatalog, report: ReportFinding): void {
  if (getCatalogLevel(catalog.catalog) === 'none') return;
  const wrong = catalog.bundles.filter(({ hasBundleObject }) => hasBundleObject);
  const [first] = wrong;
  if (first === undefined) return;
  const names = joinNames(wrong.map(({ name }) => name));
  const problem = `${quoteGo('olm.bundle.object')} in a catalog of OpenShift ${firstWithMetadata} or later: ${names}`;
  const hint = 'render the catalog again with api.renderRepository';
  report('error', problem, { file: catalog.file, line: first.line, hint });
}

/** Reports a package that another operator has in the same catalog, which could not be served. */
async function checkPackageOwner(
  { catalog, operator }: CheckedCatalog,
  report: ReportFinding,
  { owners }: CheckContext,
): Promise<void> {
  const shared = await owners.findShared(catalog, operator);
  if (shared === undefined) return;
  const { own, other } = shared;
  const problem = `package ${quoteGo(own.name)} is also in operator ${other} of catalog ${catalog}`;
  report('error', problem, { file: own.file, line: own.line, hint: 'keep a package in one operator' });
}

export const contentChecks: readonly Check[] = [
  {
    name: 'check_network_policy_presence',
    suite: 'common',
    summary: 'bundles have no NetworkPolicy',
    of: 'bundle',
    run: checkNetworkPolicy,
  },
  {
    name: 'check_bundle_images_in_fbc',
    suite: 'common',
    summary: 'catalogs use bundle images of allowed registries',
    of: 'catalog',
    run: checkBundleImages,
  },
  {
    name: 'check_olm_bundle_object_in_fbc',
    suite: 'common',
    summary: `catalogs of OpenShift ${firstWithMetadata} and later have CSV metadata instead of bundle objects`,
    of: 'catalog',
    run: checkBundleObjects,
  },
  {
    name: 'check_package_unique_in_catalog',
    suite: 'common',
    summary: 'a package of a catalog belongs to one operator',
    of: 'catalog',
    run: checkPackageOwner,
  },
];
