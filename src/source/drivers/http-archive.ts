import path from 'node:path';
import { OpmateError } from '../../core/errors.js';
import { type HttpPlace, formatUrl } from '../place.js';
import type { SourceSession } from '../session.js';
import type { PlaceState, ResolvedPlace } from './driver.js';
import { checkUrl, getValidator, receiveFile, requestPlace, withDownload } from './http-request.js';
import { toUnpackedPlace } from './local.js';
import { unpackArchive } from './unpack-archive.js';

/**
 * Downloads an archive unless it is unchanged (ETag, else Last-Modified); its state is the digest of its bytes. Throws
 * OpmateError.
 */
export async function resolveHttp(
  place: HttpPlace,
  known: PlaceState | undefined,
  session: SourceSession,
): Promise<ResolvedPlace> {
  const { directory, checksum, credentials } = place;
  const url = checkUrl(place, session.network);
  const shown = formatUrl(url);
  if (credentials !== undefined && credentials.type !== 'basic') {
    const problem = `unsupported credentials type ${credentials.type} for this URL`;
    throw new OpmateError('INVALID', problem, {
      subject: shown,
      hint: 'use a Secret of type kubernetes.io/basic-auth',
    });
  }
  const request = async () => ({ ...(await requestPlace({ url, known }, place, session)), shown });
  return withDownload(request, known, session, async ({ response }, temporary) => {
    const file = path.join(temporary, 'archive');
    const digest = await receiveFile(response, shown, file, session);
    if (checksum !== undefined && checksum !== digest) {
      throw new OpmateError('DIGEST', `expected ${checksum}, got ${digest}`, {
        subject: shown,
        hint: 'check whether the archive has changed, or the checksum is that of another one',
      });
    }
    const ref = `${shown}@${digest}`;
    const within = directory === undefined ? '' : `${directory}/`;
    const state = { id: `archive ${digest}`, ref, validator: getValidator(response) };
    return toUnpackedPlace(state, session, { directory }, async (destination, roots) => {
      const wanted = roots.map((root) => within + root);
      return (await unpackArchive(file, destination, ref, wanted, session)).problems;
    });
  });
}
