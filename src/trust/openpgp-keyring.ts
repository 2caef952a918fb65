import { OpmateError } from '../core/errors.js';
import { inContext } from '../core/diagnostics-error.js';
import { type Packet, packetType, readArmor, readPackets } from './openpgp-packets.js';
import { type PublicKeyPacket, readPublicKey } from './openpgp-public-key.js';
import { type SignaturePacket, readSignature, signatureProblem } from './openpgp-signature.js';

/** A key or subkey of a keyring, with its self-signed properties. */
export interface SigningKey extends PublicKeyPacket {
  /** Fingerprint of the primary key, which identifies the owner. */
  primaryFingerprint: string;
  /** Expiry in seconds since 1970; undefined: never. */
  expires: number | undefined;
}

/** Public keys for verification. */
export interface OpenPgpKeyring {
  readonly keys: readonly SigningKey[];
}

interface Certificate {
  primary: PublicKeyPacket;
  primarySignatures: SignaturePacket[];
  users: { hashed: Buffer; signatures: SignaturePacket[] }[];
  subkeys: { key: PublicKeyPacket; signatures: SignaturePacket[] }[];
}

/** Maximum number of self-signatures evaluated per owner. */
const maxSelfSignatures = 1000;
const signingFlag = 0x02;

/**
 * Reads public keys: binary, as written by `gpg --export`, or ASCII-armored, in one or several blocks. Ignores
 * third-party certifications. `subject` is the name of the keyring in messages.
 *
 * Throws OpmateError SYNTAX, INVALID for private keys and data without public keys, UNSUPPORTED for GnuPG keyboxes
 * and keys of versions other than 4.
 */
export function parseKeyring(bytes: Buffer, subject: string): OpenPgpKeyring {
  return inContext({ subject }, () => {
    const keys = readKeyringPackets(bytes).flatMap(getCertificates).flatMap(signingKeys);
    if (keys.length > 0) return { keys };
    throw new OpmateError('INVALID', 'no public keys of OpenPGP version 4', {
      hint: 'specify a file that gpg --export wrote',
    });
  });
}

function readKeyringPackets(bytes: Buffer): Packet[][] {
  if (bytes.subarray(8, 12).toString('latin1') === 'KBXf') {
    throw new OpmateError('UNSUPPORTED', 'a GnuPG keybox', { hint: 'export the keys with gpg --export' });
  }
  const blocks = readArmor(bytes);
  if (blocks === undefined) return [readPackets(bytes)];
  for (const { kind } of blocks) {
    if (kind === 'PUBLIC KEY BLOCK') continue;
    throw new OpmateError('INVALID', `expected a public key block, got "${kind.toLowerCase()}"`, {
      hint: 'specify a file that gpg --export wrote',
    });
  }
  return blocks.map((block) => readPackets(block.bytes));
}

/** Groups packets by primary key, without third-party signatures. */
function getCertificates(packets: Packet[]): Certificate[] {
  const certificates: Certificate[] = [];
  let current: Certificate | undefined;
  let signatures: SignaturePacket[] | undefined;
  for (const { type, body } of packets) {
    if (type === packetType.secretKey || type === packetType.secretSubkey) {
      throw new OpmateError('INVALID', 'expected public keys, got a private key', {
        hint: 'export the public key with gpg --export',
      });
    }
    if (type === packetType.publicKey) {
      const primary = readPublicKey(body);
      signatures = [];
      current = primary && { primary, primarySignatures: signatures, users: [], subkeys: [] };
      if (current !== undefined) certificates.push(current);
    } else if (current === undefined || type === packetType.trust) {
      continue;
    } else if (type === packetType.userId || type === packetType.userAttribute) {
      signatures = [];
      current.users.push({ hashed: hashedUser(type, body), signatures });
    } else if (type === packetType.publicSubkey) {
      const key = readPublicKey(body);
      signatures = [];
      if (key !== undefined) current.subkeys.push({ key, signatures });
    } else if (type === packetType.signature) {
      const signature = readOwnSignature(body, current.primary);
      if (signature !== undefined && (signatures?.length ?? 0) < maxSelfSignatures)
        signatures?.push(signature);
    } else {
      throw new OpmateError('SYNTAX', `unexpected OpenPGP packet of type ${type} in a keyring`);
    }
  }
  return certificates;
}

