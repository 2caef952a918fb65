/** An operator of a few lines, with one deployment, for tests of what it becomes. */
import type { BundleFiles } from '../../../../src/bundle/read.js';

export interface SmallOperator {
  modes?: string[];
  /** Fields of `spec.install.spec`, in place of those that are there. */
  install?: object;
  /** Further fields of `spec`. */
  spec?: object;
  annotations?: Record<string, string>;
  /** Further files in `manifests/`; objects become JSON. */
  manifests?: Record<string, object | string>;
  metadata?: Record<string, string>;
}

export const deployment = {
  name: 'widget',
  label: { app: 'widget' },
  spec: {
    selector: { matchLabels: { app: 'widget' } },
    template: {
      metadata: { labels: { app: 'widget' }, annotations: { mine: 'kept' } },
      spec: { serviceAccountName: 'widget', containers: [{ name: 'manager', image: 'example.com/widget' }] },
    },
  },
};

/** The files of the bundle, as they are read from wherever it is. */
export function smallOperator(operator: SmallOperator = {}): BundleFiles {
  const { modes = ['AllNamespaces', 'OwnNamespace', 'SingleNamespace'], annotations } = operator;
  const csv = {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    metadata: { name: 'widget.v1.0.0', annotations },
    spec: {
      version: '1.0.0',
      installModes: modes.map((type) => ({ type, supported: true })),
      install: {
        strategy: 'deployment',
        spec: {
          deployments: [deployment],
          permissions: [
            {
              serviceAccountName: 'widget',
              rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
            },
          ],
          ...operator.install,
        },
      },
      ...operator.spec,
    },
  };
  const text = (content: object | string): Buffer =>
    Buffer.from(typeof content === 'string' ? content : JSON.stringify(content, null, 1));
  const metadata = {
    'annotations.yaml': 'annotations:\n  operators.operatorframework.io.bundle.package.v1: widget\n',
    ...operator.metadata,
  };
  return {
    manifests: Object.entries({ 'csv.yaml': csv, ...operator.manifests }).map(([name, content]) => ({
      name,
      content: text(content),
    })),
    metadata: Object.entries(metadata).map(([name, content]) => ({ name, content: text(content) })),
  };
}

/** A custom resource definition of the plural name `PLURAL.example.com`. */
export function smallCrd(plural: string, spec: object = {}): object {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.example.com` },
    spec: {
      group: 'example.com',
      names: { plural, kind: 'Widget' },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object' } },
        },
      ],
      ...spec,
    },
  };
}
