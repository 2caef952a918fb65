import { readFileSync } from 'node:fs';
import { loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { createCommandLine } from '../../../src/cli/program.js';
import { readCatalogManifests } from '../../../src/serve/catalogs/catalog-manifests.js';
import { directoryWith } from '../../support/temporary.js';
import { createWorld } from './world.js';

interface Manifest {
  kind: string;
  metadata: { name: string };
  data: Record<string, string>;
  spec: {
    selector: Record<string, unknown>;
    ports: { targetPort: string }[];
    scaleTargetRef: { apiVersion: string; kind: string; name: string };
    template: {
      metadata: { labels: Record<string, string> };
      spec: {
        containers: [Container];
        volumes: { name: string; configMap?: { name: string } }[];
        terminationGracePeriodSeconds: number;
      };
    };
  };
}
interface Container {
  args: string[];
  ports: { name: string; containerPort: number }[];
  volumeMounts: { name: string; mountPath: string }[];
  readinessProbe: Probe;
  livenessProbe: Probe;
  startupProbe: Probe;
  lifecycle: { preStop: { exec: { command: string[] } } };
}
interface Probe {
  httpGet: { path: string; port: string };
}

const documents = loadAll(readFileSync('docs/examples/replicas.yaml', 'utf8')) as Manifest[];
const all = (kind: string): Manifest[] => documents.filter((one) => one.kind === kind);
const only = (kind: string): Manifest => all(kind)[0] as Manifest;
const { metadata, spec } = only('Deployment').spec.template;
const [container] = spec.containers;

describe('docs/examples/replicas.yaml', () => {
  it('has arguments that opmate takes, with the ports and directories of the pod', async () => {
    let options: Record<string, unknown> = {};
    const { program } = createCommandLine(createWorld(), 'opmate', {
      print: () => undefined,
      onCommand: () => undefined,
      run: () => Promise.resolve(),
    });
    program.hook('preAction', (_program, command) => {
      options = command.optsWithGlobals();
    });
    await program.parseAsync(container.args, { from: 'user' });
    const portOf = (name: string) => container.ports.find((port) => port.name === name)?.containerPort;
    expect(options).toMatchObject({
      http: `0.0.0.0:${portOf('http')}`,
      metricsListen: `0.0.0.0:${portOf('metrics')}`,
      grpc: `0.0.0.0:${portOf('grpc')}`,
      followLinks: true,
    });
    const mounts = container.volumeMounts.map(({ mountPath }) => mountPath);
    expect(mounts).toEqual([options['catalogs'], options['storage']]);
    expect(container.volumeMounts.map(({ name }) => name)).toEqual(spec.volumes.map(({ name }) => name));
    expect(spec.volumes[0]?.configMap?.name).toBe(only('ConfigMap').metadata.name);
  });

  it('is probed at paths that the server has, and waits longer than the server does', () => {
    const pathOf = ({ httpGet: { path, port } }: Probe) => `${port} ${path}`;
    expect(pathOf(container.readinessProbe)).toBe('http /readyz');
    expect(pathOf(container.livenessProbe)).toBe('http /healthz');
    expect(pathOf(container.startupProbe)).toBe('http /healthz');
    const [, drainSeconds] = container.lifecycle.preStop.exec.command;
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(30 + Number(drainSeconds));
  });

  it('selects its pods everywhere, and scales its Deployment', () => {
    const { labels } = metadata;
    for (const service of all('Service')) {
      expect(service.spec.selector).toEqual(labels);
      const names = container.ports.map(({ name }) => name);
      for (const { targetPort } of service.spec.ports) expect(names).toContain(targetPort);
    }
    for (const kind of ['Deployment', 'PodDisruptionBudget']) {
      expect(only(kind).spec.selector).toEqual({ matchLabels: labels });
    }
    const { name } = only('Deployment').metadata;
    expect(only('HorizontalPodAutoscaler').spec.scaleTargetRef).toEqual({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      name,
    });
  });

  it('has manifests of catalogs that opmate reads, each with a Service of its name', async () => {
    const logger = { log: () => undefined, progress: () => undefined };
    const found = await readCatalogManifests(await directoryWith(only('ConfigMap').data), logger);
    expect(found.refused).toEqual([]);
    const services = all('Service').map((service) => service.metadata.name);
    for (const { name } of found.manifests) expect(services).toContain(name);
    expect(found.manifests).toHaveLength(1);
  });
});
