import { convertRegistryV1 } from '../../bundle/plain/registry-v1/convert.js';
import {
  type CloudPermission,
  getCloudPermissions,
  getClouds,
  takeCredentialsRequests,
} from '../../bundle/plain/rights/cloud-permissions.js';
import { type Impact, getImpacts } from '../../bundle/plain/rights/impact.js';
import { type Right, getRights } from '../../bundle/plain/rights/rights.js';
import type { Pin } from '../../source/content/content-types.js';
import type { Session } from '../../source/session.js';
import { type BundleSourceOptions, type SourceOpener, useSources } from './bundle-sources.js';
import type { RenderedBundle } from './render-bundle.js';

/** Options of `readBundlePermissions`. */
export interface PermissionsOptions extends BundleSourceOptions {
  installNamespace: string;
  /** Namespaces to watch; default those that the bundle supports. */
  watchNamespaces?: readonly string[] | undefined;
  /** Older bundle to compare with. */
  older?: string | undefined;
}

/** Permissions that an installed operator has; empty if there are findings. */
export interface BundlePermissions extends Omit<RenderedBundle, 'warnings'> {
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

/** Permissions of a bundle, and of an older one. */
export interface ComparedPermissions extends BundlePermissions {
  older: BundlePermissions | undefined;
  /** The sources that were read, pinned. */
  pins: readonly Pin[];
}

/**
 * Returns the permissions that a bundle has once installed, and those of an older one; `rightsBeyond` compares them.
 * Throws OpmateError for a bundle that cannot be read.
 */
export async function readBundlePermissions(
  reference: string,
  session: Session,
  options: PermissionsOptions,
): Promise<ComparedPermissions> {
  return useSources(session, options, async (sources) => {
    const permissions = await readPermissions(reference, sources, options);
    const { older } = options;
    return {
      ...permissions,
      older: older === undefined ? undefined : await readPermissions(older, sources, options),
      pins: sources.pins,
    };
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
