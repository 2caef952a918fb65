import { createHash, generateKeyPairSync, sign as signBytes } from 'node:crypto';
import { expect, describe, it } from 'vitest';
import { parseKeyring } from '../../../src/trust/openpgp-keyring.js';
import { readArmor } from '../../../src/trust/openpgp-packets.js';
import { Gpg } from '../../support/gpg.js';

const created = 0x6553f100;
const day = 86_400;
const now = Math.floor(Date.now() / 1000);

/** An RSA key of version 4 that signs what it is told to. */
function makeKey() {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const { n = '', e = '' } = publicKey.export({ format: 'jwk' }) as { n?: string; e?: string };
  const numbers = [n, e].map((value) => mpi(Buffer.from(value, 'base64url')));
  const body = Buffer.concat([Buffer.from([4]), uint32(created), Buffer.from([1]), ...numbers]);
  const hashed = Buffer.concat([Buffer.from([0x99, body.length >> 8, body.length & 0xff]), body]);
  const fingerprint = createHash('sha1').update(hashed).digest();
  const sign = (data: Buffer) => signBytes('sha256', data, privateKey);
  return { body, hashed, fingerprint, sign };
}
type Key = ReturnType<typeof makeKey>;

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

function mpi(value: Buffer): Buffer {
  const bits = (value.length - 1) * 8 + (value[0] as number).toString(2).length;
  return Buffer.concat([Buffer.from([bits >> 8, bits & 0xff]), value]);
}

function packet(type: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0xc0 | type, 255]), uint32(body.length), body]);
}

const subpacket = (type: number, ...content: (Buffer | number)[]): Buffer => {
  const bytes = Buffer.concat(content.map((item) => (typeof item === 'number' ? Buffer.from([item]) : item)));
  return Buffer.concat([Buffer.from([bytes.length + 1, type]), bytes]);
};

/** A signature packet of version 4. */
function signature(type: number, by: Key, content: Buffer[], more: Buffer[] = [], at = created): Buffer {
  const subpackets = Buffer.concat([subpacket(2, uint32(at)), subpacket(33, 4, by.fingerprint), ...more]);
  const head = Buffer.concat([
    Buffer.from([4, type, 1, 8, subpackets.length >> 8, subpackets.length & 0xff]),
    subpackets,
  ]);
  const trailer = Buffer.concat([head, Buffer.from([4, 0xff]), uint32(head.length)]);
  const data = Buffer.concat([...content, trailer]);
  const issuer = subpacket(16, by.fingerprint.subarray(-8));
  const value = by.sign(data);
  const left = createHash('sha256').update(data).digest().subarray(0, 2);
  return packet(
    2,
    Buffer.concat([head, Buffer.from([0, issuer.length]), issuer, left, mpi(stripped(value))]),
  );
}

function stripped(value: Buffer): Buffer {
  const start = value.findIndex((byte) => byte !== 0);
  return value.subarray(start);
}

const user = Buffer.from('Ann <ann@example.com>');
const hashedUser = Buffer.concat([Buffer.from([0xb4]), uint32(user.length), user]);
const signs = subpacket(27, 3);
const expiresAfter = (seconds: number): Buffer => subpacket(3, uint32(seconds));
const [key, revoker, sub] = [makeKey(), makeKey(), makeKey()];
const primary = packet(6, key.body);
const certify = (more: Buffer[] = [], at = created) =>
  signature(0x13, key, [key.hashed, hashedUser], [signs, ...more], at);
const revocation = (by: Key, more: Buffer[] = []) => signature(0x20, by, [key.hashed], more, created + day);
const designation = subpacket(12, 0x80, 1, revoker.fingerprint);
const direct = (more: Buffer[]) => signature(0x1f, key, [key.hashed], more);
const userId = packet(13, user);
const revokerRing = Buffer.concat([
  packet(6, revoker.body),
  userId,
  signature(0x13, revoker, [revoker.hashed, hashedUser], [signs]),
]);
const back = signature(0x19, sub, [key.hashed, sub.hashed]);
// The embedded signature is a packet's body.
const embedded = subpacket32(back.subarray(6));
function subpacket32(body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([255]), uint32(body.length + 1), Buffer.from([32]), body]);
}
const bind = (more: Buffer[] = [], at = created) =>
  signature(0x18, key, [key.hashed, sub.hashed], [subpacket(27, 2), embedded, ...more], at);
const subkey = packet(14, sub.body);
const subkeyRevocation = signature(0x28, key, [key.hashed, sub.hashed], [], created + day);

