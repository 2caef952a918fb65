import type { CancelOptions } from '../../core/concurrency.js';
import { isDigest } from '../../core/digest.js';
import {
  DigestMismatchError,
  type ErrorDetails,
  LimitError,
  OpmateError,
  UsageError,
} from '../../core/errors.js';
import {
  isIndexType,
  isManifestType,
  maxIndexEntries,
  type ParsedManifest,
  parseManifest,
} from './manifest.js';
import type { ManifestContent, Repository } from '../registry/repository.js';
import type { Descriptor, ImageIndex, Platform } from './types.js';

/** Maximum depth of nested indexes. */
const maxIndexDepth = 4;
/** Maximum nested indexes read to find an image. */
const maxNestedIndexes = 100;

const architectureAliases: Readonly<Record<string, string>> = {
  x86_64: 'amd64',
  'x86-64': 'amd64',
  aarch64: 'arm64',
  armhf: 'arm',
  i386: '386',
  i686: '386',
  x64: 'amd64',
  ia32: '386',
  mips64el: 'mips64le',
};

/** Parses `os/architecture[/variant]`, such as `linux/arm64/v8` or `linux/x86_64`. Throws UsageError. */
export function parsePlatform(text: string): Platform {
  const parts = text.toLowerCase().split('/');
  if (parts.length < 2 || parts.length > 3 || parts.some((part) => !/^[a-z0-9_.-]+$/.test(part))) {
    throw new UsageError('invalid platform', {
      subject: JSON.stringify(text),
      hint: 'use the form linux/amd64 or linux/arm/v7',
    });
  }
  const [os, architecture, variant] = parts as [string, string, string?];
  return {
    os,
    architecture: architectureAliases[architecture] ?? architecture,
    ...(variant === undefined ? {} : { variant }),
  };
}

/** Returns `os/architecture[/variant]`, with `unknown` for missing parts. */
export function formatPlatform(platform: Platform): string {
  const { os, architecture, variant } = platform;
  return [os || 'unknown', architecture || 'unknown', ...(variant ? [variant] : [])].join('/');
}

/** Reports whether an index entry is an attestation of BuildKit (provenance, SBOM) and no image. */
export function isAttestation(entry: Pick<Descriptor, 'platform' | 'annotations'>): boolean {
  return (
    entry.annotations?.['vnd.docker.reference.type'] === 'attestation-manifest' ||
    (entry.platform?.os === 'unknown' && entry.platform.architecture === 'unknown')
  );
}

export interface PlatformChoice {
  /** Requested platform; no other is chosen. */
  platform?: Platform | undefined;
  /** Platform of the machine. Images for Linux are chosen even if its OS differs. */
  hostPlatform: Platform;
}

/**
 * Returns the entry of an index without nested ones for the requested platform, else that of the host, else linux/amd64,
 * else the only one. Attestations and what is no manifest are ignored. Returns undefined if none matches.
 */
export function choosePlatform(
  entries: readonly Descriptor[],
  choice: PlatformChoice,
): Descriptor | undefined {
  const images = entries.filter((entry) => isManifestType(entry) && !isAttestation(entry));
  const only = images.length === 1 ? images[0] : undefined;
  if (choice.platform) return findPlatform(images, choice.platform) ?? (only?.platform ? undefined : only);
  for (const wanted of defaultPlatforms(choice.hostPlatform)) {
    const match = findPlatform(images, wanted);
    if (match) return match;
  }
  return only;
}

function defaultPlatforms(host: Platform): Platform[] {
  return [host, { ...host, os: 'linux' }, { os: 'linux', architecture: 'amd64' }];
}

function findPlatform(entries: readonly Descriptor[], wanted: Platform): Descriptor | undefined {
  const same = entries.filter(
    ({ platform }) => platform?.os === wanted.os && platform.architecture === wanted.architecture,
  );
  const exact = same.find(({ platform }) => platform && getVariant(platform) === getVariant(wanted));
  return exact ?? (wanted.variant ? undefined : same[0]);
}

/** Returns the variant of a platform, or the default one. (Source: OCI image index, "Platform Variants".) */
function getVariant({ architecture, variant }: Platform): string {
  if (variant) return variant;
  return { arm: 'v7', arm64: 'v8', amd64: 'v1' }[architecture] ?? '';
}

interface ResolvedImage {
  /** Descriptor of the reference: an index or the image itself. */
  root: Descriptor;
  descriptor: Descriptor;
  parsed: Extract<ParsedManifest, { kind: 'image' }>;
  /** Platform in the index. */
  platform?: Platform;
}

/**
 * Resolves a reference through indexes to one image. A tag is read once, content below it by digest. Throws OpmateError
 * NOT_FOUND if no entry matches, LIMIT for more than 4 nested levels or 10,000 entries, INVALID for an index that lists
 * itself, and the errors of reading and parsing.
 */
