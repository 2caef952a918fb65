import { argument, defineCommand } from '../command/declaration.js';
import { flag, grouped, parsed, repeated, text } from '../command/flags.js';
import { byteSize } from '../command/values.js';
import { connectionFlags, loopbackHostFlag, portFlag, tlsFlags } from '../serve/server-flags.js';
import { archiveProofFlags } from '../archive/flags.js';
import { onAbort } from '../../core/concurrency.js';
import { openCertificateFiles, startRegistry } from '../../api/serve/serve-registry.js';
import { getArchiveDirectory, readProof } from '../archive/options.js';
import { findTlsFiles } from '../serve/listen-options.js';
import { createLogger } from '../logger.js';
import { writeAll } from '../output.js';

/** `opmate oci serve`; prints the address. */
export const command = defineCommand({
  summary: 'serve a layout directory, or a mirror archive read-only, as a registry',
  arguments: [argument('<directory>', 'layout directory, created if missing, or mirror archive')],
  flags: {
    port: portFlag(5000),
    host: loopbackHostFlag,
    ...grouped('Server', {
      htpasswd: text('file', 'require users of this htpasswd file (bcrypt)'),
      insecureListen: flag('allow non-loopback addresses without --htpasswd'),
    }),
    readOnly: flag('refuse pushes and deletions', { excludes: ['maxSize'] }),
    maxSize: parsed('size', 'maximum size of all blobs and uploads, e.g. 50G', byteSize),
    ...tlsFlags,
    ...connectionFlags,
    archiveBase: repeated('directory', 'directory of the base archive', { group: 'Input' }),
    ...archiveProofFlags,
  },
  examples: {
    'Serve a layout directory as a registry': 'opmate oci serve ./layout',
    'Serve an archive of opmate mirror to a cluster':
      'opmate oci serve ./archive --host 0.0.0.0 --htpasswd users.htpasswd',
  },
  async run({ context, args: [directory], options }) {
    const { host, port, htpasswd, insecureListen, readOnly, maxSize } = options;
    const logger = createLogger(context, options);
    const files = findTlsFiles(options);
    const certificates = await openCertificateFiles(files, logger);
    const tls = certificates.certificate;
    const registry = await startRegistry({
      directory,
      archiveBases: (options.archiveBase ?? []).map(getArchiveDirectory),
      archiveProof: await readProof(options, context),
      host,
      port,
      htpasswd,
      insecureListen,
      readOnly,
      maxSize,
      allowedHosts: options.allowHost,
      maxConnections: options.maxConnections,
      logger,
      ...(tls !== undefined && { tls }),
    });
    certificates.follow((next) => registry.replaceCertificate(next));
    try {
      await writeAll(context.stdout, `${registry.url}\n`);
      await new Promise<void>((resolve) => void onAbort(context.signal, resolve));
    } finally {
      certificates.close();
      await registry.close();
      logger.close();
    }
    // A signal is the regular end of a server.
    return 0;
  },
});
