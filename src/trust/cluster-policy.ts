import { OpmateError } from '../core/errors.js';
import { readObjects } from '../document/document.js';
import type { Field } from '../document/field.js';
import { combineErrors } from '../core/diagnostics-error.js';
import { maxScopes, type PolicyRequirement, type SignaturePolicy } from './policy.js';
import { readBase64 } from './policy-file.js';
import type { SignedIdentity } from './signed-identity.js';
import { parseVerificationKey } from './signing-key.js';
import type { SigstoreSigner } from './sigstore-types.js';

const kinds = ['ClusterImagePolicy', 'ImagePolicy'];

/**
 * Reads ClusterImagePolicy and ImagePolicy documents of OpenShift (config.openshift.io/v1). Images outside their
 * scopes are accepted, as in a cluster; policies for the same scope must all be satisfied.
 *
 * Throws OpmateError with all problems.
 */
export function parseClusterPolicies(text: string, file: string): SignaturePolicy {
  const { objects, diagnostics } = readObjects(text, file);
  diagnostics.throwIfErrors();
  const scopes = new Map<string, PolicyRequirement[]>();
  const errors: OpmateError[] = [];
  for (const { root, diagnostics: own } of objects) {
    readPolicy(root, scopes);
    try {
      own.throwIfErrors();
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      errors.push(error);
    }
  }
  if (errors.length > 0) throw combineErrors(errors);
  if (scopes.size === 0) {
    throw new OpmateError('INVALID', 'no policy', {
      about: file,
      hint: `specify a file with a ${kinds[0]}`,
    });
  }
  return {
    name: file,
    default: [{ type: 'insecureAcceptAnything' }],
    transports: new Map([['docker', scopes]]),
  };
}

function readPolicy(root: Field, scopes: Map<string, PolicyRequirement[]>): void {
  const { apiVersion, kind, spec } = root.object(['apiVersion', 'kind', 'spec'], { unknown: 'ignore' }) ?? {};
  apiVersion?.choice(['config.openshift.io/v1', 'config.openshift.io/v1alpha1']);
  kind?.choice(kinds);
  const fields = spec?.object(['scopes', 'policy']);
  const policy = fields?.policy.object(['rootOfTrust', 'signedIdentity']);
  if (fields === undefined || policy === undefined) return;
  const signer = readRootOfTrust(policy.rootOfTrust);
  const identity = readIdentity(policy.signedIdentity);
  if (signer === undefined) return;
  const requirement: PolicyRequirement = { type: 'sigstoreSigned', signer, identity };
  for (const field of fields.scopes.list(maxScopes) ?? []) {
    const scope = field.text();
    if (scope !== undefined) scopes.set(scope, [...(scopes.get(scope) ?? []), requirement]);
  }
}

function readRootOfTrust(field: Field): SigstoreSigner | undefined {
  const root = field.object(['policyType', 'publicKey', 'fulcioCAWithRekor']);
  const type = root?.policyType.choice(['PublicKey', 'FulcioCAWithRekor']);
  if (root === undefined || type === undefined) return undefined;
  if (type === 'PublicKey') {
    const key = root.publicKey.object(['keyData', 'rekorKeyData']);
    const publicKey = key?.keyData.parsed(parseKey, 1024 * 1024);
    const rekor = key?.rekorKeyData.optionalParsed(parseKey, 1024 * 1024);
    if (publicKey === undefined) return undefined;
    return { kind: 'key', keys: [publicKey], rekorKeys: rekor === undefined ? [] : [rekor] };
  }
  const fulcio = root.fulcioCAWithRekor.object(['fulcioCAData', 'rekorKeyData', 'fulcioSubject']);
  const subject = fulcio?.fulcioSubject.object(['oidcIssuer', 'signedEmail']);
  const certificates = fulcio?.fulcioCAData.parsed(
    (text) => readBase64(text).toString('latin1'),
    1024 * 1024,
  );
  const rekorKey = fulcio?.rekorKeyData.parsed(parseKey, 1024 * 1024);
  const [oidcIssuer, identity] = [subject?.oidcIssuer.text(), subject?.signedEmail.text()];
  if (certificates === undefined || rekorKey === undefined) return undefined;
  const trust = { kind: 'authorities' as const, certificates, rekorKeys: [rekorKey] };
  return { kind: 'certificate', trust, oidcIssuer, identity };
}

function parseKey(text: string) {
  return parseVerificationKey(readBase64(text));
}

const matchPolicies = {
  MatchRepoDigestOrExact: 'matchRepoDigestOrExact',
  MatchRepository: 'matchRepository',
  ExactRepository: 'exactRepository',
  RemapIdentity: 'remapIdentity',
} as const;

function readIdentity(field: Field): SignedIdentity {
  const otherwise: SignedIdentity = { type: 'matchRepoDigestOrExact' };
  const fields = field.optionalObject(['matchPolicy', 'exactRepository', 'remapIdentity']);
  const chosen = fields?.matchPolicy.choice(Object.keys(matchPolicies) as (keyof typeof matchPolicies)[]);
  if (fields === undefined || chosen === undefined) return otherwise;
  const type = matchPolicies[chosen];
  if (type === 'exactRepository') {
    const repository = fields.exactRepository.object(['repository'])?.repository.text();
    return { type, dockerRepository: repository ?? '' };
  }
  if (type === 'remapIdentity') {
    const remap = fields.remapIdentity.object(['prefix', 'signedPrefix']);
    return { type, prefix: remap?.prefix.text() ?? '', signedPrefix: remap?.signedPrefix.text() ?? '' };
  }
  return { type };
}
