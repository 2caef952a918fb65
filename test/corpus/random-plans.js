// Compares the alternatives of predictions with the plans that the real resolver of OLM v0 gave in different runs.
import { createReadStream, existsSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { toSnapshot } from '../../dist/cluster/snapshot.js';
import { openSession, predictCluster } from '../../dist/index.js';

/** Checks that the first round of each prediction lists all recorded plans of a case, and no others. */
export async function compareRandomPlans(corpus, report) {
  const directory = path.join(corpus, 'olm-v0');
  if (!existsSync(path.join(directory, 'answers.jsonl'))) return;
  const recorded = new Map();
  for await (const { id, randomPlan, variants } of readLines(path.join(directory, 'answers.jsonl')))
    recorded.set(id, {
      randomPlan,
      plans: new Set(variants.map(({ rounds }) => describe(rounds[0].installs))),
    });
  const session = await openSession();
  for await (const recordedCase of readLines(path.join(directory, 'cases.jsonl'))) {
    const { id, namespace, globalNamespace, objects, catalogs } = recordedCase;
    const { randomPlan, plans } = recorded.get(id);
    const contents = new Map(
      Object.entries(catalogs).map(([name, content]) => [name, toContent(content, corpus)]),
    );
    const request = {
      snapshot: toSnapshot(objects),
      catalogs: contents,
      namespaces: [namespace],
      globalNamespace,
    };
    const { namespaces } = await predictCluster(request, session);
    const [{ rounds, alternatives }] = namespaces;
    const predicted = new Set([
      describe(rounds[0].installs),
      ...alternatives.map((names) => describe(names.map((name) => ({ name })))),
    ]);
    const isListed = [...plans].every((plan) => predicted.has(plan));
    const isCertain = randomPlan || predicted.size === 1;
    const difference = `predicted ${[...predicted].join(' or ')}, recorded ${[...plans].join(' or ')}`;
    report.check(`olm-v0/alternatives/${id}`, isListed && isCertain ? undefined : difference);
  }
}

async function* readLines(file) {
  const lines = createInterface({ input: createReadStream(file), crlfDelay: Infinity });
  for await (const line of lines) if (line !== '') yield JSON.parse(line);
}

function toContent(content, corpus) {
  if (content === null) return null;
  if (content.dirs === undefined) return { blobs: content.fbc };
  return { references: content.dirs.map((directory) => path.join(corpus, directory)) };
}

function describe(installs = []) {
  return (
    installs
      .map(({ name }) => name)
      .sort()
      .join(', ') || 'nothing'
  );
}
