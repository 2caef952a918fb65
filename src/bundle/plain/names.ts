import { createHash } from 'node:crypto';
import { encodeGoJson } from '../../document/go-json.js';
import type { JsonValue } from '../../document/json.js';
import type { Permission } from './csv-types.js';

/** Characters that names of generated objects have at most, but for one quirk. */
const maxNameLength = 63;

/**
 * The name of a generated Role or ClusterRole and of its binding: the name of the ClusterServiceVersion and of
 * the service account, cut as needed, and a hash of the permission. (Source: operator-controller; a name of 64
 * characters where both parts together have 63 is upstream's.)
 */
export function permissionName(csvName: string, permission: Permission): string {
  const base = `${csvName}-${permission.serviceAccountName || 'default'}`;
  const rules = permission.rules?.map((rule) => ({
    verbs: rule.verbs,
    ...(rule.apiGroups !== undefined && { apiGroups: rule.apiGroups }),
    ...(rule.resources !== undefined && { resources: rule.resources }),
    ...(rule.resourceNames !== undefined && { resourceNames: rule.resourceNames }),
    ...(rule.nonResourceURLs !== undefined && { nonResourceURLs: rule.nonResourceURLs }),
  }));
  const { serviceAccountName } = permission;
  return nameWithSuffix(base, hashOf({ serviceAccountName, rules: rules ?? null }));
}

/** Base 36 of the SHA-224 of a value as Go's encoder writes it. */
function hashOf(value: JsonValue): string {
  const text = `${encodeGoJson(value, { escapeHtml: true })}\n`;
  return BigInt(`0x${createHash('sha224').update(text).digest('hex')}`).toString(36);
}

/** `base-suffix`, with the base cut so that 63 characters are kept. */
export function nameWithSuffix(base: string, suffix: string): string {
  const isLong = base.length + suffix.length > maxNameLength;
  return `${isLong ? base.slice(0, Math.max(0, maxNameLength - suffix.length - 1)) : base}-${suffix}`;
}

/** The service in front of the webhooks of a deployment. */
export function webhookServiceName(deployment: string): string {
  return nameWithSuffix(deployment.replaceAll('.', '-'), 'service');
}

/** The certificate of that service, and the secret that holds it. */
export function certificateName(deployment: string): string {
  return nameWithSuffix(webhookServiceName(deployment), 'cert');
}

/** What cert-manager signs that certificate with. */
export function issuerName(deployment: string): string {
  return nameWithSuffix(certificateName(deployment), 'selfsigned-issuer');
}

const labelPattern = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?';
const subdomain = new RegExp(`^${labelPattern}(?:\\.${labelPattern})*$`);
const label = new RegExp(`^${labelPattern}$`);

/** Why a text is no DNS subdomain (RFC 1123), in a few words; undefined if it is one. */
export function subdomainFault(text: string): string | undefined {
  if (text.length > 253) return 'longer than 253 characters';
  return subdomain.test(text)
    ? undefined
    : 'not a DNS-1123 subdomain: lower case letters, digits, - and ., with a letter or digit at both ends';
}

/** Why a text is no DNS label (RFC 1123), as names of namespaces are; undefined if it is one. */
export function labelFault(text: string): string | undefined {
  if (text.length > 63) return 'longer than 63 characters';
  return label.test(text)
    ? undefined
    : 'not a DNS-1123 label: lower case letters, digits and -, with a letter or digit at both ends';
}

/** Kinds whose names only must fit into a URL. */
const rightsKinds: ReadonlySet<string> = new Set([
  'ClusterRole',
  'ClusterRoleBinding',
  'Role',
  'RoleBinding',
]);

/** Why no cluster would take an object of this kind by this name; undefined if one would. (Source: Kubernetes.) */
export function objectNameFault(kind: string, name: string): string | undefined {
  if (rightsKinds.has(kind)) {
    return name === '.' || name === '..' || /[/%]/.test(name) ? 'not one that fits into a path' : undefined;
  }
  return kind === 'Service' ? labelFault(name) : subdomainFault(name);
}
