/** Bundles of a few lines, for tests where their content does not matter. */

export interface SmallBundle {
  packageName?: string;
  /** Of the ClusterServiceVersion; `PACKAGE.vVERSION` unless told. */
  name?: string;
  version?: string;
  channels?: string;
  defaultChannel?: string;
  replaces?: string | undefined;
  /** Further fields of the ClusterServiceVersion. */
  annotations?: Record<string, string>;
  spec?: object;
  /** Bytes of a manifest besides, to make it large. */
  padding?: number;
}

/** The files of a bundle by slash path. */
export function smallBundle(bundle: SmallBundle = {}): Record<string, string> {
  const { packageName = 'widget', version = '1.0.0', channels = 'stable', annotations, padding } = bundle;
  const { name = `${packageName}.v${version}`, defaultChannel = channels.split(',')[0], replaces } = bundle;
  const prefix = 'operators.operatorframework.io.bundle';
  const csv = {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    metadata: { name, annotations },
    spec: { version, replaces, ...bundle.spec },
  };
  return {
    'manifests/csv.yaml': JSON.stringify(csv),
    ...(padding !== undefined && {
      'manifests/padding.yaml': JSON.stringify({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'padding' },
        data: { padding: 'x'.repeat(padding) },
      }),
    }),
    'metadata/annotations.yaml': JSON.stringify({
      annotations: {
        [`${prefix}.package.v1`]: packageName,
        [`${prefix}.channels.v1`]: channels,
        [`${prefix}.channel.default.v1`]: defaultChannel,
      },
    }),
  };
}

/** The same files below a directory. */
export function inDirectory(directory: string, files: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [`${directory}/${name}`, text]));
}
