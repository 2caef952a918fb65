import { readNamedFile } from '../../files/read-file.js';
import { maxPemBytes } from '../../oci/transport/certificates.js';
import { createSecureContext } from 'node:tls';
import { OpmateError, fileError, getMessage } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';

/** How often the files are looked at. */
const checkMs = 2_000;

/** Certificate chain and key, PEM. */
export interface ServerKeyPair {
  cert: Buffer;
  key: Buffer;
}

/** The files of a certificate chain and its key, PEM. */
export interface CertificateFiles {
  cert: string;
  key: string;
}

/** Reads a certificate and its key. Throws OpmateError: unreadable, no PEM, or not belonging together. */
export async function readCertificateFiles(files: CertificateFiles): Promise<ServerKeyPair> {
  const [cert, key] = await Promise.all([read(files.cert), read(files.key)]);
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new OpmateError('INVALID', `${files.cert}, ${files.key}: ${getMessage(error)}`, {
      cause: error,
      hint: 'use a certificate chain and its key, both as PEM',
    });
  }
  return { cert, key };
}

async function read(file: string): Promise<Buffer> {
  try {
    return await readNamedFile(file, maxPemBytes);
  } catch (error) {
    throw fileError(`open ${file}`, error, { file });
  }
}

/**
 * Calls `use` with every new content of the files, until `stop` is called. Contents are compared, since mounted
 * secrets change by links. A pair that does not belong together, as while the two are being written, is told to the
 * logger and left alone.
 */
export function watchCertificateFiles(
  files: CertificateFiles,
  current: ServerKeyPair,
  use: (certificate: ServerKeyPair) => void,
  logger: Logger = silentLogger,
): { stop(): void } {
  let [known, refused] = [current, ''];
  const check = async (): Promise<void> => {
    try {
      const pair = await readCertificateFiles(files);
      refused = '';
      if (pair.cert.equals(known.cert) && pair.key.equals(known.key)) return;
      use(pair);
      known = pair;
      logger.log('info', `${files.cert}: the new certificate is served`);
    } catch (error) {
      const reason = getMessage(error);
      if (reason !== refused) logger.log('warn', `${reason}; the certificate before is still served`);
      refused = reason;
    }
  };
  const timer = setInterval(() => void check(), checkMs);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}
