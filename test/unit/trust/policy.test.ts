import { describe, expect, it } from 'vitest';
import { parseReference } from '../../../src/core/reference.js';
import { parseClusterPolicies } from '../../../src/trust/cluster-policy.js';
import { findRule } from '../../../src/trust/policy.js';
import { parsePolicyFile } from '../../../src/trust/policy-file.js';
import { type SignedIdentity, findIdentityProblem } from '../../../src/trust/signed-identity.js';
import { OpmateError } from '../../../src/core/errors.js';
import { pemPair } from '../../support/sigstore.js';

const { publicKey, privateKey } = pemPair();
const keyData = Buffer.from(publicKey).toString('base64');
const accept = [{ type: 'insecureAcceptAnything' }];
const reject = [{ type: 'reject' }];
const readFile = (file: string): Promise<Buffer> =>
  file === '/keys/own.pub'
    ? Promise.resolve(Buffer.from(publicKey))
    : Promise.reject(new OpmateError('NOT_FOUND', 'no such file', { subject: file }));
const parse = (policy: unknown) => parsePolicyFile(JSON.stringify(policy), 'policy.json', readFile);

describe('findRule', () => {
  const scopes = {
    '': accept,
    'quay.io': reject,
    'quay.io/ns': accept,
    'quay.io/ns/name': reject,
    'quay.io/ns/name:v1': accept,
    '*.example.com': reject,
    'registry.example.com:5000': accept,
  };
  it.each([
    ['quay.io/ns/name:v1', 'quay.io/ns/name:v1'],
    ['quay.io/ns/name:v2', 'quay.io/ns/name'],
    [`quay.io/ns/name@sha256:${'ab'.repeat(32)}`, 'quay.io/ns/name'],
    ['quay.io/ns/other:v1', 'quay.io/ns'],
    ['quay.io/nsx/other:v1', 'quay.io'],
    ['a.b.example.com/x:v1', '*.example.com'],
    ['registry.example.com:5000/x:v1', 'registry.example.com:5000'],
    ['registry.example.com:5001/x:v1', '*.example.com'],
    ['example.com/x:v1', 'docker'],
    ['oci:/tmp/layout:v1', 'default'],
  ])('applies to %s the rule of %s', async (image, scope) => {
    const policy = await parse({ default: reject, transports: { docker: scopes } });
    expect(findRule(policy, parseReference(image)).scope).toBe(scope);
  });

  it('applies scopes of paths to layouts', async () => {
    const policy = await parse({
      default: reject,
      transports: { oci: { '/srv': accept, '/srv/bad': reject } },
    });
    const scopeOf = (image: string) => findRule(policy, parseReference(image)).scope;
    expect([scopeOf('oci:/srv/a/b:v1'), scopeOf('oci:/srv/bad:v1'), scopeOf('oci:/x:v1')]).toEqual([
      '/srv',
      '/srv/bad',
      'default',
    ]);
  });
});

