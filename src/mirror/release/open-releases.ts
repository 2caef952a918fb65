import { type CancelOptions, mapConcurrent, withOpen } from '../../core/concurrency.js';
import { ErrorList } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { type RegistryReference, formatReference } from '../../core/reference.js';
import type { JsonObject } from '../../document/json.js';
import { type ImageContents, readContents } from '../../oci/image/contents.js';
import type { OpenedReference } from '../../oci/image/open.js';
import type { DigestReference } from '../../release/digest-reference.js';
import { type ReleaseComponent, readPayload } from '../../release/payload.js';
import type { ReleaseSignature } from '../../release/release-signature.js';
import { type ReleaseType, type SelectedRelease, selectReleases } from '../../release/select-releases.js';
import { type UpdateGraph, reduceGraph } from '../../release/update-graph.js';
import type { ReleaseConfig } from './release-config.js';

/** A release of an image set. */
interface OpenedRelease {
  /** Name in messages: version and architecture. */
  label: string;
  version: string;
  /** Undefined if the configuration names the image. */
  selected: SelectedRelease | undefined;
  /** Has the signed name, if signed, and the digest. */
  image: DigestReference;
  /** Tag at the target: that of the signed name, else the digest in hexadecimal digits. */
  tag: string;
  contents: ImageContents;
  components: ReleaseComponent[];
  /** Verified signature; undefined if not required. */
  signature: Buffer | undefined;
}

/** An update graph that releases were selected from. */
export interface UsedGraph {
  architecture: string;
  type: ReleaseType;
  channel: string;
  /** Digest of the response of the update service. */
  digest: string;
  /** Reduced to selected releases and both ends; see `reduceGraph`. */
  graph: JsonObject;
}

/** The graph image of a set, built on demand. */
export interface GraphImage {
  open(): Promise<OpenedReference>;
  /** Returns the base by digest, and the digest of the data; undefined before it is built. */
  made(): { base: string; data: string } | undefined;
  close(): Promise<void>;
}

/** The releases of an image set. */
export interface OpenedReleases {
  /** By architecture, then version. */
  releases: OpenedRelease[];
  graphs: UsedGraph[];
  graphImage: GraphImage | undefined;
  warnings: string[];
  close(): Promise<void>;
}

/** Access to releases: in the network, a lock or an archive. */
export interface ReleaseAccess {
  readGraph(
    type: ReleaseType,
    architecture: string,
    channel: string,
  ): Promise<{ graph: UpdateGraph; digest: string }>;
  /** Reads and verifies a signature. */
  readSignature(
    image: DigestReference,
    version: string | undefined,
    type: ReleaseType,
  ): Promise<ReleaseSignature>;
  /** Returns the release image that a configuration names by its tag, with its digest. */
  resolve(release: RegistryReference): Promise<DigestReference>;
  /** Opens a release image. */
  open(image: DigestReference): Promise<OpenedReference>;
  graphImage(): GraphImage | undefined;
}

/** Options of reading the releases of an image set. */
export interface OpenReleasesOptions extends CancelOptions {
  releaseAccess: ReleaseAccess;
  /** Fails instead of using updates with known risks; default false. */
  avoidRisks?: boolean | undefined;
  /** Accepts the configured release image without a signature; default false. */
  ignoreReleaseSignature?: boolean | undefined;
}

const releasesAtOnce = 4;

const noReleases: OpenedReleases = {
  releases: [],
  graphs: [],
  graphImage: undefined,
  warnings: [],
  close: () => Promise.resolve(),
};

/**
 * Selects the releases of a configuration, verifies their signatures and reads their component images. Throws OpmateError
 * with all errors: of selection, and unsigned, mismatched or invalid releases.
 */
export async function openReleases(
  config: ReleaseConfig | undefined,
  options: OpenReleasesOptions,
): Promise<OpenedReleases> {
  if (config === undefined) return noReleases;
  return new ReleaseOpening(config, options).open();
}

/** Selects and opens the releases of a configuration; collects the graphs that it reads, and all errors. */
class ReleaseOpening {
  readonly #config: ReleaseConfig;
  readonly #options: OpenReleasesOptions;
  readonly #access: ReleaseAccess;
  readonly #kubeVirt: readonly string[];
  readonly #errors: ErrorList;
  readonly #graphs: { key: Omit<UsedGraph, 'digest' | 'graph'>; graph: UpdateGraph; digest: string }[] = [];
  readonly #warnings: string[] = [];

  constructor(config: ReleaseConfig, options: OpenReleasesOptions) {
    this.#config = config;
    this.#options = options;
    this.#access = options.releaseAccess;
    this.#kubeVirt = config.kubeVirtContainer ? getBootImageKeys(config) : [];
    this.#errors = new ErrorList(options.signal);
  }

  async open(): Promise<OpenedReleases> {
    const { release, graph } = this.#config;
    const selected = release === undefined ? await this.#selectAll() : [];
    const releases = release === undefined ? await this.#openAll(selected) : [await this.#openNamed(release)];
    const graphImage = graph ? this.#access.graphImage() : undefined;
    return {
      releases,
      graphs: this.#reduceGraphs(selected),
      graphImage,
      warnings: this.#warnings,
      close: async () => graphImage?.close(),
    };
  }

