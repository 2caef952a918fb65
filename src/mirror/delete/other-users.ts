import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { isIndexType, parseManifest } from '../../oci/image/manifest.js';
import type { Repository } from '../../oci/registry/repository.js';
import { findSubjectOfTag } from '../../oci/signatures/attached-signatures.js';

interface SearchOptions extends CancelOptions {
  /** Tags that are deleted too. */
  listedTags: ReadonlySet<string>;
  concurrency: number;
  logger?: Logger | undefined;
}

/** Tags of signatures and other attachments, which belong to their image. */
const attachmentPattern = /^sha\d+-[0-9a-f]{64,}\.\w+$/;

/**
 * Returns what else in a repository needs manifests that are to be deleted, by digest: another tag of the same image, or
 * an index under another tag that lists it. One request per tag, and per index. A registry that lists no tags is warned
 * of. Throws OpmateError.
 */
export async function findOtherUsers(
  repository: Repository,
  digests: ReadonlySet<string>,
  { listedTags, concurrency, logger, signal }: SearchOptions,
): Promise<Map<string, string>> {
  const users = new Map<string, string>();
  const note = (digest: string, user: string): void => {
    if (digests.has(digest) && !users.has(digest)) users.set(digest, user);
  };
  const look = async (tag: string): Promise<void> => {
    const descriptor = await repository.headManifest(tag, { signal });
    if (descriptor === undefined) return;
    note(descriptor.digest, `tag ${tag}`);
    // A list of referrers is deleted with its subject.
    if (digests.has(findSubjectOfTag(tag) ?? '') || digests.has(descriptor.digest)) return;
    if (!isIndexType(descriptor.mediaType)) return;
    const { bytes } = await repository.getManifest(descriptor.digest, { signal });
    const parsed = parseManifest(bytes, { subject: repository.name, mediaType: descriptor.mediaType });
    if (parsed.kind !== 'index') return;
    for (const { digest } of parsed.index.manifests) note(digest, `the index with tag ${tag}`);
  };
  const tags = await listTags(repository, { logger, signal });
  const others = tags.filter((tag) => !listedTags.has(tag) && !attachmentPattern.test(tag)).sort();
  await mapConcurrent(others, concurrency, look, { signal });
  return users;
}

async function listTags(
  repository: Repository,
  { logger, signal }: CancelOptions & { logger: Logger | undefined },
): Promise<readonly string[]> {
  try {
    return await repository.listTags({ signal });
  } catch (error) {
    throwIfCancelled(signal);
    if (!(error instanceof OpmateError) || !['NOT_FOUND', 'UNSUPPORTED'].includes(error.code)) throw error;
    logger?.log('warn', `${repository.name}: lists no tags, so other users of its images are unknown`);
    return [];
  }
}
