import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { checkTrustedRoot } from '../../../src/trust/sigstore-verifier.js';
import { verifySigstoreSignature } from '../../../src/trust/sigstore-signature.js';
import type { SigstoreSignature, SigstoreSigner } from '../../../src/trust/sigstore-types.js';
import { type IssuedCertificate, SigstoreWorld, pemPair } from '../../support/sigstore.js';

const world = new SigstoreWorld();
const foreign = new SigstoreWorld();
afterAll(() => {
  world.close();
  foreign.close();
});
const digest = `sha256:${'ab'.repeat(32)}`;
const issuer = 'https://accounts.example.com';
const email = 'release@example.com';
const own = pemPair();
const ownKey = createPrivateKey(own.privateKey);
const leaf = world.issue('leaf', `email:${email}`, issuer);

function payloadOf(of = digest): Buffer {
  const critical = {
    identity: { 'docker-reference': 'quay.io/demo/bundle' },
    image: { 'docker-manifest-digest': of },
    type: 'cosign container image signature',
  };
  return Buffer.from(JSON.stringify({ critical, optional: null }));
}

type Simple = Extract<SigstoreSignature, { kind: 'simple' }>;

function byKey(payload = payloadOf()): Simple {
  return { kind: 'simple', payload, signature: sign('sha256', payload, ownKey).toString('base64') };
}

function byCertificate({ key, pem }: IssuedCertificate = leaf, options: { at?: number } = {}): Simple {
  const payload = payloadOf();
  const signature = sign('sha256', payload, key).toString('base64');
  const logEntry = world.logEntry(payload, signature, pem, options);
  return {
    kind: 'simple',
    payload,
    signature,
    certificate: pem,
    chain: world.intermediate.pem + world.root.pem,
    logEntry,
  };
}

