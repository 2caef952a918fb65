/*
 * JSON that the server of the page and the page exchange. Texts come from the catalog: show them as text, never as
 * HTML.
 */

/** Header of every response with the `run` of its view; the page requests everything again when it changes. */
export const runHeader = 'Opmate-Run';

/** Response of `GET api/state`, which the page polls; no other response changes without it. */
export interface ViewState {
  /** ID of the view, changed when the catalog is read again; part of icon URLs, which browsers cache. */
  run: string;
  /** Time at which the catalog was read, in ISO 8601; undefined in exported pages, which are reproducible. */
  readAt?: string;
  /** True while checks run and problems may be added. */
  isChecking: boolean;
}

/** Numbers of problems, without notices. */
export interface ProblemCounts {
  errors: number;
  warnings: number;
}

/** Response of `GET api/catalog`: the packages and totals. */
export interface CatalogOverview extends ViewState, ProblemCounts {
  /** Reference of the catalog, as the user wrote it. */
  name: string;
  /** Reference of the catalog to compare with, as the user wrote it. */
  comparedWith?: string;
  bundles: number;
  channels: number;
  /** By name. */
  packages: PackageSummary[];
  /** OpenShift versions to filter packages by, newest first: all that packages are limited to, and the next one. */
  openshift: string[];
  /** Set if the page shows a cluster. */
  hasCluster?: boolean;
  /** Set if the page may write selections: destination file and catalog image, empty if unknown. */
  edit?: { file: string; catalog: string };
}

/** Package in the list of packages. */
export interface PackageSummary extends ProblemCounts {
  name: string;
  displayName: string;
  /** Start of the description, without Markdown. */
  summary: string;
  provider: string;
  defaultChannel: string;
  /** Head of the default channel; empty unless there is exactly one. */
  head: string;
  /** Version of the head. */
  version: string;
  channels: number;
  bundles: number;
  hasIcon: boolean;
  isDeprecated: boolean;
  categories: string[];
  /** Versions of OpenShift that the head supports, inclusive; an absent bound is unlimited. */
  openshift?: { min?: string; max?: string };
  /** Difference from the other catalog. */
  change?: 'added' | 'changed';
}

/** Response of `GET api/search?q=`: packages and bundles that match all words. */
export interface SearchResult {
  /** Best match first; `matches` are fields other than the names. */
  packages: { package: string; matches: SearchMatch[] }[];
  /** First results; `match` is the matching image if neither name nor version matches. */
  bundles: {
    package: string;
    channel: string;
    bundle: string;
    version: string;
    image: string;
    match?: SearchMatch;
  }[];
  /** Number of matching bundles. */
  total: number;
}

/** Field that matches a word of a search, with a snippet of its text. */
export interface SearchMatch {
  field: 'provider' | 'category' | 'API' | 'keyword' | 'description' | 'image' | 'related image';
  text: string;
}

/** Response of `GET api/package?package=`. */
export interface PackageDetails {
  name: string;
  displayName: string;
  provider: string;
  /** Markdown. */
  description: string;
  defaultChannel: string;
  hasIcon: boolean;
  /** True if the package has an `olm.package` blob; false if only other blobs name it. */
  isDefined: boolean;
  bundles: number;
  deprecation?: string;
  /** Support of minor versions, newest first. */
  lifecycle: LifecycleSupport[];
  /** The default channel first, then by name. */
  channels: ChannelSummary[];
  problems: LocatedProblem[];
  /** Number of all problems; `problems` has the first ones. */
  problemCount: number;
}

/** Support phases and platforms of a minor version. */
export interface LifecycleSupport {
  version: string;
  /** Dates are `YYYY-MM-DD`, inclusive. */
  phases: { name: string; startDate?: string; endDate?: string }[];
  platforms: { name: string; versions: string[] }[];
}

/** Channel in the list of a package. */
export interface ChannelSummary extends ProblemCounts {
  name: string;
  isDefault: boolean;
  /** Empty unless there is exactly one head. */
  head: string;
  version: string;
  entries: number;
  deprecation?: string;
}

/**
 * Response of `GET api/channel?package=&channel=`: layout of an upgrade graph. Further `channel` parameters add
 * channels; `compare=yes` adds bundles and edges of the other catalog.
 */
