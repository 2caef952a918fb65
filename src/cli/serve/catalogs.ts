import path from 'node:path';
import { serveCatalogs } from '../../api/serve/serve-catalogs.js';
import { onAbort, withOpen } from '../../core/concurrency.js';
import type { FlagValues } from '../command/flags.js';
import type { GlobalOptions } from '../command/global-flags.js';
import type { CommandContext } from '../context.js';
import { writeAll } from '../output.js';
import { useSession } from '../session.js';
import { findTlsFiles, getAddress, getHttpOptions } from './listen-options.js';
import type { catalogServerFlags } from './server-flags.js';
import { getStorage } from './storage.js';

type ServeCatalogsFlags = GlobalOptions &
  FlagValues<typeof catalogServerFlags> & {
    /** Address of the gRPC registry API; not served by default. */
    grpc?: string | true | undefined;
    /** Directory of manifests of Secrets. */
    secrets?: string | undefined;
    /** Hosts of Secrets, as `NAME=HOST`. */
    secret?: string[] | undefined;
  };

/** Serves the catalogs of a directory of manifests over HTTP until the signal fires. */
export async function serveManifests(
  context: CommandContext,
  catalogs: string,
  options: ServeCatalogsFlags,
): Promise<number> {
  const grpcAddress =
    options.grpc === undefined ? undefined : getAddress(options.grpc, '--grpc', '127.0.0.1:50051');
  const { maxConnections, secrets } = options;
  await useSession(context, options, async (session) => {
    const { logger } = session;
    const served = serveCatalogs(catalogs, session, {
      http: getHttpOptions(options),
      grpc: grpcAddress && { ...grpcAddress, tls: findTlsFiles(options), maxConnections },
      storage: getStorage(context, { storage: options.storage, catalogs }),
      isStorageOptional: options.storage === undefined,
      secrets,
      secretHosts: options.secret,
    });
    await withOpen(served, async ({ url, storage }) => {
      await writeAll(context.stdout, `${url}/catalogs\n`);
      const directory = path.resolve(context.workingDirectory, catalogs);
      logger.log('info', 'serving catalogs', { directory, url, ...(storage !== undefined && { storage }) });
      logger.log('info', `next: opmate catalogs status --url ${url}`);
      await new Promise<void>((resolve) => void onAbort(context.signal, resolve));
      logger.log('info', 'stopping: finishing open requests');
    });
  });
  // A signal is the regular end of a server.
  return 0;
}
