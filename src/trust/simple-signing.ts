import { isDigest } from '../core/digest.js';
import { OpmateError } from '../core/errors.js';
import { openValue } from '../document/document.js';
import { decodeUtf8, parseGoJson } from '../document/go-json.js';
import type { JsonValue } from '../document/json.js';

/** Content of an image signature in the "simple signing" format of containers and cosign. */
interface SimpleSigning {
  /** `atomic container signature` (OpenPGP), `cosign container image signature` or similar. */
  type: string;
  /** Digest of the signed manifest. */
  digest: string;
  /** Reference of the image as signed; cosign omits the tag. */
  reference: string;
  /** Signing time in seconds since 1970, if stated as a number. */
  timestamp: number | undefined;
}

/** Type of documents with OpenPGP signatures, including those of releases. */
export const atomicSignatureType = 'atomic container signature';
/** Type that `cosign sign` writes. */
export const cosignSignatureType = 'cosign container image signature';

/**
 * Reads a simple signing document (containers/image, docs/containers-signature.5.md). Rejects unknown fields of
 * `critical`, which the signer requires readers to know.
 *
 * Throws OpmateError SYNTAX or INVALID.
 */
export function parseSimpleSigning(content: Buffer, subject: string): SimpleSigning {
  let value: JsonValue;
  try {
    value = parseGoJson(decodeUtf8(content));
  } catch (cause) {
    throw new OpmateError('SYNTAX', 'the signed content is not JSON', { subject, cause });
  }
  const document = openValue(value, { name: subject, kind: 'reference' });
  const root = document.object(['critical', 'optional'], { unknown: 'refuse' });
  const critical = root.critical.object(['type', 'image', 'identity'], { unknown: 'refuse' });
  const image = critical.image.object(['docker-manifest-digest'], { unknown: 'refuse' });
  const identity = critical.identity.object(['docker-reference'], { unknown: 'refuse' });
  const timestamp = root.optional.isPresent ? root.optional.field('timestamp').value : undefined;
  return {
    type: critical.type.text(),
    digest: image['docker-manifest-digest'].matching(isDigest, 'a digest'),
    reference: identity['docker-reference'].anyText(),
    timestamp: typeof timestamp === 'number' ? timestamp : undefined,
  };
}

/**
 * Reads the content of a verified OpenPGP signature of a release image, and requires that it is for `digest`. Returns
 * the content with the reference of the published release.
 *
 * Throws OpmateError SYNTAX, INVALID, or DIGEST for a signature of another image.
 */
export function checkReleaseSignature(content: Buffer, digest: string, subject: string): SimpleSigning {
  const signed = parseSimpleSigning(content, subject);
  if (signed.type !== atomicSignatureType) {
    const problem = `expected type "${atomicSignatureType}", got "${signed.type.slice(0, 100)}"`;
    throw new OpmateError('INVALID', problem, { subject });
  }
  requireSignedDigest(signed, digest, subject);
  return signed;
}

/** Requires that a signature is for the manifest with this digest. Throws OpmateError DIGEST. */
export function requireSignedDigest(signed: SimpleSigning, digest: string, subject: string): void {
  if (signed.digest === digest) return;
  throw new OpmateError('DIGEST', `signature of another image: expected ${digest}, got ${signed.digest}`, {
    subject,
  });
}
