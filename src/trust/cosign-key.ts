import { type KeyObject, createPrivateKey, scryptSync } from 'node:crypto';
import { LimitError, OpmateError } from '../core/errors.js';
import { amountOfBytes } from '../core/printable.js';
import { openValue } from '../document/document.js';
import { parseGoJson } from '../document/go-json.js';

const block =
  /-----BEGIN ENCRYPTED (?:SIGSTORE|COSIGN) PRIVATE KEY-----([^-]+)-----END ENCRYPTED (?:SIGSTORE|COSIGN) PRIVATE KEY-----/;
/** Maximum memory and work of scrypt, in bytes: eight times that of `cosign generate-key-pair`. */
const maxScryptBytes = 512 * 2 ** 20;

/** Reports whether text is a private key in the format of `cosign generate-key-pair`. */
export function isCosignKey(text: string): boolean {
  return block.test(text);
}

/**
 * Decrypts a cosign private key: scrypt and NaCl secretbox around PKCS#8 (secure-systems-lab/go-securesystemslib,
 * encrypted). Throws OpmateError INVALID, or AUTH for a wrong password.
 */
export async function decryptCosignKey(
  text: string,
  subject: string,
  password: string | undefined,
): Promise<KeyObject> {
  const { N, r, p, salt, nonce, ciphertext } = readEnvelope(text, subject);
  const bytes = (base64: string): Buffer => Buffer.from(base64, 'base64');
  const { xsalsa20poly1305 } = await import('@noble/ciphers/salsa.js');
  let secret: Buffer;
  try {
    secret = scryptSync(password ?? '', bytes(salt), 32, { N, r, p, maxmem: 2 * maxScryptBytes });
  } catch (cause) {
    throw new OpmateError('INVALID', `invalid scrypt parameters N=${N}, r=${r}, p=${p}`, { subject, cause });
  }
  let der: Uint8Array;
  try {
    der = xsalsa20poly1305(secret, bytes(nonce)).decrypt(bytes(ciphertext));
  } catch (cause) {
    const problem = password === undefined ? 'encrypted private key' : 'wrong password for the private key';
    const hint = 'set COSIGN_PASSWORD to the password of the key';
    throw new OpmateError('AUTH', problem, { subject, hint, cause });
  }
  try {
    return createPrivateKey({ key: Buffer.from(der), format: 'der', type: 'pkcs8' });
  } catch (cause) {
    throw new OpmateError('INVALID', 'no private key in the encrypted envelope', { subject, cause });
  }
}

function readEnvelope(text: string, subject: string) {
  const [, base64 = ''] = block.exec(text) ?? [];
  let value;
  try {
    value = parseGoJson(Buffer.from(base64, 'base64').toString());
  } catch (cause) {
    throw new OpmateError('INVALID', 'damaged encrypted private key', { subject, cause });
  }
  const root = openValue(value, { name: subject, kind: 'reference' }).object(['kdf', 'cipher', 'ciphertext']);
  const kdf = root.kdf.object(['name', 'params', 'salt']);
  kdf.name.constant('scrypt');
  const params = kdf.params.object(['N', 'r', 'p']);
  const N = params.N.integer(2, 2 ** 31);
  const [r, p] = [params.r.integer(1, 1024), params.p.integer(1, 1024)];
  const scryptBytes = 128 * N * r * p;
  if (scryptBytes > maxScryptBytes) {
    const limit = `over the limit of ${amountOfBytes(maxScryptBytes)}`;
    const problem = `scrypt cost N=${N}, r=${r}, p=${p} (${amountOfBytes(scryptBytes)}) ${limit}`;
    throw new LimitError(problem, { subject, hint: 'use a key of cosign generate-key-pair' });
  }
  const cipher = root.cipher.object(['name', 'nonce']);
  cipher.name.constant('nacl/secretbox');
  return {
    N,
    r,
    p,
    salt: kdf.salt.text(),
    nonce: cipher.nonce.matching((nonce) => /^[A-Za-z0-9+/]{32}$/.test(nonce), 'a nonce of 24 bytes'),
    ciphertext: root.ciphertext.text(100_000),
  };
}
