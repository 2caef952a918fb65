import { readNamedFile } from '../../files/read-file.js';
import { checkKeyPair, maxPemBytes } from '../../oci/transport/certificates.js';
import { createSecureContext } from 'node:tls';
import { OpmateError, throwFileError, getMessage } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import type { ServerCertificate } from './tls.js';

/** Interval of checks of the files. */
const checkMs = 2_000;

/** Paths of a PEM certificate chain and its key. */
export interface CertificateFiles {
  cert: string;
  key: string;
}

/**
 * Reads a certificate and its key, if a server has files of them. Throws OpmateError for unreadable, invalid or mismatched
 * files.
 */
export async function openCertificateFiles(
  files: CertificateFiles | undefined,
  logger: Logger = silentLogger,
) {
  const certificate = files && (await readCertificateFiles(files));
  let timer: NodeJS.Timeout | undefined;
  return {
    /** Undefined without files. */
    certificate,

    /**
     * Calls `use` with each new content of the files, until `close`. Compares contents, since mounted secrets change by
     * links. A mismatched pair, as during writing, is logged and ignored.
     */
    follow(use: (certificate: ServerCertificate) => void): void {
      if (files === undefined || certificate === undefined) return;
      let [known, logged] = [certificate, ''];
      const check = async (): Promise<void> => {
        try {
          const pair = await readCertificateFiles(files);
          logged = '';
          if (pair.cert.equals(known.cert) && pair.key.equals(known.key)) return;
          use(pair);
          known = pair;
          logger.log('info', `${files.cert}: serving the new certificate`);
        } catch (error) {
          const reason = getMessage(error);
          if (reason !== logged) logger.log('warn', `${reason}; still serving the previous certificate`);
          logged = reason;
        }
      };
      timer = setInterval(() => void check(), checkMs).unref();
    },

    close(): void {
      clearInterval(timer);
    },
  };
}

async function readCertificateFiles(files: CertificateFiles): Promise<{ cert: Buffer; key: Buffer }> {
  const [cert, key] = await Promise.all([read(files.cert), read(files.key)]);
  checkKeyPair({ cert, key }, files);
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
  return readNamedFile(file, maxPemBytes).catch(throwFileError(file, { file }));
}
