import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { inContext } from '../core/diagnostics-error.js';
import { throwFileError } from '../core/errors.js';
import { statIfPresent } from '../files/file-status.js';
import { readRegularFile } from '../files/read-file.js';
import { readLimited } from '../oci/image/read-limited.js';
import { checkUrl, readHttpPlace } from '../source/drivers/http-request.js';
import { formatUrl } from '../source/place.js';
import type { SourceSession } from '../source/session.js';

/** URLs of the public update services. */
export const updateServices = {
  ocp: 'https://api.openshift.com/api/upgrades_info/v1/graph',
  okd: 'https://origin-release.ci.openshift.org/graph',
} as const;

/**
 * Reads at most `maxBytes` from an http, https or file URL. Messages start with `label`. Throws OpmateError NOT_FOUND
 * for a missing file or status 404, NETWORK for other statuses, LIMIT, and as connecting.
 */
export async function readUrl(
  url: URL,
  maxBytes: number,
  label: string,
  session: SourceSession,
  headers: Record<string, string> = {},
): Promise<Buffer> {
  if (url.protocol === 'file:') return readLocal(fileURLToPath(url), maxBytes, label);
  return inContext({ subject: label }, async () => {
    checkUrl({ kind: 'http', url: url.href }, session.network);
    return readHttpPlace({ url, headers }, session, ({ body }) =>
      readLimited(body, maxBytes, formatUrl(url)),
    );
  });
}

async function readLocal(file: string, maxBytes: number, label: string): Promise<Buffer> {
  return readRegularFile(file, maxBytes, { name: file }).catch(throwFileError(label, { file }));
}

/**
 * Reads the graph of a channel from an update service. `service` is its URL; a `file:` URL is a directory of files
 * `ARCHITECTURE-CHANNEL.json`, as oc-mirror stores them, or one file. Throws OpmateError. (Source: Cincinnati.)
 */
export async function fetchUpdateGraph(
  service: URL,
  { architecture, channel, label }: { architecture: string; channel: string; label: string },
  maxBytes: number,
  session: SourceSession,
): Promise<Buffer> {
  const url = new URL(service);
  if (url.protocol === 'file:') {
    const place = fileURLToPath(url);
    const isDirectory = (await statIfPresent(place))?.isDirectory() === true;
    const file = isDirectory ? path.join(place, `${architecture}-${channel}.json`) : place;
    return readLocal(file, maxBytes, label);
  }
  url.searchParams.set('arch', architecture);
  url.searchParams.set('channel', channel);
  return readUrl(url, maxBytes, label, session, { accept: 'application/json' });
}
