import { type JsonObject, isJsonObject } from '../../../document/json.js';
import { getObjects, getText, getTexts, getValue } from '../../../document/json-fields.js';
import { sortedByBytes } from '../../../core/order.js';
import type { BundleFiles } from '../../read.js';
import { type Manifest, readManifests } from '../../../kube/manifests.js';
import type { RegistryV1 } from '../registry-v1/registry-v1.js';

/** Cloud permissions of an operator from one statement of a CredentialsRequest. */
export interface CloudPermission {
  /** Name of the CredentialsRequest. */
  request: string;
  /** `aws`, `azure`, `gcp`, or the kind of the provider's specification. */
  provider: string;
  effect: string;
  /** Actions or permissions. */
  actions: string[];
  /** Empty for all. */
  resources: string[];
  /** Names of roles with all their permissions. */
  roles: string[];
}

/** Returns the clouds of which an operator requests credentials in its token authentication annotations, sorted. */
export function getClouds({ csv }: RegistryV1): string[] {
  const annotations = csv.metadata.annotations ?? {};
  return sortedByBytes(Object.keys(annotations)).flatMap((key) => {
    const cloud = /^features\.operators\.openshift\.io\/token-auth-(\w+)$/.exec(key)?.[1];
    return cloud !== undefined && annotations[key] === 'true' ? [cloud] : [];
  });
}

/** Removes the files that contain only CredentialsRequests, which OLM v1 does not install, from a bundle. */
export function takeCredentialsRequests(files: BundleFiles): { files: BundleFiles; requests: Manifest[] } {
  const requests: Manifest[] = [];
  const manifests = files.manifests.filter((file) => {
    if (!file.content.includes('CredentialsRequest')) return true;
    const { manifests: read, findings } = readManifests([file], { prefix: 'manifests/' });
    const isTaken =
      read.length > 0 &&
      findings.length === 0 &&
      read.every(
        ({ kind, apiVersion }) =>
          kind === 'CredentialsRequest' && apiVersion.startsWith('cloudcredential.openshift.io/'),
      );
    if (isTaken) requests.push(...read);
    return !isTaken;
  });
  return requests.length === 0 ? { files, requests } : { files: { ...files, manifests }, requests };
}

/** Returns the permissions in CredentialsRequests, in order; ignores values of the wrong type. */
export function getCloudPermissions(requests: readonly Manifest[]): CloudPermission[] {
  return requests.flatMap((request) => {
    const provider = getValue(request.load(), 'spec', 'providerSpec');
    return isJsonObject(provider)
      ? getStatements(provider).map((statement) => ({ request: request.name, ...statement }))
      : [];
  });
}

type Statement = Omit<CloudPermission, 'request'>;

function getStatements(spec: JsonObject): Statement[] {
  const kind = getText(spec, 'kind');
  const allow = (provider: string, statement: Partial<Statement>): Statement => ({
    provider,
    effect: 'Allow',
    actions: [],
    resources: [],
    roles: [],
    ...statement,
  });
  switch (kind) {
    case 'AWSProviderSpec':
      return getObjects(spec, 'statementEntries').map(({ effect, action, resource }) =>
        allow('aws', {
          ...(typeof effect === 'string' && effect !== '' && { effect }),
          actions: getTexts(action),
          resources: getTexts(typeof resource === 'string' ? [resource] : resource),
        }),
      );
    case 'AzureProviderSpec': {
      const actions = [...getTexts(spec['permissions']), ...getTexts(spec['dataPermissions'])];
      const roles = getObjects(spec, 'roleBindings').flatMap(({ role }) => getTexts([role ?? null]));
      return [allow('azure', { actions, roles })];
    }
    case 'GCPProviderSpec':
      return [
        allow('gcp', { actions: getTexts(spec['permissions']), roles: getTexts(spec['predefinedRoles']) }),
      ];
    default:
      return [allow(kind.replace(/ProviderSpec$/, '').toLowerCase(), {})];
  }
}

/** Reports whether a statement allows everything, or everything of one service. */
export function isCloudWildcard({ effect, actions, roles }: CloudPermission): boolean {
  const isWhole = (action: string): boolean => action === '*' || /[:/]\*$/.test(action);
  return effect === 'Allow' && (actions.some(isWhole) || roles.some((role) => /(?:^|\/)owner$/i.test(role)));
}