export interface ChannelLayout {
  package: string;
  channel: string;
  /** All channels of the graph, starting with `channel`. */
  channels: string[];
  isDefault: boolean;
  deprecation?: string;
  /** Fault of the graph as a whole. */
  fault?: string;
  /** Newest first; every bundle is above those that it replaces or skips. */
  rows: GraphRow[];
  lanes: number;
  edges: GraphEdge[];
  brackets: SkipBracket[];
  bracketColumns: number;
  /** Number of brackets that exceed the limits of the layout. */
  hiddenBrackets: number;
}

/** Mark of a row. */
export type RowMark =
  'head' | 'skipped' | 'stranded' | 'deprecated' | 'undefined' | 'added' | 'changed' | 'rewired' | 'removed';

/** Row of a graph: a bundle in a channel. */
export interface GraphRow extends ProblemCounts {
  name: string;
  version: string;
  lane: number;
  marks: RowMark[];
  replaces: string;
  /** Number of skipped bundles. */
  skips: number;
  skipRange: string;
  /** Indexes into `channels` of the layout; absent in a graph of one channel. */
  channels?: number[];
  /** Edges in the other catalog, if they differ. */
  before?: { replaces: string; skips: number; skipRange: string };
  /** Row of the bundle that it replaces. */
  older?: number;
  /** Row of the newest bundle that replaces it. */
  newer?: number;
  /** Row of the newest bundle that skips it. */
  skippedBy?: number;
  deprecation?: string;
}

/** Edge to a replaced bundle: rows of both ends, and the lane in between. */
export interface GraphEdge {
  from: number;
  to: number;
  lane: number;
  /** Difference from the other catalog. */
  change?: 'added' | 'removed';
}

/** Bracket from the row of a bundle to the rows of the bundles that it skips. */
export interface SkipBracket {
  from: number;
  to: number[];
  column: number;
}

/** Response of `GET api/path?package=&channel=&from=&to=`: upgrades from an installed bundle to another one. */
export interface UpgradePath {
  from: string;
  to: string;
  /** Shortest path; absent if no path exists. */
  steps?: PathStep[];
  /** Number of upgrades of the longest path. */
  longest?: number;
}

/** Upgrade of a path. */
export interface PathStep {
  from: string;
  to: string;
  version: string;
  channel: string;
  kind: 'replaces' | 'skips' | 'skipRange';
  /** Set for `skipRange`. */
  range?: string;
}

/** Response of `GET api/bundle?package=&bundle=`. */
export interface BundleDetails {
  package: string;
  name: string;
  version: string;
  image: string;
  displayName: string;
  provider: string;
  /** Markdown. */
  description: string;
  /** Short description, plain text. */
  summary: string;
  deprecation?: string;
  facts: { name: string; value: string }[];
  links: { name: string; url: string }[];
  keywords: string[];
  installModes: { type: string; isSupported: boolean }[];
  provided: BundleApi[];
  required: BundleApi[];
  requiredPackages: { package: string; range: string }[];
  /** Values of `olm.constraint` properties as JSON. */
  constraints: string[];
  images: { name: string; image: string }[];
  /** Undefined if the catalog lacks the manifests of the bundle. */
  permissions?: BundlePermission[];
  deployments: string[];
  /** Manifests in the catalog by kind. */
  manifests: { kind: string; count: number }[];
  annotations: { name: string; value: string }[];
  properties: { type: string; count: number }[];
  places: BundlePlace[];
  problems: LocatedProblem[];
}

/** API that a bundle provides or requires. */
export interface BundleApi {
  kind: string;
  group: string;
  version: string;
  displayName: string;
  description: string;
}

/** RBAC rule of a service account of the operator. */
export interface BundlePermission {
  account: string;
  /** False for a rule in the namespaces that the operator watches. */
  isClusterWide: boolean;
  groups: string[];
  resources: string[];
  names: string[];
  urls: string[];
  verbs: string[];
}

/** Entry of a bundle in a channel, with its upgrades. */
export interface BundlePlace {
  channel: string;
  isDefault: boolean;
  replaces: string;
  skips: string[];
  skipRange: string;
  /** Replaced and skipped bundles that are not in the channel. */
  absent: string[];
  /** Bundles of the channel in the skip range. */
  covered: string[];
  /** Bundles that the installed bundle can be updated to. */
  updatesTo: string[];
  /** Bundles that can be updated to it in one step. */
  updatesFrom: string[];
}

