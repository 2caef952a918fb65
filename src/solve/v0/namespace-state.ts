import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { parseTolerantVersion, tryParse, formatVersion, type Version } from '../../core/semver.js';
import { compareBytes } from '../../core/order.js';
import type { JsonObject } from '../../document/json.js';
import { getObject, getObjects, getText, getTexts } from '../../document/json-fields.js';
import { propertyTypes } from '../../model/declarative-config.js';
import type { RuleProperty } from '../../model/property-rule.js';
import { parsePropertiesAnnotation, readBundleProperties } from './bundle-properties.js';
import { type ResolverEntry, existingCatalog } from './resolver-types.js';
import type { ApiName } from '../../model/csv.js';

/** Annotation of a ClusterServiceVersion with the properties of its bundle. */
export const bundlePropertiesAnnotation = 'operatorframework.io/properties';
const exclusionAnnotation = 'olm.operatorframework.io/exclude-global-namespace-resolution';
const failForwardStrategy = 'TechPreviewUnsafeFailForward';

/** A Subscription as the resolver reads it. Missing fields are empty. */
export interface SubscriptionState {
  name: string;
  namespace: string;
  package: string;
  channel: string;
  startingCsv: string;
  source: string;
  sourceNamespace: string;
  isManual: boolean;
  installedCsv: string;
  currentCsv: string;
  state: string;
  hasInstallPlan: boolean;
  /** OLM created it for a dependency. */
  isGenerated: boolean;
}

/** A ClusterServiceVersion as the resolver reads it. */
export interface CsvState {
  name: string;
  namespace: string;
  version: Version;
  replaces: string;
  phase: string;
  isCopied: boolean;
  /** Text of the properties annotation; undefined without one. */
  annotation: string | undefined;
  /** Properties of a predicted one, which has no annotation text. */
  properties: readonly RuleProperty[] | undefined;
  owned: readonly ApiDefinition[];
  required: readonly ApiDefinition[];
}

/** An API of a ClusterServiceVersion: name of the CRD or group of an API service. */
interface ApiDefinition {
  kind: string;
  version: string;
  group: string | undefined;
  name: string;
}

/** An OperatorGroup as the resolver reads it. */
interface OperatorGroupState {
  name: string;
  excludesGlobal: boolean;
  failsForward: boolean;
  /** Target namespaces; empty for all, undefined if a selector decides. */
  targets: readonly string[] | undefined;
}

/** State of one namespace, which a round of resolution starts from. */
export interface NamespaceState {
  namespace: string;
  subscriptions: SubscriptionState[];
  csvs: CsvState[];
  operatorGroups: OperatorGroupState[];
}

/** Returns the state of a namespace among objects of a cluster; Subscriptions and versions by name. */
export function readNamespace(namespace: string, objects: readonly JsonObject[]): NamespaceState {
  const ofKind = (kind: string): JsonObject[] =>
    objects.filter(
      (object) => object['kind'] === kind && getText(object, 'metadata', 'namespace') === namespace,
    );
  const byName = <T extends { name: string }>(items: T[]): T[] =>
    items.sort((a, b) => compareBytes(a.name, b.name));
  return {
    namespace,
    subscriptions: byName(ofKind('Subscription').map(readSubscription)),
    csvs: byName(ofKind('ClusterServiceVersion').map(readCsv)),
    operatorGroups: byName(ofKind('OperatorGroup').map(readOperatorGroup)),
  };
}

/** Reads a Subscription. */
function readSubscription(object: JsonObject): SubscriptionState {
  const spec = getObject(object, 'spec');
  const status = getObject(object, 'status');
  return {
    name: getText(object, 'metadata', 'name'),
    namespace: getText(object, 'metadata', 'namespace'),
    package: getText(spec, 'name'),
    channel: getText(spec, 'channel'),
    startingCsv: getText(spec, 'startingCSV'),
    source: getText(spec, 'source'),
    sourceNamespace: getText(spec, 'sourceNamespace'),
    isManual: getText(spec, 'installPlanApproval') === 'Manual',
    installedCsv: getText(status, 'installedCSV'),
    currentCsv: getText(status, 'currentCSV'),
    state: getText(status, 'state'),
    hasInstallPlan: getText(status, 'installPlanRef', 'name') !== '',
    isGenerated: getText(object, 'metadata', 'annotations', 'olm.generated-by') !== '',
  };
}

function readCsv(object: JsonObject): CsvState {
  const spec = getObject(object, 'spec');
  const annotations = getObject(object, 'metadata', 'annotations');
  const text = getText(annotations, bundlePropertiesAnnotation);
  return {
    name: getText(object, 'metadata', 'name'),
    namespace: getText(object, 'metadata', 'namespace'),
    version: tryParse(parseTolerantVersion, getText(spec, 'version')) ?? zeroVersion,
    replaces: getText(spec, 'replaces'),
    phase: getText(object, 'status', 'phase'),
    isCopied: isCopiedCsv(object),
    annotation: Object.hasOwn(annotations, bundlePropertiesAnnotation) ? text : undefined,
    properties: undefined,
    owned: readDefinitions(spec, 'owned'),
    required: readDefinitions(spec, 'required'),
  };
}

const zeroVersion = parseTolerantVersion('0.0.0');

/** Reports whether a ClusterServiceVersion is a copy of one of another namespace. (Source: operator-framework/api.) */
export function isCopiedCsv(object: JsonObject): boolean {
  const operatorNamespace = getText(object, 'metadata', 'annotations', 'olm.operatorNamespace');
  return (
    getText(object, 'status', 'reason') === 'Copied' ||
    Object.hasOwn(getObject(object, 'metadata', 'labels'), 'olm.copiedFrom') ||
    (operatorNamespace !== '' && operatorNamespace !== getText(object, 'metadata', 'namespace'))
  );
}

