/** Returns a file with a BundleDeployment that installs one ConfigMap with this value, from a ConfigMap beside it. */
export function smallDeployment(namespace: string, value: string): string {
  const settings = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'settings', namespace },
    data: { value },
  };
  const configMap = { configMap: { name: 'bundle' }, path: 'manifests' };
  const documents = [
    {
      apiVersion: 'core.rukpak.io/v1alpha2',
      kind: 'BundleDeployment',
      metadata: { name: 'widget' },
      spec: {
        installNamespace: namespace,
        format: 'plain',
        sources: [{ kind: 'configMaps', configMaps: [configMap] }],
      },
    },
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'bundle' },
      immutable: true,
      data: { 'settings.yaml': JSON.stringify(settings) },
    },
  ];
  return documents.map((document) => `---\n${JSON.stringify(document)}\n`).join('');
}