/** Response of `GET api/problems?from=&package=&severity=&check=`: a page of problems, most severe first. */
export interface ProblemWindow {
  problems: LocatedProblem[];
  /** Number of problems that match the filter. */
  total: number;
  /** Matching problems by severity, most severe first. */
  severities: { severity: LocatedProblem['severity']; count: number }[];
  /** Packages with problems. */
  packages: string[];
  /** Problems by check, of this package and severity. */
  checks: { name: string; count: number }[];
}

/** Finding of a check. */
export interface LocatedProblem {
  /** Totals do not include notices. */
  severity: 'error' | 'warning' | 'notice';
  /** Name of the check; may be empty. */
  check: string;
  message: string;
  hint: string;
  package: string;
  channel: string;
  bundle: string;
  /** Empty if the finding has no file. */
  file: string;
  line?: number;
}

/** Response of `GET api/compare`: totals of the differences from the other catalog. */
export interface CatalogComparison {
  from: string;
  to: string;
  sums: { kind: string; added: number; removed: number; changed: number }[];
  packages: ComparedPackage[];
}

/** Totals of a package, without images, which are counted for the catalog only. */
export interface ComparedPackage {
  /** Empty for blobs without a package. */
  package: string;
  state: 'added' | 'removed' | 'changed';
  added: number;
  removed: number;
  changed: number;
}

/** Response of `GET api/compare/package?package=`. */
export interface PackageDifferences {
  package: string;
  differences: Difference[];
}

/** Difference between two catalogs. */
export interface Difference {
  sign: 'added' | 'removed' | 'changed';
  kind: 'package' | 'channel' | 'bundle' | 'deprecation' | 'other blob';
  name: string;
  details: string[];
}

/** Header of `api/edit` requests with the token of the URL that `view --edit` prints. */
export const tokenHeader = 'Opmate-Token';

/** Selected package or channel: all versions, an inclusive range, or a list. */
export interface SelectionPick {
  package: string;
  channel?: string | undefined;
  minVersion?: string | undefined;
  maxVersion?: string | undefined;
  /** For kind `filter` only. */
  versions?: readonly string[] | undefined;
}

/** Body of `POST api/edit/plan`, `images` and `bytes`: selected packages and the document to create. */
export interface SelectionRequest {
  /** `imageset` creates an ImageSetConfiguration, `filter` a CatalogFilter. */
  kind: 'imageset' | 'filter';
  /** Image of the catalog; required for an image set. */
  catalog: string;
  picks: readonly SelectionPick[];
  defaultChannels?: readonly { package: string; channel: string }[] | undefined;
  /** Keeps only the selected bundles, without those that upgrades pass through; for kind `filter`. */
  isExact?: boolean | undefined;
}

/** Body of `POST api/edit/write`; the file is written only if it has not changed since the plan. */
export interface SelectionWrite extends SelectionRequest {
  fileDigest: string;
}

/** Response of `api/edit/plan`: contents that the document selects. */
export interface SelectionSummary {
  text: string;
  packages: {
    name: string;
    defaultChannel: string;
    bundles: number;
    channels: {
      name: string;
      head: string;
      entries: number;
      /** Number of bundles of the unfiltered channel that can be updated to its head. */
      upgradable: number;
      /** First of the other bundles. */
      stranded: string[];
      strandedCount: number;
    }[];
  }[];
  bundles: number;
  images: number;
  /** Bundles that are kept although they are not selected. */
  kept: { package: string; channel: string; bundle: string; reason: string }[];
  warnings: string[];
  changes: string[];
  unmet: string[];
  missingPackages: string[];
  /** Digest of the existing file; empty for a new one. */
  fileDigest: string;
}

/** Response of `api/edit/images`: images of the selection with the bundles that use them. */
export interface SelectionImages {
  images: { image: string; bundles: { package: string; bundle: string }[] }[];
}

/** Response of `api/edit/bytes`: size of all blobs to mirror, each counted once. */
export interface SelectionBytes {
  images: number;
  bytes: number;
  packages: { name: string; bytes: number; ownBytes: number }[];
  /** The first images whose manifests are unavailable. */
  unavailable: { image: string; reason: string }[];
  unavailableCount: number;
}

/** Response of `api/edit/write`. */
export interface WrittenFile {
  file: string;
  bytes: number;
}

/** Files of an exported page, which replace the server. */
export interface ExportedPage {
  catalog: CatalogOverview;
  /** By package: name of its script, and its icon as a data URL or an empty string. */
  files: Record<string, { part: string; icon: string }>;
  /** Contents of loaded scripts by name. */
  parts: Record<string, unknown>;
}

