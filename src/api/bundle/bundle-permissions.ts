import type { BundleFile } from '../../bundle/read.js';
import { convertRegistryV1 } from '../../bundle/plain/registry-v1/convert.js';
import {
  type MissingRule,
  checkRoles,
  heldRules,
  missingRules,
} from '../../bundle/plain/rights/can-install.js';
import {
  type CloudPermission,
  getCloudPermissions,
  getClouds,
  isCloudWildcard,
  takeCredentialsRequests,
} from '../../bundle/plain/rights/cloud-permissions.js';
import { type Impact, getImpacts, impactSummaries } from '../../bundle/plain/rights/impact.js';
import { installerObjects, neededRules } from '../../bundle/plain/rights/installer.js';
import { type Right, getRights, rightsBeyond } from '../../bundle/plain/rights/rights.js';
import { riskSummaries } from '../../bundle/plain/rights/risks.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { readManifests } from '../../kube/manifests.js';
import type { PlainObject } from '../../kube/object.js';
import type { Pin } from '../../source/content/content-types.js';
import type { Session } from '../../source/session.js';
import { type BundleSourceOptions, type SourceOpener, useSources } from './bundle-sources.js';
import type { RenderedBundle } from './render-bundle.js';

/** Meanings of the risks of rights and of the kinds of impacts. */
export const permissionRisks: Readonly<Record<string, string>> = { ...riskSummaries, ...impactSummaries };

/** Options of `readBundlePermissions`. */
export interface PermissionsOptions extends BundleSourceOptions {
  installNamespace: string;
  /** Namespaces to watch; default those that the bundle supports. */
  watchNamespaces?: readonly string[] | undefined;
  /** Older bundle to compare with. */
  older?: string | undefined;
  /** File with the roles of an installer, to be compared with what installing the bundle requires. */
  roles?: BundleFile | undefined;
}

/** Permissions that an installed operator has; empty if there are findings. */
export interface BundlePermissions extends Omit<RenderedBundle, 'warnings' | 'omitted'> {
  /** Name of the package. */
  name: string;
  installNamespace: string;
  rights: Right[];
  /** Effects on the cluster beyond permissions, such as host access. */
  impacts: Impact[];
  /** Clouds for which the operator requests credentials. */
  clouds: string[];
  cloud: CloudPermission[];
}

/** Permissions of one bundle beyond another. */
export type ExcessPermissions = Pick<BundlePermissions, 'rights' | 'impacts' | 'cloud'>;

/** Permissions of a bundle, and of an older one. */
export interface ComparedPermissions extends BundlePermissions {
  older: BundlePermissions | undefined;
  /** Permissions that the older bundle lacks; all without one. */
  added: ExcessPermissions;
  /** Permissions that only the older bundle has. */
  removed: ExcessPermissions | undefined;
  /** Cloud permissions of `added` for all actions or roles. */
  cloudWildcards: CloudPermission[];
  /** With `roles`, permissions that these lack for installing the bundle; undefined for one with findings. */
  missing: MissingRule[] | undefined;
  /** The sources that were read, pinned. */
  pins: readonly Pin[];
}

/**
 * Returns the permissions that a bundle has once installed, and their difference from those of an older one. Throws
 * OpmateError for a bundle that cannot be read, for invalid roles, and for a file without any.
 */
export async function readBundlePermissions(
  reference: string,
  session: Session,
  options: PermissionsOptions,
): Promise<ComparedPermissions> {
  return useSources(session, options, async (sources) => {
    const permissions = await readPermissions(reference, sources, options);
    const older =
      options.older === undefined ? undefined : await readPermissions(options.older, sources, options);
    const added = older === undefined ? permissions : getExcess(permissions, older);
    const isInstallable = [permissions, older].every((one) => one === undefined || canInstall(one));
    return {
      ...permissions,
      older,
      added,
      removed: older && getExcess(older, permissions),
      cloudWildcards: added.cloud.filter(isCloudWildcard),
      missing: options.roles && isInstallable ? findMissing(permissions, options.roles) : undefined,
      pins: sources.pins,
    };
  });
}

/** Reports whether a bundle was read without findings. */
export function canInstall({ name, findings }: BundlePermissions): boolean {
  return findings.length === 0 && name !== '';
}

/** Returns the service account, roles and bindings that installing a bundle requires. Default name: PACKAGE-installer. */
export function createInstaller(
  { name, objects, installNamespace }: BundlePermissions,
  installer = `${name}-installer`,
): PlainObject[] {
  return installerObjects(installer, installNamespace, neededRules(objects, name, installNamespace));
}

function getExcess(one: BundlePermissions, other: BundlePermissions): ExcessPermissions {
  return {
    rights: rightsBeyond(one.rights, other.rights),
    impacts: beyond(one.impacts, other.impacts),
    cloud: beyond(one.cloud, other.cloud),
  };
}

/** Returns the items that another list lacks. */
function beyond<T>(list: readonly T[], others: readonly T[]): T[] {
  const known = new Set(others.map((other) => JSON.stringify(other)));
  return list.filter((item) => !known.has(JSON.stringify(item)));
}

function findMissing(
  { name, objects, installNamespace }: BundlePermissions,
  roles: BundleFile,
): MissingRule[] {
  const { manifests, findings } = readManifests([roles], { prefix: '', isWritten: true });
  const errors = [...findings, ...checkRoles(manifests)];
  if (errors.length > 0) throw new DiagnosticsError(errors, { code: 'INVALID' });
  const held = heldRules(manifests);
  if (held.length > 0) return missingRules(neededRules(objects, name, installNamespace), held);
  throw new OpmateError('INVALID', 'holds no Role or ClusterRole', {
    subject: roles.name,
    hint: 'export the roles of the installer, e.g. with kubectl get clusterrole NAME -o yaml',
  });
}

async function readPermissions(
  reference: string,
  sources: SourceOpener,
  { installNamespace, watchNamespaces }: PermissionsOptions,
): Promise<BundlePermissions> {
  const { files: all, isInPlace } = await sources.readBundle(reference);
  const { files, requests } = takeCredentialsRequests(all);
  const { objects, findings, bundle } = convertRegistryV1(files, { installNamespace, watchNamespaces });
  const isInstallable = findings.length === 0 && bundle !== undefined;
  return {
    name: bundle?.packageName ?? '',
    installNamespace,
    objects,
    rights: isInstallable ? getRights(objects) : [],
    impacts: isInstallable ? getImpacts(objects, installNamespace) : [],
    clouds: isInstallable ? getClouds(bundle) : [],
    cloud: isInstallable ? getCloudPermissions(requests) : [],
    findings,
    isInPlace,
  };
}
