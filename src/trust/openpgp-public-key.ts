import { type KeyObject, createHash, createPublicKey } from 'node:crypto';
import { PacketReader } from './openpgp-packets.js';

/** A public key or subkey packet of version 4 (RFC 9580, section 5.5.2). */
export interface PublicKeyPacket {
  /** 40 upper-case hexadecimal digits. */
  fingerprint: string;
  /** Last 16 digits of `fingerprint`. */
  keyId: string;
  /** Seconds since 1970. */
  created: number;
  algorithm: number;
  /** Undefined for a key that cannot verify; `problem` is the reason. */
  publicKey: KeyObject | undefined;
  problem: string | undefined;
  /** Bytes of the key in signature hashes: the packet with a fixed header. */
  hashed: Buffer;
}

const minRsaBits = 2048;
const encryptionAlgorithms: readonly number[] = [2, 16, 18, 25, 26];
/** Object identifiers of curves, in hexadecimal without the first two bytes of DER. */
const curves: Readonly<Record<string, { crv: string; bytes: number }>> = {
  '2a8648ce3d030107': { crv: 'P-256', bytes: 32 },
  '2b81040022': { crv: 'P-384', bytes: 48 },
  '2b81040023': { crv: 'P-521', bytes: 66 },
};
const ed25519Legacy = '2b06010401da470f01';

/** Reads a key packet. Returns undefined for versions other than 4. Throws OpmateError SYNTAX. */
export function readPublicKey(body: Buffer): PublicKeyPacket | undefined {
  const reader = new PacketReader(body);
  if (reader.uint(1) !== 4) return undefined;
  const created = reader.uint(4);
  const algorithm = reader.uint(1);
  const header = Buffer.alloc(3, 0x99);
  header.writeUInt16BE(body.length & 0xffff, 1);
  const hashed = Buffer.concat([header, body]);
  const fingerprint = createHash('sha1').update(hashed).digest('hex').toUpperCase();
  let material: KeyMaterial;
  try {
    material = readKeyMaterial(algorithm, reader);
  } catch {
    material = { problem: 'damaged key' };
  }
  const { publicKey, problem } = material;
  return { fingerprint, keyId: fingerprint.slice(-16), created, algorithm, publicKey, problem, hashed };
}

type KeyMaterial = Partial<Pick<PublicKeyPacket, 'publicKey' | 'problem'>>;

/** Throws for a damaged key. */
function readKeyMaterial(algorithm: number, reader: PacketReader): KeyMaterial {
  if (encryptionAlgorithms.includes(algorithm)) return { problem: 'an encryption key, not a signing key' };
  const base64 = (bytes: Buffer): string => bytes.toString('base64url');
  const fromJwk = (key: Record<string, string>): KeyMaterial => ({
    publicKey: createPublicKey({ key, format: 'jwk' }),
  });
  switch (algorithm) {
    case 1:
    case 3: {
      const material = fromJwk({ kty: 'RSA', n: base64(reader.mpi()), e: base64(reader.mpi()) });
      const bits = material.publicKey?.asymmetricKeyDetails?.modulusLength ?? 0;
      return bits < minRsaBits ? { problem: `RSA key of ${bits} bits, fewer than ${minRsaBits}` } : material;
    }
    case 19: {
      const curve = curves[reader.take(reader.uint(1)).toString('hex')];
      const point = reader.mpi();
      if (curve === undefined) return { problem: 'ECDSA key on an unsupported curve' };
      const { crv, bytes } = curve;
      if (point[0] !== 4 || point.length !== 2 * bytes + 1) return { problem: 'damaged key' };
      const [x, y] = [point.subarray(1, bytes + 1), point.subarray(bytes + 1)];
      return fromJwk({ kty: 'EC', crv, x: base64(x), y: base64(y) });
    }
    case 22: {
      const isKnown = reader.take(reader.uint(1)).toString('hex') === ed25519Legacy;
      const point = reader.mpi();
      if (!isKnown) return { problem: 'EdDSA key on an unsupported curve' };
      if (point[0] !== 0x40 || point.length !== 33) return { problem: 'damaged key' };
      return fromJwk({ kty: 'OKP', crv: 'Ed25519', x: base64(point.subarray(1)) });
    }
    case 27:
      return fromJwk({ kty: 'OKP', crv: 'Ed25519', x: base64(reader.take(32)) });
    case 28:
      return fromJwk({ kty: 'OKP', crv: 'Ed448', x: base64(reader.take(57)) });
    default:
      return { problem: algorithm === 17 ? 'unsupported key kind DSA' : `unsupported key kind ${algorithm}` };
  }
}