function hashedUser(type: number, body: Buffer): Buffer {
  const header = Buffer.alloc(5, type === packetType.userId ? 0xb4 : 0xd1);
  header.writeUInt32BE(body.length, 1);
  return Buffer.concat([header, body]);
}

/** Returns undefined for third-party and unreadable signatures. */
function readOwnSignature(body: Buffer, primary: PublicKeyPacket): SignaturePacket | undefined {
  try {
    const signature = readSignature(body);
    return isIssuedBy(signature, primary) ? signature : undefined;
  } catch (error) {
    if (error instanceof OpmateError) return undefined;
    throw error;
  }
}

/** Reports whether a signature names this key as its issuer. */
export function isIssuedBy({ issuer, issuerFingerprint }: SignaturePacket, key: PublicKeyPacket): boolean {
  if (issuerFingerprint !== undefined) return issuerFingerprint === key.fingerprint;
  return issuer === key.keyId;
}

function signingKeys(certificate: Certificate): SigningKey[] {
  const { primary, subkeys } = certificate;
  const { problem, expires, flags } = judgePrimary(certificate);
  const signingProblem = flags !== undefined && (flags & signingFlag) === 0 ? 'not a signing key' : undefined;
  const shared = { primaryFingerprint: primary.fingerprint };
  return [
    { ...primary, ...shared, expires, problem: problem ?? primary.problem ?? signingProblem },
    ...subkeys.map(({ key, signatures }) => {
      const own = judgeSubkey(primary, key, signatures);
      const ends = [expires, own.expires].filter((end) => end !== undefined);
      const end = ends.length === 0 ? undefined : Math.min(...ends);
      return { ...key, ...shared, expires: end, problem: problem ?? own.problem ?? key.problem };
    }),
  ];
}

type Judgement = Partial<Pick<SigningKey, 'problem' | 'expires'>> & { flags?: number | undefined };

function judgePrimary({ primary, primarySignatures, users }: Certificate): Judgement {
  const holds = (content: readonly Buffer[]) => (signature: SignaturePacket) =>
    signatureProblem(signature, content, primary, true) === undefined;
  const direct = primarySignatures.filter(({ type }) => type === 0x1f || type === 0x20);
  const overKey = direct.filter(holds([primary.hashed]));
  if (overKey.some(({ type }) => type === 0x20)) return { problem: 'revoked' };
  const certifications = users.flatMap(({ hashed, signatures }) => {
    const own = signatures
      .filter(({ type }) => (type >= 0x10 && type <= 0x13) || type === 0x30)
      .filter(holds([primary.hashed, hashed]));
    const newest = findNewest(own);
    return newest === undefined || newest.type === 0x30 ? [] : [newest];
  });
  const newest = findNewest([...overKey, ...certifications]);
  if (newest === undefined) return { problem: primary.problem ?? 'no valid self-signature' };
  return { expires: findExpiry(primary, newest), flags: newest.keyFlags };
}

function judgeSubkey(
  primary: PublicKeyPacket,
  key: PublicKeyPacket,
  signatures: readonly SignaturePacket[],
): Judgement {
  const content = [primary.hashed, key.hashed];
  const own = signatures
    .filter(({ type }) => type === 0x18 || type === 0x28)
    .filter((signature) => signatureProblem(signature, content, primary, true) === undefined);
  if (own.some(({ type }) => type === 0x28)) return { problem: 'revoked' };
  const binding = findNewest(own);
  if (binding === undefined) return { problem: 'not bound to its primary key' };
  const expires = findExpiry(key, binding);
  if (((binding.keyFlags ?? 0) & signingFlag) === 0) return { expires, problem: 'not a signing key' };
  // Otherwise anybody could claim a foreign signing key as a subkey.
  const { embedded } = binding;
  const isMutual = embedded?.type === 0x19 && signatureProblem(embedded, content, key, true) === undefined;
  return {
    expires,
    problem: isMutual ? undefined : 'no signature of the subkey over its primary key',
  };
}

function findNewest(signatures: readonly SignaturePacket[]): SignaturePacket | undefined {
  return signatures.reduce<SignaturePacket | undefined>(
    (newest, signature) => ((signature.created ?? 0) >= (newest?.created ?? 0) ? signature : newest),
    undefined,
  );
}

function findExpiry(key: PublicKeyPacket, { keyExpiresAfter }: SignaturePacket): number | undefined {
  return keyExpiresAfter === undefined || keyExpiresAfter === 0 ? undefined : key.created + keyExpiresAfter;
}
