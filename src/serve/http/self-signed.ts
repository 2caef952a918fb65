import { X509Certificate, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import * as x509 from '@peculiar/asn1-x509';

const day = 24 * 60 * 60 * 1000;
/** Tolerates clocks of clients that are slow. */
const earlierMs = day;
const validMs = 365 * day;
const commonName = '2.5.4.3';
const ecdsaWithSha256 = '1.2.840.10045.4.3.2';

/** Creates a key and a self-signed certificate for host names and IP addresses, valid for a year, for local use. */
export function createSelfSignedCertificate(
  names: readonly string[],
  now: Date,
): { cert: string; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const value = new x509.AttributeValue({ utf8String: 'opmate self-signed' });
  const attribute = new x509.AttributeTypeAndValue({ type: commonName, value });
  const name = new x509.Name([new x509.RelativeDistinguishedName([attribute])]);
  const signatureAlgorithm = new x509.AlgorithmIdentifier({ algorithm: ecdsaWithSha256 });
  const tbsCertificate = new x509.TBSCertificate({
    version: x509.Version.v3,
    // Positive, and not longer than 20 bytes.
    serialNumber: toArrayBuffer(Buffer.concat([Buffer.of(1), randomBytes(15)])),
    signature: signatureAlgorithm,
    issuer: name,
    validity: new x509.Validity({
      notBefore: new Date(now.getTime() - earlierMs),
      notAfter: new Date(now.getTime() + validMs),
    }),
    subject: name,
    subjectPublicKeyInfo: AsnConvert.parse(
      publicKey.export({ type: 'spki', format: 'der' }),
      x509.SubjectPublicKeyInfo,
    ),
    extensions: new x509.Extensions([
      extension(x509.id_ce_subjectAltName, new x509.SubjectAlternativeName(names.map(toGeneralName))),
      extension(x509.id_ce_basicConstraints, new x509.BasicConstraints({ cA: false }), true),
      extension(x509.id_ce_keyUsage, new x509.KeyUsage(x509.KeyUsageFlags.digitalSignature), true),
      extension(x509.id_ce_extKeyUsage, new x509.ExtendedKeyUsage([x509.id_kp_serverAuth])),
    ]),
  });
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(tbsCertificate)), privateKey);
  const certificate = AsnConvert.serialize(
    new x509.Certificate({ tbsCertificate, signatureAlgorithm, signatureValue: toArrayBuffer(signature) }),
  );
  return {
    cert: new X509Certificate(Buffer.from(certificate)).toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  };
}

function extension(extnID: string, value: object, critical = false): x509.Extension {
  return new x509.Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

function toGeneralName(name: string): x509.GeneralName {
  return new x509.GeneralName(isIP(name) === 0 ? { dNSName: name } : { iPAddress: name });
}

function toArrayBuffer(bytes: Buffer): ArrayBuffer {
  return Uint8Array.from(bytes).buffer;
}
