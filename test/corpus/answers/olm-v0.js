import path from 'node:path';
import { toSnapshot } from '../../../dist/cluster/snapshot.js';
import { openSession, predictCluster } from '../../../dist/index.js';

const session = await openSession();

/** Predicts what OLM v0 does in a namespace, round by round. */
export async function answer({ id, namespace, globalNamespace, objects, catalogs }) {
  const contents = new Map();
  for (const [name, content] of Object.entries(catalogs)) {
    const references = content?.dirs?.map((directory) => path.join(process.env.PLAN_ROOT ?? '.', directory));
    contents.set(name, content === null ? null : references ? { references } : { blobs: content.fbc });
  }
  const request = {
    snapshot: toSnapshot(objects),
    catalogs: contents,
    namespaces: [namespace],
    globalNamespace,
  };
  const { namespaces } = await predictCluster(request, session);
  const [prediction] = namespaces;
  const { rounds, end, message, conflict } = prediction;
  return { id, rounds, end, message, constraints: conflict.map(({ text }) => text) };
}
