import { Report } from '../../bundle/report.js';
import { type Diagnostic, createFault, createWarning } from '../../core/diagnostic.js';
import { sortedByBytes } from '../../core/order.js';
import { type Field, quoteShort, warnOfUnknown } from '../../document/field.js';
import { getObject, getText, getTexts, getValue } from '../../document/json-fields.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { findOlmV1Schema } from '../../kube/definitions/olm-v1.js';
import { getLabels } from '../../kube/label-selector.js';
import { type Manifest, locateIn } from '../../kube/manifests.js';
import { listRefusedFields, validateObject } from '../../kube/schema/validate-object.js';
import { without } from '../objects.js';
import type {
  ClusterCatalogDocument,
  Documents,
  ExtensionDocument,
  SubscriptionDocument,
  UnresolvedDeployment,
} from './document-types.js';
import { type LineAt, openDeploymentManifest } from './source-fields.js';

const kinds = ['ClusterExtension', 'ClusterCatalog', 'Subscription', 'OperatorGroup', 'CatalogSource'];

/** Reports whether an object is a document of OLM v0 or v1. */
export function isOlmDocument({ apiVersion, kind }: Manifest): boolean {
  return /^(?:olm\.operatorframework\.io|operators\.coreos\.com)\//.test(apiVersion) && kinds.includes(kind);
}

/** Documents of OLM, with findings that do not belong to a single deployment. */
type OlmDocuments = Pick<Documents, 'extensions' | 'subscriptions' | 'operatorGroups' | 'catalogs'> &
  Pick<Report, 'findings' | 'warnings'>;

/**
 * Reads ClusterExtensions and ClusterCatalogs as the API server accepts them, and Subscriptions with the OperatorGroup
 * and CatalogSources of OLM v0. All problems are reported, with file and line.
 */
export function readOlmDocuments(manifests: readonly Manifest[], lineAt: LineAt): OlmDocuments {
  const report = new Report();
  const ofKind = (kind: string): Manifest[] => manifests.filter((manifest) => manifest.kind === kind);
  const operatorGroups = ofKind('OperatorGroup');
  const groups = operatorGroups.map((manifest) => readOperatorGroup(manifest, lineAt, report));
  return {
    extensions: ofKind('ClusterExtension').map(readExtension),
    subscriptions: ofKind('Subscription').map((manifest) => readSubscription(manifest, groups, lineAt)),
    operatorGroups,
    catalogs: [
      ...ofKind('ClusterCatalog').flatMap((manifest) => readClusterCatalog(manifest, report)),
      ...ofKind('CatalogSource').map(readCatalogSource),
    ],
    findings: report.findings,
    warnings: report.warnings,
  };
}

/** Validates an object of OLM v1; the stored form has the defaults of its definition. */
function validate(manifest: Manifest): { stored: JsonObject | undefined; findings: Diagnostic[] } {
  const schema = findOlmV1Schema(manifest.kind, 'experimental');
  if (schema === undefined) return { stored: undefined, findings: [] };
  const validation = validateObject(manifest.load(), schema);
  const findings = listRefusedFields(validation).map(({ path, field, code, problem }) =>
    createFault(code, `${field}: ${problem}`, locateIn(manifest, path)),
  );
  return { stored: validation.object, findings };
}

function readExtension(manifest: Manifest): ExtensionDocument {
  const { stored, findings } = validate(manifest);
  const spec = getObject(stored ?? manifest.load(), 'spec');
  const catalog = getObject(spec, 'source', 'catalog');
  const config = getValue(spec, 'config', 'inline');
  const deadline = getValue(spec, 'progressDeadlineMinutes');
  const enforcement = getText(spec, 'install', 'preflight', 'crdUpgradeSafety', 'enforcement');
  const hint = 'remove it: OLM v1 ignores the field';
  const place = { ...locateIn(manifest, ['spec', 'serviceAccount']), hint };
  return {
    deployment: {
      manifest,
      isPaused: false,
      installNamespace: getText(spec, 'namespace'),
      ...(isJsonObject(config) && { config }),
      ...(typeof deadline === 'number' && { progressDeadlineMinutes: deadline }),
      isCrdUpgradeChecked: enforcement !== 'None',
      findings,
      warnings:
        spec['serviceAccount'] === undefined
          ? []
          : [createWarning('deprecated', 'spec.serviceAccount: deprecated', place)],
    },
    request: {
      packageName: getText(catalog, 'packageName'),
      versionRange: getText(catalog, 'version'),
      channels: getTexts(catalog, 'channels'),
      policy:
        getText(catalog, 'upgradeConstraintPolicy') === 'SelfCertified'
          ? 'self-certified'
          : 'catalog-provided',
    },
    selector: getObject(catalog, 'selector'),
  };
}

