import type { JsonObject } from '../../../../src/document/json.js';
import type { BundleFiles } from '../../../../src/bundle/read.js';

import {
  type ValidateBundleOptions,
  type ValidationDiagnostic,
  findBundleFaults,
} from '../../../../src/bundle/validate/validate-bundle.js';

/** A manifest that tests change deep inside, to values of any type. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Loose = Record<string, any>;

const prefix = 'operators.operatorframework.io.bundle';

/** A bundle that nothing is wrong with. Parts of it may be changed by tests. */
export function soundBundle(): {
  csv: Loose;
  crd: Loose;
  annotations: Loose;
} {
  return {
    csv: {
      apiVersion: 'operators.coreos.com/v1alpha1',
      kind: 'ClusterServiceVersion',
      metadata: {
        name: 'widget.v1.0.0',
        annotations: {
          'alm-examples': '[{"apiVersion": "example.com/v1", "kind": "Widget"}]',
          capabilities: 'Basic Install',
          categories: 'Database, Security',
        },
      },
      spec: {
        displayName: 'Widget',
        version: '1.0.0',
        minKubeVersion: '1.25.0',
        provider: { name: 'Example' },
        maintainers: [{ name: 'A', email: 'a@example.com' }],
        links: [{ name: 'Home', url: 'https://example.com' }],
        icon: [{ base64data: 'AAAA', mediatype: 'image/png' }],
        installModes: [{ type: 'AllNamespaces', supported: true }],
        install: {
          strategy: 'deployment',
          spec: {
            deployments: [
              {
                name: 'widget',
                spec: {
                  selector: {},
                  template: {
                    spec: {
                      serviceAccountName: 'widget',
                      containers: [
                        { name: 'manager', image: 'example.com/a', resources: { requests: { cpu: '1' } } },
                      ],
                    },
                  },
                },
              },
            ],
          },
        },
        customresourcedefinitions: {
          owned: [{ name: 'widgets.example.com', version: 'v1', kind: 'Widget', description: 'A widget' }],
        },
      },
    },
    crd: {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'widgets.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'widgets', kind: 'Widget' },
        versions: [
          { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
        ],
      },
    },
    annotations: {
      [`${prefix}.mediatype.v1`]: 'registry+v1',
      [`${prefix}.manifests.v1`]: 'manifests/',
      [`${prefix}.metadata.v1`]: 'metadata/',
      [`${prefix}.package.v1`]: 'widget',
      [`${prefix}.channels.v1`]: 'stable',
      [`${prefix}.channel.default.v1`]: 'stable',
    },
  };
}

/** Its files, and others, as JSON with one key a line. */
export function filesOf(
  { csv, crd, annotations }: Partial<ReturnType<typeof soundBundle>>,
  others: Record<string, unknown> = {},
): BundleFiles {
  const files: BundleFiles = { manifests: [], metadata: [] };
  const all: Record<string, unknown> = {
    ...(crd && { 'manifests/crd.yaml': crd }),
    ...(csv && { 'manifests/csv.yaml': csv }),
    ...(annotations && { 'metadata/annotations.yaml': { annotations } }),
    ...others,
  };
  for (const [path, value] of Object.entries(all)) {
    const [part, name] = path.split('/') as ['manifests' | 'metadata', string];
    const text = typeof value === 'string' ? value : JSON.stringify(value as JsonObject, undefined, 1);
    files[part].push({ name, content: Buffer.from(text) });
  }
  return files;
}

/** What is found in a sound bundle that `change` changed, each as `file:line: level: message`. */
export function findIn(
  change: (bundle: ReturnType<typeof soundBundle>) => void,
  options: ValidateBundleOptions & { others?: Record<string, unknown> } = {},
): string[] {
  const bundle = soundBundle();
  change(bundle);
  return findBundleFaults(filesOf(bundle, options.others), options).map(textOf);
}

/** One finding in one line. */
export function textOf({ file, line, severity, problem }: ValidationDiagnostic): string {
  return `${file === undefined ? '' : `${file}:${line ?? ''}: `}${severity}: ${problem}`;
}
