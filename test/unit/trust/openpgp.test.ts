import { createHash, generateKeyPairSync, sign as signBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OpenPgpKeyring, parseKeyring } from '../../../src/trust/openpgp-keyring.js';
import { verifySignedMessage } from '../../../src/trust/openpgp.js';
import { Gpg, faked } from '../../support/gpg.js';

const gpg = new Gpg();
// gpg stamps signatures while the tests run.
const now = new Date(Date.now() + 86_400_000);
const subject = 'signature-1';
const text = '{"signed": "by gpg"}\n';
let ring: OpenPgpKeyring;

beforeAll(() => {
  gpg.makeKey('release');
  gpg.makeKey('other');
  gpg.makeKey('reader', { algorithm: 'default', usage: 'default' });
  ring = parseKeyring(gpg.publicKey('release'), 'key');
});
afterAll(() => gpg.close());

function verify(message: Buffer, keyring = ring): string {
  return verifySignedMessage(message, keyring, { subject, now }).content.toString();
}

describe('verifySignedMessage', () => {
  it.each([
    ['ZIP', ['--compress-algo', 'zip']],
    ['ZLIB', ['--compress-algo', 'zlib']],
    ['no compression', ['--compress-algo', 'none']],
    ['SHA-256', ['--digest-algo', 'SHA256']],
    ['SHA-384', ['--digest-algo', 'SHA384']],
    ['SHA-512', ['--digest-algo', 'SHA512']],
    ['ASCII armor', ['--armor']],
    ['text mode', ['--textmode']],
  ])('returns what gpg signed with %s', (_, args) => {
    const message = gpg.sign('release', text, ...args);
    const verified = verifySignedMessage(message, ring, { subject, now });
    expect(verified.content.toString().replace(/\r\n/g, '\n')).toBe(text);
    const [fingerprint = ''] = gpg.fingerprints('release');
    expect(verified).toMatchObject({
      fingerprint,
      primaryFingerprint: fingerprint,
      keyId: fingerprint.slice(-16),
    });
    expect(Math.abs(verified.created.getTime() - Date.now())).toBeLessThan(600_000);
  });

  it('joins the parts of content that gpg did not know the length of', () => {
    const large = 'x'.repeat(300_000);
    expect(verify(gpg.sign('release', large, '--compress-algo', 'none'))).toBe(large);
  });

  it.each(['ed25519', 'nistp256', 'nistp384', 'nistp521', 'rsa3072'])(
    'verifies keys of kind %s',
    (algorithm) => {
      gpg.makeKey(`kind-${algorithm}`, { algorithm });
      const keyring = parseKeyring(gpg.publicKey(`kind-${algorithm}`, '--armor'), 'key');
      expect(verify(gpg.sign(`kind-${algorithm}`, text), keyring)).toBe(text);
    },
  );

  it('verifies a signing subkey and names both keys', () => {
    const primary = gpg.makeKey('with-subkey', { usage: 'cert' });
    gpg.run(['--quick-add-key', primary, 'ed25519', 'sign', 'never']);
    const keyring = parseKeyring(gpg.publicKey('with-subkey'), 'key');
    const verified = verifySignedMessage(gpg.sign('with-subkey', text), keyring, { subject, now });
    expect([verified.primaryFingerprint, verified.fingerprint]).toEqual(gpg.fingerprints('with-subkey'));
  });

  it('refuses every changed byte that gpg refuses', () => {
    const message = gpg.sign('release', text, '--compress-algo', 'none');
    let accepted = 0;
    for (let i = 0; i < message.length; i++) {
      const changed = Buffer.from(message);
      changed[i] = (changed[i] as number) ^ 0x01;
      try {
        verify(changed);
      } catch {
        continue;
      }
      // Bytes that no signature covers, such as the name and date of the literal packet.
      accepted++;
      expect(gpg.accepts(changed), `byte ${i}`).toBe(true);
      expect(verify(changed)).toBe(text);
    }
    expect(accepted).toBeLessThan(40);
  });

  it('refuses every truncated message', () => {
    const message = gpg.sign('release', text);
    for (let i = 0; i < message.length; i++) {
      expect(() => verify(message.subarray(0, i)), `${i} bytes`).toThrow(/^signature-1: /);
    }
  });

  it('refuses changed content under an intact signature', () => {
    const message = gpg.sign('release', text, '--compress-algo', 'none');
    const at = message.indexOf('by gpg');
    message.write('by foe', at);
    expect(() => verify(message)).toThrow(
      /^signature-1: signature by key [0-9A-F]{16}: does not match the content$/,
    );
  });

  it('refuses a key that is not in the keyring, and names it', () => {
    const [other = ''] = gpg.fingerprints('other');
    expect(() => verify(gpg.sign('other', text))).toThrow(
      `signature-1: signed by untrusted key ${other.slice(-16)}`,
    );
  });

  it('takes one good signature of several', () => {
    const message = gpg.run(['--local-user', 'other', '--local-user', 'release', '--sign'], text);
    expect(verify(message)).toBe(text);
  });

  it.each([
    ['a detached signature', ['--detach-sign'], 'a detached signature, without signed content'],
    ['content without a signature', ['--store'], 'not signed'],
    ['a clear-signed text', ['--clear-sign'], 'expected an OpenPGP message, got "signature"'],
    ['BZip2', ['--compress-algo', 'bzip2', '--sign'], 'OpenPGP compression BZip2'],
    ['a SHA-1 signature', ['--digest-algo', 'SHA1', '--sign'], /weak hash SHA-1$/],
    [
      'a signature older than its key',
      [...faked('20200101T000000'), '--ignore-time-conflict', '--sign'],
      /created before its key$/,
    ],
    [
      'an encrypted message',
      ['--trust-model', 'always', '--recipient', 'reader', '--encrypt', '--sign'],
      'an encrypted OpenPGP message',
    ],
  ])('refuses %s', (_, args, problem) => {
    const message = gpg.run(['--local-user', 'release', ...args], text);
    expect(() => verify(message)).toThrow(problem instanceof RegExp ? problem : `signature-1: ${problem}`);
  });

  it.each([
    ['empty data', Buffer.alloc(0), 'empty OpenPGP message'],
    ['JSON', Buffer.from(text), 'not OpenPGP data'],
    ['an unfinished armor', Buffer.from('-----BEGIN PGP MESSAGE-----\n\nowEB'), 'truncated ASCII armor'],
  ])('refuses %s', (_, message, problem) => {
    expect(() => verify(message)).toThrow(`signature-1: ${problem}`);
  });

  it('refuses keys and signatures outside their time', () => {
    gpg.makeKey('short', { expires: '20210101T000000', at: '20200101T000000' });
    const keyring = parseKeyring(gpg.publicKey('short'), 'key');
    const at = faked('20200601T000000');
    const message = gpg.sign('short', text, ...at);
    const limited = gpg.sign('short', text, ...at, '--default-sig-expire', '1d');
    const during =
      (date: string, signed = message) =>
      () =>
        verifySignedMessage(signed, keyring, { subject, now: new Date(date) });
    expect(during('2020-07-01')().content.toString()).toBe(text);
    expect(during('2020-05-01')).toThrow(/created in the future, at 2020-06-01T00:00:00Z$/);
    expect(during('2021-02-01')).toThrow(/its key expired at 2021-01-01T/);
    expect(during('2020-06-01T12:00:00Z', limited)().content.toString()).toBe(text);
    expect(during('2020-06-03', limited)).toThrow(/expired at 2020-06-02T/);
  });

  it('refuses a revoked key and a revoked subkey', () => {
    const fingerprint = gpg.makeKey('revoked');
    const message = gpg.sign('revoked', text);
    expect(verify(message, parseKeyring(gpg.publicKey('revoked'), 'key'))).toBe(text);
    const file = path.join(gpg.home, 'openpgp-revocs.d', `${fingerprint}.rev`);
    gpg.run(['--import'], readFileSync(file, 'utf8').replace(':-----BEGIN', '-----BEGIN'));
    const keyring = parseKeyring(gpg.publicKey('revoked'), 'key');
    expect(() => verify(message, keyring)).toThrow(/unusable key: revoked$/);
    expect(gpg.accepts(message)).toBe(true); // gpg only warns
  });

  it('refuses keys that may not sign', () => {
    const primary = gpg.makeKey('certifier', { usage: 'sign' });
    gpg.run(['--quick-add-key', primary, 'cv25519', 'encr', 'never']);
    const keyring = parseKeyring(gpg.publicKey('certifier'), 'key');
    expect(keyring.keys.map(({ problem }) => problem)).toEqual([undefined, 'not a signing key']);
  });

  it('limits content before and after decompression', () => {
    const bomb = gpg.sign('release', Buffer.alloc(8 * 1024 * 1024), '--compress-algo', 'zlib');
    expect(bomb.length).toBeLessThan(100_000);
    expect(() => verify(bomb)).toThrow(/after decompression$/);
    expect(() => verify(Buffer.alloc(8 * 1024 * 1024))).toThrow(/more than 1048576 bytes$/);
    let nested = gpg.sign('release', text, '--compress-algo', 'none');
    for (let i = 0; i < 6; i++) nested = Buffer.concat([Buffer.from([0xa3, 1]), deflateRawSync(nested)]);
    expect(() => verify(nested)).toThrow(/more than 4 levels of OpenPGP compression$/);
  });

  it('refuses data behind a compressed message', () => {
    const message = gpg.sign('release', text, '--compress-algo', 'zip');
    expect(message[0]).toBe(0xa3); // no length: it ends with the file
    expect(() => verify(Buffer.concat([message, Buffer.from('more')]))).toThrow(
      /data after the end of OpenPGP compression$/,
    );
  });

  it('verifies signatures of version 3, which gpg no longer makes', () => {
    const { key, sign } = handMadeKey();
    const content = Buffer.from(text);
    const trailer = Buffer.from([0, 0x65, 0x53, 0xf1, 0x01]);
    const body = Buffer.concat([
      ...[Buffer.from([3, 5]), trailer, Buffer.from(key.id, 'hex'), Buffer.from([1, 8, 0, 0])],
      mpi(sign(Buffer.concat([content, trailer]))),
    ]);
    const message = Buffer.concat([
      packet(4, Buffer.from(`03000801${key.id}01`, 'hex')),
      packet(11, Buffer.concat([Buffer.from([0x62, 0, 0, 0, 0, 0]), content])),
      packet(2, body),
    ]);
    expect(verify(message, parseKeyring(key.ring, 'key'))).toBe(text);
    message.write('BY', message.indexOf('by'));
    expect(() => verify(message, parseKeyring(key.ring, 'key'))).toThrow(/does not match the content$/);
  });
});

