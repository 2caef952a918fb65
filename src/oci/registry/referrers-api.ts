import { getOrAdd } from '../../core/groups.js';
import { parseManifest } from '../image/manifest.js';
import { type Descriptor, mediaTypes } from '../image/types.js';
import { readPages } from './list-pages.js';
import type { RegistryRequester } from './registry-request.js';
import type { ReferrersOptions } from './repository.js';

/** Existence of the referrers API by route and URL of the repository. */
const knownApis = new WeakMap<object, Map<string, Promise<boolean>>>();

/** Codes for missing content, as opposed to a missing API. */
const missingContentCodes = ['NAME_UNKNOWN', 'MANIFEST_UNKNOWN'];

/**
 * Returns the descriptors that the referrers API lists; undefined if the API or the repository is missing. A repository
 * without the API is requested once.
 */
export async function readReferrers(
  requester: RegistryRequester,
  digest: string,
  options: ReferrersOptions,
): Promise<Descriptor[] | undefined> {
  const known = knownApis.get(requester.route) ?? new Map<string, Promise<boolean>>();
  knownApis.set(requester.route, known);
  const api = requester.url('referrers/');
  const pending = known.get(api);
  if (pending !== undefined && !(await pending)) return undefined;
  const reading = readAllPages(requester, digest, options);
  void getOrAdd(known, api, () => {
    const hasApi = reading.then(
      (result) => result !== 'no-api',
      () => true,
    );
    void hasApi.then(async () => (await reading.catch(() => undefined)) === undefined && known.delete(api));
    return hasApi;
  });
  const result = await reading;
  return result === 'no-api' ? undefined : result;
}

/** Returns the listed manifests; undefined if the repository is missing. */
async function readAllPages(
  requester: RegistryRequester,
  digest: string,
  options: ReferrersOptions,
): Promise<Descriptor[] | 'no-api' | undefined> {
  const subject = `${requester.name}: referrers of ${digest}`;
  const filter =
    options.artifactType === undefined ? '' : `?artifactType=${encodeURIComponent(options.artifactType)}`;
  const descriptors: Descriptor[] = [];
  let isFirst = true;
  const reading = { ...options, isOptional: true };
  for await (const page of readPages(requester, `referrers/${digest}${filter}`, subject, reading)) {
    // Some registries return a web page or an empty object instead of 404, or redirect to one that limits requests.
    const isIndex = page.mediaType === mediaTypes.ociIndex;
    if (isFirst && ([404, 405, 429].includes(page.status) || (page.status === 200 && !isIndex))) {
      const { registryCodes } = await requester.failure(page.response, subject, 'pull');
      return registryCodes.some((code) => missingContentCodes.includes(code)) ? undefined : 'no-api';
    }
    isFirst = false;
    if (page.status !== 200) throw await requester.failure(page.response, subject, 'pull');
    const parsed = parseManifest(page.bytes, { subject, mediaType: page.mediaType, isReferrersList: true });
    if (parsed.kind === 'index') descriptors.push(...parsed.index.manifests);
  }
  return descriptors;
}
