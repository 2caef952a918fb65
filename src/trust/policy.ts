import type { Reference } from '../core/reference.js';
import type { OpenPgpKeyring } from './openpgp-keyring.js';
import type { SignedIdentity } from './signed-identity.js';
import type { SigstoreSigner } from './sigstore-types.js';

/** One demand on an image; all of a scope must be met. */
export type PolicyRequirement =
  | { type: 'insecureAcceptAnything' }
  | { type: 'reject' }
  | { type: 'signedBy'; keyrings: readonly OpenPgpKeyring[]; identity: SignedIdentity }
  | {
      type: 'sigstoreSigned';
      signer: SigstoreSigner;
      /** Undefined: the reference in the signature is not looked at, as `cosign verify` has it. */
      identity: SignedIdentity | undefined;
    };

/** Rules that say which images may be used, by the place that they come from. */
export interface SignaturePolicy {
  /** File, or flag, for messages. */
  name: string;
  default: readonly PolicyRequirement[];
  /** By transport and scope; scope `""` is the default of the transport. */
  transports: ReadonlyMap<string, ReadonlyMap<string, readonly PolicyRequirement[]>>;
}

/** The rule for an image, and the scope that led to it. */
export interface PolicyRule {
  scope: string;
  requirements: readonly PolicyRequirement[];
}

/** Returns the rule of the most specific scope that an image lies in. */
export function findRule(policy: SignaturePolicy, reference: Reference): PolicyRule {
  const scopes = policy.transports.get(reference.transport);
  for (const scope of [...getScopes(reference), '']) {
    const requirements = scopes?.get(scope);
    if (requirements !== undefined) return { scope: scope || reference.transport, requirements };
  }
  return { scope: 'default', requirements: policy.default };
}

/** Scopes from the reference outwards (containers-policy.json(5), "Supported transports and their scopes"). */
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

/** A policy that demands a signature of this signer of every image. */
export function signerPolicy(name: string, signer: SigstoreSigner): SignaturePolicy {
  return { name, default: [{ type: 'sigstoreSigned', signer, identity: undefined }], transports: new Map() };
}
