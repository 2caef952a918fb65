import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { UsageError, throwFileError } from '../../core/errors.js';
import { decodeFile } from '../../document/document.js';
import { readNamedFile } from '../../files/read-file.js';
import { parseClusterPolicies } from '../../trust/cluster-policy.js';
import { type SignaturePolicy, signerPolicy } from '../../trust/policy.js';
import { parsePolicyFile } from '../../trust/policy-file.js';
import { parseVerificationKey } from '../../trust/signing-key.js';

const maxFileBytes = 16 * 1024 * 1024;

/** Required signatures of images: exactly one of a policy, keys, or a certificate identity. */
export interface PolicyRequest {
  /** File of a containers policy.json, or of ClusterImagePolicy and ImagePolicy documents. */
  policy?: string | undefined;
  /** Files of PEM public keys, one of which must match. */
  keys?: readonly string[] | undefined;
  certificate?:
    | {
        /** Email address or URI, or a regular expression of all of it. */
        identity: string | RegExp;
        oidcIssuer: string | RegExp;
        /** File of a Sigstore trusted_root.json. */
        trustedRoot: string;
      }
    | undefined;
}

/** Reads the policy of a request, with paths relative to `directory`. Throws OpmateError; UsageError unless exactly one is set. */
export async function readSignaturePolicy(
  { policy, keys = [], certificate }: PolicyRequest,
  directory: string,
  options: CancelOptions = {},
): Promise<SignaturePolicy> {
  const count = [policy !== undefined, keys.length > 0, certificate !== undefined].filter(Boolean).length;
  if (count !== 1) {
    throw new UsageError(count === 0 ? 'no signature policy' : 'several signature policies', {
      hint: 'use one of options.policy, options.keys, or options.certificate',
    });
  }
  const read = (file: string): Promise<Buffer> =>
    readNamedFile(path.resolve(directory, file), maxFileBytes, options).catch(throwFileError(file, { file }));
  if (policy !== undefined) {
    const text = decodeFile(await read(policy), policy);
    return isClusterPolicy(text) ? parseClusterPolicies(text, policy) : parsePolicyFile(text, policy, read);
  }
  if (certificate !== undefined) {
    const { identity, oidcIssuer, trustedRoot } = certificate;
    const json = decodeFile(await read(trustedRoot), trustedRoot);
    const { checkTrustedRoot } = await import('../../trust/sigstore-verifier.js');
    checkTrustedRoot(json, trustedRoot);
    const trust = { kind: 'trusted-root' as const, json };
    return signerPolicy('options.certificate', { kind: 'certificate', trust, identity, oidcIssuer });
  }
  const parsed = [];
  for (const key of keys) parsed.push(parseVerificationKey(await read(key), key));
  return signerPolicy('options.keys', { kind: 'key', keys: parsed, rekorKeys: [] });
}

/** Manifests have a kind or an API version; policy.json has neither. */
function isClusterPolicy(text: string): boolean {
  return /^\s*(?:kind|apiVersion)\s*:|"(?:kind|apiVersion)"\s*:/m.test(text);
}
