import { OpmateError } from '../core/errors.js';
import { inContext } from '../core/diagnostics-error.js';
import { type Packet, packetType, readArmor, readPackets } from './openpgp-packets.js';
import { type PublicKeyPacket, readPublicKey } from './openpgp-public-key.js';
import { type SignaturePacket, hasExpired, readSignature, signatureProblem } from './openpgp-signature.js';

/** A key or subkey of a keyring, with its self-signed properties. */
export interface SigningKey extends PublicKeyPacket {
  /** Fingerprint of the primary key, which identifies the owner. */
  primaryFingerprint: string;
  /** Expiry in seconds since 1970, whatever the time; undefined: never. */
  expires: number | undefined;
  /** Returns problem and expiry at a time in seconds since 1970: self-signatures that expired are ignored. */
  stateAt(seconds: number): KeyState;
}

/** State of a key at a time: its problem, undefined if it can be used, and its expiry. */
interface KeyState {
  problem: string | undefined;
  expires: number | undefined;
}

/** Public keys for verification. */
export interface OpenPgpKeyring {
  readonly keys: readonly SigningKey[];
}

interface Certificate {
  primary: PublicKeyPacket;
  primarySignatures: SignaturePacket[];
  /** Revocations of keys, wherever they are: those of the primary key, and of others, which may be designated. */
  revocations: SignaturePacket[];
  foreignRevocations: SignaturePacket[];
  users: { hashed: Buffer; signatures: SignaturePacket[] }[];
  subkeys: { key: PublicKeyPacket; signatures: SignaturePacket[] }[];
}

/** Maximum number of self-signatures evaluated per owner. */
const maxSelfSignatures = 1000;
/** Maximum number of revocations of an owner's keys; with more, the keys are unusable. */
const maxRevocations = 100;
const revocationTypes: readonly number[] = [0x20, 0x28];
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
    const certificates = readKeyringPackets(bytes).flatMap(getCertificates);
    const keys = certificates.flatMap((certificate) => signingKeys(certificate, certificates));
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
      current = primary && {
        primary,
        primarySignatures: signatures,
        users: [],
        subkeys: [],
        revocations: [],
        foreignRevocations: [],
      };
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
      addSignature(body, current, signatures);
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

/** Adds a signature to the list of what it follows, or a revocation to those of the certificate. Ignores unreadable ones. */
function addSignature(
  body: Buffer,
  certificate: Certificate,
  signatures: SignaturePacket[] | undefined,
): void {
  let signature: SignaturePacket;
  try {
    signature = readSignature(body);
  } catch (error) {
    if (error instanceof OpmateError) return;
    throw error;
  }
  const isOwn = isIssuedBy(signature, certificate.primary);
  const list = isOwn ? signatures : undefined;
  if (revocationTypes.includes(signature.type)) {
    const revocations = isOwn ? certificate.revocations : certificate.foreignRevocations;
    // A critical subpacket of a revocation does not bring a key back.
    delete signature.problem;
    if (revocations.length <= maxRevocations) revocations.push(signature);
  } else if (list !== undefined && list.length < maxSelfSignatures) list.push(signature);
}

/** Reports whether a signature names this key as its issuer. */
export function isIssuedBy({ issuer, issuerFingerprint }: SignaturePacket, key: PublicKeyPacket): boolean {
  if (issuerFingerprint !== undefined) return issuerFingerprint === key.fingerprint;
  return issuer === key.keyId;
}

function signingKeys(certificate: Certificate, all: readonly Certificate[]): SigningKey[] {
  const { primary, subkeys } = certificate;
  const shared = { primaryFingerprint: primary.fingerprint };
  const judgeOwner = judgePrimary(certificate, all);
  const primaryAt = (seconds: number): KeyState => {
    const { problem, expires, flags } = judgeOwner(seconds);
    const signingProblem =
      flags !== undefined && (flags & signingFlag) === 0 ? 'not a signing key' : undefined;
    return { expires, problem: problem ?? primary.problem ?? signingProblem };
  };
  const states = subkeys.map(({ key, signatures }) => {
    const judge = judgeSubkey(certificate, key, signatures);
    const stateAt = (seconds: number): KeyState => {
      const [owner, own] = [judgeOwner(seconds), judge(seconds)];
      const ends = [owner.expires, own.expires].filter((end) => end !== undefined);
      const expires = ends.length === 0 ? undefined : Math.min(...ends);
      return { expires, problem: owner.problem ?? own.problem ?? key.problem };
    };
    return { key, stateAt };
  });
  return [{ key: primary, stateAt: primaryAt }, ...states].map(({ key, stateAt }) => {
    return { ...key, ...shared, ...stateAt(-Infinity), stateAt };
  });
}