/** Validity of the key and subkey for gpg, such as `r` (revoked), `e` (expired) and `i`; undefined: not imported. */
function judgeByGpg(ring: Buffer): (string | undefined)[] {
  const gpg = new Gpg();
  try {
    try {
      gpg.run(['--import'], ring);
    } catch {
      // Keys without a valid user ID are not imported.
    }
    const wanted = [key, sub].map(({ fingerprint }) => fingerprint.toString('hex').toUpperCase().slice(-16));
    const listing = gpg.run(['--with-colons', '--list-keys']).toString();
    return wanted.map((id) => new RegExp(`^(?:pub|sub):([^:]*):[^:]*:[^:]*:${id}:`, 'm').exec(listing)?.[1]);
  } finally {
    gpg.close();
  }
}

const isUsable = (validity: string | undefined): boolean =>
  validity !== undefined && !/[reid]/.test(validity);

describe('keys of a keyring', () => {
  it.each<[string, Buffer[], (string | undefined)[]]>([
    ['a plain key', [primary, userId, certify()], [undefined]],
    ['a revocation before the user ID', [primary, revocation(key), userId, certify()], ['revoked']],
    ['a revocation after the user ID', [primary, userId, certify(), revocation(key)], ['revoked']],
    ['a revocation between', [primary, userId, revocation(key), certify()], ['revoked']],
    [
      'a revocation after a subkey',
      [primary, userId, certify(), subkey, bind(), revocation(key)],
      ['revoked', 'revoked'],
    ],
    [
      'a revocation with a critical notation',
      [primary, revocation(key, [subpacket(0x94, Buffer.alloc(9))]), userId, certify()],
      ['revoked'],
    ],
    [
      'a designated revoker, whose revocation is there',
      [primary, direct([designation]), revocation(revoker), userId, certify(), revokerRing],
      ['revoked by a designated revoker'],
    ],
    [
      'a designated revoker in the certification, after the user ID',
      [primary, userId, certify([designation]), revocation(revoker), revokerRing],
      ['revoked by a designated revoker'],
    ],
    [
      'a designated revoker that revoked nothing',
      [primary, direct([designation]), userId, certify(), revokerRing],
      [undefined],
    ],
    [
      'a revocation of a stranger',
      [primary, revocation(revoker), userId, certify(), revokerRing],
      [undefined],
    ],
    [
      'a revocation of a missing designated revoker',
      [primary, direct([designation]), revocation(revoker), userId, certify()],
      [`revoked by ${revoker.fingerprint.toString('hex').toUpperCase().slice(-16)}, whose key is missing`],
    ],
    [
      'an expired certification',
      [primary, userId, certify([expiresAfter(day)])],
      ['no valid self-signature'],
    ],
    [
      'an expired newer certification',
      [primary, userId, certify(), certify([expiresAfter(day)], created + day)],
      [undefined],
    ],
    ['a signing subkey', [primary, userId, certify(), subkey, bind()], [undefined, undefined]],
    [
      'an expired binding',
      [primary, userId, certify(), subkey, bind([expiresAfter(day)])],
      [undefined, 'not bound to its primary key'],
    ],
    [
      'a revoked subkey',
      [primary, userId, certify(), subkey, bind(), subkeyRevocation],
      [undefined, 'revoked'],
    ],
    [
      'a revocation of the subkey elsewhere',
      [primary, userId, certify(), subkeyRevocation, subkey, bind()],
      [undefined, 'revoked'],
    ],
    [
      'a critical notation in the certification',
      [primary, userId, certify([subpacket(0x94, Buffer.alloc(9))])],
      ['no valid self-signature'],
    ],
    [
      'a critical notation in the binding',
      [primary, userId, certify(), subkey, bind([subpacket(0x94, Buffer.alloc(9))])],
      [undefined, 'not bound to its primary key'],
    ],
    [
      'an unknown critical subpacket',
      [primary, userId, certify([subpacket(0x80 | 100, 1)])],
      ['no valid self-signature'],
    ],
    [
      'a certification older than the key',
      [primary, userId, certify([], created - day)],
      ['no valid self-signature'],
    ],
  ])('with %s are usable only where they are for gpg', (_, packets, problems) => {
    const ring = Buffer.concat(packets);
    const { keys } = parseKeyring(ring, 'keys');
    const states = keys.slice(0, problems.length).map((own) => own.stateAt(now).problem);
    expect(states).toEqual(problems);
    for (const [index, validity] of judgeByGpg(ring).slice(0, problems.length).entries()) {
      if (!isUsable(validity)) expect(states[index]).toBeDefined();
    }
  });
});

it('reads a megabyte of armor that begins again on each line', () => {
  const line = '-----BEGIN PGP PUBLIC KEY BLOCK-----\n';
  const text = Buffer.from(line.repeat(Math.ceil(2_000_000 / line.length)));
  expect(() => readArmor(text)).toThrow('truncated ASCII armor');
  const mixed = Buffer.from('-----BEGIN PGP A-----\n-----BEGIN PGP B-----\n'.repeat(50_000));
  expect(() => readArmor(mixed)).toThrow('truncated ASCII armor');
});
