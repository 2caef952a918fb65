import path from 'node:path';
import type { VerificationOptions } from '../../api/mirror/image-set-run.js';
import { UsageError } from '../../core/errors.js';
import type { CommandContext } from '../context.js';
import { findPolicyRequest } from '../root/policy-flags.js';
import type { ImageSetOptions } from './flags.js';

/** Reads `--verify` and the policy flags; default with a policy: strict. Throws UsageError. */
export function readVerification(
  options: ImageSetOptions,
  { workingDirectory }: CommandContext,
): VerificationOptions | undefined {
  const request = findPolicyRequest(options);
  const { verify = request === undefined ? 'off' : 'strict' } = options;
  if (verify === 'off') return undefined;
  if (request === undefined) {
    const hint = 'add --policy, --key, or --certificate-identity with --trusted-root';
    throw new UsageError(`--verify ${verify}: no signature policy`, { hint });
  }
  if (options.removeSignatures === true && options.from === undefined) {
    const hint = 'remove one of them: the far side could not verify again';
    throw new UsageError('--verify and --remove-signatures cannot be used together', { hint });
  }
  const directory = options['registries.d'];
  const registriesDirectory = directory === undefined ? undefined : path.resolve(workingDirectory, directory);
  return { ...request, isStrict: verify === 'strict', registriesDirectory };
}
