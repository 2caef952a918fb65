/**
 * What the page is told, as JSON. The server makes these and the page reads them; nothing else is said between the
 * two. Every text comes from the catalog and is shown as text, never as HTML.
 */

/** Header of every answer: which view of the catalog it is from. The page asks for everything again when it changes. */
export const runHeader = 'Opmate-Run';

/** `GET api/state`: what the page polls. Other answers differ only where this one does. */
export interface ViewState {
  /** The view of the catalog: another one once its files change. Part of the URLs of icons, which browsers keep. */
  run: string;
  /** When the catalog was read, in ISO 8601. */
  readAt: string;
  /** Whether more checks are still running: numbers of problems may grow. */
  isChecking: boolean;
}

/** `GET api/catalog`: all that the first view shows. */
export interface CatalogOverview extends ViewState {
  /** The catalog as the user named it. */
  name: string;
  /** The catalog that it is compared with, as the user named it. */
  comparedWith?: string;
  bundles: number;
  channels: number;
  errors: number;
  warnings: number;
  /** By name. */
  packages: PackageSummary[];
  /** Where selections may be made: the file that they are written to, and an image that may be the catalog's. */
  edit?: { file: string; catalog: string };
}

/** A package in the list of all. */
export interface PackageSummary {
  name: string;
  displayName: string;
  /** The first sentences of the description, without Markdown. */
  summary: string;
  provider: string;
  defaultChannel: string;
  /** The bundle at the head of the default channel, and its version; empty where there is no only head. */
  head: string;
  version: string;
  channels: number;
  bundles: number;
  hasIcon: boolean;
  isDeprecated: boolean;
  categories: string[];
  /** Minor versions of OpenShift 4 that the head allows, both included; either is left out where there is no limit. */
  openshift?: { min?: number; max?: number };
  errors: number;
  warnings: number;
  /** Against the catalog that this one is compared with. */
  change?: 'added' | 'changed';
}

/** `GET api/search?q=`: what has all the words. */
export interface SearchResult {
  /** The best first, each with what matched in addition to its names. */
  packages: { package: string; matches: SearchMatch[] }[];
  /** The first of those found, each with the image that matched where neither name nor version did. */
  bundles: {
    package: string;
    channel: string;
    bundle: string;
    version: string;
    image: string;
    match?: SearchMatch;
  }[];
  /** How many bundles there are in all. */
  total: number;
}

/** What has a word that was searched for. */
export interface SearchMatch {
  field: 'provider' | 'category' | 'API' | 'keyword' | 'description' | 'image' | 'related image';
  text: string;
}

/** `GET api/package?package=`. */
export interface PackageDetails {
  name: string;
  displayName: string;
  provider: string;
  /** Markdown. */
  description: string;
  defaultChannel: string;
  hasIcon: boolean;
  /** Whether an `olm.package` blob has this name; false where only other blobs speak of it. */
  isDefined: boolean;
  bundles: number;
  /** Why the package is deprecated. */
  deprecation?: string;
  /** How long its minor versions are supported, the newest first; empty where the catalog does not say. */
  lifecycle: LifecycleSupport[];
  /** The default channel first, then by name. */
  channels: ChannelSummary[];
  problems: LocatedProblem[];
  /** How many problems there are; `problems` has the first of them. */
  problemCount: number;
}

/** Support of a minor version. */
export interface LifecycleSupport {
  version: string;
  /** Dates are `YYYY-MM-DD`, the last day included. */
  phases: { name: string; startDate?: string; endDate?: string }[];
  platforms: { name: string; versions: string[] }[];
}

/** A channel in the list of a package's. */
export interface ChannelSummary {
  name: string;
  isDefault: boolean;
  /** Empty where there is no only head. */
  head: string;
  version: string;
  entries: number;
  deprecation?: string;
  errors: number;
  warnings: number;
}

/**
 * `GET api/channel?package=&channel=`: the upgrade graph of a channel, laid out. With further `channel`s it has the
 * entries of all; with `compare=yes` also what the other catalog has.
 */
export interface ChannelLayout {
  package: string;
  channel: string;
  /** All channels that are shown, the first one first. */
  channels: string[];
  isDefault: boolean;
  deprecation?: string;
  /** What is wrong with the graph as a whole. */
  fault?: string;
  /** From the newest to the oldest; every bundle above those that it replaces or skips. */
  rows: GraphRow[];
  /** How many lanes the bundles and their edges take. */
  lanes: number;
  edges: GraphEdge[];
  brackets: SkipBracket[];
  /** How many columns the brackets take. */
  bracketColumns: number;
  /** How many bundles skip others, but have no bracket for want of room. */
  hiddenBrackets: number;
}