  /** Selects the releases of all architectures, each image once. */
  async #selectAll(): Promise<SelectedRelease[]> {
    const byDigest = new Map<string, SelectedRelease>();
    for (const architecture of this.#config.architectures) {
      const selection = await this.#attempt(() => this.#select(architecture));
      for (const release of selection?.releases ?? []) byDigest.set(release.node.payload.digest, release);
      this.#warnings.push(...(selection?.warnings ?? []));
    }
    this.#errors.throwIfAny();
    return [...byDigest.values()];
  }

  #select(architecture: string) {
    const { avoidRisks = false } = this.#options;
    return selectReleases(this.#config.channels, architecture, {
      avoidRisks,
      readGraph: async (type, channel) => {
        const { graph, digest } = await this.#access.readGraph(type, architecture, channel);
        this.#graphs.push({ key: { architecture, type, channel }, graph, digest });
        return graph;
      },
    });
  }

  async #openAll(selected: readonly SelectedRelease[]): Promise<OpenedRelease[]> {
    const opened = await mapConcurrent(
      selected,
      releasesAtOnce,
      (release) => this.#attempt(() => this.#openSelected(release)),
      this.#options,
    );
    this.#errors.throwIfAny();
    return opened.filter((release) => release !== undefined);
  }

  /** Returns the graphs, each with the selected releases of its architecture and both ends. */
  #reduceGraphs(selected: readonly SelectedRelease[]): UsedGraph[] {
    return this.#graphs.map(({ key, graph, digest }) => {
      const own = selected.filter(({ architecture }) => architecture === key.architecture);
      const versions = new Set(own.map(({ node }) => node.version));
      for (const end of [graph.nodes[0], graph.nodes.at(-1)])
        if (end !== undefined) versions.add(end.version);
      return { ...key, digest, graph: reduceGraph(graph, versions) };
    });
  }

  async #openSelected(selected: SelectedRelease): Promise<OpenedRelease> {
    const { node, type, architecture } = selected;
    const signature = await this.#access.readSignature(node.payload, node.version, type);
    const image = nameSigned(node.payload, signature);
    const read = await this.#readImage(image);
    if (read.version !== node.version) {
      const problem = `its payload is version ${read.version}, and the update graph calls it ${node.version}`;
      throw new OpmateError('INVALID', problem, { subject: formatReference(image) });
    }
    const label = `release ${node.version} (${architecture})`;
    return { label, selected, image, tag: signature.name.tag, signature: signature.bytes, ...read };
  }

  async #openNamed(release: RegistryReference): Promise<OpenedRelease> {
    const { ignoreReleaseSignature = false } = this.#options;
    const { digest } = release;
    const named = digest === undefined ? await this.#access.resolve(release) : { ...release, digest };
    const signature = ignoreReleaseSignature
      ? undefined
      : await this.#access.readSignature(named, undefined, 'ocp');
    const image = signature === undefined ? named : nameSigned(named, signature);
    const read = await this.#readImage(image);
    const tag = signature?.name.tag ?? image.digest.slice(image.digest.indexOf(':') + 1);
    const label = `release ${read.version}`;
    return { label, selected: undefined, image, tag, signature: signature?.bytes, ...read };
  }

  async #readImage(image: DigestReference) {
    const { platforms } = this.#config;
    const { signal } = this.#options;
    return withOpen(this.#access.open(image), async (opened) => {
      const contents = await readContents(opened.repository, image.digest, {
        platforms: platforms.length > 0 ? platforms : undefined,
        signal,
      });
      const payload = await readPayload(opened.repository, contents, { kubeVirt: this.#kubeVirt, signal });
      return { contents, ...payload };
    });
  }

  #attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    return this.#errors.try(work, ({ code }) => !['INTERNAL', 'IO', 'AUTH'].includes(code));
  }
}

/** Returns an image with its signed name and digest. */
function nameSigned({ digest }: DigestReference, { name }: ReleaseSignature): DigestReference {
  const { transport, registry, repository, tag } = name;
  const text = formatReference({ transport, text: '', registry, repository, tag, digest });
  return { transport, text, registry, repository, tag, digest };
}

/** Names of architectures with KubeVirt disks in boot images. */
const bootImageNames: Readonly<Record<string, string>> = { amd64: 'x86_64', s390x: 's390x' };

/** Returns the architectures of KubeVirt disks. (Source: oc-mirror v2.) */
function getBootImageKeys({ architectures, platforms }: ReleaseConfig): string[] {
  const all = Object.values(bootImageNames);
  const names = platforms.length > 0 ? platforms.map(({ architecture }) => architecture) : architectures;
  if (platforms.length === 0 && names.includes('multi')) return all;
  const known = names.map((name) => bootImageNames[name]).filter((key) => key !== undefined);
  if (known.length > 0) return [...new Set(known)];
  return platforms.length > 0 ? all : ['x86_64'];
}