function bundleBy(
  { key, pem }: IssuedCertificate | { key: typeof ownKey; pem: undefined },
  of = digest,
): SigstoreSignature {
  const statement = Buffer.from(
    JSON.stringify({
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ digest: { sha256: of.slice(7) } }],
      predicateType: 'https://sigstore.dev/cosign/sign/v1',
      predicate: {},
    }),
  );
  const payloadType = 'application/vnd.in-toto+json';
  const encoded = Buffer.concat([
    Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${statement.length} `),
    statement,
  ]);
  const bundle = {
    mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
    verificationMaterial: {
      ...(pem === undefined
        ? { publicKey: { hint: 'x' } }
        : { certificate: { rawBytes: pem.replace(/-----[^-]+-----|\s/g, '') } }),
      tlogEntries: [],
    },
    dsseEnvelope: {
      ...{ payload: statement.toString('base64'), payloadType },
      signatures: [{ sig: sign('sha256', encoded, key).toString('base64') }],
    },
  };
  return { kind: 'bundle', bundle: Buffer.from(JSON.stringify(bundle)) };
}

const keySigner: SigstoreSigner = { kind: 'key', keys: [createPublicKey(ownKey)], rekorKeys: [] };
const loggedSigner: SigstoreSigner = { ...keySigner, rekorKeys: [world.log.publicKey] };
const rootSigner: SigstoreSigner = {
  ...{ kind: 'certificate', identity: email, oidcIssuer: issuer },
  trust: { kind: 'trusted-root', json: world.trustedRoot() },
};
const authoritySigner: SigstoreSigner = {
  ...{ kind: 'certificate', identity: email, oidcIssuer: issuer },
  trust: { kind: 'authorities', certificates: world.root.pem, rekorKeys: [world.log.publicKey] },
};

const verify = (signature: SigstoreSignature, signer: SigstoreSigner) =>
  verifySigstoreSignature(signature, signer, { digest, subject: 'signature 1' });

describe('verifySigstoreSignature by key', () => {
  it('returns what the document and the bundle say', async () => {
    const reference = 'quay.io/demo/bundle';
    expect(await verify(byKey(), keySigner)).toEqual({ digest, reference, signer: 'key' });
    expect(await verify(bundleBy({ key: ownKey, pem: undefined }), keySigner)).toEqual({
      ...{ digest, reference: undefined, signer: 'key' },
    });
  });

  it('accepts one of several keys', async () => {
    const several = { ...keySigner, keys: [createPublicKey(pemPair().publicKey), createPublicKey(ownKey)] };
    expect((await verify(byKey(), several)).digest).toBe(digest);
    expect((await verify(bundleBy({ key: ownKey, pem: undefined }), several)).digest).toBe(digest);
  });

  it.each<[string, () => SigstoreSignature]>([
    ['a changed document', () => ({ ...byKey(), payload: payloadOf(`sha256:${'cd'.repeat(32)}`) })],
    ['another key', () => byCertificate()],
    ['a truncated signature', () => ({ ...byKey(), signature: byKey().signature.slice(0, 40) })],
    ['an empty signature', () => ({ ...byKey(), signature: '' })],
    ['a bundle of another key', () => bundleBy(leaf)],
    ['a damaged bundle', () => ({ kind: 'bundle', bundle: Buffer.from('{') })],
  ])('refuses %s', async (_, make) => {
    await expect(verify(make(), keySigner)).rejects.toThrow(/^signature 1: /);
  });

  it('refuses a signature of another image, in both forms', async () => {
    const other = `sha256:${'cd'.repeat(32)}`;
    for (const signature of [byKey(payloadOf(other)), bundleBy({ key: ownKey, pem: undefined }, other)]) {
      await expect(verify(signature, keySigner)).rejects.toMatchObject({ code: 'DIGEST' });
    }
  });

  it('requires an entry of the log where a log is named', async () => {
    const plain = byKey();
    await expect(verify(plain, loggedSigner)).rejects.toThrow(/no transparency log entry$/);
    const entry = world.logEntry(plain.payload, plain.signature, own.publicKey);
    expect((await verify({ ...plain, logEntry: entry }, loggedSigner)).signer).toBe('key');
    const forged = world.logEntry(plain.payload, plain.signature, own.publicKey, { log: foreign.log });
    await expect(verify({ ...plain, logEntry: forged }, loggedSigner)).rejects.toThrow(/^signature 1: /);
    const ofOther = world.logEntry(payloadOf(`sha256:${'cd'.repeat(32)}`), plain.signature, own.publicKey);
    await expect(verify({ ...plain, logEntry: ofOther }, loggedSigner)).rejects.toThrow(/^signature 1: /);
  });
});

describe.each([
  ['trusted root', rootSigner],
  ['authorities', authoritySigner],
])('verifySigstoreSignature by certificate, with %s', (_, signer) => {
  it('returns the identity', async () => {
    expect(await verify(byCertificate(), signer)).toMatchObject({ digest, signer: email });
  });

  it.each<[string, Partial<SigstoreSigner>, RegExp]>([
    [
      'another identity',
      { identity: 'other@example.com' },
      /signed by "release@example.com", expected "other@example.com"$/,
    ],
    ['part of the identity', { identity: 'release' }, /expected "release"$/],
    [
      'another issuer',
      { oidcIssuer: 'https://evil.example' },
      /identity issued by "https:\/\/accounts.example.com"/,
    ],
    ['no match', { identity: /^.*@example\.org$/ }, /expected a match of/],
  ])('refuses %s', async (_name, change, problem) => {
    await expect(verify(byCertificate(), { ...signer, ...change } as SigstoreSigner)).rejects.toThrow(
      problem,
    );
  });

  it.each<[string, () => SigstoreSignature]>([
    ['a signature by key', () => byKey()],
    ['no log entry', () => ({ ...byCertificate(), logEntry: undefined })],
    [
      'a certificate that had expired',
      () => byCertificate(leaf, { at: Math.floor(Date.now() / 1000) + 86_400 * 30 }),
    ],
    ['a changed document', () => ({ ...byCertificate(), payload: payloadOf(`sha256:${'cd'.repeat(32)}`) })],
    [
      'a certificate of another authority',
      () => byCertificate(foreign.issue('leaf', `email:${email}`, issuer)),
    ],

    [
      'another certificate',
      () => ({ ...byCertificate(), certificate: world.issue('b', `email:${email}`, issuer).pem }),
    ],
    ['a damaged log entry', () => ({ ...byCertificate(), logEntry: '{"Payload"' })],
    [
      'a damaged certificate',
      () => ({
        ...byCertificate(),
        certificate: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      }),
    ],
    ['a bundle without log entry', () => bundleBy(leaf)],
    [
      'a certificate below another one that is no authority',
      () => byCertificate(world.issue('under', `email:${email}`, issuer, { by: 'leaf' })),
    ],
  ])('refuses %s', async (_name, make) => {
    await expect(verify(make(), signer)).rejects.toThrow(/^signature 1: /);
  });
});

it('refuses certificates that state two issuers', async () => {
  const double = world.issue('double', `email:${email}`, issuer, { first: 'https://evil.example' });
  await expect(verify(byCertificate(double), authoritySigner)).rejects.toThrow(
    /two different identity issuers in the certificate$/,
  );
});

it('refuses certificates that are not for code signing', async () => {
  const server = world.issue('server', `email:${email}`, issuer, { usage: 'serverAuth' });
  await expect(verify(byCertificate(server), authoritySigner)).rejects.toThrow(
    /certificate not for code signing$/,
  );
});

describe('a trusted root', () => {
  it.each([
    ['{\n  "a": [', /^root\.json:\d+: /, 'SYNTAX'],
    [
      '{"mediaType": 1, "certificateAuthorities": [1]}',
      /^root\.json:1:\d+: mediaType: expected a string, got the number 1/,
      'INVALID',
    ],
    ['{}', /^root\.json:1:1: certificateAuthorities: missing/, 'INVALID'],
  ])('is refused with its file: %s', (text, message, code) => {
    expect(() => checkTrustedRoot(text, 'root.json')).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message) as string }) as Error,
    );
  });

  const change = (edit: (root: Record<string, unknown>) => void): string => {
    const root = JSON.parse(world.trustedRoot()) as Record<string, unknown>;
    edit(root);
    return JSON.stringify(root, undefined, 2);
  };

  it('with a misspelled list of logs is refused, as logs would no longer be required', () => {
    const text = change((root) => {
      root['tlog'] = root['tlogs'];
      delete root['tlogs'];
    });
    expect(() => checkTrustedRoot(text, 'root.json')).toThrow(/^root\.json:\d+:3: tlog: unknown field$/);
  });

  it.each<[string, unknown, RegExp]>([
    ['mediaType', 'application/json', /mediaType: expected the media type of a trusted_root\.json/],
    ['tlogs', {}, /tlogs: expected a list, got an object$/],
    ['certificateAuthorities', [], /certificateAuthorities: no certificate authorities$/],
  ])('with another %s is refused', (key, value, message) => {
    expect(() =>
      checkTrustedRoot(
        change((root) => (root[key] = value)),
        'root.json',
      ),
    ).toThrow(message);
  });

  it('of a later version is accepted with unknown fields', () => {
    const text = change((root) => {
      root['mediaType'] = 'application/vnd.dev.sigstore.trustedroot.v0.2+json';
      root['somethingElse'] = [];
    });
    expect(() => checkTrustedRoot(text, 'root.json')).not.toThrow();
  });
});
