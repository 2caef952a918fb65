import type { OpenShiftVersion } from '../../core/openshift-version.js';
import type { Version } from '../../core/semver.js';
import type { Lifecycle } from '../../model/lifecycle.js';
import type { ResolverEntry } from '../v0/resolver-types.js';

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
  defaultChannel: string;
  /** Entries by channel. */
  channels: ReadonlyMap<string, readonly ResolverEntry[]>;
  lifecycle: Lifecycle | undefined;
}

/** The catalogs of one OpenShift version together. */
export interface UpgradeCatalog {
  version: OpenShiftVersion;
  packages: ReadonlyMap<string, UpgradePackage>;
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

/** What one update of the cluster means for an operator. */
export interface OperatorHop {
  namespace: string;
  subscription: string;
  package: string;
  /** `ready`: nothing to do before; `change`: upgrade or change of channel before or after; `blocked`: no way. */
  status: 'ready' | 'change' | 'blocked';
  installed: ChannelPosition;
  /** Where it must be before the cluster is updated. */
  before: ChannelPosition;
  /** Bundles that are installed before, one after the other. */
  steps: string[];
  /** Where OLM takes it after the update; undefined if the catalogs of that version do not have it. */
  after: ChannelPosition | undefined;
  /** Install plans must be approved. */
  needsApproval: boolean;
  notes: UpgradeNote[];
}

/** One minor or major update of the cluster. */
export interface UpgradeHop {
  from: string;
  to: string;
  /** Releases of the path between both, if the update graph is known. */
  releases: string[];
  isBlocked: boolean;
  notes: UpgradeNote[];
  operators: OperatorHop[];
}
