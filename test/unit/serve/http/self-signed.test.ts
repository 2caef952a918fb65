import { execFileSync, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { connect } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSelfSignedCertificate } from '../../../../src/serve/http/self-signed.js';
import { directoryWith } from '../../../support/temporary.js';

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
const now = new Date('2026-03-04T05:06:07Z');

describe('serve/http/self-signed', () => {
  it('makes a certificate that is what it says', async () => {
    const names = ['localhost', 'catalogs.example', '127.0.0.1', '::1', '2001:db8::5:0:7'];
    const { cert } = await createSelfSignedCertificate(names, now);
    const certificate = new X509Certificate(cert);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.ca).toBe(false);
    expect(certificate.subject).toBe('CN=opmate self-signed');
    expect(new Date(certificate.validFrom)).toEqual(new Date('2026-03-03T05:06:07Z'));
    expect(new Date(certificate.validTo)).toEqual(new Date('2027-03-04T05:06:07Z'));
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
    for (const name of ['localhost', 'catalogs.example']) expect(certificate.checkHost(name)).toBe(name);
    expect(certificate.checkHost('other.example')).toBeUndefined();
    for (const address of ['127.0.0.1', '::1', '2001:db8::5:0:7']) {
      expect(certificate.checkIP(address)).toBe(address);
    }
    expect(certificate.checkIP('127.0.0.2')).toBeUndefined();
  });

  it('has another key and number each time, and years beyond 2049', async () => {
    const create = async (): Promise<X509Certificate> =>
      new X509Certificate((await createSelfSignedCertificate(['a'], new Date('2049-06-01T00:00:00Z'))).cert);
    const [one, other] = await Promise.all([create(), create()]);
    expect(one.serialNumber).not.toBe(other.serialNumber);
    expect(one.fingerprint256).not.toBe(other.fingerprint256);
    expect(new Date(one.validTo)).toEqual(new Date('2050-06-01T00:00:00Z'));
  });

  it('is trusted by a client that is given it, and by no other', async () => {
    const certificate = await createSelfSignedCertificate(['127.0.0.1'], new Date());
    const server = createServer({ ...certificate }, (_request, response) => response.end('ok'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const attempt = (ca: string | undefined) =>
      new Promise<string>((resolve) => {
        const options = ca === undefined ? {} : { ca };
        const socket = connect({ host: '127.0.0.1', port, ...options }, () => {
          socket.destroy();
          resolve('connected');
        });
        socket.on('error', (error: Error & { code?: string }) => resolve(error.code ?? error.message));
      });
    expect(await attempt(certificate.cert)).toBe('connected');
    expect(await attempt(undefined)).toBe('DEPTH_ZERO_SELF_SIGNED_CERT');
  });

  it.skipIf(!hasOpenssl)('is well-formed for OpenSSL', async () => {
    const { cert, key } = await createSelfSignedCertificate(['localhost', '::1'], new Date());
    const directory = await directoryWith({ 'cert.pem': cert, 'key.pem': key });
    const file = path.join(directory, 'cert.pem');
    const verified = execFileSync('openssl', ['verify', '-purpose', 'sslserver', '-CAfile', file, file]);
    expect(verified.toString()).toContain('OK');
    const shown = execFileSync('openssl', ['x509', '-in', file, '-noout', '-text']).toString();
    expect(shown).toContain('DNS:localhost, IP Address:0:0:0:0:0:0:0:1');
    expect(shown).toContain('Signature Algorithm: ecdsa-with-SHA256');
  });
});
