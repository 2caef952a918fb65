import { createHash } from 'node:crypto';
import { encodeGoJson } from '../../../document/go-json.js';
import type { JsonValue } from '../../../document/json.js';
import type { Permission } from '../../../kube/csv-types.js';
import { setFields } from '../../../kube/object.js';
import { maxLabelLength } from '../../../kube/names.js';

/**
 * Returns the name of a generated Role or ClusterRole and its binding: the names of the ClusterServiceVersion and of
 * the service account, truncated as needed, and a hash of the permission. (Source: operator-controller, which also
 * creates names of 64 characters if both parts have 63.)
 */
export function permissionName(csvName: string, permission: Permission): string {
  const base = `${csvName}-${permission.serviceAccountName || 'default'}`;
  const names = ['verbs', 'apiGroups', 'resources', 'resourceNames', 'nonResourceURLs'] as const;
  const rules = permission.rules?.map((rule) => setFields(rule, names));
  const { serviceAccountName } = permission;
  return nameWithSuffix(base, computeHash({ serviceAccountName, rules: rules ?? null }));
}

/** Returns the SHA-224 of a value as Go encodes it, in base 36. */
function computeHash(value: JsonValue): string {
  const text = `${encodeGoJson(value, { escapeHtml: true })}\n`;
  return BigInt(`0x${createHash('sha224').update(text).digest('hex')}`).toString(36);
}

/** Returns `base-suffix`, with the base truncated to 63 characters in total. */
export function nameWithSuffix(base: string, suffix: string): string {
  const isLong = base.length + suffix.length > maxLabelLength;
  return `${isLong ? base.slice(0, Math.max(0, maxLabelLength - suffix.length - 1)) : base}-${suffix}`;
}

/** Returns the name of the service for the webhooks of a deployment. */
export function webhookServiceName(deployment: string): string {
  return nameWithSuffix(deployment.replaceAll('.', '-'), 'service');
}

/** Returns the name of the certificate of that service, and of its secret. */
export function certificateName(deployment: string): string {
  return nameWithSuffix(webhookServiceName(deployment), 'cert');
}

/** Returns the name of the issuer of that certificate. */
export function issuerName(deployment: string): string {
  return nameWithSuffix(certificateName(deployment), 'selfsigned-issuer');
}
