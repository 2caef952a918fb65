import { quoteGo } from '../../document/go-json.js';
import { getList, getObject, getObjects, getText, getTexts } from '../../document/json-fields.js';
import type { JsonObject } from '../../document/json.js';
import { getKey, getName, getNamespace } from '../../kube/object.js';
import { type ClusterIndex, kinds } from './cluster-index.js';
import type { Acknowledgment, MigrationCheck } from './options.js';
import { getPropertiesText, readProperties } from './properties.js';

type Acknowledged = ReadonlySet<Acknowledgment>;

function pass(name: string, message: string): MigrationCheck {
  return { name, passed: true, message };
}

function fail(name: string, message: string): MigrationCheck {
  return { name, passed: false, message };
}

/** Returns what the API server says of a missing object. */
export function notFoundMessage(resource: string, name: string): string {
  return `${resource} ${quoteGo(name)} not found`;
}

const setDefinition = 'clusterobjectsets.olm.operatorframework.io';

/** Returns the checks of a Subscription and its ClusterServiceVersion, in the order of the migration library. */
export function checkReadiness(
  cluster: ClusterIndex,
  subscription: JsonObject,
  acknowledged: Acknowledged,
): MigrationCheck[] {
  const installed = getText(subscription, 'status', 'installedCSV');
  return [
    checkObjectSetApi(cluster),
    checkState(subscription, acknowledged),
    installed === '' ? fail('Installed CSV', 'no installedCSV set') : pass('Installed CSV', installed),
    checkGenerated(subscription),
    checkUnique(cluster, subscription),
    ...(installed === '' ? [] : [checkHealth(cluster, subscription, installed, acknowledged)]),
  ];
}

function checkObjectSetApi(cluster: ClusterIndex): MigrationCheck {
  const name = 'ClusterObjectSet API';
  const crd = cluster.find(kinds.crd, setDefinition);
  const subject = `ClusterObjectSet CRD ${quoteGo(setDefinition)}`;
  if (crd === undefined) {
    const missing = notFoundMessage('customresourcedefinitions.apiextensions.k8s.io', setDefinition);
    return fail(name, `${subject} is required before migration: ${missing}`);
  }
  const isEstablished = getObjects(crd, 'status', 'conditions').some(
    (condition) => condition['type'] === 'Established' && condition['status'] === 'True',
  );
  return isEstablished
    ? pass(name, 'ClusterObjectSet CRD is established')
    : fail(name, `${subject} is not established`);
}

const steadyStates = ['AtLatestKnown', 'UpgradePending'] as const;

function checkState(subscription: JsonObject, acknowledged: Acknowledged): MigrationCheck {
  const name = 'Subscription state';
  const state = getText(subscription, 'status', 'state');
  if ((steadyStates as readonly string[]).includes(state)) return pass(name, `state is ${quoteGo(state)}`);
  if (acknowledged.has('not-steady-state')) {
    return pass(name, `overridden: Subscription state is ${quoteGo(state)} (not steady state acknowledged)`);
  }
  const expected = steadyStates.map(quoteGo).join(' or ');
  const override = 'pass --acknowledge-not-steady-state to override';
  return fail(name, `must be ${expected}, got ${quoteGo(state)}; ${override}`);
}

function checkGenerated(subscription: JsonObject): MigrationCheck {
  const name = 'Not a dependency';
  const annotations = getObject(subscription, 'metadata', 'annotations');
  return Object.hasOwn(annotations, 'olm.generated-by')
    ? fail(
        name,
        'olm.generated-by annotation present — operator is an OLMv0-managed dependency of another operator; do not migrate individually',
      )
    : pass(name, 'no olm.generated-by annotation');
}

function checkUnique(cluster: ClusterIndex, subscription: JsonObject): MigrationCheck {
  const name = 'Package uniqueness';
  const packageName = getText(subscription, 'spec', 'name');
  const quoted = quoteGo(packageName);
  const other = cluster.listSubscribed(packageName).find((one) => getKey(one) !== getKey(subscription));
  return other === undefined
    ? pass(name, `no other Subscription references package ${quoted}`)
    : fail(name, `another Subscription ${getKey(other)} references the same package ${quoted}`);
}

function checkHealth(
  cluster: ClusterIndex,
  subscription: JsonObject,
  installed: string,
  acknowledged: Acknowledged,
): MigrationCheck {
  const name = 'CSV health';
  const csv = cluster.find(kinds.csv, installed, getNamespace(subscription));
  if (csv === undefined) {
    const missing = notFoundMessage('clusterserviceversions.operators.coreos.com', installed);
    return fail(name, `failed to get CSV ${installed}: ${missing}`);
  }
  const [phase, reason] = [getText(csv, 'status', 'phase'), getText(csv, 'status', 'reason')];
  for (const [field, actual, expected] of [
    ['phase', phase, 'Succeeded'],
    ['reason', reason, 'InstallSucceeded'],
  ] as const) {
    if (actual === expected) continue;
    return acknowledged.has('not-steady-state')
      ? pass(name, `overridden: ${field} is ${quoteGo(actual)} (not at steady state acknowledged)`)
      : fail(name, `${field} is ${quoteGo(actual)}, expected ${quoteGo(expected)}`);
  }
  return pass(name, `phase: ${phase}, reason: ${reason}`);
}