function readDefinitions(spec: JsonObject, list: 'owned' | 'required'): ApiDefinition[] {
  const crds = getObjects(spec, 'customresourcedefinitions', list);
  const services = getObjects(spec, 'apiservicedefinitions', list);
  const read = (object: JsonObject, group: string | undefined): ApiDefinition => ({
    kind: getText(object, 'kind'),
    version: getText(object, 'version'),
    name: getText(object, 'name'),
    group,
  });
  return [
    ...crds.map((object) => read(object, undefined)),
    ...services.map((object) => read(object, getText(object, 'group'))),
  ];
}

function readOperatorGroup(object: JsonObject): OperatorGroupState {
  const annotations = getObject(object, 'metadata', 'annotations');
  return {
    name: getText(object, 'metadata', 'name'),
    excludesGlobal: getText(annotations, exclusionAnnotation) === 'true',
    failsForward: getText(object, 'spec', 'upgradeStrategy') === failForwardStrategy,
    targets: readTargets(object),
  };
}

function readTargets(object: JsonObject): string[] | undefined {
  const written = getTexts(object, 'status', 'namespaces');
  if (written.length > 0) return written.includes('') ? [] : written;
  if (Object.keys(getObject(object, 'spec', 'selector')).length > 0) return undefined;
  return getTexts(object, 'spec', 'targetNamespaces');
}

/**
 * Returns entries of the installed versions, as the source `@existing` has them. Throws OpmateError INVALID in OLM's
 * words. (Source: OLM, source_csvs.go.)
 */
export function listExisting(state: NamespaceState): ResolverEntry[] {
  const { namespace, csvs, subscriptions, operatorGroups } = state;
  if (operatorGroups.length !== 1)
    throw new OpmateError('INVALID', `found ${operatorGroups.length} operatorGroups, expected 1`);
  const failsForward = operatorGroups[0]?.failsForward === true;
  const replacements = new Map<string, CsvState>();
  for (const csv of csvs) if (csv.replaces !== '') replacements.set(csv.replaces, csv);
  const entries: ResolverEntry[] = [];
  for (const csv of csvs) {
    if (csv.isCopied) continue;
    if (failsForward) {
      const endsInFailure = findLastReplacement(csv, replacements).phase === 'Failed';
      if (csv.phase === 'Replacing' && endsInFailure) continue;
    }
    const properties = readProperties(csv, subscriptions);
    const read = readBundleProperties(properties);
    entries.push({
      ...read,
      name: csv.name,
      catalog: { namespace, name: existingCatalog },
      package: read.packages.at(-1)?.name ?? '',
      channel: '',
      isDefaultChannel: false,
      replaces: '',
      skips: [],
      skipRange: undefined,
      version: csv.version,
      versionText: formatVersion(csv.version),
      manifests: undefined,
      installModes: undefined,
      maxOpenShift: [],
      removedApis: [],
      isSubscribed: subscriptions.some(({ installedCsv }) => installedCsv === csv.name),
    });
  }
  return entries;
}

/** Follows the versions that replace one another; each but the last must be in phase Replacing. */
function findLastReplacement(csv: CsvState, replacements: ReadonlyMap<string, CsvState>): CsvState {
  const visited = new Set<string>();
  let last = csv;
  for (let next = replacements.get(last.name); next !== undefined; next = replacements.get(last.name)) {
    const name = `csv ${last.namespace}/${last.name}`;
    if (last.phase !== 'Replacing')
      throw new OpmateError('INVALID', `${name} in phase ${last.phase} instead of Replacing`);
    if (visited.has(last.name)) throw new OpmateError('INVALID', `${name} has already been seen`);
    visited.add(last.name);
    last = next;
  }
  return last;
}

function readProperties(
  { name, annotation, properties, owned, required, version }: CsvState,
  subscriptions: readonly SubscriptionState[],
): readonly RuleProperty[] {
  // OLM reads the APIs before the annotation, and fails with either.
  const provided = toApiProperties(owned, propertyTypes.gvk);
  const needed = toApiProperties(required, propertyTypes.gvkRequired);
  if (properties !== undefined) return properties;
  if (annotation !== undefined) {
    try {
      return parsePropertiesAnnotation(annotation);
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      const problem = `failed to retrieve properties of csv ${quoteGo(name)}: ${error.message}`;
      throw new OpmateError('INVALID', problem);
    }
  }
  const packages = new Set(
    subscriptions
      .filter((subscription) => subscription.installedCsv === name && subscription.package !== '')
      .map((subscription) => subscription.package),
  );
  const [packageName] = packages;
  if (packageName === undefined || packages.size > 1) return [...provided, ...needed];
  const text = formatVersion(version);
  const value = { packageName, version: text === '0.0.0' ? '' : text };
  return [...provided, ...needed, { type: propertyTypes.package, value }];
}

function toApiProperties(definitions: readonly ApiDefinition[], type: string): RuleProperty[] {
  const apis = new Map<string, ApiName>();
  for (const { name, kind, version, group } of definitions) {
    const dot = name.indexOf('.');
    if (group === undefined && dot < 0) throw new OpmateError('INVALID', `error parsing crd name: ${name}`);
    const api = { group: group ?? name.slice(dot + 1), version, kind };
    apis.set(JSON.stringify([name, api]), api);
  }
  return [...apis.values()].map((api) => ({ type, value: { ...api } }));
}
