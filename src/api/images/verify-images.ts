import { mapConcurrent, withOpen } from '../../core/concurrency.js';
import {
  type LookasideConfiguration,
  readLookasideSignatures,
  readLookasides,
} from '../../mirror/verification/lookaside.js';
import { type PolicyRequest, readSignaturePolicy } from '../../mirror/verification/signature-policy.js';
import { readContents } from '../../oci/image/contents.js';
import { openReference } from '../../oci/image/open.js';
import { type Verdict, verifyImage } from '../../oci/signatures/verify-image.js';
import { parseSourceImage } from '../../source/parse-place.js';
import type { Session } from '../../source/session.js';

export { isAccepted } from '../../oci/signatures/verify-image.js';

/** Signature policy for images. */
export interface VerifyImagesOptions extends PolicyRequest {
  /** `registries.d` directory with the stores of OpenPGP signatures; default none. */
  registriesDirectory?: string | undefined;
}

/** The verdict on one image. */
export interface VerifiedImage extends Verdict {
  /** Reference as the caller wrote it. */
  image: string;
  digest: string;
}

const concurrency = 6;

/**
 * Verifies the signatures of images, in the order of the references. An image that a policy refuses is a result; an image
 * that is missing, or a policy that cannot be read, is an error. Nothing but the images, their signatures and configured
 * signature stores is requested.
 *
 * Throws OpmateError.
 */
export async function verifyImages(
  references: readonly string[],
  session: Session,
  options: VerifyImagesOptions,
): Promise<VerifiedImage[]> {
  const policy = await readSignaturePolicy(options, session.workingDirectory, session);
  const { registriesDirectory } = options;
  const lookasides: LookasideConfiguration =
    registriesDirectory === undefined
      ? new Map<string, string>()
      : await readLookasides(registriesDirectory, session.workingDirectory);
  return mapConcurrent(
    await Promise.all(references.map((reference) => parseSourceImage(reference, session))),
    concurrency,
    async (reference) => {
      return withOpen(openReference(reference, session), async (opened) => {
        const contents = await readContents(opened.repository, opened.reference, session);
        const verdict = await verifyImage(opened.repository, contents, {
          policy,
          reference,
          now: session.now(),
          signal: session.signal,
          readOpenPgp: (digest) => readLookasideSignatures(lookasides, reference, digest, session),
        });
        return { image: reference.text, digest: contents.root.digest, ...verdict };
      });
    },
    session,
  );
}
