import type { CancelOptions } from '../../core/concurrency.js';
import { isDigest } from '../../core/digest.js';
import { DigestMismatchError, LimitError, OpmateError, UsageError } from '../../core/errors.js';
import { isIndexType, maxIndexEntries, type ParsedManifest, parseManifest } from './manifest.js';
import type { ManifestContent, Repository } from '../registry/repository.js';
import type { Descriptor, ImageIndex, Platform } from './types.js';

/** How deep indexes may lie in each other. */
const maxIndexDepth = 4;
/** The most nested indexes that are read to find one image. */
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

/**
 * Reads `os/architecture[/variant]`, e.g. `linux/arm64/v8`; names that other tools use for an architecture
 * (`x86_64`, `aarch64`) are understood. Throws UsageError.
 */
export function parsePlatform(text: string): Platform {
  const parts = text.toLowerCase().split('/');
  if (parts.length < 2 || parts.length > 3 || parts.some((part) => !/^[a-z0-9_.-]+$/.test(part))) {
    throw new UsageError('not a platform', {
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

/** `os/architecture[/variant]`; `unknown` for what is not given. */
export function formatPlatform(platform: Platform): string {
  const { os, architecture, variant } = platform;
  return [os || 'unknown', architecture || 'unknown', ...(variant ? [variant] : [])].join('/');
}

/** Whether an index entry is a statement about an image (BuildKit's provenance, SBOM) and no image. */
export function isAttestation(entry: Descriptor): boolean {
  return (
    entry.annotations?.['vnd.docker.reference.type'] === 'attestation-manifest' ||
    (entry.platform?.os === 'unknown' && entry.platform.architecture === 'unknown')
  );
}

export interface PlatformChoice {
  /** What the user asked for: this or nothing. */
  platform?: Platform | undefined;
  /** The machine's own. Images are for Linux even where the machine is not. */
  hostPlatform: Platform;
}

/**
 * The entry to use of an index without nested ones: the asked platform, else the host's, else linux/amd64,
 * else the only one. Attestations do not count. Undefined if missing or no single one.
 */
export function choosePlatform(
  entries: readonly Descriptor[],
  choice: PlatformChoice,
): Descriptor | undefined {
  const images = entries.filter((entry) => !isAttestation(entry));
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

/** An architecture without variant means its usual one. OCI image index, "Platform Variants". */
function getVariant({ architecture, variant }: Platform): string {
  if (variant) return variant;
  return { arm: 'v7', arm64: 'v8', amd64: 'v1' }[architecture] ?? '';
}

interface ResolvedImage {
  /** What the reference names: the index, or the image itself. */
  root: Descriptor;
  descriptor: Descriptor;
  parsed: Extract<ParsedManifest, { kind: 'image' }>;
  /** What the index says the image is for. */
  platform?: Platform;
}

/**
 * Follows a reference through indexes to one image. A tag is read once; all below it by digest.
 * Throws OpmateError NOT_FOUND when no entry fits, LIMIT for indexes nested deeper than 4 or with more than
 * 10,000 entries in all, INVALID for an index within itself, and what reading and parsing throw.
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
  // Nested indexes are read only where the best choice is not among the direct entries.
  const best = findPlatform(direct, choice.platform ?? choice.hostPlatform);
  if (best) return best;
  const images: Descriptor[] = [];
  let entries = 0;
  let nested = 0;
  async function collect(from: ImageIndex, ancestors: readonly string[]): Promise<void> {
    entries += from.manifests.length;
    if (entries > maxIndexEntries)
      throw new LimitError(`more than ${maxIndexEntries} entries in its indexes`, { subject });
    for (const entry of from.manifests) {
      if (!isIndex(entry)) {
        images.push(entry);
        continue;
      }
      if (ancestors.includes(entry.digest))
        throw new OpmateError('INVALID', 'an index that contains itself', { subject });
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
  const offered = images.filter((entry) => !isAttestation(entry));
  if (offered.length === 0) throw new OpmateError('NOT_FOUND', 'an index without any image', { subject });
  const wanted = choice.platform ?? choice.hostPlatform;
  const names = [
    ...new Set(offered.map(({ platform }) => (platform ? formatPlatform(platform) : 'one without platform'))),
  ];
  const list = names.length > 10 ? [...names.slice(0, 10), '…'] : names;
  throw new OpmateError('NOT_FOUND', `no image for ${formatPlatform(wanted)}, only ${list.join(', ')}`, {
    subject,
    hint: choice.platform ? undefined : 'select one with --platform',
  });
}

/** Reads what an index lists, held to the type and size that it gives. */
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

/** Reads the bytes of a manifest that an index lists. Throws DigestMismatchError for another size. */
export async function readListed(
  repository: Repository,
  entry: Descriptor,
  options: CancelOptions,
): Promise<ManifestContent> {
  const content = await repository.getManifest(entry.digest, options);
  if (content.bytes.length !== entry.size) {
    const subject = getSubject(repository.name, entry.digest);
    throw new DigestMismatchError(`has ${content.bytes.length} bytes, its index says ${entry.size}`, {
      subject,
    });
  }
  return content;
}

/** How messages name a manifest: `quay.io/ns/name:v1`, `quay.io/ns/name@sha256:…`. */
export function getSubject(repository: string, reference: string): string {
  return `${repository}${isDigest(reference) ? '@' : ':'}${reference}`;
}
