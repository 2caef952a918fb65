/** Documents of the OCI image specification 1.1 and their Docker schema 2 forms. */

export const mediaTypes = {
  ociIndex: 'application/vnd.oci.image.index.v1+json',
  ociManifest: 'application/vnd.oci.image.manifest.v1+json',
  ociConfig: 'application/vnd.oci.image.config.v1+json',
  ociLayer: 'application/vnd.oci.image.layer.v1.tar',
  ociLayerGzip: 'application/vnd.oci.image.layer.v1.tar+gzip',
  ociLayerZstd: 'application/vnd.oci.image.layer.v1.tar+zstd',
  ociEmpty: 'application/vnd.oci.empty.v1+json',
  dockerManifestList: 'application/vnd.docker.distribution.manifest.list.v2+json',
  dockerManifest: 'application/vnd.docker.distribution.manifest.v2+json',
  dockerConfig: 'application/vnd.docker.container.image.v1+json',
  dockerLayerGzip: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
} as const;

/** Media types of manifests and indexes, as in an `Accept` header. */
export const manifestMediaTypes: readonly string[] = [
  mediaTypes.ociIndex,
  mediaTypes.ociManifest,
  mediaTypes.dockerManifestList,
  mediaTypes.dockerManifest,
];

/** Maximum size of a manifest or index, in bytes. (Source: distribution specification.) */
export const maxManifestBytes = 4 * 1024 * 1024;

/** Type, digest and size of content. */
export interface Descriptor {
  mediaType: string;
  /** `algorithm:hex`; checked by `parseDigest` before use in a URL or path. */
  digest: string;
  /** Bytes. */
  size: number;
  annotations?: Record<string, string>;
  artifactType?: string;
  platform?: Platform;
  /** Inline content, base64; ignored when fetching. */
  data?: string;
  /** Foreign locations; never fetched. */
  urls?: string[];
}

/** Returns the descriptors without duplicates; of equal digests the last one. */
export function uniqueByDigest<D extends { digest: string }>(descriptors: readonly D[]): D[] {
  return [...new Map(descriptors.map((descriptor) => [descriptor.digest, descriptor])).values()];
}

export interface Platform {
  os: string;
  architecture: string;
  variant?: string;
  'os.version'?: string;
  'os.features'?: string[];
}

export interface ImageManifest {
  schemaVersion: 2;
  mediaType?: string;
  artifactType?: string;
  config: Descriptor;
  layers: Descriptor[];
  subject?: Descriptor;
  annotations?: Record<string, string>;
}

export interface ImageIndex {
  schemaVersion: 2;
  mediaType?: string;
  artifactType?: string;
  manifests: Descriptor[];
  subject?: Descriptor;
  annotations?: Record<string, string>;
}

/** Fields of an image configuration that opmate reads or writes. */

export interface ImageConfig {
  architecture?: string;
  os?: string;
  variant?: string;
  created?: string;
  config?: {
    Labels?: Record<string, string> | null;
    Env?: string[] | null;
    Entrypoint?: string[] | null;
    Cmd?: string[] | null;
    WorkingDir?: string;
    User?: string;
    ExposedPorts?: Record<string, object> | null;
  };
  rootfs?: { type: 'layers'; diff_ids: string[] };
  history?: { created?: string; created_by?: string; comment?: string; empty_layer?: boolean }[];
}
