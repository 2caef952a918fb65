import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  applyDeployment,
  checkDeployments,
  openCluster,
  openSession,
  readDeploymentHistory,
  renderDeployments,
  rollBackDeployment,
  watchDeployments,
} from '../../../src/index.js';
import type { WatchEvent } from '../../../src/api/deployment/watch-deployments.js';
import { hasKubectl, startApiServer } from '../../support/api-server.js';
import { smallDeployment } from '../../support/small-deployment.js';
import { directoryWith } from '../../support/temporary.js';

const namespace = 'widgets';
const place = { name: 'widget', namespace };

describe.skipIf(!hasKubectl)('verbs of deployments (need kubectl)', () => {
  /** A cluster of its own for one test, with a namespace to install into. */
  async function newCluster(signal?: AbortSignal) {
    const server = await startApiServer();
    onTestFinished(() => server.close());
    server.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    const directory = await directoryWith({
      config: server.kubeconfig,
      'one.yaml': smallDeployment(namespace, '1'),
      'two.yaml': smallDeployment(namespace, '2'),
    });
    const session = await openSession({ signal });
    onTestFinished(() => session.close());
    const cluster = openCluster(session, { kubeconfig: path.join(directory, 'config') });
    const render = (name: string) => renderDeployments([path.join(directory, name)], session);
    const settings = (): unknown => server.get('ConfigMap', 'settings', namespace)?.['data'];
    return { cluster, render, settings };
  }

  it('apply what is approved, keep its history and roll back', async () => {
    const { cluster, render, settings } = await newCluster();
    const [one] = await render('one.yaml');
    const [two] = await render('two.yaml');
    if (one === undefined || two === undefined) throw new Error('no deployment');
    await expect(readDeploymentHistory(place, cluster)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await applyDeployment(one, cluster, { approve: () => false })).toMatchObject({
      state: 'declined',
    });
    let approval = '';
    // The hash of the render alone approves nothing.
    for (const hash of [one.hash, two.hash]) {
      const refused = await applyDeployment(one, cluster, {
        approve: [hash],
        onPlanned: (plan) => void ({ approval } = plan),
      });
      expect(refused).toMatchObject({
        state: 'refused',
        findings: [{ code: 'not-approved', subject: 'widget' }],
      });
    }
    expect(settings()).toBeUndefined();
    expect(await applyDeployment({ ...one, isPaused: true }, cluster, { approve: [approval] })).toEqual({
      state: 'paused',
    });
    const planned: string[] = [];
    const applied = await applyDeployment(one, cluster, {
      approve: [approval],
      onPlanned: ({ changes }) =>
        void planned.push(...changes.map(({ change, id }) => `${change} ${id.name}`)),
    });
    expect(applied).toMatchObject({ state: 'applied', report: { revision: 1 } });
    expect(planned).toEqual(['add settings']);
    await applyDeployment(two, cluster, { approve: () => true });
    expect(settings()).toEqual({ value: '2' });

    let rollback = '';
    const unapproved = await rollBackDeployment(place, cluster, {
      approve: [one.hash],
      onPlanned: (plan) => void (rollback = plan.approval),
    });
    expect(unapproved).toMatchObject({ state: 'refused' });
    expect(settings()).toEqual({ value: '2' });
    const back = await rollBackDeployment(place, cluster, { approve: [rollback] });
    expect(back).toMatchObject({ state: 'applied', report: { revision: 3 } });
    expect(settings()).toEqual({ value: '1' });
    const history = await readDeploymentHistory(place, cluster);
    expect(history.current).toMatchObject({ revision: 3, rollbackTo: 1, hash: one.hash });
    expect(history.revisions.map(({ revision }) => revision)).toEqual([1, 2, 3]);
    await expect(
      rollBackDeployment(place, cluster, { approve: () => true, toRevision: 9 }),
    ).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('refuse deployments that undo each other', async () => {
    const { render } = await newCluster();
    const [one] = await render('one.yaml');
    const [two] = await render('two.yaml');
    if (one === undefined || two === undefined) throw new Error('no deployment');
    expect(checkDeployments([one])).toEqual([]);
    expect(checkDeployments([one, two])).toMatchObject([{ code: 'duplicate-deployment' }]);
    expect(checkDeployments([one, { ...two, name: 'gadget' }])).toMatchObject([{ code: 'duplicate-object' }]);
  });

  it('watch until the signal fires', async () => {
    const stop = new AbortController();
    const { cluster, render, settings } = await newCluster(stop.signal);
    const events: WatchEvent['kind'][] = [];
    await watchDeployments(() => render('two.yaml'), cluster, {
      onEvent({ kind }) {
        events.push(kind);
        if (kind === 'applied') stop.abort();
      },
    });
    expect(events).toEqual(['planned', 'applied']);
    expect(settings()).toEqual({ value: '2' });
    await expect(
      watchDeployments(() => render('two.yaml'), cluster, { intervalMs: 1 }),
    ).rejects.toMatchObject({ code: 'USAGE' });
  });
});

describe('renderDeployments', () => {
  it('warns of objects without a namespace where the deployment names none', async () => {
    const document = smallDeployment('', '1');
    const directory = await directoryWith({ 'one.yaml': document });
    const session = await openSession();
    onTestFinished(() => session.close());
    const [one] = await renderDeployments([path.join(directory, 'one.yaml')], session);
    expect(one?.findings).toEqual([]);
    expect(one?.warnings).toContainEqual(
      expect.objectContaining({
        severity: 'warning',
        code: 'missing-namespace',
        hint: 'set options.installNamespace',
      }),
    );
  });

  it('warns of fields without effect in the format', async () => {
    const fields = '"watchNamespaces":["a"],"config":{"a":"b"},"format":';
    const document = smallDeployment(namespace, '1').replace('"format":', fields);
    const directory = await directoryWith({ 'one.yaml': document });
    const session = await openSession();
    onTestFinished(() => session.close());
    const [one] = await renderDeployments([path.join(directory, 'one.yaml')], session);
    expect(one?.findings).toEqual([]);
    expect(one?.warnings.map(({ problem }) => problem)).toEqual([
      'spec.config: no effect in the format plain',
      'spec.watchNamespaces: no effect in the format plain',
    ]);
  });
});
