/** A registry with bundles of two operators, and the catalog directory that names them. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, expect } from 'vitest';
import type { Sandbox } from './command-line.js';
import { inDirectory, smallBundle } from './small-bundle.js';

export interface OperatorRegistry {
  /** Host and port. */
  host(): string;
  /** Image of a bundle by tag. */
  image(packageName: string, version: string): string;
}

const modes = ['OwnNamespace', 'SingleNamespace', 'MultiNamespace', 'AllNamespaces'];

function annotationsOf(packageName: string): Record<string, string> {
  const values = {
    mediatype: 'registry+v1',
    manifests: 'manifests/',
    metadata: 'metadata/',
    package: packageName,
    channels: 'stable',
    'channel.default': 'stable',
  };
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [`operators.operatorframework.io.bundle.${key}.v1`, value]),
  );
}

/** An operator with a Deployment, a definition and rights in the namespaces that it watches. */
function operatorBundle(packageName: string, version: string, replaces?: string): Record<string, string> {
  const plural = `${packageName}s`;
  const group = 'operators.example.com';
  const kind = packageName.charAt(0).toUpperCase() + packageName.slice(1);
  const serviceAccountName = `${packageName}-manager`;
  const spec = {
    installModes: modes.map((type) => ({ type, supported: true })),
    customresourcedefinitions: { owned: [{ name: `${plural}.${group}`, version: 'v1', kind }] },
    install: {
      strategy: 'deployment',
      spec: {
        permissions: [
          {
            serviceAccountName,
            rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }],
          },
        ],
        deployments: [
          {
            name: `${packageName}-manager`,
            spec: {
              replicas: 1,
              selector: { matchLabels: { app: packageName } },
              template: {
                metadata: { labels: { app: packageName } },
                spec: {
                  serviceAccountName,
                  containers: [{ name: 'manager', image: `registry.example.com/${packageName}:v${version}` }],
                },
              },
            },
          },
        ],
      },
    },
  };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object' } } } };
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind, plural, singular: packageName, listKind: `${kind}List` },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  };
  return {
    ...smallBundle({ packageName, version, spec, ...(replaces !== undefined && { replaces }) }),
    'manifests/definition.yaml': JSON.stringify(definition),
    'metadata/annotations.yaml': JSON.stringify({ annotations: annotationsOf(packageName) }),
  };
}

const versions = { widget: ['1.0.0', '1.1.0'], gadget: ['2.0.0'] };

/**
 * Starts the registry before the tests of a file, and writes `operators/`: package `widget` with 1.0.0 and 1.1.0, and
 * `gadget` 2.0.0, which requires `widget`.
 */
export function useOperatorRegistry(sandbox: Sandbox): OperatorRegistry {
  let host = '';
  const image = (packageName: string, version: string): string =>
    `${host}/operators/${packageName}:v${version}`;
  beforeAll(async () => {
    const server = sandbox.start(['oci', 'serve', 'registry', '--port', '0'], { timeoutMs: 900_000 });
    host = new URL(await server.firstLine()).host;
    await writeFile(
      path.join(path.dirname(sandbox.work), 'registries.conf'),
      `[[registry]]\nlocation = "${host}"\ninsecure = true\n`,
    );
    const blobs: object[] = [];
    for (const [name, all] of Object.entries(versions)) {
      const entries = all.map((version, index) => ({
        name: `${name}.v${version}`,
        ...(index > 0 && { replaces: `${name}.v${all[index - 1]}` }),
      }));
      blobs.push({ schema: 'olm.package', name, defaultChannel: 'stable' });
      blobs.push({ schema: 'olm.channel', package: name, name: 'stable', entries });
      for (const [index, version] of all.entries()) {
        const files = operatorBundle(name, version, entries[index]?.replaces);
        await sandbox.write(inDirectory(`bundles/${name}/${version}`, files));
        const pushed = await sandbox.run([
          'bundle',
          'push',
          `bundles/${name}/${version}`,
          image(name, version),
        ]);
        expect([pushed.code, pushed.stderr.replace(/^info: .*\n/gm, '')]).toEqual([0, '']);
        const needs = {
          type: 'olm.package.required',
          value: { packageName: 'widget', versionRange: '>=1.1.0' },
        };
        blobs.push({
          schema: 'olm.bundle',
          package: name,
          name: `${name}.v${version}`,
          image: image(name, version),
          properties: [
            { type: 'olm.package', value: { packageName: name, version } },
            ...(name === 'gadget' ? [needs] : []),
          ],
        });
      }
    }
    const catalog = blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('');
    await sandbox.write({ 'operators/catalog.json': catalog });
  });
  return { host: () => host, image };
}
