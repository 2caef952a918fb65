import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';

const day = 24 * 60 * 60 * 1000;
/** Tolerates clocks of clients that are slow. */
const earlierMs = day;
const validMs = 365 * day;

/**
 * Creates a key and a self-signed certificate for host names and IP addresses, valid for a year, for local use. X.509 is
 * encoded here (RFC 5280), as Node.js can sign and read certificates but not build them.
 */
export function createSelfSignedCertificate(
  names: readonly string[],
  now: Date,
): { cert: string; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const issuer = commonName('opmate self-signed');
  const ecdsaWithSha256 = sequence(der(tag.oid, hex('2a8648ce3d040302')));
  const body = sequence(
    der(0xa0, der(tag.integer, hex('02'))),
    // Positive, and not longer than 20 bytes.
    der(tag.integer, Buffer.concat([hex('01'), randomBytes(15)])),
    ecdsaWithSha256,
    issuer,
    sequence(time(new Date(now.getTime() - earlierMs)), time(new Date(now.getTime() + validMs))),
    issuer,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(
      0xa3,
      sequence(
        // Subject alternative names; not an authority; digital signatures; of servers.
        extension('551d11', sequence(...names.map(generalName))),
        extension('551d13', sequence(), true),
        extension('551d0f', der(tag.bitString, hex('0780')), true),
        extension('551d25', sequence(der(tag.oid, hex('2b06010505070301')))),
      ),
    ),
  );
  const signature = sign('sha256', body, privateKey);
  const certificate = sequence(
    body,
    ecdsaWithSha256,
    der(tag.bitString, Buffer.concat([hex('00'), signature])),
  );
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    cert: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  };
}

const tag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

function hex(text: string): Buffer {
  return Buffer.from(text, 'hex');
}

function der(type: number, content: Buffer): Buffer {
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([type, ...size]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(tag.sequence, Buffer.concat(parts));
}

function commonName(text: string): Buffer {
  const attribute = sequence(der(tag.oid, hex('550403')), der(tag.utf8String, Buffer.from(text)));
  return sequence(der(tag.set, attribute));
}

/** Encodes a time: two digits of the year until 2049, then four. */
function time(date: Date): Buffer {
  const digits = `${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`;
  const isShort = date.getUTCFullYear() < 2050;
  return der(isShort ? tag.utcTime : tag.generalizedTime, Buffer.from(isShort ? digits.slice(2) : digits));
}

function extension(oid: string, value: Buffer, isCritical = false): Buffer {
  const critical = isCritical ? [der(tag.boolean, hex('ff'))] : [];
  return sequence(der(tag.oid, hex(oid)), ...critical, der(tag.octetString, value));
}

function generalName(name: string): Buffer {
  switch (isIP(name)) {
    case 4:
      return der(0x87, Buffer.from(name.split('.').map(Number)));
    case 6:
      return der(0x87, ipv6Bytes(name));
    default:
      return der(0x82, Buffer.from(name, 'latin1'));
  }
}

function ipv6Bytes(address: string): Buffer {
  // URL normalizes to hexadecimal groups without zeros.
  const [before = '', after] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => parseInt(group, 16)));
  const [head, tail] = [groups(before), groups(after ?? '')];
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => 0);
  const bytes = Buffer.alloc(16);
  for (const [i, group] of [...head, ...zeros, ...tail].entries()) bytes.writeUInt16BE(group, i * 2);
  return bytes;
}
