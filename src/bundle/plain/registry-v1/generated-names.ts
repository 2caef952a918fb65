import { createHash } from 'node:crypto';
import { encodeGoJson } from '../../../document/go-json.js';
import type { JsonValue } from '../../../document/json.js';
import type { Permission } from '../../../kube/csv-types.js';

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
  return nameWithSuffix(base, computeHash({ serviceAccountName, rules: rules ?? null }));
}

/** Base 36 of the SHA-224 of a value as Go's encoder writes it. */
function computeHash(value: JsonValue): string {
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