function readClusterCatalog(manifest: Manifest, report: Report): ClusterCatalogDocument[] {
  const { stored, findings } = validate(manifest);
  report.add({ findings });
  if (stored === undefined || getText(stored, 'spec', 'availabilityMode') === 'Unavailable') return [];
  const { name } = manifest;
  const priority = getValue(stored, 'spec', 'priority');
  return [
    {
      name,
      namespace: '',
      reference: toImage(getText(stored, 'spec', 'source', 'image', 'ref')),
      priority: typeof priority === 'number' ? priority : 0,
      labels: { ...Object.fromEntries(getLabels(stored)), 'olm.operatorframework.io/metadata.name': name },
    },
  ];
}

/** Returns the reference of an image, which is never read as a path of this machine. */
function toImage(image: string): string {
  return image.startsWith('docker://') ? image : `docker://${image}`;
}

function readCatalogSource(manifest: Manifest): ClusterCatalogDocument {
  const { name, namespace } = manifest;
  const spec = getObject(manifest.load(), 'spec');
  const image = getText(spec, 'image');
  const priority = getValue(spec, 'priority');
  return {
    name,
    namespace,
    labels: {},
    reference: image === '' ? '' : toImage(image),
    priority: typeof priority === 'number' ? priority : 0,
  };
}

/** An OperatorGroup: namespaces to watch, an empty name for all. */
interface OperatorGroup {
  name: string;
  namespace: string;
  targets: readonly string[];
}

function readOperatorGroup(manifest: Manifest, lineAt: LineAt, report: Report): OperatorGroup {
  const { root, diagnostics } = openDeploymentManifest(manifest, lineAt);
  root.object(['apiVersion', 'kind', 'metadata', 'spec', 'status'], warnOfUnknown);
  const spec = root.field('spec');
  spec.optionalObject(
    ['targetNamespaces', 'selector', 'serviceAccountName', 'staticProvidedAPIs', 'upgradeStrategy'],
    warnOfUnknown,
  );
  const selector = spec.field('selector');
  if (Object.keys(getObject(selector.value)).length > 0) {
    const hint = 'set spec.targetNamespaces';
    selector.fail('namespaces are known to the cluster only', { code: 'unsupported', hint });
  }
  const account = spec.field('serviceAccountName');
  if (account.isSet) account.warn('ignored: the deployment is applied by its user');
  const targets = spec.field('targetNamespaces').optionalTextList() ?? [];
  report.add({ findings: diagnostics.errors, warnings: diagnostics.warnings });
  const { name, namespace } = manifest;
  return { name, namespace, targets: targets.length === 0 ? [''] : sortedByBytes(new Set(targets)) };
}

const subscriptionFields = [
  'channel',
  'config',
  'installPlanApproval',
  'name',
  'source',
  'sourceNamespace',
  'startingCSV',
];

function readSubscription(
  manifest: Manifest,
  groups: readonly OperatorGroup[],
  lineAt: LineAt,
): SubscriptionDocument {
  const { root, diagnostics } = openDeploymentManifest(manifest, lineAt);
  root.object(['apiVersion', 'kind', 'metadata', 'spec', 'status'], warnOfUnknown);
  const metadata = root.field('metadata');
  metadata.field('name').text();
  const installNamespace = metadata.field('namespace').text() ?? '';
  const spec = root.field('spec');
  spec.object(subscriptionFields, warnOfUnknown);
  const approval = spec.field('installPlanApproval');
  if (approval.isSet && !['Automatic', 'Manual'].includes(approval.optionalText() ?? ''))
    approval.warn(`${quoteShort(String(approval.value))} has the effect of Automatic`);
  for (const name of ['channel', 'startingCSV']) spec.field(name).optionalText();
  const [packageName = '', source = '', sourceNamespace = ''] = ['name', 'source', 'sourceNamespace'].map(
    (name) => spec.field(name).text(),
  );
  const own = groups.filter(({ namespace }) => namespace === installNamespace);
  if (own.length !== 1 && installNamespace !== '') {
    const hint = own.length === 0 ? 'add one to the documents' : 'keep one of them';
    metadata.field('namespace').fail(`${own.length} OperatorGroups in the namespace, expected 1`, { hint });
  }
  const podAnnotations = {
    'olm.operatorGroup': own[0]?.name ?? '',
    'olm.operatorNamespace': installNamespace,
  };
  const deployment: UnresolvedDeployment = {
    manifest,
    isPaused: false,
    installNamespace,
    watchNamespaces: own[0]?.targets ?? [],
    config: readConfig(spec.field('config'), podAnnotations),
    findings: [...diagnostics.errors],
    warnings: [...diagnostics.warnings],
  };
  return {
    deployment,
    packageName,
    podAnnotations,
    source: { namespace: sourceNamespace, name: source },
    isManual: approval.value === 'Manual',
  };
}

/**
 * Returns the configuration of a Subscription in the form of a bundle's, with the annotations that OLM v0 adds to pods.
 */
function readConfig(field: Field, annotations: Readonly<Record<string, string>>): JsonObject {
  const config = field.isPresent ? (field.jsonObject() ?? {}) : {};
  if (field.field('selector').isPresent) field.field('selector').warn('no effect');
  const own = getObject(config, 'annotations');
  return { deploymentConfig: { ...without(config, 'selector'), annotations: { ...own, ...annotations } } };
}