/** Returns the checks of what OLM v1 supports, in the order of the migration library. */
export function checkCompatibility(
  cluster: ClusterIndex,
  subscription: JsonObject,
  csv: JsonObject,
  acknowledged: Acknowledged,
): MigrationCheck[] {
  const namespace = getNamespace(subscription);
  const [group] = cluster.list(kinds.operatorGroup, { namespace });
  return [
    ...(group === undefined
      ? [fail('OperatorGroup exists', `no OperatorGroup found in namespace ${namespace}`)]
      : checkOperatorGroup(group, acknowledged)),
    checkAllNamespaces(csv),
    ...checkDependencies(csv),
    getList(csv, 'spec', 'apiservicedefinitions', 'owned').length > 0
      ? fail(
          'No APIService definitions',
          'CSV has spec.apiservicedefinitions.owned set; OLMv1 does not yet fully support APIService-based operators',
        )
      : pass('No APIService definitions', 'CSV does not define owned APIServices'),
    checkCondition(cluster.find(kinds.operatorCondition, getName(csv), namespace), acknowledged),
    checkApiAccess(csv, acknowledged),
  ];
}

function checkOperatorGroup(group: JsonObject, acknowledged: Acknowledged): MigrationCheck[] {
  const runsInAll =
    'overridden: operator will run AllNamespaces post-migration (watch scope change acknowledged)';
  const selector = getObject(group, 'spec', 'selector');
  const selects =
    Object.keys(getObject(selector, 'matchLabels')).length + getList(selector, 'matchExpressions').length > 0;
  const strategy = getText(group, 'spec', 'upgradeStrategy');
  const [target, ...others] = getTexts(group, 'status', 'namespaces');
  const isSingle = target !== undefined && target !== '' && others.length === 0;
  const scope = (
    name: string,
    fault: string | undefined,
    passed: string,
    overridden = runsInAll,
  ): MigrationCheck => {
    if (fault === undefined) return pass(name, passed);
    return acknowledged.has('watch-scope-change') ? pass(name, overridden) : fail(name, fault);
  };
  return [
    checkScopedAccount(getText(group, 'spec', 'serviceAccountName'), acknowledged),
    scope(
      'No namespace selector',
      selects
        ? 'OperatorGroup has spec.selector set; OLMv1 uses AllNamespaces — pass --acknowledge-watch-scope-change to override'
        : undefined,
      'OperatorGroup does not use a namespace selector',
    ),
    pass(
      'Upgrade strategy',
      strategy === '' || strategy === 'Default'
        ? 'upgrade strategy is Default or unset'
        : `OperatorGroup upgradeStrategy ${quoteGo(strategy)} is not mapped to OLMv1 and will be ignored post-migration`,
    ),
    scope(
      'AllNamespaces mode',
      getList(group, 'spec', 'targetNamespaces').length > 0
        ? 'OperatorGroup has spec.targetNamespaces set; operator must be in AllNamespaces mode for migration'
        : undefined,
      'operator is in AllNamespaces mode',
    ),
    ...(isSingle
      ? [
          scope(
            'Namespace scope change',
            `OperatorGroup targets namespace ${quoteGo(target)}; post-migration the operator will run in AllNamespaces mode`,
            '',
            'overridden: watch scope change acknowledged',
          ),
        ]
      : []),
  ];
}

function checkScopedAccount(account: string, acknowledged: Acknowledged): MigrationCheck {
  const name = 'No scoped ServiceAccount';
  if (account === '') return pass(name, 'OperatorGroup does not use a scoped service account');
  return acknowledged.has('scoped-serviceaccount')
    ? pass(name, 'overridden: operator will use cluster-admin (scoped ServiceAccount acknowledged)')
    : fail(
        name,
        'OperatorGroup has spec.serviceAccountName set; OLMv1 does not support scoped service accounts',
      );
}

function checkAllNamespaces(csv: JsonObject): MigrationCheck {
  const name = 'AllNamespaces install mode supported';
  const isSupported = getObjects(csv, 'spec', 'installModes').some(
    (mode) => mode['type'] === 'AllNamespaces' && mode['supported'] === true,
  );
  return isSupported
    ? pass(name, 'CSV supports AllNamespaces install mode')
    : fail(
        name,
        'CSV does not declare AllNamespaces install mode as supported; --acknowledge-watch-scope-change cannot override bundle capabilities',
      );
}