/** State at a time in seconds since 1970; at -Infinity nothing has expired. */
type Judgement = (seconds: number) => Partial<KeyState> & { flags?: number | undefined };

function judgePrimary(certificate: Certificate, all: readonly Certificate[]): Judgement {
  const { primary, primarySignatures, users } = certificate;
  const holds = createCheck(primary);
  const overKey = primarySignatures.filter(({ type }) => type === 0x1f).filter(holds([primary.hashed]));
  const certified = users.map(({ hashed, signatures }) =>
    signatures
      .filter(({ type }) => (type >= 0x10 && type <= 0x13) || type === 0x30)
      .filter(holds([primary.hashed, hashed])),
  );
  const problem = findRevocation(certificate, [...overKey, ...certified.flat()], all);
  if (problem !== undefined) return () => ({ problem });
  return (seconds) => {
    const isCurrent = (signature: SignaturePacket): boolean => !hasExpired(signature, seconds);
    const certifications = certified.flatMap((own) => {
      const newest = findNewest(own.filter(isCurrent));
      return newest === undefined || newest.type === 0x30 ? [] : [newest];
    });
    const newest = findNewest([...overKey.filter(isCurrent), ...certifications]);
    if (newest === undefined) return { problem: primary.problem ?? 'no valid self-signature' };
    return { expires: findExpiry(primary, newest), flags: newest.keyFlags };
  };
}

/** Returns a check of self-signatures; one that is older than its key is invalid, as for gpg. */
function createCheck(key: PublicKeyPacket) {
  return (content: readonly Buffer[]) => (signature: SignaturePacket) =>
    (signature.created ?? 0) >= key.created && signatureProblem(signature, content, key, true) === undefined;
}

/** Returns the problem of a key that its owner or a designated revoker revoked. */
function findRevocation(
  { primary, revocations, foreignRevocations }: Certificate,
  selfSignatures: readonly SignaturePacket[],
  all: readonly Certificate[],
): string | undefined {
  if (revocations.length > maxRevocations) return `more than ${maxRevocations} revocations`;
  const ofKey = (signature: SignaturePacket): boolean => signature.type === 0x20;
  const isBy = (key: PublicKeyPacket) => (signature: SignaturePacket) =>
    signatureProblem(signature, [primary.hashed], key, true) === undefined;
  if (revocations.filter(ofKey).some(isBy(primary))) return 'revoked';
  const revokers = new Set(selfSignatures.flatMap((signature) => signature.revokers ?? []));
  if (revokers.size > 0 && foreignRevocations.length > maxRevocations)
    return `more than ${maxRevocations} revocations`;
  for (const fingerprint of revokers) {
    const named = foreignRevocations.filter(ofKey).filter((signature) => isNamed(signature, fingerprint));
    const revoker = all.find((other) => other.primary.fingerprint === fingerprint);
    if (revoker === undefined && named.length > 0)
      return `revoked by ${fingerprint.slice(-16)}, whose key is missing`;
    if (revoker !== undefined && named.some(isBy(revoker.primary))) return 'revoked by a designated revoker';
  }
  return undefined;
}

function isNamed({ issuer, issuerFingerprint }: SignaturePacket, fingerprint: string): boolean {
  return issuerFingerprint === undefined
    ? issuer === fingerprint.slice(-16)
    : issuerFingerprint === fingerprint;
}

function judgeSubkey(
  { primary, revocations }: Certificate,
  key: PublicKeyPacket,
  signatures: readonly SignaturePacket[],
): Judgement {
  const content = [primary.hashed, key.hashed];
  const isRevocation = (signature: SignaturePacket): boolean =>
    signature.type === 0x28 && signatureProblem(signature, content, primary, true) === undefined;
  if (revocations.some(isRevocation)) return () => ({ problem: 'revoked' });
  const bindings = signatures.filter(({ type }) => type === 0x18).filter(createCheck(primary)(content));
  const isBackSignature = createCheck(key)(content);
  return (seconds) => {
    const binding = findNewest(bindings.filter((signature) => !hasExpired(signature, seconds)));
    if (binding === undefined) return { problem: 'not bound to its primary key' };
    const expires = findExpiry(key, binding);
    if (((binding.keyFlags ?? 0) & signingFlag) === 0) return { expires, problem: 'not a signing key' };
    // Otherwise anybody could claim a foreign signing key as a subkey.
    const { embedded } = binding;
    const isMutual = embedded?.type === 0x19 && !hasExpired(embedded, seconds) && isBackSignature(embedded);
    return { expires, problem: isMutual ? undefined : 'no signature of the subkey over its primary key' };
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
