import { parseNamedRange } from '../../catalog/selection/filter-criteria.js';
import { inContext } from '../../core/diagnostics-error.js';
import { OpmateError, UsageError, invalidValue, readValue } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { type BundleVersion, parseBundleVersion } from '../../graph/bundle-version.js';
import {
  type Resolution,
  type ResolveCatalog,
  type ResolveRequest,
  resolvePackage,
} from '../../graph/resolve.js';
import { parseLabelSelector } from '../../graph/resolve-selector.js';
import { findReadableVersion } from '../../graph/upgrade-graph.js';
import type { Session } from '../../source/session.js';
import { type NamedCatalog, readNamedCatalog } from '../named-catalogs.js';

/** A bundle of a cluster; one without a version has that of the catalogs. */
export interface NamedBundle {
  name: string;
  version?: BundleVersion | string | undefined;
}

/** Request for a bundle. */
export interface ResolveBundleRequest extends Omit<ResolveRequest, 'installed'> {
  installed?: NamedBundle | undefined;
  /** Labels of the catalogs to use, as `kubectl --selector` selects; default all. */
  selector?: string | undefined;
}

/** Maximum characters of a range and number of channels of OLM v1. */
const maxRange = 64;
const maxChannels = 256;

/** Resolution, with the request as it was resolved. */
export interface ResolvedBundle {
  resolution: Resolution;
  /** Installed bundle with its version. */
  installed: { name: string; version: BundleVersion } | undefined;
}

/**
 * Resolves the bundle of a package that OLM v1 would install, with the reasons for each candidate. `parseNamedCatalog`
 * makes catalogs of text. Throws OpmateError, NOT_FOUND for an installed bundle whose version no catalog has, and USAGE
 * for values that OLM v1 refuses.
 */
export async function resolveBundle(
  request: ResolveBundleRequest,
  catalogs: readonly NamedCatalog[],
  session: Session,
): Promise<ResolvedBundle> {
  const { packageName, versionRange, installed: named, selector } = request;
  checkRequest(request);
  const known = named && readInstalled(named);
  const contents: ResolveCatalog[] = [];
  for (const catalog of selectCatalogs(catalogs, selector)) {
    contents.push(await readNamedCatalog(catalog, packageName, session));
  }
  const installed = known && findInstalled(known, contents);
  const { channels, policy } = request;
  const resolution = resolvePackage({ packageName, versionRange, channels, policy, installed }, contents);
  return { resolution, installed };
}

/** Returns an installed bundle with its version parsed. Throws UsageError. */
export function readInstalled({ name, version }: NamedBundle): {
  name: string;
  version: BundleVersion | undefined;
} {
  const text = typeof version === 'string' ? `${name}@${version}` : name;
  return readValue('installed bundle', text, () => {
    if (name === '') throw new UsageError('no bundle is named');
    if (typeof version !== 'string') return { name, version };
    const subject = `version ${quoteGo(version)}`;
    return { name, version: inContext({ subject }, () => parseBundleVersion(version)) };
  });
}

/** Throws UsageError for values that OLM v1 refuses. */
function checkRequest({ versionRange, channels }: ResolveBundleRequest): void {
  if (versionRange.length > maxRange) {
    throw new UsageError(`options.versionRange: longer than ${maxRange} characters, the maximum of OLM v1`);
  }
  if (channels.length > maxChannels) {
    throw new UsageError(`options.channels: more than ${maxChannels} of them, the maximum of OLM v1`);
  }
  if (versionRange !== '')
    readValue('options.versionRange', versionRange, (text) => parseNamedRange(text, 'olm-v1'));
}

function selectCatalogs(
  catalogs: readonly NamedCatalog[],
  selector: string | undefined,
): readonly NamedCatalog[] {
  const names = catalogs.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw invalidValue('options.catalog', twice, 'duplicate name');
  if (selector === undefined) return catalogs;
  const isSelected = parseLabelSelector(selector);
  const selected = catalogs.filter(({ labels }) => isSelected(labels));
  if (selected.length > 0) return selected;
  throw invalidValue('options.selector', selector, 'no catalog has such labels');
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
    hint: `set its version: options.installed ${name}@VERSION`,
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