export async function resolveImage(
  repository: Repository,
  reference: string,
  choice: PlatformChoice & CancelOptions,
): Promise<ResolvedImage> {
  const content = await repository.getManifest(reference, choice);
  const subject = getSubject(repository.name, reference);
  const top = parseManifest(content.bytes, { subject, mediaType: content.descriptor.mediaType });
  if (top.kind === 'image') return { root: content.descriptor, descriptor: content.descriptor, parsed: top };
  const chosen = await chooseFrom(repository, content, top.index, subject, choice);
  const parsed = await readEntry(repository, chosen, choice);
  if (parsed.kind === 'index')
    throw new OpmateError('INVALID', `${chosen.digest}: not an image`, { subject });
  return {
    root: content.descriptor,
    descriptor: chosen,
    parsed,
    ...(chosen.platform && { platform: chosen.platform }),
  };
}

async function chooseFrom(
  repository: Repository,
  content: ManifestContent,
  index: ImageIndex,
  subject: string,
  choice: PlatformChoice & CancelOptions,
): Promise<Descriptor> {
  const isIndex = (entry: Descriptor): boolean => isIndexType(entry.mediaType);
  const direct = index.manifests.filter((entry) => !isIndex(entry) && !isAttestation(entry));
  // Nested indexes are read only if no direct entry matches.
  const best = findPlatform(direct, choice.platform ?? choice.hostPlatform);
  if (best) return best;
  const images: Descriptor[] = [];
  let entries = 0;
  let nested = 0;
  async function collect(from: ImageIndex, ancestors: readonly string[]): Promise<void> {
    entries += from.manifests.length;
    if (entries > maxIndexEntries)
      throw new LimitError(`more than ${maxIndexEntries} index entries`, { subject });
    for (const entry of from.manifests) {
      if (!isIndex(entry)) {
        images.push(entry);
        continue;
      }
      if (ancestors.includes(entry.digest))
        throw new OpmateError('INVALID', 'index lists itself', { subject });
      if (ancestors.length >= maxIndexDepth) {
        throw new LimitError(`indexes nested deeper than ${maxIndexDepth}`, { subject });
      }
      if (++nested > maxNestedIndexes)
        throw new LimitError(`more than ${maxNestedIndexes} nested indexes`, { subject });
      const parsed = await readEntry(repository, entry, choice);
      if (parsed.kind !== 'index')
        throw new OpmateError('INVALID', `${entry.digest}: not an index`, { subject });
      await collect(parsed.index, [...ancestors, entry.digest]);
    }
  }
  await collect(index, [content.descriptor.digest]);
  const chosen = choosePlatform(images, choice);
  if (chosen) return chosen;
  throw missingPlatform(choice.platform ?? choice.hostPlatform, images, {
    subject,
    hint: choice.platform ? undefined : 'select one with session.platform',
  });
}

/** Returns the error for a platform that none of these images has. */
export function missingPlatform(
  platform: Platform,
  entries: readonly Pick<Descriptor, 'platform' | 'annotations'>[],
  details: ErrorDetails,
): OpmateError {
  const images = entries.filter((entry) => !isAttestation(entry));
  if (images.length === 0) return new OpmateError('NOT_FOUND', 'no images', details);
  const names = images.map((image) =>
    image.platform ? formatPlatform(image.platform) : 'one without platform',
  );
  const unique = [...new Set(names)];
  const list = unique.length > 10 ? [...unique.slice(0, 10), '…'] : unique;
  const problem = `no image for ${formatPlatform(platform)}, only ${list.join(', ')}`;
  return new OpmateError('NOT_FOUND', problem, details);
}

/** Reads an index entry, which must have the listed type and size. */
async function readEntry(
  repository: Repository,
  entry: Descriptor,
  options: CancelOptions,
): Promise<ParsedManifest> {
  const { bytes } = await readListed(repository, entry, options);
  return parseManifest(bytes, {
    subject: getSubject(repository.name, entry.digest),
    mediaType: entry.mediaType,
  });
}

/** Reads a manifest that an index lists. Throws DigestMismatchError for another size. */
export async function readListed(
  repository: Repository,
  entry: Descriptor,
  options: CancelOptions,
): Promise<ManifestContent> {
  const content = await repository.getManifest(entry.digest, options);
  if (content.bytes.length !== entry.size) {
    throw new DigestMismatchError(`expected ${entry.size} bytes, got ${content.bytes.length}`, {
      subject: getSubject(repository.name, entry.digest),
    });
  }
  return content;
}

/** Returns the name of a manifest in messages: `quay.io/ns/name:v1`, `quay.io/ns/name@sha256:…`. */
export function getSubject(repository: string, reference: string): string {
  return `${repository}${isDigest(reference) ? '@' : ':'}${reference}`;
}
