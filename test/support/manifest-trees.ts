/** Package manifests of a few lines. */

export interface SmallCsv {
  name: string;
  version?: string;
  replaces?: string;
  skips?: string[];
  /** Kinds in lower case; each is owned as `KINDs.example.com`. */
  owned?: string[];
  annotations?: Record<string, string>;
  spec?: object;
}

/** A ClusterServiceVersion. */
export function smallCsv({
  name,
  version = '1.0.0',
  owned = [],
  annotations,
  spec,
  ...edges
}: SmallCsv): object {
  return {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    metadata: { name, annotations },
    spec: {
      version,
      ...edges,
      customresourcedefinitions: {
        owned: owned.map((kind) => ({ name: `${kind}s.example.com`, version: 'v1', kind })),
      },
      ...spec,
    },
  };
}

/** The definition that `owned` asks for. */
export function smallCrd(kind: string): object {
  return {
    apiVersion: 'apiextensions.k8s.io/v1beta1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind}s.example.com` },
    spec: { group: 'example.com', version: 'v1', scope: 'Namespaced', names: { kind, plural: `${kind}s` } },
  };
}

/** A package manifest; `channels` has the head of each. */
export function smallPackage(packageName: string, channels: Record<string, string>, defaultChannel?: string) {
  return {
    packageName,
    channels: Object.entries(channels).map(([name, currentCSV]) => ({ name, currentCSV })),
    defaultChannel,
  };
}

/** Files by slash path, with objects as JSON, which is YAML too. */
export function asText(files: Record<string, string | object>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(files).map(([name, content]) => [
      name,
      typeof content === 'string' ? content : JSON.stringify(content),
    ]),
  );
}

/** A package of two versions in two directories. */
export function widgetTree(): Record<string, string> {
  return asText({
    'widget/widget.package.yaml': smallPackage('widget', { stable: 'widget.v2', old: 'widget.v1' }, 'stable'),
    'widget/1.0.0/csv.yaml': smallCsv({ name: 'widget.v1', owned: ['widget'] }),
    'widget/1.0.0/crd.yaml': smallCrd('widget'),
    'widget/2.0.0/csv.yaml': smallCsv({
      name: 'widget.v2',
      version: '2.0.0',
      replaces: 'widget.v1',
      skips: ['widget.v1.5'],
      owned: ['widget'],
    }),
    'widget/2.0.0/crd.yaml': smallCrd('widget'),
  });
}
