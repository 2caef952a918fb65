import { type Diagnostic, formatDiagnostic } from '../../core/diagnostic.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { parseReference } from '../../core/reference.js';
import type { CatalogFacts } from '../../model/facts.js';
import { CaptureWarnings } from './capture-warnings.js';
import { type CapturedCatalog, CatalogCapture } from './catalog-capture.js';
import type { ClusterObjects } from './cluster-objects.js';
import { type CatalogRequests, InstalledRequests } from './installed-requests.js';
import { type FindSource, MirrorSources } from './mirror-sources.js';

/** Catalog content that keeps a cluster installable and upgradable. */
export interface ClusterCapture {
  /** By image. */
  catalogs: CapturedCatalog[];
  /** Objects that were not mapped, or need review. */
  warnings: Diagnostic[];
  subscriptions: number;
  extensions: number;
}

/**
 * Maps installed operators of a cluster to catalogs, packages, channels and minimum versions of an image set.
 * `knownFacts` has known catalogs by their images in the cluster. The source of a mirrored catalog is, in this order, that
 * of `findSource`, its annotation, and that of the mirror sets of the cluster. Throws DiagnosticsError with all unreadable documents,
 * and OpmateError NOT_FOUND if nothing is installed, or nothing can be mapped.
 */
export function captureCluster(
  objects: ClusterObjects,
  knownFacts: ReadonlyMap<string, CatalogFacts>,
  findSource: FindSource = () => undefined,
): ClusterCapture {
  const { subscriptions, extensions } = objects;
  requireInstalled(objects);
  const warnings = new CaptureWarnings(objects.faults);
  const sources = new MirrorSources(objects, findSource);
  const installed = new InstalledRequests(objects, knownFacts, sources, warnings);
  installed.addAll();
  const catalogs = sortedByBytes(installed.requested.keys()).flatMap((image) => {
    const known =
      knownFacts.get(image) ?? [...knownFacts].find(([own]) => sources.getSource(own) === image)?.[1];
    const requests = installed.requested.get(image) as CatalogRequests;
    return new CatalogCapture(image, known, warnings).capture(requests) ?? [];
  });
  if (catalogs.length === 0) {
    const [first] = warnings.list;
    throw new OpmateError('NOT_FOUND', 'nothing installed could be mapped to a catalog', {
      hint: first && `check ${formatDiagnostic(first)}`,
    });
  }
  nameTargets(catalogs);
  return {
    catalogs,
    warnings: warnings.list,
    subscriptions: subscriptions.length,
    extensions: extensions.length,
  };
}

/** Throws for unreadable documents, whose content would be missing in the image set, and if nothing is installed. */
function requireInstalled({ subscriptions, extensions, faults }: ClusterObjects): void {
  const errors = faults.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) throw new DiagnosticsError(errors, { code: 'INVALID' });
  if (subscriptions.length + extensions.length > 0) return;
  const unread = faults.find(({ code }) => code === 'syntax');
  throw new OpmateError('NOT_FOUND', 'no Subscription or ClusterExtension found', {
    hint:
      unread === undefined
        ? 'use the output of kubectl get subscriptions,clusterextensions,csv,catalogsources,clustercatalogs -A -o yaml'
        : `check ${formatDiagnostic(unread)}`,
  });
}

/** Sets different paths for catalogs with one path and tag in several registries. */
function nameTargets(catalogs: CapturedCatalog[]): void {
  const taken = new Map<string, number>();
  for (const catalog of catalogs) {
    const reference = parseReference(catalog.image);
    if (reference.transport !== 'docker') continue;
    const { repository, tag, digest } = reference;
    const name = `${repository}:${tag ?? (digest === undefined ? 'latest' : digest)}`;
    const count = (taken.get(name) ?? 0) + 1;
    taken.set(name, count);
    if (count > 1) catalog.targetCatalog = `${repository}-${count}`;
  }
}
