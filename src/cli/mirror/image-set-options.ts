import type { VerificationOptions } from '../../api/mirror/image-set-run.js';
import { invalidValue, UsageError } from '../../core/errors.js';
import { findPolicyRequest } from '../root/policy-flags.js';
import type { ImageSetOptions } from './flags.js';

/** Reads `--verify` and the policy flags; default with a policy: strict. Throws UsageError. */
export function readVerification(options: ImageSetOptions): VerificationOptions | undefined {
  const request = findPolicyRequest(options);
  const { verify = request === undefined ? 'off' : 'strict' } = options;
  if (verify === 'off') return undefined;
  if (request === undefined) {
    const hint = 'add --policy, --key, or --certificate-identity with --trusted-root';
    throw invalidValue('--verify', verify, 'no signature policy', { hint });
  }
  if (options.removeSignatures === true && options.from === undefined) {
    const hint = 'remove one of them: the far side could not verify again';
    throw new UsageError('--verify and --remove-signatures cannot be used together', { hint });
  }
  return { ...request, isStrict: verify === 'strict', registriesDirectory: options['registries.d'] };
}
