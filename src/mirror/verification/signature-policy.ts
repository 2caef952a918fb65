import path from 'node:path';
import { OpmateError, UsageError, fileError } from '../../core/errors.js';
import { readNamedFile } from '../../files/read-file.js';
import { parseClusterPolicies } from '../../trust/cluster-policy.js';
import { type SignaturePolicy, signerPolicy } from '../../trust/policy.js';
import { parsePolicyFile } from '../../trust/policy-file.js';
import { parseVerificationKey } from '../../trust/signing-key.js';

const maxFileBytes = 16 * 1024 * 1024;

/** Which signatures images must have: one of a policy, a key, or an identity. */
export interface PolicyRequest {
  /** File: policy.json of containers, or ClusterImagePolicy and ImagePolicy documents. */
  policy?: string | undefined;
  /** Public keys in PEM, one of which must have signed. */
  keys?: readonly string[] | undefined;
  certificate?:
    | {
        /** Email address or URI; a regular expression must match all of it. */
        identity: string | RegExp;
        oidcIssuer: string | RegExp;
        /** File: trusted_root.json of Sigstore. */
        trustedRoot: string;
      }
    | undefined;
}

/** Reads what a request names. Paths are relative to `directory`. Throws OpmateError, and UsageError for no request. */
export async function readSignaturePolicy(
  { policy, keys = [], certificate }: PolicyRequest,
  directory: string,
): Promise<SignaturePolicy> {
  const chosen = [policy, keys.length > 0 ? keys : undefined, certificate].filter(
    (item) => item !== undefined,
  );
  if (chosen.length !== 1) {
    const problem = chosen.length === 0 ? 'no signature policy' : 'several signature policies';
    throw new UsageError(problem, {
      hint: 'use one of --policy, --key, or --certificate-identity with --trusted-root',
    });
  }
  const read = (file: string): Promise<Buffer> => readPolicyInput(path.resolve(directory, file), file);
  if (policy !== undefined) {
    const text = (await read(policy)).toString();
    return isClusterPolicy(text) ? parseClusterPolicies(text, policy) : parsePolicyFile(text, policy, read);
  }
  if (certificate !== undefined) {
    const { identity, oidcIssuer, trustedRoot } = certificate;
    const json = (await read(trustedRoot)).toString();
    const { checkTrustedRoot } = await import('../../trust/sigstore-verifier.js');
    checkTrustedRoot(json, trustedRoot);
    const trust = { kind: 'trusted-root' as const, json };
    return signerPolicy('--certificate-identity', { kind: 'certificate', trust, identity, oidcIssuer });
  }
  const parsed = [];
  for (const key of keys) parsed.push(parseVerificationKey(await read(key), key));
  return signerPolicy('--key', { kind: 'key', keys: parsed, rekorKeys: [] });
}

/** Documents of a cluster have a kind; policy.json has none. */
function isClusterPolicy(text: string): boolean {
  return /^\s*"?kind"?\s*:/m.test(text) || /"kind"\s*:/.test(text);
}

async function readPolicyInput(file: string, name: string): Promise<Buffer> {
  try {
    return await readNamedFile(file, maxFileBytes);
  } catch (error) {
    throw error instanceof OpmateError ? error : fileError(`open ${name}`, error, { file: name });
  }
}
