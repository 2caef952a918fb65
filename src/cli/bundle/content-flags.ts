import { choice, flag, grouped, repeated, text } from '../command/flags.js';

/** Certificate providers of webhooks. */
export const certificateProviders = ['none', 'cert-manager', 'service-ca'] as const;

/** Forms of `<source>`, for help. */
export const sourceForms =
  'directory, image, oci:DIR[:TAG], oci-archive:FILE, docker-archive:FILE, tar archive, configmap:FILE[#NAME], ' +
  'https://HOST/ARCHIVE[#sha256:HEX] or git+https://HOST/REPOSITORY[#REF[:DIRECTORY]]';

/** Flags of commands that pin their sources. */
export const pinFlags = grouped('Input', {
  requireDigest: flag('refuse sources without a digest, commit or checksum'),
  lock: text('file', 'lock file with pinned sources; created if missing'),
  updateLock: flag('with --lock: resolve sources again and update the lock file', { needs: 'lock' }),
});

/** Flags of every command that reads bundles. */
export const contentFlags = {
  ...pinFlags,
  ...grouped('Input', {
    secrets: text('directory', 'directory with manifests of Secrets'),
    secret: text('[namespace/]name', 'with --secrets: Secret for remote sources', { needs: 'secrets' }),
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

/** Flag for the certificate provider of webhooks. */
export const certificateFlags = {
  certProvider: choice('provider', certificateProviders, 'certificate provider of webhooks', {
    default: 'none',
    group: 'Cluster',
  }),
};
