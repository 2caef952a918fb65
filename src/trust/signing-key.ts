import { type KeyObject, createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import { OpmateError } from '../core/errors.js';
import { decryptCosignKey, isCosignKey } from './cosign-key.js';

const minRsaBits = 2048;
const supported = 'ECDSA P-256, P-384 or P-521, Ed25519 or RSA of at least 2048 bits';
const supportedCurves: readonly (string | undefined)[] = ['prime256v1', 'secp384r1', 'secp521r1'];

/**
 * Reads a private signing key from PEM: unencrypted PKCS#8, SEC 1 or PKCS#1, or the encrypted format of cosign with
 * its `password`. `subject` is its name in messages. Throws OpmateError INVALID, UNSUPPORTED or AUTH.
 */
export async function parseSigningKey(pem: Buffer, subject: string, password?: string): Promise<KeyObject> {
  const text = pem.toString('latin1');
  if (isCosignKey(text)) return requireSupported(await decryptCosignKey(text, subject, password), subject);
  if (/-----BEGIN ENCRYPTED |Proc-Type: 4,ENCRYPTED/.test(text)) {
    throw new OpmateError('UNSUPPORTED', 'encrypted private key', {
      subject,
      hint: 'decrypt it to a private file, for example with openssl pkey',
    });
  }
  return requireSupported(parseKey(createPrivateKey, pem, subject, 'private'), subject);
}

/** Reads a public verification key from PEM, or the public half of a private key. Throws as `parseSigningKey`. */
export function parseVerificationKey(pem: Buffer, subject?: string): KeyObject {
  return requireSupported(parseKey(createPublicKey, pem, subject, 'public'), subject);
}

/**
 * Signs bytes; returns base64 with a line ending. Formats are those of `cosign sign-blob` and `openssl dgst -sha256
 * -sign`: ECDSA over SHA-256 in DER, RSA PKCS#1 v1.5 over SHA-256, plain Ed25519.
 */
export function signDetached(bytes: Buffer, key: KeyObject): string {
  return `${sign(hashFor(key), bytes, key).toString('base64')}\n`;
}

/** Reports whether `signature`, in the format of `signDetached`, is valid for the bytes and key. */
export function verifyDetached(bytes: Buffer, signature: string, key: KeyObject): boolean {
  const text = signature.trim();
  if (!/^[A-Za-z0-9+/]{1,4096}={0,2}$/.test(text)) return false;
  return verify(hashFor(key), bytes, key, Buffer.from(text, 'base64'));
}

function parseKey(
  parse: (pem: Buffer) => KeyObject,
  pem: Buffer,
  subject: string | undefined,
  kind: 'private' | 'public',
): KeyObject {
  try {
    return parse(pem);
  } catch (cause) {
    const hint = `use a ${kind} key in PEM: ${supported}`;
    throw new OpmateError('INVALID', `not a ${kind} key in PEM`, { subject, hint, cause });
  }
}

function requireSupported(key: KeyObject, subject: string | undefined): KeyObject {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  const isSupported =
    type === 'ed25519' ||
    (type === 'ec' && supportedCurves.includes(details?.namedCurve)) ||
    (type === 'rsa' && (details?.modulusLength ?? 0) >= minRsaBits);
  if (isSupported) return key;
  const what = details?.namedCurve ?? details?.modulusLength ?? '';
  throw new OpmateError('UNSUPPORTED', `unsupported key ${type ?? ''} ${what}`.trimEnd(), {
    subject,
    hint: `use ${supported}`,
  });
}

function hashFor({ asymmetricKeyType }: KeyObject): 'sha256' | null {
  return asymmetricKeyType === 'ed25519' ? null : 'sha256';
}
