import { type JsonObject, type JsonValue, isJsonObject } from '../../../document/json.js';
import { getList, getObjects, getTexts, getValue } from '../../../document/json-fields.js';
import type { PlainObject } from '../../../kube/object.js';
import { readSubject } from './subjects.js';

/** An effect of an operator on the cluster or its nodes, other than permissions. */
export interface Impact {
  kind: keyof typeof impactSummaries;
  /** `Kind/NAME`, or `Kind/NAMESPACE/NAME`. */
  object: string;
  detail: string;
}

/** Meanings of all kinds of impacts, for the reference. */
export const impactSummaries = {
  host: 'Containers access their node: host namespaces, volumes or ports, privileges, added capabilities',
  priority: 'A PriorityClass: pods may preempt others',
  aggregate: 'A ClusterRole that adds rules to the default roles of users',
  'foreign-account': 'A role binding for a service account of another namespace',
  'owned-crd': 'A CustomResourceDefinition',
} as const;

const aggregateLabel = 'rbac.authorization.k8s.io/aggregate-to-';

/** Returns the impacts of objects, in order. `installNamespace` has the accounts of the operator. */
export function getImpacts(objects: readonly PlainObject[], installNamespace: string): Impact[] {
  return objects.flatMap((object) => {
    const { kind, namespace, name } = object;
    const shown = [kind, ...(namespace === '' ? [] : [namespace]), name].join('/');
    return getDetails(object, installNamespace).map(([impact, detail]) => ({
      kind: impact,
      object: shown,
      detail,
    }));
  });
}

type Detail = [Impact['kind'], string];

function getDetails(object: PlainObject, installNamespace: string): Detail[] {
  switch (object.kind) {
    case 'CustomResourceDefinition':
      return [['owned-crd', definitionDetail(object.load())]];
    case 'PriorityClass': {
      const { value, globalDefault } = object.load();
      const isDefault = globalDefault === true ? ', the default of all pods' : '';
      return [['priority', `value ${shortText(value)}${isDefault}`]];
    }
    case 'ClusterRole':
      return aggregateDetails(object.load());
    case 'RoleBinding':
    case 'ClusterRoleBinding':
      return foreignAccounts(object.load(), installNamespace);
    default: {
      const pod = findPodSpec(object);
      return pod === undefined ? [] : hostDetails(pod);
    }
  }
}

function shortText(value: JsonValue | undefined): string {
  return ['string', 'number', 'bigint'].includes(typeof value) ? String(value as string) : '?';
}

function definitionDetail(definition: JsonObject): string {
  const { group, scope } = (getValue(definition, 'spec') ?? {}) as JsonObject;
  const versions = getObjects(definition, 'spec', 'versions')
    .filter(({ served }) => served !== false)
    .map(({ name }) => shortText(name));
  const kind = shortText(getValue(definition, 'spec', 'names', 'kind'));
  return `${kind} of ${shortText(group)} (${versions.join(', ')}), ${shortText(scope)}`;
}

function aggregateDetails(role: JsonObject): Detail[] {
  const labels = getValue(role, 'metadata', 'labels');
  if (!isJsonObject(labels)) return [];
  return Object.keys(labels)
    .filter((key) => key.startsWith(aggregateLabel) && labels[key] === 'true')
    .map((key) => ['aggregate', `its rules are added to the role ${key.slice(aggregateLabel.length)}`]);
}

function foreignAccounts(binding: JsonObject, installNamespace: string): Detail[] {
  return getList(binding['subjects']).flatMap((value): Detail[] => {
    const subject = readSubject(value, installNamespace);
    if (subject === undefined || subject.kind !== undefined) return [];
    const { account, accountNamespace } = subject;
    if (accountNamespace === '' || accountNamespace === installNamespace) return [];
    return [['foreign-account', `is for account ${account} of namespace ${accountNamespace}`]];
  });
}

function findPodSpec({ kind, load }: PlainObject): JsonValue | undefined {
  switch (kind) {
    case 'Pod':
      return getValue(load(), 'spec');
    case 'Deployment':
    case 'DaemonSet':
    case 'StatefulSet':
    case 'ReplicaSet':
    case 'Job':
      return getValue(load(), 'spec', 'template', 'spec');
    case 'CronJob':
      return getValue(load(), 'spec', 'jobTemplate', 'spec', 'template', 'spec');
    default:
      return undefined;
  }
}

function hostDetails(pod: JsonValue): Detail[] {
  const details = ['hostNetwork', 'hostPID', 'hostIPC'].filter((field) => getValue(pod, field) === true);
  for (const volume of getObjects(pod, 'volumes')) {
    const path = getValue(volume, 'hostPath', 'path');
    if (isJsonObject(volume['hostPath'])) details.push(`hostPath ${shortText(path)}`);
  }
  for (const field of ['initContainers', 'containers', 'ephemeralContainers']) {
    for (const container of getObjects(pod, field)) {
      const name = `container ${shortText(container['name'])}`;
      if (getValue(container, 'securityContext', 'privileged') === true) details.push(`${name}: privileged`);
      const added = getTexts(getValue(container, 'securityContext', 'capabilities', 'add'));
      if (added.length > 0) details.push(`${name}: capabilities ${added.join(', ')}`);
      const ports = getObjects(container, 'ports').filter(({ hostPort }) => Number(hostPort ?? 0) !== 0);
      for (const { hostPort } of ports) details.push(`${name}: hostPort ${shortText(hostPort)}`);
    }
  }
  return details.map((detail) => ['host', detail]);
}
