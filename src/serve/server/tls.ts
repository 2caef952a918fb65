import { createSecureContext } from 'node:tls';
import { OpmateError, systemCode } from '../../core/errors.js';

/** Time limit of a TLS handshake. */
const handshakeMs = 5_000;

/** PEM certificate chain and key. */
export interface ServerCertificate {
  cert: string | Buffer;
  key: string | Buffer;
}

/** Returns the TLS options of a server. Throws OpmateError INVALID for an unusable certificate. */
export function createTlsOptions({ cert, key }: ServerCertificate) {
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    const mismatch = systemCode(cause) === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH';
    throw new OpmateError('INVALID', `TLS certificate and key: ${mismatch ? 'do not match' : 'invalid'}`, {
      hint: 'use PEM files, and the key of this certificate',
      cause,
    });
  }
  return { cert, key, minVersion: 'TLSv1.2', handshakeTimeout: handshakeMs } as const;
}
