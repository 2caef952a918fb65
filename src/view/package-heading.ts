import type { Catalog } from '../catalog/catalog.js';
import { examineBundle } from '../catalog/doctor/examine-bundle.js';
import { FindingList } from '../catalog/doctor/finding-list.js';
import { allowedOpenShift } from '../core/openshift-limits.js';
import type { BundleBlob, PackageBlob } from '../model/declarative-config.js';
import { decodeBundle, decodePackage } from '../model/decode.js';
import type { BlobOrigin, BundleFacts, PackageFacts } from '../model/facts.js';
import type { PackageSummary } from './responses.js';
import { readBundleHeading } from './bundle-details.js';
import { type ViewedPackage, findDefaultHead } from './viewed-package.js';

/** Media types of icons that browsers show without running code. */
const iconTypes: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/svg+xml'];
/** Maximum size of an icon in bytes. */
const maxIconBytes = 2 * 1024 * 1024;
/** Maximum characters of a description that searches read. */
const maxSearched = 20_000;
/** Maximum characters of a summary. */
const maxSummary = 180;

/** Icon of a package. */
export interface Icon {
  mediaType: string;
  content: Buffer;
}

/** Fields of a package that the list of packages and searches use. */
export type PackageHeading = Awaited<ReturnType<typeof readPackageHeading>>;

/** Reads the heading of a package from its blob and from the bundle at the head of its default channel. */
export async function readPackageHeading(catalog: Catalog, viewedPackage: ViewedPackage) {
  const { facts, bundles } = viewedPackage;
  const blob = await readDecodedBlob(catalog, facts, decodePackage);
  const head = await readDecodedBlob(
    catalog,
    bundles.get(findDefaultHead(viewedPackage)),
    (value, origin) => {
      const bundle = decodeBundle(value);
      return { ...readBundleHeading(bundle), openshift: readOpenShift(bundle, origin) };
    },
  );
  return {
    displayName: head?.displayName ?? '',
    provider: head?.provider ?? '',
    summary: summarizeText([head?.summary, blob?.description, head?.description]),
    hasIcon: blob !== undefined && readIcon(blob) !== undefined,
    categories: head?.categories ?? [],
    keywords: head?.keywords ?? [],
    description: (blob?.description || head?.description || '').slice(0, maxSearched),
    ...(head?.openshift !== undefined && { openshift: head.openshift }),
  };
}

/** Reads and decodes the blob of some facts; returns undefined without a blob. */
export async function readDecodedBlob<T>(
  catalog: Catalog,
  facts: PackageFacts | BundleFacts | undefined,
  decode: (value: Awaited<ReturnType<Catalog['read']>>, origin: BlobOrigin) => T,
): Promise<T | undefined> {
  if (facts?.origin === undefined) return undefined;
  return decode(await catalog.read(facts.origin), facts.origin);
}

/** Returns the icon of a package; undefined without one, or for an unsupported media type or size. */
export function readIcon({ icon }: PackageBlob): Icon | undefined {
  const data = icon?.base64data ?? '';
  const mediaType = icon?.mediatype.toLowerCase() ?? '';
  if (data === '' || !iconTypes.includes(mediaType) || data.length > (maxIconBytes / 3) * 4) return undefined;
  return { mediaType, content: Buffer.from(data, 'base64') };
}

/** Returns the first text that is not empty without its Markdown, on one line, truncated at a word. */
export function summarizeText(texts: readonly (string | undefined)[]): string {
  const plain = texts.map((text) => removeMarkdown(text ?? '')).find((text) => text !== '') ?? '';
  if (plain.length <= maxSummary) return plain;
  const start = plain.slice(0, maxSummary);
  return `${start.slice(0, Math.max(start.lastIndexOf(' '), maxSummary - 40))}…`;
}

function removeMarkdown(text: string): string {
  return text
    .slice(0, 8 * maxSummary)
    .split('\n')
    .filter((line) => !/^\s*(#|[-=*_]{3,}\s*$|```|\|)/.test(line))
    .join(' ')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[*_`]{1,3}([^*_`]+)[*_`]{1,3}/g, '$1')
    .replace(/\s+/g, ' ')
    .trim();
}

function readOpenShift(bundle: BundleBlob, origin: BlobOrigin): PackageSummary['openshift'] {
  try {
    return allowedOpenShift(examineBundle(bundle, origin, new FindingList(new Set(), undefined)));
  } catch {
    // The checks report it.
    return undefined;
  }
}