describe('parseKeyring', () => {
  it('reads several keys, in one export and in several blocks of armor', () => {
    expect(parseKeyring(gpg.run(['--export', 'release', 'other']), 'keys').keys).toHaveLength(2);
    const blocks = Buffer.concat([gpg.publicKey('release', '--armor'), gpg.publicKey('other', '--armor')]);
    expect(parseKeyring(blocks, 'keys').keys).toHaveLength(2);
  });

  it('finds a key unusable whose self-signature is damaged or missing', () => {
    const bytes = Buffer.from(gpg.publicKey('release'));
    bytes[bytes.length - 5] = (bytes[bytes.length - 5] as number) ^ 1;
    const damaged = parseKeyring(bytes, 'key');
    expect(damaged.keys[0]?.problem).toBe('no valid self-signature');
    expect(() => verify(gpg.sign('release', text), damaged)).toThrow(/no valid self-signature$/);
  });

  it('finds short keys unusable', () => {
    gpg.makeKey('short-key', { algorithm: 'rsa1024' });
    expect(parseKeyring(gpg.publicKey('short-key'), 'key').keys[0]?.problem).toBe(
      'RSA key of 1024 bits, fewer than 2048',
    );
  });

  it.each([
    [
      'a private key',
      () => gpg.run(['--export-secret-keys', 'release']),
      'expected public keys, got a private key',
    ],
    [
      'an armored private key',
      () => gpg.run(['--armor', '--export-secret-keys', 'release']),
      'expected a public key block, got "private key block"',
    ],
    ['a keybox', () => readFileSync(path.join(gpg.home, 'pubring.kbx')), 'a GnuPG keybox'],
    ['a message', () => gpg.sign('release', text, '--armor'), 'expected a public key block, got "message"'],
    ['an empty file', () => Buffer.alloc(0), 'no public keys of OpenPGP version 4'],
    ['a PEM key', () => Buffer.from('-----BEGIN PUBLIC KEY-----\n'), 'not OpenPGP data'],
    ['armor with a changed letter', () => changedArmor(), /damaged ASCII armor/],
  ])('refuses %s', (_, bytes, problem) => {
    expect(() => parseKeyring(bytes(), 'keys.gpg')).toThrow(
      problem instanceof RegExp ? problem : `keys.gpg: ${problem}`,
    );
  });
});

