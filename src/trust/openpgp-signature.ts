import { type KeyObject, createHash, verify, constants } from 'node:crypto';
import { OpmateError } from '../core/errors.js';
import { PacketReader, readNewLength } from './openpgp-packets.js';
import type { PublicKeyPacket } from './openpgp-public-key.js';

/** A parsed, unverified signature packet of version 3 or 4 (RFC 9580, section 5.2). */
export interface SignaturePacket {
  /** 0x00 for bytes, 0x01 for text, others for keys. */
  type: number;
  algorithm: number;
  hash: number;
  /** Seconds since 1970. */
  created?: number;
  /** Lifetime in seconds; 0 or undefined: unlimited. */
  expiresAfter?: number;
  /** Lifetime in seconds of the certified key. */
  keyExpiresAfter?: number;
  keyFlags?: number;
  /** Key ID of the issuer, 16 upper-case hexadecimal digits. */
  issuer?: string;
  issuerFingerprint?: string;
  /** Fingerprints of keys that may revoke the signed key. */
  revokers?: string[];
  /** Signature of a subkey over its primary key. */
  embedded?: SignaturePacket;
  /** Reason why the signature is invalid for any content. */
  problem?: string;
  /** Bytes hashed after the signed content. */
  trailer: Buffer;
  /** Multiprecision integers, or native bytes, of the signature. */
  values: Buffer;
}

const hashNames: Readonly<Record<number, string>> = {
  2: 'sha1',
  8: 'sha256',
  9: 'sha384',
  10: 'sha512',
  11: 'sha224',
  12: 'sha3-256',
  14: 'sha3-512',
};
const weakHashes: Readonly<Record<number, string>> = { 1: 'MD5', 2: 'SHA-1', 3: 'RIPEMD-160' };

/**
 * Critical subpackets that gpg accepts, of which those that affect validity are read here. Notations (20) are refused: none
 * is known. (Source: GnuPG 2.4, g10/parse-packet.c, can_handle_critical.)
 */
const handledSubpackets = new Set([2, 3, 5, 9, 11, 21, 22, 24, 25, 26, 27, 29, 30, 32, 34]);

type UnreadSignature = Omit<SignaturePacket, 'trailer' | 'values'>;

/** Reads a signature packet. Throws OpmateError SYNTAX, or UNSUPPORTED for versions other than 3 and 4. */
export function readSignature(body: Buffer): SignaturePacket {
  const reader = new PacketReader(body);
  const version = reader.uint(1);
  if (version === 3) return readVersion3(reader);
  if (version !== 4) throw new OpmateError('UNSUPPORTED', `OpenPGP signature of version ${version}`);
  const type = reader.uint(1);
  const algorithm = reader.uint(1);
  const hash = reader.uint(1);
  const signature: UnreadSignature = { type, algorithm, hash };
  readSubpackets(reader.take(reader.uint(2)), signature, true);
  const hashed = body.subarray(0, reader.offset);
  readSubpackets(reader.take(reader.uint(2)), signature, false);
  const length = Buffer.alloc(6);
  length.writeUInt16BE(0x04ff, 0);
  length.writeUInt32BE(hashed.length, 2);
  reader.take(2);
  return { ...signature, trailer: Buffer.concat([hashed, length]), values: reader.rest() };
}

function readVersion3(reader: PacketReader): SignaturePacket {
  if (reader.uint(1) !== 5) throw new OpmateError('SYNTAX', 'damaged OpenPGP signature of version 3');
  const trailer = reader.take(5);
  const issuer = reader.take(8).toString('hex').toUpperCase();
  const algorithm = reader.uint(1);
  const hash = reader.uint(1);
  reader.take(2);
  const [type, created] = [trailer.readUInt8(0), trailer.readUInt32BE(1)];
  return { type, algorithm, hash, created, issuer, trailer, values: reader.rest() };
}

