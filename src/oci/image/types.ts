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

/** Media types of the manifests and indexes that opmate reads, as an `Accept` header lists them. */
export const manifestMediaTypes: readonly string[] = [
  mediaTypes.ociIndex,
  mediaTypes.ociManifest,
  mediaTypes.dockerManifestList,
  mediaTypes.dockerManifest,
];

/** The largest manifest or index that is read or stored: what the distribution specification asks for. */
export const maxManifestBytes = 4 * 1024 * 1024;

/** What a piece of content is: its type, digest and size, by which it is fetched and checked. */
export interface Descriptor {
  mediaType: string;
  /** `algorithm:hex`; checked with `parseDigest` before it becomes part of a URL or path. */
  digest: string;
  /** Bytes. */
  size: number;
  annotations?: Record<string, string>;
  artifactType?: string;
  platform?: Platform;
  /** Content given inline, base64. Ignored when fetching. */
  data?: string;
  /** Foreign locations. Never fetched with credentials. */
  urls?: string[];
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

/** The parts of an image configuration that opmate reads or writes. */
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