/** What a row of the graph is; a row may be several. */
export type RowMark =
  'head' | 'skipped' | 'stranded' | 'deprecated' | 'undefined' | 'added' | 'changed' | 'rewired' | 'removed';

/** A bundle in a channel. */
export interface GraphRow {
  name: string;
  version: string;
  lane: number;
  marks: RowMark[];
  replaces: string;
  /** How many it skips. */
  skips: number;
  skipRange: string;
  /** Places in the list of channels of those that have it; left out where one channel is shown. */
  channels?: number[];
  /** What its edges were in the other catalog, where they differ. */
  before?: { replaces: string; skips: number; skipRange: string };
  /** The row of what it replaces, where that is in the channel. */
  older?: number;
  /** The row of what replaces it; of several the newest. */
  newer?: number;
  /** The row of a bundle that skips it; of several the newest. */
  skippedBy?: number;
  deprecation?: string;
  errors: number;
  warnings: number;
}

/** That one bundle replaces another: from row to row, in between in a lane. */
export interface GraphEdge {
  from: number;
  to: number;
  lane: number;
  /** Against the other catalog. */
  change?: 'added' | 'removed';
}

/** That one bundle skips others: a line beside the rows from the bundle to the farthest of them. */
export interface SkipBracket {
  from: number;
  to: number[];
  column: number;
}

/** `GET api/path?package=&channel=&from=&to=`: how an installed bundle gets to another one. */
export interface UpgradePath {
  from: string;
  to: string;
  /** The fewest updates; left out where nothing leads there. */
  steps?: PathStep[];
  /** How many updates the way has that takes every version it can. */
  longest?: number;
}

/** One update. */
export interface PathStep {
  from: string;
  to: string;
  version: string;
  channel: string;
  kind: 'replaces' | 'skips' | 'skipRange';
  /** The range, for one of that kind. */
  range?: string;
}

/** `GET api/bundle?package=&bundle=`. */
export interface BundleDetails {
  package: string;
  name: string;
  version: string;
  image: string;
  displayName: string;
  provider: string;
  /** Markdown. */
  description: string;
  /** In a few words, as plain text. */
  summary: string;
  deprecation?: string;
  facts: { name: string; value: string }[];
  links: { name: string; url: string }[];
  keywords: string[];
  installModes: { type: string; isSupported: boolean }[];
  provided: BundleApi[];
  required: BundleApi[];
  /** Packages that it needs, with the range of versions. */
  requiredPackages: { package: string; range: string }[];
  /** The other conditions that it makes, each as JSON. */
  constraints: string[];
  images: { name: string; image: string }[];
  /** Undefined where the catalog does not hold the bundle's manifests. */
  permissions?: BundlePermission[];
  deployments: string[];
  /** Kinds of the manifests that the catalog holds, and how many of each. */
  manifests: { kind: string; count: number }[];
  annotations: { name: string; value: string }[];
  /** Types of properties, and how many of each. */
  properties: { type: string; count: number }[];
  places: BundlePlace[];
  problems: LocatedProblem[];
}

/** A kind of object that a bundle provides or needs. */
export interface BundleApi {
  kind: string;
  group: string;
  version: string;
  displayName: string;
  description: string;
}

/** One rule of what an account of the operator may do. */
export interface BundlePermission {
  account: string;
  /** Whether it holds in all namespaces, or in those that the operator watches. */
  isClusterWide: boolean;
  groups: string[];
  resources: string[];
  names: string[];
  urls: string[];
  verbs: string[];
}

/** Where a bundle stands in a channel. */
export interface BundlePlace {
  channel: string;
  isDefault: boolean;
  replaces: string;
  skips: string[];
  skipRange: string;
  /** What it replaces or skips and the channel does not have. */
  absent: string[];
  /** Bundles of the channel in the range. */
  covered: string[];
  /** Where an installed one may go next. */
  updatesTo: string[];
  /** From where it can be reached in one step. */
  updatesFrom: string[];
}

/** `GET api/problems?from=&package=&severity=&check=`: a window on all problems, the worst first. */
export interface ProblemWindow {
  problems: LocatedProblem[];
  /** How many there are with this package, severity and check. */
  total: number;
  /** How many of these have each severity, the worst first; severities without any are left out. */
  severities: { severity: LocatedProblem['severity']; count: number }[];
  /** The packages that have any, for the choice. */
  packages: string[];
  /** The checks that found any in these packages and of this severity, and how many. */
  checks: { name: string; count: number }[];
}

