// Answers what OLM v1 does with ClusterObjectSets and their objects on a cluster, step by step.
import { createObjectSetSimulation } from '../../../dist/solve/object-sets/simulation.js';

/** Returns the present fields of a record. */
const present = (record) =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined && value !== null));

const conditionsOf = ({ status }) =>
  (status?.conditions ?? []).map(({ type, status: value, reason, message }) => [
    type,
    value,
    reason,
    message,
  ]);

const describeSet = (set) => ({
  name: set.metadata.name,
  lifecycleState: set.spec.lifecycleState,
  finalizers: set.metadata.finalizers ?? [],
  conditions: conditionsOf(set),
  observedPhases: (set.status?.observedPhases ?? []).map(({ name }) => name),
});

const describeExtension = (extension) => ({
  name: extension.metadata.name,
  finalizers: extension.metadata.finalizers,
  conditions: conditionsOf(extension),
  install: extension.status?.install ?? null,
  activeRevisions: (extension.status?.activeRevisions ?? []).map(({ name, conditions }) => [
    name,
    conditions,
  ]),
});

const describeObject = ({ kind, metadata, data }) =>
  present({
    kind,
    name: metadata.name,
    namespace: metadata.namespace,
    labels: metadata.labels,
    annotations: metadata.annotations,
    owners: metadata.ownerReferences?.map((owner) => [
      owner.kind,
      owner.name,
      owner.controller ?? null,
      owner.blockOwnerDeletion ?? null,
    ]),
    data: kind === 'ConfigMap' ? data : undefined,
  });

/** Kinds that observations do not list. */
const unlisted = ['ClusterObjectSet', 'ClusterExtension', 'ClusterCatalog', 'Secret'];
const byName = (a, b) => (a.name < b.name ? -1 : 1);
const byKind = (a, b) => {
  const [left, right] = [a, b].map(({ kind, namespace = '', name }) =>
    JSON.stringify([kind, namespace, name]),
  );
  return left < right ? -1 : 1;
};

/** Names that stand for those of a scenario, which the API server would refuse. */
const placeholders = { NS: 'scenario-namespace', SLUG: 'scenario-slug' };

function replaceNames(value, names) {
  let text = JSON.stringify(value);
  for (const [from, to] of names) text = text.replaceAll(new RegExp(`\\b${from}\\b`, 'g'), to);
  return JSON.parse(text);
}

export function answerWith({ id, steps: recorded }, hasExtensions) {
  const names = Object.entries(placeholders);
  const steps = replaceNames(recorded, names);
  const simulate = createObjectSetSimulation([placeholders.NS, 'default', 'kube-system']);
  let state = { objects: [] };
  const observations = [];
  for (const { do: action, doc, kind, name, namespace, body, status, seconds } of steps) {
    if (action === 'observe') {
      const ofKind = (wanted) => state.objects.filter((object) => object.kind === wanted);
      observations.push({
        ...(hasExtensions && {
          clusterExtensions: ofKind('ClusterExtension').map(describeExtension).sort(byName),
        }),
        clusterObjectSets: ofKind('ClusterObjectSet').map(describeSet).sort(byName),
        objects: state.objects
          .filter((object) => !unlisted.includes(object.kind))
          .map(describeObject)
          .sort(byKind),
      });
      continue;
    }
    const target = { kind, name, namespace: namespace ?? '' };
    state = simulate({
      do: action,
      ...{ object: doc, id: target, patch: body, status, seconds },
    });
    if (state.refusal !== undefined) observations.push({ refused: state.refusal });
  }
  const back = names.map(([from, to]) => [to, from]);
  return { id, observations: replaceNames(observations, back) };
}

export const answer = (question) => answerWith(question, false);
