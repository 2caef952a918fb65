import { generateKeyPairSync, randomBytes, scryptSync } from 'node:crypto';
import { xsalsa20poly1305 } from '@noble/ciphers/salsa.js';
import { describe, expect, it } from 'vitest';
import { parseSigningKey } from '../../../src/trust/signing-key.js';

const password = 'secret';
const cosignParams = { N: 65536, r: 8, p: 1 };

/** Returns a key as `cosign generate-key-pair` writes it; the envelope names `params`, whatever it was made with. */
function encrypted(params: object): Buffer {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const [salt, nonce] = [randomBytes(32), randomBytes(24)];
  const secret = scryptSync(password, salt, 32, { ...cosignParams, maxmem: 2 ** 28 });
  const der = privateKey.export({ format: 'der', type: 'pkcs8' });
  const envelope = {
    kdf: { name: 'scrypt', params, salt: salt.toString('base64') },
    cipher: { name: 'nacl/secretbox', nonce: nonce.toString('base64') },
    ciphertext: Buffer.from(xsalsa20poly1305(secret, nonce).encrypt(der)).toString('base64'),
  };
  const base64 = Buffer.from(JSON.stringify(envelope)).toString('base64');
  return Buffer.from(
    `-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n${base64}\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n`,
  );
}

describe('trust/cosign-key', () => {
  it('decrypts a key of cosign', async () => {
    const key = await parseSigningKey(encrypted(cosignParams), 'cosign.key', password);
    expect(key.asymmetricKeyType).toBe('ec');
    await expect(parseSigningKey(encrypted(cosignParams), 'cosign.key', 'wrong')).rejects.toMatchObject({
      code: 'AUTH',
      message: 'cosign.key: wrong password for the private key',
    });
  });

  it.each([
    [{ N: 2 ** 20, r: 32, p: 1 }, '(4.0 GiB)'],
    [{ N: 65536, r: 8, p: 1024 }, '(64 GiB)'],
    [{ N: 2 ** 31, r: 1024, p: 1024 }, 'TiB)'],
  ])('refuses the cost %j without computing it', async (params, size) => {
    await expect(parseSigningKey(encrypted(params), 'cosign.key', password)).rejects.toMatchObject({
      code: 'LIMIT',
      message: expect.stringMatching(
        /^cosign\.key: scrypt cost N=\d+, r=\d+, p=\d+ .* over the limit of 512 MiB$/,
      ) as string,
    });
    await expect(parseSigningKey(encrypted(params), 'cosign.key', password)).rejects.toThrow(size);
  });

  it.each([
    [{ N: 3, r: 8, p: 1 }, 'invalid scrypt parameters N=3, r=8, p=1'],
    [{ N: 2 ** 17, r: 1, p: 1 }, 'invalid scrypt parameters'],
    [{ N: -1, r: 8, p: 1 }, 'expected an integer from 2 to'],
    [{ N: 65536, r: 8 }, 'missing'],
  ])('refuses the parameters %j', async (params, message) => {
    await expect(parseSigningKey(encrypted(params), 'cosign.key', password)).rejects.toMatchObject({
      code: 'INVALID',
      message: expect.stringContaining(message) as string,
    });
  });
});
