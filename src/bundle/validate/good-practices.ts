import { quoteGo } from '../../document/go-json.js';
import { type JsonValue, isJsonObject } from '../../document/json.js';
import { getList, getValue } from '../../document/json-fields.js';
import { sortedByBytes } from '../../core/order.js';
import { parseVersion, tryParse } from '../../core/semver.js';
import type { BundleContent } from './content.js';
import type { Permission, Csv } from '../../kube/csv-types.js';
import { type Reporter, prefixed, warning } from './report.js';

/** Checks recommendations for operators. (Source: validator `good-practices` of operator-framework/api.) */
export function checkGoodPractices(content: BundleContent, reportAny: Reporter): void {
  const { csv, csvObject, name } = content;
  if (csv === undefined || csvObject === undefined) return;
  const reportNamed = prefixed(reportAny, `Value ${name}: `);
  const report: Reporter = (path, problem) => reportNamed(path, problem, warning);
  const deployments = csv.spec.install.spec?.deployments ?? null;
  if (deployments === null) {
    reportNamed(['spec', 'install', 'spec'], 'unable to find a deployment to install in the CSV');
  }
  checkRequests(csv, csvObject.value, report);
  checkDescriptions(csv, report);
  checkChannelNames(content, report);
  const grant = findCrdGrant(csv);
  if (grant !== undefined) {
    report(
      grant,
      "CSV contains permissions to create CRD. An Operator shouldn't deploy or manage other operators (such patterns " +
        'are known as meta or super operators or include CRDs in its Operands). ' +
        "It's the Operator Lifecycle Manager's job to manage the deployment and lifecycle of operators.  Please, " +
        'review the design of your solution and if you should not be using Dependency Resolution from OLM instead. ' +
        'More info: https://sdk.operatorframework.io/docs/best-practices/common-recommendation/',
    );
  }
  checkName(name, report);
}

/** Recommends resource requests for all containers. */
function checkRequests(csv: Csv, object: JsonValue, report: Reporter): void {
  const deployments = csv.spec.install.spec?.deployments ?? null;
  for (const [index, deployment] of (deployments ?? []).entries()) {
    for (const [position, container] of (deployment.spec.template.spec?.containers ?? []).entries()) {
      const inTemplate = ['spec', 'template', 'spec', 'containers', position];
      const path = ['spec', 'install', 'spec', 'deployments', index, ...inTemplate];
      // An empty list of requests is accepted, which the typed value does not distinguish from none.
      let requests: JsonValue | undefined = object;
      for (const key of [...path, 'resources', 'requests']) {
        requests = typeof key === 'string' ? getValue(requests, key) : getList(requests)[key];
      }
      if (isJsonObject(requests)) continue;
      report(
        path,
        `unable to find the resource requests for the container: (${container.name}). It is recommended to ensure ` +
          'the resource request for CPU and Memory. Be aware that for some clusters configurations it is required ' +
          'to specify requests or limits for those values. Otherwise, the system or quota may reject Pod creation. ' +
          'More info: https://master.sdk.operatorframework.io/docs/best-practices/managing-resources/',
      );
    }
  }
}

/** Recommends descriptions of custom resource definitions. */
function checkDescriptions(csv: Csv, report: Reporter): void {
  for (const relation of ['owned', 'required'] as const) {
    for (const [index, crd] of (csv.spec.customresourcedefinitions?.[relation] ?? []).entries()) {
      if ((crd.description ?? '') !== '') continue;
      const problem = `${relation} CRD ${quoteGo(crd.name)} has an empty description`;
      report(['spec', 'customresourcedefinitions', relation, index], problem);
    }
  }
}

/** Recommends names of channels. */
function checkChannelNames(content: BundleContent, report: Reporter): void {
  const { channels, defaultChannel } = content.format;
  const unusual = sortedByBytes(
    new Set([...channels, defaultChannel].map((channel) => channel.trim())),
  ).filter((channel) => channel !== '' && !/^(?:candidate|stable|fast)/.test(channel));
  if (unusual.length > 0) {
    report(
      [],
      `channel(s) [${unusual.map(quoteGo).join(' ')}] are not following the recommended naming convention: ` +
        'https://olm.operatorframework.io/docs/best-practices/channel-naming',
    );
  }
}

/** Recommends the form of the name of a ClusterServiceVersion. */
function checkName(name: string, report: Reporter): void {
  const path = ['metadata', 'name'];
  if (!endsWithVersion(name)) {
    const problem =
      'is not following the versioning convention (MAJOR.MINOR.PATCH e.g 0.0.1): https://semver.org/';
    report(path, `csv.metadata.Name ${name} ${problem}`);
  }
  if (name.split('.v').length !== 2) {
    const problem = 'naming convention: <operator-name>.v<semver> e.g. memcached-operator.v0.0.1';
    report(path, `csv.metadata.Name ${name} is not following the recommended ${problem}`);
  }
}

function endsWithVersion(name: string): boolean {
  const version = /\d+\.\d+\.\d+(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+)?$/.exec(
    name.slice(-512),
  )?.[0];
  return version !== undefined && tryParse(parseVersion, version) !== undefined;
}

/** Returns the path of a rule that allows creating custom resource definitions. */
function findCrdGrant(csv: Csv): (string | number)[] | undefined {
  const { permissions = [], clusterPermissions = [] } = csv.spec.install.spec ?? {};
  const find = (field: string, all: readonly Permission[]): (string | number)[] | undefined => {
    for (const [index, { rules }] of all.entries()) {
      for (const [position, { apiGroups = [], resources = [], verbs }] of (rules ?? []).entries()) {
        if (!apiGroups.includes('apiextensions.k8s.io')) continue;
        if (!resources.some((name) => ['customresourcedefinitions', '*', '[*]'].includes(name))) continue;
        if (!(verbs ?? []).some((verb) => ['create', '*', '[*]', 'patch'].includes(verb))) continue;
        return ['spec', 'install', 'spec', field, index, 'rules', position];
      }
    }
    return undefined;
  };
  return find('permissions', permissions) ?? find('clusterPermissions', clusterPermissions);
}