const requiredTypes: ReadonlySet<string> = new Set(['olm.package.required', 'olm.gvk.required']);

function checkDependencies(csv: JsonObject): MigrationCheck[] {
  const name = 'No dependency resolution';
  if (getPropertiesText(csv) === '') return [pass(name, 'no bundle properties declared')];
  const { properties, error } = readProperties(csv);
  if (error !== undefined) return [fail(name, `failed to parse bundle properties: ${error}`)];
  const required = properties.filter(({ type }) => requiredTypes.has(type));
  if (required.length === 0) {
    return [pass(name, 'no olm.package.required or olm.gvk.required properties')];
  }
  return required.map(({ type, text }) => fail(name, `bundle declares ${type} dependency: ${text}`));
}

function checkCondition(condition: JsonObject | undefined, acknowledged: Acknowledged): MigrationCheck {
  const name = 'No OperatorCondition usage';
  if (condition === undefined) return pass(name, 'no OperatorCondition resource found');
  if (getList(condition, 'status', 'conditions').length === 0) {
    return pass(name, 'OperatorCondition exists but has no status entries');
  }
  return acknowledged.has('operator-condition')
    ? pass(name, 'overridden: active OperatorCondition usage acknowledged')
    : fail(
        name,
        'OperatorCondition has status.conditions entries; operator actively uses the OperatorCondition API',
      );
}

const v0Resources = ['subscriptions', 'installplans', 'clusterserviceversions', 'catalogsources', '*'];

function checkApiAccess(csv: JsonObject, acknowledged: Acknowledged): MigrationCheck {
  const name = 'OLMv0-API RBAC';
  const rules = getObjects(csv, 'spec', 'install', 'spec', 'clusterPermissions').flatMap((permission) =>
    getObjects(permission, 'rules'),
  );
  const reaches = (group: string, resources?: readonly string[]): boolean =>
    rules.some(
      (rule) =>
        getTexts(rule, 'apiGroups').includes(group) &&
        (resources === undefined ||
          getTexts(rule, 'resources').some((resource) => resources.includes(resource))),
    );
  if (!reaches('operators.coreos.com', v0Resources)) {
    return pass(name, 'CSV clusterPermissions do not grant OLMv0 API access');
  }
  if (reaches('olm.operatorframework.io')) {
    return pass(
      name,
      'CSV clusterPermissions grant both OLMv0 and OLMv1 API access (updated for compatibility)',
    );
  }
  return acknowledged.has('olmv0-api-access')
    ? pass(name, 'overridden: OLMv0 API RBAC without OLMv1 equivalent (olmv0-api-access acknowledged)')
    : fail(
        name,
        'CSV clusterPermissions grant operators.coreos.com access without OLMv1 equivalent; pass --acknowledge-olmv0-api-access to override',
      );
}

/** Returns why the CatalogSources of a Subscription and its InstallPlan cannot become ClusterCatalogs. */
export function findSourceFault(
  cluster: ClusterIndex,
  subscription: JsonObject,
  effective: { name: string; namespace: string },
): string | undefined {
  const name = getText(subscription, 'spec', 'source');
  const namespace = getText(subscription, 'spec', 'sourceNamespace');
  const reference = `${namespace}/${name}`;
  const source = cluster.find(kinds.catalogSource, name, namespace);
  const subject = `subscription ${getKey(subscription)} references`;
  const resource = 'catalogsources.operators.coreos.com';
  if (source === undefined)
    return `${subject} CatalogSource ${reference}: ${notFoundMessage(resource, name)}`;
  if (!isImageSource(source)) {
    return `${subject} non-image CatalogSource ${reference} (${describeSource(source)}); only grpc CatalogSources with spec.image can be migrated`;
  }
  const used = `${effective.namespace}/${effective.name}`;
  const usedSource = cluster.find(kinds.catalogSource, effective.name, effective.namespace);
  const invalid = `failed to validate effective CatalogSource ${used}:`;
  if (usedSource === undefined) {
    return `${invalid} failed to get CatalogSource ${used}: ${notFoundMessage(resource, effective.name)}`;
  }
  return isImageSource(usedSource)
    ? undefined
    : `${invalid} CatalogSource ${used} is not an image-backed grpc source (${describeSource(usedSource)})`;
}

/** Reports whether a CatalogSource is an image that OLM serves. */
export function isImageSource(source: JsonObject): boolean {
  return getText(source, 'spec', 'sourceType') === 'grpc' && getText(source, 'spec', 'image') !== '';
}

function describeSource(source: JsonObject): string {
  const [type, image] = [getText(source, 'spec', 'sourceType'), getText(source, 'spec', 'image')];
  return `sourceType ${quoteGo(type)}, spec.image ${quoteGo(image)}`;
}
