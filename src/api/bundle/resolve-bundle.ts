import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { BundleVersion } from '../../graph/bundle-version.js';
import {
  type Resolution,
  type ResolveCatalog,
  type ResolveRequest,
  resolvePackage,
} from '../../graph/resolve.js';
import { findReadableVersion } from '../../graph/upgrade-graph.js';
import type { Session } from '../../source/session.js';
import { type NamedCatalog, readNamedCatalog } from '../named-catalogs.js';

/** Request for a bundle; an installed bundle without a version has that of the catalogs. */
export interface ResolveBundleRequest extends Omit<ResolveRequest, 'installed'> {
  installed?: { name: string; version?: BundleVersion | undefined } | undefined;
}

/** Resolution, with the request as it was resolved. */
export interface ResolvedBundle {
  resolution: Resolution;
  /** Installed bundle with its version. */
  installed: { name: string; version: BundleVersion } | undefined;
}

/**
 * Resolves the bundle of a package that OLM v1 would install, with the reasons for each candidate. `parseNamedCatalog`
 * makes catalogs of text. Throws OpmateError, NOT_FOUND for an installed bundle whose version no catalog has.
 */
export async function resolveBundle(
  request: ResolveBundleRequest,
  catalogs: readonly NamedCatalog[],
  session: Session,
): Promise<ResolvedBundle> {
  const contents: ResolveCatalog[] = [];
  for (const catalog of catalogs) {
    contents.push(await readNamedCatalog(catalog, request.packageName, session));
  }
  const installed = request.installed && findInstalled(request.installed, contents);
  return { resolution: resolvePackage({ ...request, installed }, contents), installed };
}

/** Returns the installed bundle with the version that the catalogs have, unless the caller names one. */
function findInstalled(
  { name, version }: { name: string; version?: BundleVersion | undefined },
  catalogs: readonly ResolveCatalog[],
): { name: string; version: BundleVersion } {
  if (version !== undefined) return { name, version };
  const matches = new Map<string, BundleVersion>();
  for (const { content } of catalogs) {
    for (const bundle of content.bundles) {
      const known = bundle.name === name ? findReadableVersion(bundle) : undefined;
      if (known !== undefined) matches.set(JSON.stringify([known.text, known.release.map(String)]), known);
    }
  }
  const [only, ...more] = matches.values();
  if (only !== undefined && more.length === 0) return { name, version: only };
  const problem =
    only === undefined ? 'not found in any catalog' : 'has different versions in several catalogs';
  throw new OpmateError('NOT_FOUND', `installed bundle ${quoteGo(name)}: ${problem}`, {
    hint: `set its version: --installed ${name}@VERSION`,
  });
}

/** Returns the reasons for a chosen bundle, one per line. */
export function describeChoice(resolution: Resolution, chosen: NonNullable<Resolution['chosen']>): string[] {
  const channels = chosen.channels.length === 0 ? '' : `, in channel ${chosen.channels.join(', ')}`;
  return [
    `${chosen.name}${channels}, from catalog ${chosen.catalog}`,
    `image ${chosen.image}`,
    resolution.reason,
    ...resolution.deprecations.map(({ kind, name, message }) => `deprecated ${kind} ${name}: ${message}`),
  ].filter((line) => line !== '');
}
