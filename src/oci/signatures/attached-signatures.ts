import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError } from '../../core/errors.js';
import { isSignatureBundle, maxSignatureBytes } from '../../trust/sigstore-signature.js';
import type { SigstoreSignature } from '../../trust/sigstore-types.js';
import { readBlob } from '../image/image.js';
import { parseManifest } from '../image/manifest.js';
import { getSubject } from '../image/platform.js';
import type { Descriptor, ImageManifest } from '../image/types.js';
import { ifFound } from '../../core/errors.js';
import type { Repository } from '../registry/repository.js';

/** Media type of the signed document of a cosign signature. */
export const simpleSigningType = 'application/vnd.dev.cosign.simplesigning.v1+json';
/** Annotation of that layer with its signature. */
export const signatureAnnotation = 'dev.cosignproject.cosign/signature';
/** Type of the artifact of a signature. */
const signatureArtifactType = 'application/vnd.dev.cosign.artifact.sig.v1+json';
const bundleType = 'application/vnd.dev.sigstore.bundle';

/** Maximum signatures of a manifest. */
const maxSignatures = 100;

/** Returns the tag of the cosign signatures of a manifest. */
export function signatureTag(digest: string): string {
  return `${digest.replace(':', '-')}.sig`;
}

/** Returns the tags of the cosign signatures, attestations and SBOMs of a manifest. */
export function getAttachedTags(digest: string): string[] {
  return ['sig', 'att', 'sbom'].map((suffix) => `${digest.replace(':', '-')}.${suffix}`);
}

/** Returns the digest of the manifest to which the content of a tag is attached; also for referrers tags. */
export function findSubjectOfTag(tag: string | undefined): string | undefined {
  const [, algorithm, hex] =
    /^(sha(?:256|384|512))-([0-9a-f]{64,})(?:\.(?:sig|att|sbom))?$/.exec(tag ?? '') ?? [];
  return algorithm && `${algorithm}:${hex}`;
}

/** Returns the manifest under a tag or digest; undefined if missing. */
export async function findManifest(
  repository: Repository,
  reference: string,
  options: CancelOptions,
): Promise<ImageManifest | undefined> {
  const content = await ifFound(repository.getManifest(reference, options));
  if (content === undefined) return undefined;
  const subject = getSubject(repository.name, reference);
  const parsed = parseManifest(content.bytes, { subject, mediaType: content.descriptor.mediaType });
  return parsed.kind === 'image' ? parsed.manifest : undefined;
}

/**
 * Reads the cosign signatures of a manifest: under its `.sig` tag, and those of its referrers as signatures and Sigstore
 * bundles. Throws the errors of reading, and LimitError for more than 100 signatures.
 */
export async function readAttachedSignatures(
  repository: Repository,
  digest: string,
  options: CancelOptions,
): Promise<SigstoreSignature[]> {
  const tagged = await findManifest(repository, signatureTag(digest), options);
  const referrers = (await repository.listReferrers(digest, options)).filter(
    ({ artifactType = '' }) => artifactType === signatureArtifactType || artifactType.startsWith(bundleType),
  );
  const manifests = [tagged];
  for (const { digest: referrer } of referrers.slice(0, maxSignatures + 1)) {
    manifests.push(await findManifest(repository, referrer, options));
  }
  const layers = manifests.flatMap((manifest) => manifest?.layers ?? []);
  if (layers.length > maxSignatures) {
    throw new LimitError(`more than ${maxSignatures} signatures`, {
      subject: getSubject(repository.name, digest),
    });
  }
  const signatures: SigstoreSignature[] = [];
  for (const layer of layers) {
    const signature = await readSignature(repository, layer, options);
    if (signature !== undefined) signatures.push(signature);
  }
  return signatures;
}

async function readSignature(
  repository: Repository,
  layer: Descriptor,
  options: CancelOptions,
): Promise<SigstoreSignature | undefined> {
  const { mediaType, annotations = {} } = layer;
  if (mediaType.startsWith(bundleType)) {
    const bundle = await readBlob(repository, layer, maxSignatureBytes, options);
    return isSignatureBundle(bundle) ? { kind: 'bundle', bundle } : undefined;
  }
  const signature = annotations[signatureAnnotation];
  if (mediaType !== simpleSigningType || signature === undefined) return undefined;
  return {
    kind: 'simple',
    payload: await readBlob(repository, layer, maxSignatureBytes, options),
    signature,
    certificate: annotations['dev.sigstore.cosign/certificate'],
    chain: annotations['dev.sigstore.cosign/chain'],
    logEntry: annotations['dev.sigstore.cosign/bundle'],
  };
}
