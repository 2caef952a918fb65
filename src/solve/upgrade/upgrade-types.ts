import type { OpenShiftVersion } from '../../core/openshift-version.js';
import type { Version } from '../../core/semver.js';
import type { Lifecycle } from '../../model/lifecycle.js';
import type { NamespaceState } from '../v0/namespace-state.js';
import type { CatalogKey, ResolverCatalog, ResolverEntry } from '../v0/resolver-types.js';

/** Operators of a namespace, with what decides about updates of the cluster; maps by ClusterServiceVersion. */
export interface OperatorNamespace {
  state: NamespaceState;
  /** Values of `olm.maxOpenShiftVersion` as JSON text. */
  maxOpenShift: ReadonlyMap<string, readonly string[]>;
  /** Messages of OperatorConditions that say `Upgradeable=False`. */
  notUpgradeable: ReadonlyMap<string, string>;
}

/** An operator that a cluster has. */
export interface InstalledOperator {
  namespace: string;
  /** Name of its Subscription; empty without one. */
  subscription: string;
  /** Empty if unknown. */
  package: string;
  /** Empty for all channels. */
  channel: string;
  isManual: boolean;
  csv: string;
  version: Version;
  versionText: string;
  /** Values of `olm.maxOpenShiftVersion` as JSON text. */
  maxOpenShift: readonly string[];
  /** Message of an OperatorCondition that says `Upgradeable=False`. */
  notUpgradeable: string | undefined;
}

/** A package in the catalogs of one OpenShift version. */
export interface UpgradePackage {
  name: string;
  /** Reference of its catalog. */
  catalog: string;
  /** CatalogSource that serves it. */
  source: CatalogKey;
  defaultChannel: string;
  /** Entries by channel. */
  channels: ReadonlyMap<string, readonly ResolverEntry[]>;
  lifecycle: Lifecycle | undefined;
}

/** The catalogs of one OpenShift version together. */
export interface UpgradeCatalog {
  version: OpenShiftVersion;
  /** Packages of operators and of what these may require. */
  packages: ReadonlyMap<string, UpgradePackage>;
  catalogs: readonly ResolverCatalog[];
}

/** A bundle in a channel. */
export interface ChannelPosition {
  /** Reference of the catalog that has the package; empty without one. */
  catalog: string;
  /** Empty for an installed bundle without a Subscription. */
  channel: string;
  bundle: string;
  version: string;
}

/** Something to do or to know. */
export interface UpgradeNote {
  severity: 'error' | 'warning' | 'notice';
  code: string;
  text: string;
}

/** A channel that a Subscription gets before or after an update of the cluster. */
export interface ChannelSwitch {
  phase: 'before' | 'after';
  channel: string;
  reason: string;
}

/** A bundle that OLM installs before or after an update of the cluster. */
export interface HopInstall extends ChannelPosition {
  phase: 'before' | 'after';
  /** Empty without one. */
  replaces: string;
  /** Reason why OLM installs it. */
  reason: string;
}

/** Plan of one operator for one update of the cluster. */
export interface OperatorHop {
  namespace: string;
  subscription: string;
  package: string;
  /** `ready`: nothing to do before; `change`: upgrade or change of channel before or after; `blocked`: no way. */
  status: 'ready' | 'change' | 'blocked';
  /** Reason of this status. */
  reason: string;
  /** Undefined for an operator that OLM installs as a dependency. */
  installed: ChannelPosition | undefined;
  /** Required before the cluster is updated. */
  before: ChannelPosition | undefined;
  /** Bundles that are installed before, one after the other. */
  steps: string[];
  /** Reached after the update; undefined if the catalogs of that version do not have it. */
  after: ChannelPosition | undefined;
  /** Channels to set before and after. */
  channels: ChannelSwitch[];
  /** Bundles that are installed before and after, in order. */
  installs: HopInstall[];
  /** Install plans must be approved. */
  needsApproval: boolean;
  notes: UpgradeNote[];
}

/** A release that the cluster is updated to. */
export interface HopRelease {
  /** Release that the update starts from. */
  from: string;
  version: string;
  /** Channel of the update graph. */
  channel: string;
  architecture: string;
  /** Image by digest. */
  image: string;
  /** Known risks of the update, which is then not recommended to all clusters. */
  risks: readonly { name: string; url: string; message: string }[];
}

/** A step of an update of the cluster, in order. */
export interface HopStep {
  kind: 'change-channel' | 'approve' | 'wait' | 'update-cluster' | 'use-catalogs';
  /** Namespace of the operators; empty for the cluster. */
  namespace: string;
  text: string;
  /** Reason why it is needed. */
  reason: string;
}

/** One minor or major update of the cluster. */
export interface UpgradeHop {
  from: string;
  to: string;
  /** Releases of the path, without the one that it starts from; empty if the update graph is unknown. */
  releases: HopRelease[];
  isBlocked: boolean;
  notes: UpgradeNote[];
  operators: OperatorHop[];
  /** Steps, in order. */
  order: HopStep[];
}