/** Handler of requests of an exported page; `load` returns the content of a script. Throws Error. */
export type ExportedRequestHandler = (
  page: ExportedPage,
  address: string,
  load: (part: string) => Promise<unknown>,
) => Promise<unknown>;

/** Body of an error response. */
export interface ErrorResponse {
  /** One problem per line. */
  error: string;
  hint?: string;
}

/** Response of `GET api/cluster`: the operators of a snapshot, and the plan of its updates. */
export interface ClusterOverview {
  /** Release of the cluster; empty without a plan of updates. */
  release: string;
  /** By namespace and package. */
  operators: ClusterOperator[];
  /** One per minor version, in order. */
  hops: ClusterHop[];
  findings: ClusterFinding[];
}

/** State of an operator, with its next step. */
export interface ClusterOperator {
  namespace: string;
  package: string;
  channel: string;
  /** Installed ClusterServiceVersion; empty before the installation. */
  installed: string;
  version: string;
  state: 'current' | 'upgrades' | 'held-back' | 'blocked';
  reason: string;
  /** Bundles that OLM installs, one after the other. */
  upgrades: { name: string; channel: string; reason: string }[];
  heldBackBy: { by: string; problem: string; remedy: string }[];
}

/** An update of the cluster to the next minor version. */
export interface ClusterHop {
  from: string;
  to: string;
  isBlocked: boolean;
  releases: { version: string; channel: string; risks: string[] }[];
  /** Operators that change, or are blocked. */
  operators: ClusterHopOperator[];
  steps: { namespace: string; text: string; reason: string }[];
  findings: ClusterFinding[];
}

/** Bundles of an operator before and after an update of the cluster. */
export interface ClusterHopOperator {
  namespace: string;
  package: string;
  status: 'ready' | 'change' | 'blocked';
  reason: string;
  /** Empty for an operator that OLM installs as a dependency. */
  installed: string;
  before: string;
  after: string;
  channel: string;
}

/** Finding about a snapshot or an update. */
export interface ClusterFinding {
  severity: LocatedProblem['severity'];
  subject: string;
  problem: string;
  hint: string;
}

/** Response of `GET api/mirror`: a mirror workspace, as its audit trail and its locks describe it. */
export interface MirrorOverview {
  /** Directory of the workspace, as the user wrote it. */
  workspace: string;
  /** Destination of the last run; empty if none is recorded. */
  destination: string;
  /** State of the last run, prunes aside; undefined if none is recorded. */
  state: MirrorState | undefined;
  reason: string;
  /** Configuration of the last run; empty if unknown, such as for a run from an archive. */
  configuration: string;
  /** Steps to take next, the most urgent first; none without a configuration. */
  next: MirrorStep[];
  /** Newest first; at most 100. */
  runs: MirrorRun[];
  /** Newest first; at most 20. */
  generations: MirrorGeneration[];
  /** Number of all generations. */
  generationsTotal: number;
}

/** State of a run: `incomplete` lacks images, was interrupted, or goes on. */
export type MirrorState = 'done' | 'incomplete' | 'failed';

/** A next step: copy what the last run lacks, mirror new content, or delete old images too. */
export type MirrorStep = 'retry' | 'update' | 'prune';

/** A run in the audit trail. */
export interface MirrorRun {
  /** Start, in ISO 8601. */
  time: string;
  task: string;
  destination: string;
  state: MirrorState;
  /** Reason of the state, one line. */
  reason: string;
  images: number;
  bytes: number;
  failed: number;
  /** First failures. */
  failures: { image: string; problem: string }[];
  /** Numbers of copied images by verdict; empty without verification. */
  verdicts: { status: string; images: number }[];
}

/** A lock of a workspace, compared with the one before. */
export interface MirrorGeneration {
  number: number;
  /** Time from which it was in effect, in ISO 8601. */
  from: string;
  images: number;
  /** Bytes of its blobs, each once. */
  bytes: number;
  /** Bytes of blobs that the lock before does not have, and that only it has. */
  bytesAdded: number;
  bytesRemoved: number;
  /** By kind, bundles first; kinds without differences are absent. */
  differences: MirrorDifference[];
}

/** Names that a lock adds or removes; of an image that changed, its name. */
export interface MirrorDifference {
  kind: 'bundle' | 'image';
  sign: 'added' | 'removed' | 'changed';
  total: number;
  /** First names. */
  names: string[];
}
