// Answers which ClusterObjectSet operator-controller writes for a bundle and a ClusterExtension, and its Secrets.
import path from 'node:path';
import { createClusterObjectSet } from '../../../dist/api/deployment/create-object-set.js';
import { validateOlmObject } from '../../../dist/api/deployment/validate-object.js';
import { openSession } from '../../../dist/index.js';

const bundles = process.env.BUNDLES ?? '.';
const providers = { 'cert-manager': 'cert-manager', 'openshift-service-ca': 'service-ca', none: 'none' };
const session = await openSession();

export async function answer({
  id,
  bundle,
  extension,
  resolved,
  certProvider,
  gates,
  systemNamespace,
  pack,
}) {
  const options = { extension, bundle: resolved, provider: providers[certProvider], gates };
  const reference = path.resolve(bundles, bundle);
  const { set, refusal, findings } = await createClusterObjectSet(reference, session, options);
  if (set === undefined) {
    const error =
      refusal?.message ?? findings.map(({ subject, problem }) => `${subject}: ${problem}`).join('\n');
    return { id, error, ...(refusal?.reason && { terminal: true, reason: refusal.reason }) };
  }
  const packed =
    pack && (await createClusterObjectSet(reference, session, { ...options, pack: systemNamespace }));
  const refused = validateOlmObject(set).causes.filter(({ field }) => field !== '<nil>');
  return {
    id,
    cos: set,
    ...(packed && { packed: describe(packed) }),
    ...(refused.length > 0 && { refused: refused.map(({ field, message }) => [field, message]) }),
  };
}

function describe({ set, secrets }) {
  return {
    secrets: secrets.map(({ metadata: { name, namespace, labels }, immutable, type, data }) => ({
      name,
      namespace,
      labels,
      immutable,
      type,
      keys: Object.keys(data).length,
      bytes: Object.values(data).reduce((sum, value) => sum + Buffer.from(value, 'base64').length, 0),
    })),
    refs: set.spec.phases.flatMap(({ objects }, phase) =>
      objects.map(({ ref }, object) => [phase, object, ref.name, ref.key]),
    ),
  };
}