function readSubpackets(area: Buffer, signature: UnreadSignature, isHashed: boolean): void {
  const areaReader = new PacketReader(area);
  while (areaReader.remaining > 0) {
    const { length, isPartial } = readNewLength(areaReader);
    if (length === 0 || isPartial) throw new OpmateError('SYNTAX', 'damaged OpenPGP subpacket');
    const typeByte = areaReader.uint(1);
    const type = typeByte & 0x7f;
    const isCritical = (typeByte & 0x80) !== 0;
    const reader = new PacketReader(areaReader.take(length - 1));
    if (isCritical && !handledSubpackets.has(type))
      signature.problem ??= `unknown critical subpacket ${type}`;
    // The unhashed part can be changed in transit: only hints and self-contained signatures are read from it.
    if (type === 16) signature.issuer ??= reader.take(8).toString('hex').toUpperCase();
    else if (type === 33) {
      signature.issuerFingerprint ??= reader.rest().subarray(1).toString('hex').toUpperCase();
    } else if (type === 32) {
      // A binding needs one level of signatures; deeper nesting could be endless.
      if (signature.type === 0x18) signature.embedded ??= readSignature(reader.rest());
    } else if (!isHashed) continue;
    else if (type === 2) signature.created = reader.uint(4);
    else if (type === 3) signature.expiresAfter = reader.uint(4);
    else if (type === 9) signature.keyExpiresAfter = reader.uint(4);
    else if (type === 12) addRevoker(signature, reader);
    else if (type === 27) signature.keyFlags = reader.remaining > 0 ? reader.uint(1) : 0;
  }
}

/** Reads a revocation key, whose class has the highest bit. (Source: RFC 9580, section 5.2.3.23.) */
function addRevoker(signature: UnreadSignature, reader: PacketReader): void {
  const isRevoker = (reader.uint(1) & 0x80) !== 0;
  reader.take(1);
  const fingerprint = reader.rest().toString('hex').toUpperCase();
  if (isRevoker) signature.revokers = [...(signature.revokers ?? []), fingerprint];
}

/** Reports whether a signature has a lifetime that ended at a time in seconds. */
export function hasExpired({ created = 0, expiresAfter = 0 }: SignaturePacket, seconds: number): boolean {
  return expiresAfter !== 0 && created + expiresAfter <= seconds;
}

/**
 * Returns why a signature by this key over `content` is invalid; undefined if valid. Accepts SHA-1 only if
 * `isSelfSignature`: keys of 2009 that are still in use have no other.
 */
export function signatureProblem(
  signature: SignaturePacket,
  content: readonly Buffer[],
  key: PublicKeyPacket,
  isSelfSignature = false,
): string | undefined {
  const weak = weakHashes[signature.hash];
  if (weak !== undefined && !(isSelfSignature && signature.hash === 2)) return `weak hash ${weak}`;
  const name = hashNames[signature.hash];
  if (name === undefined) return `unknown hash ${signature.hash}`;
  if (signature.problem !== undefined) return signature.problem;
  if (signature.created === undefined) return 'missing creation time';
  if (key.publicKey === undefined) return key.problem;
  // RSA has an older number for sign-only keys.
  const algorithm = signature.algorithm === 3 ? 1 : signature.algorithm;
  if (algorithm !== (key.algorithm === 3 ? 1 : key.algorithm)) return 'made with a key of another algorithm';
  const data = Buffer.concat([...content, signature.trailer]);
  return verifyValues(signature, name, data, key.publicKey) ? undefined : 'does not match the content';
}

function verifyValues(signature: SignaturePacket, hash: string, data: Buffer, key: KeyObject): boolean {
  const reader = new PacketReader(signature.values);
  switch (signature.algorithm) {
    case 1:
    case 3: {
      const bytes = Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8);
      const value = leftPadded(reader.mpi(), bytes);
      return value !== undefined && verify(hash, data, { key, padding: constants.RSA_PKCS1_PADDING }, value);
    }
    case 19: {
      const bytes = { prime256v1: 32, secp384r1: 48, secp521r1: 66 }[
        key.asymmetricKeyDetails?.namedCurve ?? ''
      ];
      const value = pair(reader, bytes ?? 0);
      return value !== undefined && verify(hash, data, { key, dsaEncoding: 'ieee-p1363' }, value);
    }
    case 22: {
      const value = pair(reader, 32);
      return value !== undefined && verify(null, createHash(hash).update(data).digest(), key, value);
    }
    case 27:
    case 28:
      return verify(null, createHash(hash).update(data).digest(), key, reader.rest());
    default:
      return false;
  }
}

function pair(reader: PacketReader, bytes: number): Buffer | undefined {
  const [r, s] = [leftPadded(reader.mpi(), bytes), leftPadded(reader.mpi(), bytes)];
  return r === undefined || s === undefined ? undefined : Buffer.concat([r, s]);
}

function leftPadded(value: Buffer, bytes: number): Buffer | undefined {
  return value.length > bytes ? undefined : Buffer.concat([Buffer.alloc(bytes - value.length), value]);
}