/** A finding of the checks. */
export interface LocatedProblem {
  /** A notice is worth a look, and not counted. */
  severity: 'error' | 'warning' | 'notice';
  /** The name of the check that found it; empty where it has none. */
  check: string;
  message: string;
  hint: string;
  package: string;
  channel: string;
  bundle: string;
  /** Empty where it is not in a file. */
  file: string;
  line?: number;
}

/** `GET api/compare`: what differs from the other catalog. */
export interface CatalogComparison {
  from: string;
  to: string;
  sums: { kind: string; added: number; removed: number; changed: number }[];
  packages: ComparedPackage[];
}

/** What differs in a package; sums only. Images are counted in the whole catalog, not here. */
export interface ComparedPackage {
  /** Empty for what belongs to no package. */
  package: string;
  state: 'added' | 'removed' | 'changed';
  added: number;
  removed: number;
  changed: number;
}

/** `GET api/compare/package?package=`: every difference of a package. */
export interface PackageDifferences {
  package: string;
  differences: Difference[];
}

/** One difference. */
export interface Difference {
  sign: 'added' | 'removed' | 'changed';
  kind: 'package' | 'channel' | 'bundle' | 'deprecation' | 'other blob';
  name: string;
  details: string[];
}

/** Header of requests that plan or write a selection: the token of the URL that `view --edit` prints. */
export const tokenHeader = 'Opmate-Token';

/** A package, or a channel of it: all versions, those between bounds, both included, or listed ones. */
export interface SelectionPick {
  package: string;
  channel?: string | undefined;
  minVersion?: string | undefined;
  maxVersion?: string | undefined;
  /** Only a filter can list versions. */
  versions?: readonly string[] | undefined;
}

/** What to select of a catalog, and the document to make of it: `POST api/edit/plan`, `images` and `bytes`. */
export interface SelectionRequest {
  /** `imageset` for an ImageSetConfiguration, `filter` for a CatalogFilter. */
  kind: 'imageset' | 'filter';
  /** Image of the catalog, for an image set. */
  catalog: string;
  picks: readonly SelectionPick[];
  /** Default channels to set, by package. */
  defaultChannels?: readonly { package: string; channel: string }[] | undefined;
  /** Whether a filter drops all other bundles, also those that upgrades pass through. */
  isExact?: boolean | undefined;
}

/** `POST api/edit/write`: the file is written only if it is still the one of the plan. */
export interface SelectionWrite extends SelectionRequest {
  fileDigest: string;
}

/** Answer of `api/edit/plan`: what the document would keep. */
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
      /** Bundles of the whole channel from which its head is reached, and the first of the others. */
      upgradable: number;
      stranded: string[];
      strandedCount: number;
    }[];
  }[];
  bundles: number;
  images: number;
  /** Bundles that are kept although they were not selected, and why. */
  kept: { package: string; channel: string; bundle: string; reason: string }[];
  warnings: string[];
  changes: string[];
  unmet: string[];
  missingPackages: string[];
  /** Digest of the file that would be written; empty for a new file. */
  fileDigest: string;
}

/** Answer of `api/edit/images`: every image of the selection with the bundles that are or need it. */
export interface SelectionImages {
  images: { image: string; bundles: { package: string; bundle: string }[] }[];
}

/** Answer of `api/edit/bytes`: what mirroring the images would transfer, each blob once. */
export interface SelectionBytes {
  images: number;
  bytes: number;
  packages: { name: string; bytes: number; ownBytes: number }[];
  /** The first images whose manifests are unavailable. */
  unavailable: { image: string; reason: string }[];
  unavailableCount: number;
}

/** Answer of `api/edit/write`. */
export interface WrittenFile {
  file: string;
  bytes: number;
}

/** Files of an exported page, which take the place of a server. */
export interface ExportedPage {
  catalog: CatalogOverview;
  /** By package: the script with its answers, and its icon or an empty text. */
  files: Record<string, { part: string; icon: string }>;
  /** Contents of the scripts that have been loaded, by name. */
  parts: Record<string, unknown>;
}

/** Answers a request of an exported page; `load` returns the content of a script. Throws Error. */
export type AnswerExported = (
  page: ExportedPage,
  address: string,
  load: (part: string) => Promise<unknown>,
) => Promise<unknown>;

/** What any request may be answered with instead. */
export interface ErrorResponse {
  /** One problem per line. */
  error: string;
  hint?: string;
}
