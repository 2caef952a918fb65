/** Deployments as the tests install them: documents with plain manifests in a ConfigMap beside them. */
import { inject } from 'vitest';
import {
  type CommandResult,
  type RunOptions,
  type RunningCommand,
  type Sandbox,
} from '../support/command-line.js';

export interface DeploymentRun {
  /** Writes a document; `comment` changes the source, not its objects. */
  write(
    objects: readonly object[],
    options?: { name?: string; comment?: string; file?: string; spec?: object },
  ): Promise<void>;
  /** Runs `opmate deployment VERB` against the cluster. */
  run(verb: string, ...args: string[]): Promise<CommandResult>;
  /** Runs it on the written document. */
  onFile(verb: string, ...args: string[]): Promise<CommandResult>;
  start(args: readonly string[], options?: RunOptions): RunningCommand;
  file: string;
}

export function deploymentIn(sandbox: Sandbox, namespace: string): DeploymentRun {
  const file = `${namespace}.yaml`;
  const cluster = (): string[] => [`--kubeconfig=${inject('kubeconfig')}`, `--kubectl=${inject('kubectl')}`];
  const run = (verb: string, ...args: string[]): Promise<CommandResult> =>
    sandbox.run(['deployment', verb, ...cluster(), ...args], { env: { PATH: process.env['PATH'] } });
  return {
    file,
    run,
    onFile: (verb, ...args) => run(verb, '-f', file, ...args),
    start: ([verb = '', ...args], options = {}) =>
      sandbox.start(['deployment', verb, ...cluster(), ...args], {
        env: { PATH: process.env['PATH'] },
        ...options,
      }),
    async write(objects, { name = 'widget', comment = '', file: other = file, spec = {} } = {}) {
      const documents = [
        {
          apiVersion: 'core.rukpak.io/v1alpha2',
          kind: 'BundleDeployment',
          metadata: { name },
          spec: {
            installNamespace: namespace,
            format: 'plain',
            ...spec,
            sources: [
              {
                kind: 'configMaps',
                configMaps: [{ configMap: { name: `${name}-bundle` }, path: 'manifests' }],
              },
            ],
          },
        },
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: `${name}-bundle` },
          immutable: true,
          data: Object.fromEntries(
            objects.map((object, index) => [
              `object-${index}.yaml`,
              `# ${comment}\n${JSON.stringify(object)}\n`,
            ]),
          ),
        },
      ];
      await sandbox.write({ [other]: documents.map((item) => `---\n${JSON.stringify(item)}\n`).join('') });
    },
  };
}

/** Returns the approval hash that a plan shows. */
export function approvalIn({ stdout }: CommandResult): string {
  return /^approval: (sha256:[0-9a-f]{64})$/m.exec(stdout)?.[1] ?? '';
}

export const configMap = (namespace: string, name: string, data: Record<string, string>): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace },
  data,
});

export const workload = (
  namespace: string,
  name: string,
  image = 'registry.example.com/widget:v1',
  replicas = 1,
): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: { containers: [{ name: 'widget', image }] },
    },
  },
});

/** A CustomResourceDefinition of its own for a namespace, with its kind. */
export function definition(namespace: string): {
  crd: object;
  name: string;
  kind: string;
  apiVersion: string;
} {
  const group = `${namespace}.example.com`;
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind: 'Widget', plural: 'widgets', singular: 'widget', listKind: 'WidgetList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } },
            },
          },
        },
      ],
    },
  };
  return { crd, name: `widgets.${group}`, kind: 'Widget', apiVersion: `${group}/v1` };
}
