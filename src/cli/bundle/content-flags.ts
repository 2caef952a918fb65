import { UsageError } from '../../core/errors.js';
import { certificateProviders } from '../../bundle/plain/registry-v1/certificates.js';
import { choice, flag, grouped, repeated, text } from '../command/flags.js';

/** Forms of `<source>`, for help. */
export const sourceForms =
  'directory, image, oci:DIR[:TAG], oci-archive:FILE, docker-archive:FILE, tar archive, configmap:FILE[#NAME], ' +
  'https://HOST/ARCHIVE[#sha256:HEX] or git+https://HOST/REPOSITORY[#REF[:DIRECTORY]]';

/** Flags of commands that pin their sources. */
export const pinFlags = grouped('Input', {
  requireDigest: flag('refuse sources without a digest, commit or checksum'),
  lock: text('file', 'lock file with pinned sources; created if missing'),
  updateLock: flag('with --lock: resolve sources again and update the lock file'),
});

/** Flags of every command that reads bundles. */
export const contentFlags = {
  ...pinFlags,
  ...grouped('Input', {
    secrets: text('directory', 'directory with manifests of Secrets'),
    secret: text('[namespace/]name', 'with --secrets: Secret for remote sources'),
  }),
};

/** Flag that adds sources to commands with one source. */
export const composeFlags = {
  add: repeated('destination=source', 'add the files of another source at a destination', { group: 'Input' }),
};

/** Flags for the namespaces of an operator. */
export const scopeFlags = grouped('Cluster', {
  installNamespace: text('namespace', 'namespace to install the operator in'),
  watchNamespace: repeated('namespace', 'namespace to watch (default: all, if supported)'),
});

/** Returns the namespace to install in. Throws UsageError without one. */
export function requireInstallNamespace(namespace: string | undefined): string {
  if (namespace !== undefined && namespace !== '') return namespace;
  throw new UsageError('--install-namespace: missing', {
    hint: 'set the namespace to install the operator in, e.g. --install-namespace widget-system',
  });
}

/** Flag for the certificate provider of webhooks. */
export const certificateFlags = {
  certProvider: choice('provider', certificateProviders, 'certificate provider of webhooks', {
    default: 'none',
    group: 'Cluster',
  }),
};