describe('parsePolicyFile', () => {
  it('reads keys from paths and data', async () => {
    const requirement = { type: 'sigstoreSigned', keyPath: '/keys/own.pub', rekorPublicKeyData: keyData };
    const policy = await parse({
      default: [requirement, { type: 'sigstoreSigned', keyDatas: [keyData, keyData] }],
    });
    expect(policy.default).toMatchObject([
      { identity: { type: 'matchRepoDigestOrExact' }, signer: { kind: 'key', keys: [{}], rekorKeys: [{}] } },
      { signer: { keys: [{}, {}], rekorKeys: [] } },
    ]);
  });

  it.each<[string, unknown, string]>([
    [
      'an unknown type',
      { default: [{ type: 'sigstoreSignedBaseLayer' }] },
      'default[0].type: unsupported value "sigstoreSignedBaseLayer"',
    ],
    [
      'an unknown field',
      { default: [{ type: 'reject', keyPath: '/x' }] },
      'default[0].keyPath: unknown field',
    ],
    ['nothing', null, 'policy.json:1:1: expected default: and its requirements'],
    ['no default', { transports: {} }, 'default: missing'],
    ['an empty rule', { default: [] }, 'default: expected at least one requirement, got none'],
    ['no key', { default: [{ type: 'sigstoreSigned' }] }, 'default[0].keyPath: missing'],
    [
      'two keys',
      { default: [{ type: 'sigstoreSigned', keyPath: '/keys/own.pub', keyData }] },
      'default[0].keyData: cannot be combined with keyPath',
    ],
    [
      'a missing file',
      { default: [{ type: 'sigstoreSigned', keyPath: '/keys/none' }] },
      'default[0].keyPath: /keys/none: no such file',
    ],
    [
      'data that is invalid base64',
      { default: [{ type: 'sigstoreSigned', keyData: '!' }] },
      'default[0].keyData: invalid base64',
    ],
    [
      'an OpenPGP rule with a PEM key',
      { default: [{ type: 'signedBy', keyType: 'GPGKeys', keyData }] },
      'default[0].keyData: not OpenPGP data',
    ],
    [
      'X.509 keys',
      { default: [{ type: 'signedBy', keyType: 'X509Certificates', keyData }] },
      'default[0].keyType: expected GPGKeys, got "X509Certificates"',
    ],
    [
      'no key in a list',
      { default: [{ type: 'sigstoreSigned', keyPaths: [] }] },
      'default[0].keyPaths: expected at least one key, got none',
    ],
    ['PKI', { default: [{ type: 'sigstoreSigned', pki: {} }] }, 'default[0].pki: unknown field'],
    [
      'Fulcio without a log',
      {
        default: [
          { type: 'sigstoreSigned', fulcio: { caData: keyData, oidcIssuer: 'x', subjectEmail: 'y' } },
        ],
      },
      'default[0].rekorPublicKeyPath: missing',
    ],
    [
      'an unknown identity',
      { default: [{ type: 'sigstoreSigned', keyData, signedIdentity: { type: 'matchAny' } }] },
      'default[0].signedIdentity.type: unsupported value "matchAny"',
    ],
    [
      'an incomplete identity',
      {
        default: [
          { type: 'sigstoreSigned', keyData, signedIdentity: { type: 'remapIdentity', prefix: 'a' } },
        ],
      },
      'default[0].signedIdentity.signedPrefix: missing',
    ],
  ])('refuses %s', async (_, policy, problem) => {
    await expect(parse(policy)).rejects.toThrow(problem);
  });

  it('reports syntax errors in terms of JSON, at their line', async () => {
    await expect(parsePolicyFile('{\n"default": []\n"x"\n}\n', 'p.json', readFile)).rejects.toThrow(
      /^p\.json:3: invalid JSON: /,
    );
  });

  it('refuses a private key as a public one only where PEM says so', async () => {
    // Of a private key the public half is taken, as for --verify-key.
    const policy = await parse({
      default: [{ type: 'sigstoreSigned', keyData: Buffer.from(privateKey).toString('base64') }],
    });
    expect(policy.default).toHaveLength(1);
  });
});

