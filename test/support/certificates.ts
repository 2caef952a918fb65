/**
 * Certificates for tests, made on the spot without any tool: an authority, and what it signs. X.509 is
 * written out by hand (DER) because Node can sign and read certificates but not build them.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

export interface CertificateFiles {
  /** PEM */
  cert: string;
  /** PEM, PKCS #8 */
  key: string;
}

export interface LeafOptions {
  /** DNS names and IPv4 addresses; `127.0.0.1` and `localhost` when left out. */
  names?: string[];
  commonName?: string;
  notBefore?: Date;
  notAfter?: Date;
}

export interface Authority extends CertificateFiles {
  /** A certificate that this authority signed, for server and client use. */
  issue(options?: LeafOptions): CertificateFiles;
}

const years = (count: number): Date => new Date(Date.now() + count * 365 * 86_400_000);

export function createAuthority(commonName = 'opmate test authority'): Authority {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cert = certificate({
    subject: commonName,
    issuer: commonName,
    publicKey,
    signer: privateKey,
    notBefore: years(-1),
    notAfter: years(10),
    extensions: [extension('551d13', sequence(der(0x01, Buffer.from([0xff]))), true)],
  });
  return {
    cert,
    key: pem(privateKey),
    issue({ names = ['127.0.0.1', 'localhost'], ...options } = {}) {
      const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const general = names.map((name) =>
        /^[\d.]+$/.test(name)
          ? der(0x87, Buffer.from(name.split('.').map(Number)))
          : der(0x82, Buffer.from(name, 'ascii')),
      );
      const leaf = certificate({
        subject: options.commonName ?? names[0] ?? 'test',
        issuer: commonName,
        publicKey: pair.publicKey,
        signer: privateKey,
        notBefore: options.notBefore ?? years(-1),
        notAfter: options.notAfter ?? years(5),
        extensions: [extension('551d11', sequence(...general), false)],
      });
      return { cert: leaf, key: pem(pair.privateKey) };
    },
  };
}

/** A server certificate that signs itself. */
export function createSelfSigned(commonName = 'opmate self-signed'): CertificateFiles {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cert = certificate({
    subject: commonName,
    issuer: commonName,
    publicKey,
    signer: createPrivateKey(pem(privateKey)),
    notBefore: years(-1),
    notAfter: years(5),
    extensions: [extension('551d11', sequence(der(0x87, Buffer.from([127, 0, 0, 1]))), false)],
  });
  return { cert, key: pem(privateKey) };
}

function pem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }) as string;
}

interface Fields {
  subject: string;
  issuer: string;
  publicKey: KeyObject;
  signer: KeyObject;
  notBefore: Date;
  notAfter: Date;
  extensions: Buffer[];
}

function certificate(fields: Fields): string {
  // ecdsa-with-SHA256
  const algorithm = sequence(der(0x06, Buffer.from('2a8648ce3d040302', 'hex')));
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    name(fields.issuer),
    sequence(time(fields.notBefore), time(fields.notAfter)),
    name(fields.subject),
    fields.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...fields.extensions)),
  );
  const signature = sign('sha256', body, fields.signer);
  const whole = sequence(body, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function name(commonName: string): Buffer {
  const attribute = sequence(
    der(0x06, Buffer.from('550403', 'hex')),
    der(0x0c, Buffer.from(commonName, 'utf8')),
  );
  return sequence(der(0x31, attribute));
}

function time(date: Date): Buffer {
  return der(0x18, Buffer.from(`${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`, 'ascii'));
}

function extension(oid: string, value: Buffer, critical: boolean): Buffer {
  const flag = critical ? [der(0x01, Buffer.from([0xff]))] : [];
  return sequence(der(0x06, Buffer.from(oid, 'hex')), ...flag, der(0x04, value));
}
