import { LimitError, OpmateError } from '../core/errors.js';
import { inContext } from '../core/diagnostics-error.js';
import { type OpenPgpKeyring, type SigningKey, isIssuedBy } from './openpgp-keyring.js';
import { type Packet, packetType, readArmor, readMessagePackets } from './openpgp-packets.js';
import { type SignaturePacket, hasExpired, readSignature, signatureProblem } from './openpgp-signature.js';

/** A valid signature, by its key. */
interface VerifiedSignature extends Pick<SigningKey, 'keyId' | 'fingerprint' | 'primaryFingerprint'> {
  /** Signing time as stated by the signer. */
  created: Date;
}

interface VerifyMessageOptions {
  /** Name of the message in errors: a file or URL. */
  subject: string;
  /** Time at which keys and signatures must be valid. */
  now: Date;
  /** Maximum bytes of the signed content; default: 1 MiB. */
  limit?: number;
}

const defaultLimit = 1024 * 1024;
/** Maximum size of a signed message beyond its content. */
const maxEnvelope = 256 * 1024;
const maxSignatures = 16;

/**
 * Verifies a signed message (RFC 9580, section 10.3), binary or ASCII-armored, optionally compressed, and returns its
 * content. Requires one valid signature by a key of the keyring that is neither expired nor revoked at `now`.
 *
 * Throws OpmateError: SYNTAX for other data, INVALID without a valid signature, LIMIT, and UNSUPPORTED (encryption,
 * unknown versions, BZip2).
 */
export function verifySignedMessage(
  message: Buffer,
  keyring: OpenPgpKeyring,
  { subject, now, limit = defaultLimit }: VerifyMessageOptions,
): VerifiedSignature & { content: Buffer } {
  return inContext({ subject }, () => {
    const { content, signatures } = readSignedContent(readMessage(message, limit));
    if (content.length > limit) throw new LimitError(`signed content of more than ${limit} bytes`);
    return { content, ...findValidSignature(signatures, content, keyring, now) };
  });
}

function readMessage(bytes: Buffer, limit: number): Packet[] {
  // Armor is a third larger than its content.
  if (bytes.length > (limit + maxEnvelope) * 1.4) {
    throw new LimitError(`OpenPGP message of more than ${limit} bytes`);
  }
  const blocks = readArmor(bytes);
  if (blocks !== undefined && (blocks.length !== 1 || blocks[0]?.kind !== 'MESSAGE')) {
    const kinds = blocks.map((block) => `"${block.kind.toLowerCase()}"`).join(', ');
    throw new OpmateError('INVALID', `expected an OpenPGP message, got ${kinds}`);
  }
  const packets = readMessagePackets(blocks?.[0]?.bytes ?? bytes, limit + maxEnvelope);
  if (packets.length === 0) throw new OpmateError('SYNTAX', 'empty OpenPGP message');
  return packets;
}

/** Splits a signed message: one-pass signatures, content, signatures; or signatures, content. */
function readSignedContent(packets: readonly Packet[]): { content: Buffer; signatures: SignaturePacket[] } {
  const kinds = packets.map(({ type }) => type);
  const encrypted = [1, 3, 9, 18, 20];
  if (kinds.some((type) => encrypted.includes(type))) {
    throw new OpmateError('UNSUPPORTED', 'an encrypted OpenPGP message');
  }
  const literal = kinds.indexOf(packetType.literalData);
  if (literal < 0) {
    const isDetached = kinds.every((type) => type === packetType.signature);
    const problem = isDetached
      ? 'a detached signature, without signed content'
      : 'an OpenPGP message without content';
    throw new OpmateError('INVALID', problem);
  }
  const [before, after] = [packets.slice(0, literal), packets.slice(literal + 1)];
  const isOnePass =
    before.every(({ type }) => type === packetType.onePassSignature) &&
    after.every(({ type }) => type === packetType.signature) &&
    after.length === before.length;
  const isPrefixed = after.length === 0 && before.every(({ type }) => type === packetType.signature);
  const isUnfinished = after.length < before.length && before[0]?.type === packetType.onePassSignature;
  if (!isOnePass && !isPrefixed) {
    const problem = isUnfinished ? 'truncated: missing signature' : 'not a signed OpenPGP message';
    throw new OpmateError('SYNTAX', problem);
  }
  const signatures = readSignatures(isOnePass ? after : before);
  if (signatures.length === 0) throw new OpmateError('INVALID', 'not signed');
  if (isOnePass) requireAnnounced(before, signatures);
  return { content: readLiteral((packets[literal] as Packet).body), signatures };
}