describe('parseClusterPolicies', () => {
  const policyOf = (kind: string, scopes: string[], policy: unknown): string =>
    JSON.stringify({
      apiVersion: 'config.openshift.io/v1',
      kind,
      metadata: { name: 'p' },
      spec: { scopes, policy },
    });
  const rootOfTrust = { policyType: 'PublicKey', publicKey: { keyData } };

  it('reads several documents and accepts what is outside their scopes', () => {
    const text = [
      policyOf('ClusterImagePolicy', ['quay.io/a', 'quay.io/b'], { rootOfTrust }),
      policyOf('ImagePolicy', ['quay.io/b'], {
        rootOfTrust,
        signedIdentity: { matchPolicy: 'RemapIdentity', remapIdentity: { prefix: 'm', signedPrefix: 'q' } },
      }),
    ].join('\n---\n');
    const policy = parseClusterPolicies(text, 'policies.yaml');
    const typesOf = (image: string) =>
      findRule(policy, parseReference(image)).requirements.map((one) =>
        one.type === 'sigstoreSigned' ? one.identity?.type : one.type,
      );
    expect(typesOf('quay.io/a/x:v1')).toEqual(['matchRepoDigestOrExact']);
    expect(typesOf('quay.io/b/x:v1')).toEqual(['matchRepoDigestOrExact', 'remapIdentity']);
    expect(typesOf('docker.io/b/x:v1')).toEqual(['insecureAcceptAnything']);
  });

  it.each<[string, string, RegExp]>([
    ['another kind', policyOf('ConfigMap', ['a.io'], { rootOfTrust }), /kind: unsupported value "ConfigMap"/],
    [
      'an unknown policy type',
      policyOf('ImagePolicy', ['a.io'], { rootOfTrust: { policyType: 'PKI' } }),
      /policyType: unsupported value "PKI"/,
    ],
    [
      'no key',
      policyOf('ImagePolicy', ['a.io'], { rootOfTrust: { policyType: 'PublicKey' } }),
      /publicKey: missing/,
    ],
    [
      'a key that is none',
      policyOf('ImagePolicy', ['a.io'], {
        rootOfTrust: { policyType: 'PublicKey', publicKey: { keyData: 'AAAA' } },
      }),
      /publicKey\.keyData: not a public key in PEM/,
    ],
    ['no document', '', /no policy/],
  ])('refuses %s', (_, text, problem) => {
    expect(() => parseClusterPolicies(text, 'policies.yaml')).toThrow(problem);
  });
});

describe('identityProblem', () => {
  const digest = `sha256:${'ab'.repeat(32)}`;
  const exact: SignedIdentity = { type: 'matchExact' };
  const standard: SignedIdentity = { type: 'matchRepoDigestOrExact' };
  const repository: SignedIdentity = { type: 'matchRepository' };
  const remap: SignedIdentity = { type: 'remapIdentity', prefix: 'mirror.io/q', signedPrefix: 'quay.io' };
  it.each<[SignedIdentity, string, string, boolean]>([
    [exact, 'quay.io/a/b:v1', 'quay.io/a/b:v1', true],
    [exact, 'quay.io/a/b:v1', 'quay.io/a/b:v2', false],
    [exact, `quay.io/a/b@${digest}`, 'quay.io/a/b:v1', false],
    [standard, `quay.io/a/b@${digest}`, 'quay.io/a/b:v1', true],
    [standard, 'quay.io/a/b:v1', 'quay.io/a/b', false],
    [standard, `quay.io/a/c@${digest}`, 'quay.io/a/b:v1', false],
    [repository, 'quay.io/a/b:v1', 'quay.io/a/b', true],
    [repository, 'quay.io/a/b:v1', 'quay.io/a', false],
    [remap, 'mirror.io/q/a/b:v1', 'quay.io/a/b:v1', true],
    [remap, 'mirror.io/qq/a/b:v1', 'quay.io/a/b:v1', false],
    [remap, 'quay.io/a/b:v1', 'quay.io/a/b:v1', true],
    [{ type: 'exactReference', dockerReference: 'quay.io/x:v1' }, 'other.io/y:v2', 'quay.io/x:v1', true],
    [{ type: 'exactReference', dockerReference: 'quay.io/x:v1' }, 'quay.io/x:v2', 'quay.io/x:v2', false],
    [{ type: 'exactRepository', dockerRepository: 'quay.io/x' }, 'other.io/y:v2', 'quay.io/x:v7', true],
    [{ type: 'exactRepository', dockerRepository: 'quay.io/x' }, 'quay.io/y:v2', 'quay.io/y:v2', false],
  ])('%j: %s signed as %s is %s', (identity, image, signed, isFine) => {
    expect(findIdentityProblem(identity, parseReference(image), signed) === undefined).toBe(isFine);
  });

  it('refuses signatures that state no reference', () => {
    expect(findIdentityProblem(repository, parseReference('quay.io/a/b:v1'), undefined)).toBe(
      'no reference in the signature',
    );
    expect(findIdentityProblem(repository, parseReference('quay.io/a/b:v1'), '!')).toBe(
      'no reference in the signature, but "!"',
    );
  });
});
