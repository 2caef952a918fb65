import { parseDirectoryUrl } from '../../api/mirror/destination.js';
import type { VerificationOptions } from '../../api/mirror/image-set-run.js';
import { invalidValue, UsageError } from '../../core/errors.js';
import { isObjectName, isObjectPrefix } from '../../mirror/image-set/image-set-resources.js';
import type { CommandContext } from '../context.js';
import { findPolicyRequest } from '../root/policy-flags.js';
import type { ImageSetOptions } from './flags.js';

/** Returns the absolute parent directory of `working-dir`; default `otherwise`. Throws UsageError. */
export function getWorkspace(
  flags: Pick<ImageSetOptions, 'workspace'>,
  context: CommandContext,
  otherwise = context.workingDirectory,
): string {
  if (flags.workspace === undefined) return otherwise;
  const { workspace } = flags;
  const directory = parseDirectoryUrl(workspace, context.workingDirectory);
  if (directory !== undefined) return directory;
  throw invalidValue('--workspace', workspace, 'not a directory', {
    hint: 'use file://DIRECTORY',
  });
}

/** Returns names and poll interval of cluster resources. Throws UsageError. */
export function getNaming({ name, prefix, pollInterval }: ImageSetOptions) {
  if (name !== undefined && !isObjectName(name)) {
    throw invalidValue('--name', name, 'invalid object name', { hint: nameHint });
  }
  if (prefix !== undefined && !isObjectPrefix(prefix)) {
    throw invalidValue('--prefix', prefix, 'invalid name prefix', { hint: nameHint });
  }
  return { catalogName: name, prefix, pollIntervalMinutes: pollInterval && pollInterval / 60_000 };
}

const nameHint = 'use at most 63 characters of a-z, 0-9 and "-", starting with a letter';

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