function changedArmor(): Buffer {
  const armor = gpg.publicKey('release', '--armor').toString();
  return Buffer.from(armor.replace(/\n\n(.)/, (_, letter: string) => `\n\n${letter === 'm' ? 'n' : 'm'}x`));
}

/** A key of node:crypto as an OpenPGP key with a self-signature. */
function handMadeKey() {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const { n = '', e = '' } = publicKey.export({ format: 'jwk' }) as { n?: string; e?: string };
  const body = Buffer.concat([
    Buffer.from([4, 0x65, 0x53, 0xf1, 0x00, 1]),
    mpi(Buffer.from(n, 'base64url')),
    mpi(Buffer.from(e, 'base64url')),
  ]);
  const sign = (data: Buffer) => signBytes('sha256', data, privateKey);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(body.length);
  const hashedKey = Buffer.concat([Buffer.from([0x99]), length, body]);
  const user = Buffer.from('hand made');
  const hashedUser = Buffer.concat([Buffer.from([0xb4, 0, 0, 0, user.length]), user]);
  const id = gpgKeyId(hashedKey);
  const trailer = Buffer.from([0x13, 0x65, 0x53, 0xf1, 0x00]);
  const self = Buffer.concat([
    ...[Buffer.from([3, 5]), trailer, Buffer.from(id, 'hex'), Buffer.from([1, 8, 0, 0])],
    mpi(sign(Buffer.concat([hashedKey, hashedUser, trailer]))),
  ]);
  const ring = Buffer.concat([packet(6, body), packet(13, user), packet(2, self)]);
  return { key: { id, ring }, sign };
}

function gpgKeyId(hashed: Buffer): string {
  return createHash('sha1').update(hashed).digest('hex').slice(-16);
}

function mpi(value: Buffer): Buffer {
  const bits = Buffer.alloc(2);
  bits.writeUInt16BE((value.length - 1) * 8 + (value[0] as number).toString(2).length);
  return Buffer.concat([bits, value]);
}

function packet(type: number, body: Buffer): Buffer {
  const header = Buffer.from([0xc0 | type, 255, 0, 0, 0, 0]);
  header.writeUInt32BE(body.length, 2);
  return Buffer.concat([header, body]);
}