/** Requires that one-pass signatures match their signatures like brackets: the first announces the last. */
function requireAnnounced(onePass: readonly Packet[], signatures: readonly SignaturePacket[]): void {
  const announced = onePass.toReversed().every(({ body }, index) => {
    const { type, hash, algorithm, ...names } = signatures[index] as SignaturePacket;
    const issuer = Buffer.from(names.issuer ?? names.issuerFingerprint?.slice(-16) ?? '', 'hex');
    const expected = Buffer.from([3, type, hash, algorithm, ...issuer]);
    return body.length === 13 && body.subarray(0, 12).equals(expected);
  });
  if (!announced)
    throw new OpmateError('SYNTAX', 'damaged: a one-pass signature announces another signature');
}

function readLiteral(body: Buffer): Buffer {
  const nameLength = body[1];
  if (nameLength === undefined || body.length < 6 + nameLength) {
    throw new OpmateError('SYNTAX', 'truncated OpenPGP packet');
  }
  return body.subarray(6 + nameLength);
}

function readSignatures(packets: readonly Packet[]): SignaturePacket[] {
  if (packets.length > maxSignatures) throw new LimitError(`more than ${maxSignatures} OpenPGP signatures`);
  return packets.map(({ body }) => readSignature(body));
}

/** Returns the first valid signature. Throws with the reasons of all otherwise. */
function findValidSignature(
  signatures: readonly SignaturePacket[],
  content: Buffer,
  keyring: OpenPgpKeyring,
  now: Date,
): VerifiedSignature {
  const problems: string[] = [];
  for (const signature of signatures) {
    const keys = keyring.keys.filter((key) => isIssuedBy(signature, key));
    const id = signature.issuerFingerprint?.slice(-16) ?? signature.issuer ?? 'unknown';
    if (keys.length === 0) problems.push(`signed by untrusted key ${id}`);
    for (const key of keys) {
      const problem = messageSignatureProblem(signature, content, key, now);
      if (problem === undefined) {
        const { keyId, fingerprint, primaryFingerprint } = key;
        return { keyId, fingerprint, primaryFingerprint, created: new Date((signature.created ?? 0) * 1000) };
      }
      problems.push(`signature by key ${id}: ${problem}`);
    }
  }
  throw new OpmateError('INVALID', [...new Set(problems)].join('; '), {
    hint: 'verify with the key of its signer, and do not use the signed content otherwise',
  });
}

function messageSignatureProblem(
  signature: SignaturePacket,
  content: Buffer,
  key: SigningKey,
  now: Date,
): string | undefined {
  const seconds = now.getTime() / 1000;
  const state = key.stateAt(seconds);
  if (state.problem !== undefined) return `unusable key: ${state.problem}`;
  if (signature.type !== 0x00 && signature.type !== 0x01) return 'not a signature over a document';
  const signed = signature.type === 0x01 ? withNetworkLineEnds(content) : content;
  const problem = signatureProblem(signature, [signed], key);
  if (problem !== undefined) return problem;
  const { created = 0, expiresAfter = 0 } = signature;
  if (created > seconds) return `created in the future, at ${showTime(created)}`;
  if (created < key.created) return 'created before its key';
  if (hasExpired(signature, seconds)) return `expired at ${showTime(created + expiresAfter)}`;
  if (state.expires !== undefined && state.expires <= seconds)
    return `its key expired at ${showTime(state.expires)}`;
  return undefined;
}

function withNetworkLineEnds(content: Buffer): Buffer {
  return Buffer.from(content.toString('latin1').replace(/\r?\n/g, '\r\n'), 'latin1');
}

function showTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
}
