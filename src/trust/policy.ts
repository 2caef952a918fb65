import type { Reference } from '../core/reference.js';
import type { OpenPgpKeyring } from './openpgp-keyring.js';
import type { SignedIdentity } from './signed-identity.js';
import type { SigstoreSigner } from './sigstore-types.js';

/** A requirement for an image; all requirements of a scope must be satisfied. */
export type PolicyRequirement =
  | { type: 'insecureAcceptAnything' }
  | { type: 'reject' }
  | { type: 'signedBy'; keyrings: readonly OpenPgpKeyring[]; identity: SignedIdentity }
  | {
      type: 'sigstoreSigned';
      signer: SigstoreSigner;
      /** Identity of the signature; undefined: unchecked, as in `cosign verify`. */
      identity: SignedIdentity | undefined;
    };

/** Rules for the use of images, by origin. */
export interface SignaturePolicy {
  /** File or flag, for messages. */
  name: string;
  default: readonly PolicyRequirement[];
  /** Requirements by transport and scope; scope `""` is the default of the transport. */
  transports: ReadonlyMap<string, ReadonlyMap<string, readonly PolicyRequirement[]>>;
}

/** Maximum scopes of a policy or of the stores of its signatures: each image is compared with all of them. */
export const maxScopes = 10_000;

/** Rule for an image with its matching scope. */
export interface SignatureRule {
  scope: string;
  requirements: readonly PolicyRequirement[];
}

/** Returns the rule of the most specific scope of an image. */
export function findRule(policy: SignaturePolicy, reference: Reference): SignatureRule {
  const scopes = policy.transports.get(reference.transport);
  for (const scope of [...getScopes(reference), '']) {
    const requirements = scopes?.get(scope);
    if (requirements !== undefined) return { scope: scope || reference.transport, requirements };
  }
  return { scope: 'default', requirements: policy.default };
}

/**
 * Returns the scopes of a reference, innermost first (containers-policy.json(5), "Supported transports and their
 * scopes").
 */
function getScopes(reference: Reference): string[] {
  if (reference.transport !== 'docker') return pathScopes(reference.path, reference.tag);
  const { registry, repository, tag, digest } = reference;
  const full = `${registry}/${repository}`;
  const scopes = [digest !== undefined ? `${full}@${digest}` : `${full}:${tag ?? 'latest'}`];
  for (let name = full; name !== ''; name = name.slice(0, Math.max(0, name.lastIndexOf('/'))))
    scopes.push(name);
  const host = registry.replace(/:\d+$/, '');
  for (let position = host.indexOf('.'); position >= 0; position = host.indexOf('.', position + 1))
    scopes.push(`*.${host.slice(position + 1)}`);
  return scopes;
}

function pathScopes(path: string, tag: string | undefined): string[] {
  const scopes = tag === undefined ? [path] : [`${path}:${tag}`, path];
  for (let position = path.lastIndexOf('/'); position > 0; position = path.lastIndexOf('/', position - 1))
    scopes.push(path.slice(0, position));
  return scopes;
}

/** Returns a policy that requires a signature by this signer for every image. */
export function signerPolicy(name: string, signer: SigstoreSigner): SignaturePolicy {
  return { name, default: [{ type: 'sigstoreSigned', signer, identity: undefined }], transports: new Map() };
}
