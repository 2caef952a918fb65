import { isDigest } from '../core/digest.js';
import { OpmateError } from '../core/errors.js';
import { inContext } from '../core/diagnostics-error.js';
import { openValue } from '../document/document.js';
import { decodeUtf8, parseGoJson } from '../document/go-json.js';
import { isJsonObject } from '../document/json.js';
import { getValue } from '../document/json-fields.js';
import { parseSimpleSigning } from './simple-signing.js';
import { verifyDetached } from './signing-key.js';
import type { SigstoreSignature, SigstoreSigner } from './sigstore-types.js';

/** Content of a valid signature. */
interface SignedClaim {
  /** Digest of the signed manifest. */
  digest: string;
  /** Reference of the image as signed; undefined in bundles, which have none. */
  reference: string | undefined;
  /** Name of the signer for reports. */
  signer: string;
}

/** Maximum bytes of a payload, certificate chain, log entry or bundle. */
export const maxSignatureBytes = 1024 * 1024;

/**
 * Verifies a cosign signature: its signer, its transparency log entry if required, and the digest of the signed
 * manifest. Throws OpmateError INVALID, SYNTAX or DIGEST.
 */
export async function verifySigstoreSignature(
  signature: SigstoreSignature,
  signer: SigstoreSigner,
  { digest, subject }: { digest: string; subject: string },
): Promise<SignedClaim> {
  return inContext({ subject }, async () => {
    const claim = await verifyClaim(signature, signer);
    if (claim.digest === digest) return claim;
    const problem = `signature of another image: expected ${digest}, got ${claim.digest}`;
    throw new OpmateError('DIGEST', problem);
  });
}

async function verifyClaim(signature: SigstoreSignature, signer: SigstoreSigner): Promise<SignedClaim> {
  const isPlain = signer.kind === 'key' && signer.rekorKeys.length === 0 && signature.kind === 'simple';
  if (isPlain) {
    if (!signer.keys.some((key) => verifyDetached(signature.payload, signature.signature, key))) {
      throw new OpmateError('INVALID', 'not signed by the key, or modified after signing');
    }
    return { ...readPayload(signature.payload), signer: 'key' };
  }
  const { verifyBundle, verifyLoggedPayload } = await import('./sigstore-verifier.js');
  if (signature.kind === 'simple') {
    const name = await verifyLoggedPayload(signature, signer);
    return { ...readPayload(signature.payload), signer: name };
  }
  const { statement, signer: name } = await verifyBundle(signature.bundle, signer);
  return { digest: readStatement(statement), reference: undefined, signer: name };
}

function readPayload(payload: Buffer): { digest: string; reference: string } {
  const { type, digest, reference } = parseSimpleSigning(payload, 'payload');
  // cosign accepts any type; the other types of containers are never signed with such keys.
  if (!/^(?:cosign container image signature|atomic container signature)$/.test(type)) {
    throw new OpmateError('INVALID', `payload of unknown type "${type.slice(0, 100)}"`);
  }
  return { digest, reference };
}

const signStatement = 'https://sigstore.dev/cosign/sign/v1';

/** Returns the digest in an in-toto statement of `cosign sign`. */
function readStatement(bytes: Buffer): string {
  const value = parseGoJson(decodeUtf8(bytes));
  const root = openValue(value, { name: 'statement', kind: 'reference' });
  const predicate = root.field('predicateType').text();
  if (predicate !== signStatement) {
    throw new OpmateError('INVALID', `an attestation of type "${predicate.slice(0, 100)}", not a signature`);
  }
  const [image] = root.field('subject').list(1);
  const digest = `sha256:${image?.field('digest').field('sha256').text() ?? ''}`;
  if (isDigest(digest)) return digest;
  throw new OpmateError('INVALID', 'missing digest in the statement');
}

/** Reports whether a bundle is an image signature rather than an attestation. Unreadable bundles are not signatures. */
export function isSignatureBundle(bundle: Buffer): boolean {
  try {
    const value = parseGoJson(decodeUtf8(bundle));
    const payload = getValue(value, 'dsseEnvelope', 'payload');
    if (typeof payload !== 'string') return isJsonObject(value) && 'messageSignature' in value;
    const statement = parseGoJson(Buffer.from(payload, 'base64').toString());
    return isJsonObject(statement) && statement['predicateType'] === signStatement;
  } catch {
    return false;
  }
}
