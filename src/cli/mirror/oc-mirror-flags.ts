import { UsageError } from '../../core/errors.js';
import { longName } from '../command/command-line.js';
import type { ImageSetOptions } from './flags.js';

const credentialsHint = 'put credentials for each registry into one file, and name that with --authfile';
const policyHint = 'signatures are copied and not checked: check them with cosign or skopeo';

/** Flags whose effect opmate does not have, each with what to do instead. */
const refused: Readonly<Partial<Record<keyof ImageSetOptions, string>>> = {
  v1: 'write the configuration for mirror.openshift.io/v2alpha1',
  since: 'name the earlier archive, or its mirror_archive.json, with --base',
  dryRunManifestLists: 'opmate mirror plan writes every manifest into the lock',
  policy: policyHint,
  srcAuthfile: credentialsHint,
  srcCreds: credentialsHint,
  srcUsername: credentialsHint,
  srcPassword: credentialsHint,
  srcRegistryToken: credentialsHint,
  destAuthfile: credentialsHint,
  destCreds: credentialsHint,
  destUsername: credentialsHint,
  destPassword: credentialsHint,
  destRegistryToken: credentialsHint,
  securePolicy: policyHint,
};

/**
 * What flags of `oc-mirror` mean here; the registry of `destination` is the one that `--dest-tls-verify` is about.
 * Throws UsageError for those that are not supported.
 */
export function readOcMirrorFlags<T extends ImageSetOptions>(options: T, destination: string | undefined): T {
  for (const [name, hint] of Object.entries(refused) as [keyof ImageSetOptions, string][]) {
    if (options[name] === undefined || options[name] === false) continue;
    throw new UsageError(`${longName(name)}: not supported`, { hint });
  }
  const { destTlsVerify = true, srcTlsVerify = true } = options;
  if (destTlsVerify && srcTlsVerify) return options;
  const target = /^docker:\/\/([^/]+)/.exec(destination ?? '')?.[1];
  const insecure = (registry: string): boolean => !(registry === target ? destTlsVerify : srcTlsVerify);
  return { ...options, insecure: options.insecure === true || insecure };
}
