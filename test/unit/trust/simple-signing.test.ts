import { describe, expect, it } from 'vitest';
import { checkReleaseSignature } from '../../../src/trust/simple-signing.js';

const digest = `sha256:${'ab'.repeat(32)}`;
const reference = 'quay.io/openshift-release-dev/ocp-release:4.16.0-x86_64';
const subject = 'signature-1';

function signed(
  critical: object = {},
  rest: object = { optional: { creator: 'someone', timestamp: 1700000000 } },
) {
  return Buffer.from(
    JSON.stringify({
      critical: {
        type: 'atomic container signature',
        image: { 'docker-manifest-digest': digest },
        identity: { 'docker-reference': reference },
        ...critical,
      },
      ...rest,
    }),
  );
}

describe('checkReleaseSignature', () => {
  it('returns the digest and the reference of the release', () => {
    const type = 'atomic container signature';
    expect(checkReleaseSignature(signed(), digest, subject)).toEqual({
      type,
      digest,
      reference,
      timestamp: 1700000000,
    });
    expect(checkReleaseSignature(signed({}, {}), digest, subject).timestamp).toBeUndefined();
  });

  it.each([
    [
      'the digest of another image',
      signed(),
      `sha256:${'cd'.repeat(32)}`,
      /^signature-1: signature of another image: expected sha256:cd/,
    ],
    [
      'another type',
      signed({ type: 'cosign container image signature' }),
      digest,
      /expected type "atomic container signature", got "cosign container image signature"$/,
    ],
    [
      'a digest that is none',
      signed({ image: { 'docker-manifest-digest': 'latest' } }),
      digest,
      /^signature-1: critical\.image\.docker-manifest-digest: expected a digest, got "latest"$/,
    ],
    ['no digest', signed({ image: {} }), digest, /docker-manifest-digest: missing$/],
    ['no identity', signed({ identity: undefined }), digest, /critical\.identity: missing$/],
    [
      'unknown demands of the signer',
      signed({ condition: 'weekdays' }),
      digest,
      /critical\.condition: unknown field$/,
    ],
    [
      'text that is not JSON',
      Buffer.from('{"critical"'),
      digest,
      'signature-1: the signed content is not JSON',
    ],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), digest, /^signature-1: /],
  ])('refuses %s', (_, content, expected, problem) => {
    expect(() => checkReleaseSignature(content, expected, subject)).toThrow(problem);
  });
});
