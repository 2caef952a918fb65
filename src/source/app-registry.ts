import path from 'node:path';
import { withTemporaryDirectory } from '../files/temporary-directory.js';
import { mapConcurrent } from '../core/concurrency.js';
import { OpmateError, UsageError } from '../core/errors.js';
import {
  AppRegistryClient,
  isAppRegistryNamespace,
  parseAppRegistryEndpoint,
} from '../oci/registry/app-registry-client.js';
import { loadAppRegistry } from '../sqlite/legacy/appregistry.js';
import type { Database } from '../sqlite/schema/database.js';
import type { LoadOptions, LoadReport } from '../sqlite/legacy/manifest-loader.js';
import type { Session } from './session.js';

/** A namespace of an app registry. */
export interface AppRegistryNamespace {
  endpoint: URL;
  namespace: string;
  /** Name in messages: `quay.io/community-operators`. */
  label: string;
}

/** The host and path that OperatorHub content was published at. */
const defaultHost = 'quay.io';
const defaultPath = 'cnr';

interface NamespaceOptions {
  /** Address of the app registry; default: the host in the name, or else Quay.io. */
  endpoint?: string | undefined;
  /** Uses `http:` for an address derived from a host. */
  useHttp?: boolean | undefined;
}

/**
 * Parses `[HOST[/PATH]/]NAMESPACE`, where HOST has a dot or colon or is `localhost`. The `endpoint` option takes
 * precedence over the host, which is then used only in messages. Throws UsageError.
 */
export function parseAppRegistryNamespace(
  text: string,
  options: NamespaceOptions = {},
): AppRegistryNamespace {
  const parts = text.split('/');
  const hasHost = parts.length > 1 && (/[.:]/.test(parts[0] as string) || parts[0] === 'localhost');
  const host = hasHost ? (parts.shift() as string) : undefined;
  const namespace = parts.pop() ?? '';
  if (!isAppRegistryNamespace(namespace) || (host === undefined && parts.length > 0) || parts.includes('')) {
    throw new UsageError(`--appregistry-namespace ${JSON.stringify(text)}: invalid app registry namespace`, {
      hint: 'use NAMESPACE or HOST/NAMESPACE, e.g. quay.io/community-operators',
    });
  }
  const scheme = options.useHttp === true ? 'http' : 'https';
  const location = `${host ?? defaultHost}/${parts.join('/') || defaultPath}`;
  const address = options.endpoint;
  const endpoint = parseAppRegistryEndpoint(
    address === undefined
      ? `${scheme}://${location}`
      : /^[a-z]+:\/\//i.test(address)
        ? address
        : `${scheme}://${address}`,
  );
  const owner = host === undefined ? endpoint.host : [host, ...parts].join('/');
  return { endpoint, namespace, label: `${owner}/${namespace}` };
}

interface LoadNamespaceOptions extends Pick<LoadOptions, 'permissive'> {
  token?: string | undefined;
}

/** Maximum number of parallel package downloads. */
const concurrency = 4;

/**
 * Downloads the default release of every package in a namespace and loads them into a database, within the caller's
 * transaction. Throws the errors of `AppRegistryClient` and `loadAppRegistry`, and NOT_FOUND for an empty namespace.
 */
export async function loadAppRegistryNamespace(
  database: Database,
  { endpoint, namespace, label }: AppRegistryNamespace,
  session: Session,
  { token, permissive }: LoadNamespaceOptions,
): Promise<LoadReport> {
  const connection = await session.connect();
  const client = new AppRegistryClient({ transport: connection.plainTransport(), endpoint, token });
  const packages = await client.listPackages(namespace, session);
  if (packages.length === 0) {
    throw new OpmateError('NOT_FOUND', 'no packages', {
      subject: label,
      hint: 'check the namespace, or add --auth-token for a private one',
    });
  }
  return withTemporaryDirectory(session, async (directory) => {
    await mapConcurrent(
      packages,
      concurrency,
      async (appRegistryPackage) => {
        const { name } = appRegistryPackage;
        const task = `pull ${label}/${name}`;
        session.logger.progress({ task, state: 'start' });
        try {
          const content = await client.findContent(namespace, appRegistryPackage, session);
          const file = path.join(directory, `${name}.tar.gz`);
          await client.download(namespace, name, content, file, session);
        } finally {
          session.logger.progress({ task, state: 'done' });
        }
      },
      session,
    );
    return loadAppRegistry(database, directory, session, { permissive, label });
  });
}
