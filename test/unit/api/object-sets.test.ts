import { describe, expect, it, onTestFinished } from 'vitest';
import { createClusterObjectSet } from '../../../src/api/deployment/create-object-set.js';
import { openSession } from '../../../src/index.js';
import { smallBundle } from '../../support/small-bundle.js';
import { directoryWith } from '../../support/temporary.js';

const bundle = {
  name: 'widget.v1.0.0',
  package: 'widget',
  version: '1.0.0',
  image: 'registry.test/widget:1',
};

function extension(spec: object = {}) {
  const metadata = { name: 'widget', uid: '' };
  return { metadata, spec: { namespace: 'widgets', progressDeadlineMinutes: 30, ...spec } };
}

describe('createClusterObjectSet', () => {
  async function create(
    options: { installModes?: string[]; crd?: string; inline?: object; pack?: string } = {},
  ) {
    const { installModes = ['AllNamespaces'], crd, inline, pack } = options;
    const modes = installModes.map((type) => ({ type, supported: true }));
    const files = smallBundle({
      spec: { installModes: modes },
      annotations: { 'olm.properties': '[]' },
      padding: 1,
    });
    const directory = await directoryWith({
      ...files,
      ...(crd !== undefined && { 'manifests/crd.yaml': crd }),
    });
    const session = await openSession();
    onTestFinished(() => session.close());
    return createClusterObjectSet(directory, session, {
      extension: extension(inline && { config: { configType: 'Inline', inline } }),
      bundle,
      gates: { SingleOwnNamespaceInstallSupport: true, DeploymentConfig: true },
      pack,
    });
  }

  it('writes the deadline of the extension and the properties of the bundle', async () => {
    const { set, secrets } = await create();
    expect(set).toMatchObject({
      metadata: { name: 'widget-1', annotations: { 'olm.properties': '[]' } },
      spec: { progressDeadlineMinutes: 30, phases: [{ name: 'configuration' }] },
    });
    expect(secrets).toEqual([]);
  });

  it('refers to Secrets where the objects are packed', async () => {
    const { set, secrets } = await create({ pack: 'olmv1-system' });
    expect(secrets).toMatchObject([{ metadata: { namespace: 'olmv1-system' } }]);
    expect(set).toMatchObject({
      spec: { phases: [{ objects: [{ ref: { namespace: 'olmv1-system' } }] }] },
    });
  });

  it('refuses what operator-controller refuses, in its words', async () => {
    expect(await create({ installModes: ['OwnNamespace'] })).toMatchObject({
      refusal: {
        message:
          'invalid ClusterExtension configuration: invalid configuration: required field "watchNamespace" is missing',
        reason: 'InvalidConfiguration',
      },
    });
    expect(await create({ installModes: ['MultiNamespace'] })).toMatchObject({
      refusal: {
        message:
          'unsupported bundle: bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] install modes',
      },
    });
  });

  it('reads old definitions as operator-controller does, with a warning', async () => {
    const crd = JSON.stringify({
      apiVersion: 'apiextensions.k8s.io/v1beta1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'widgets.example.com' },
      spec: {
        group: 'example.com',
        version: 'v1',
        names: { kind: 'Widget', plural: 'widgets' },
        scope: 'Namespaced',
      },
    });
    const { set, warnings } = await create({ crd });
    expect(warnings).toMatchObject([
      { problem: 'apiVersion apiextensions.k8s.io/v1beta1 is not supported', file: 'manifests/crd.yaml' },
    ]);
    expect(set).toMatchObject({
      spec: { phases: [{}, { objects: [{ object: { apiVersion: 'apiextensions.k8s.io/v1' } }] }] },
    });
  });
});
