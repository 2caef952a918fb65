/** Format of a bundle. */
export type MediaType = 'registry+v1' | 'plain' | 'helm';

const prefix = 'operators.operatorframework.io.bundle';

/** Annotations of a bundle, which are also the labels of its image. */
export const bundleKeys = {
  mediaType: `${prefix}.mediatype.v1`,
  manifests: `${prefix}.manifests.v1`,
  metadata: `${prefix}.metadata.v1`,
  package: `${prefix}.package.v1`,
  channels: `${prefix}.channels.v1`,
  defaultChannel: `${prefix}.channel.default.v1`,
} as const;

/** Annotation of a ClusterServiceVersion with properties of its bundle as JSON. */
export const propertiesAnnotation = 'olm.properties';

/** Package and channels of a bundle; empty if annotations are missing. */
export interface BundleAnnotations {
  packageName: string;
  channels: string[];
  defaultChannel: string;
}

/** Returns the package and channels that annotations name. */
export function toBundleAnnotations(annotations: ReadonlyMap<string, string>): BundleAnnotations {
  const channels = annotations.get(bundleKeys.channels) ?? '';
  return {
    packageName: annotations.get(bundleKeys.package) ?? '',
    channels: channels === '' ? [] : channels.split(','),
    defaultChannel: annotations.get(bundleKeys.defaultChannel) ?? '',
  };
}
