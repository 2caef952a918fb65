import { invalidValue, UsageError } from '../../core/errors.js';
import type { PolicyRequest } from '../../mirror/verification/signature-policy.js';
import { type FlagValues, grouped, repeated, text } from '../command/flags.js';

/** Flags of a signature policy. */
export const policyFlags = grouped('Input', {
  policy: text('file', 'policy.json of containers, or ClusterImagePolicy documents'),
  key: repeated('file', 'PEM public key; with several, any one may have signed'),
  certificateIdentity: text('name', 'email address or URI of the signer in its certificate'),
  certificateIdentityRegexp: text('regexp', 'regular expression for the whole identity', {
    excludes: ['certificateIdentity'],
  }),
  certificateOidcIssuer: text('url', 'OpenID Connect issuer in the certificate of the signer'),
  'registries.d': text('directory', 'registries.d directory with the stores of OpenPGP signatures'),
  trustedRoot: text('file', 'trusted_root.json with certificate authorities and logs'),
});

/** Returns the requested policy, if any. Throws UsageError. */
export function findPolicyRequest(
  options: Partial<FlagValues<typeof policyFlags>>,
): PolicyRequest | undefined {
  const { policy, key: keys, certificateIdentity, certificateIdentityRegexp: regexp } = options;
  const { certificateOidcIssuer: oidcIssuer, trustedRoot } = options;
  const named = [certificateIdentity, regexp, oidcIssuer, trustedRoot].some((name) => name !== undefined);
  if (!named) return policy === undefined && keys === undefined ? undefined : { policy, keys };
  const identity = certificateIdentity ?? (regexp === undefined ? undefined : wholeMatch(regexp));
  if (identity === undefined || oidcIssuer === undefined || trustedRoot === undefined) {
    const hint = 'use --certificate-identity, --certificate-oidc-issuer and --trusted-root together';
    throw new UsageError('incomplete certificate identity', { hint });
  }
  return { policy, keys, certificate: { identity, oidcIssuer, trustedRoot } };
}

function wholeMatch(pattern: string): RegExp {
  try {
    return new RegExp(`^(?:${pattern})$`, 'u');
  } catch {
    throw invalidValue('--certificate-identity-regexp', pattern, 'not a regular expression', {
      hint: 'use a JavaScript regular expression',
    });
  }
}
