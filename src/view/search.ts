import type { SearchResult, SearchMatch } from './responses.js';

/** Maximum bundles of a result. */
const searchLimit = 50;
/** Characters of a snippet. */
const snippetLength = 90;

/** Searchable contents of a catalog. The server keeps it in memory; an exported page loads it. */
export interface SearchIndex {
  packages: SearchedPackage[];
  /** Unique images of the catalog. */
  images: string[];
}

/** Searchable fields of a package. */
export interface SearchedPackage {
  name: string;
  displayName: string;
  provider: string;
  categories: string[];
  keywords: string[];
  /** APIs that its bundles provide, `GROUP/VERSION/KIND`. */
  apis: string[];
  description: string;
  bundles: SearchedBundle[];
}

interface SearchedBundle {
  name: string;
  version: string;
  /** A channel that contains it, preferably the default one; empty if no channel does. */
  channel: string;
  /** Indexes into `images` of the catalog: the bundle image, −1 for none, then related images. */
  images: number[];
}

/**
 * Finds packages and bundles that contain all words of a query, ignoring case: packages in names, provider, categories,
 * APIs, keywords and description, bundles in name, version and images. Matches of names come first.
 */
export function searchCatalog({ packages, images }: SearchIndex, query: string): SearchResult {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return { packages: [], bundles: [], total: 0 };
  const results = packages.flatMap((searchedPackage) => {
    const matched = matchPackage(searchedPackage, words);
    return matched === undefined ? [] : [{ package: searchedPackage.name, ...matched }];
  });
  results.sort((a, b) => a.rank - b.rank);
  const hits = words.map((word) => images.map((image) => image.toLowerCase().includes(word)));
  const ranked: SearchResult['bundles'][] = [[], [], []];
  let total = 0;
  for (const searchedPackage of packages) {
    for (const bundle of searchedPackage.bundles) {
      const matched = matchBundle(bundle, words, hits);
      if (matched === undefined) continue;
      total++;
      const { rank, field, image } = matched;
      const list = ranked[rank] as SearchResult['bundles'];
      if (list.length >= searchLimit) continue;
      const { name, version, channel } = bundle;
      list.push({
        package: searchedPackage.name,
        channel,
        bundle: name,
        version,
        image: images[bundle.images[0] ?? -1] ?? '',
        ...(field !== undefined && { match: { field, text: images[image] ?? '' } }),
      });
    }
  }
  return {
    packages: results.map(({ package: name, matches }) => ({ package: name, matches })),
    bundles: ranked.flat().slice(0, searchLimit),
    total,
  };
}

function matchPackage(
  searchedPackage: SearchedPackage,
  words: readonly string[],
): { rank: number; matches: SearchMatch[] } | undefined {
  const { name, displayName, provider, categories, apis, keywords, description } = searchedPackage;
  const fields: [SearchMatch['field'] | undefined, string][] = [
    [undefined, name],
    [undefined, displayName],
    ['provider', provider],
    ...categories.map((text): (typeof fields)[number] => ['category', text]),
    ...apis.map((text): (typeof fields)[number] => ['API', text]),
    ...keywords.map((text): (typeof fields)[number] => ['keyword', text]),
    ['description', description],
  ];
  const matches = new Map<string, SearchMatch>();
  let rank = 0;
  for (const word of words) {
    const index = fields.findIndex(([, text]) => text.toLowerCase().includes(word));
    const [field, text] = fields[index] ?? [];
    if (text === undefined) return undefined;
    if (field === undefined) continue;
    rank = Math.max(rank, field === 'description' ? 2 : 1);
    matches.set(`${field}\0${text}`, { field, text: cutSnippet(text, word) });
  }
  return { rank, matches: [...matches.values()] };
}

function matchBundle(
  { name, version, images }: SearchedBundle,
  words: readonly string[],
  hits: readonly boolean[][],
): { rank: number; field?: SearchMatch['field']; image: number } | undefined {
  const names = `${name} ${version}`.toLowerCase();
  let rank = 0;
  let matched = -1;
  for (const [index, word] of words.entries()) {
    if (names.includes(word)) continue;
    const place = images.findIndex((image) => hits[index]?.[image] === true);
    if (place < 0) return undefined;
    rank = Math.max(rank, place === 0 ? 1 : 2);
    if (matched < 0 || place === 0) matched = images[place] as number;
  }
  if (rank === 0) return { rank, image: -1 };
  return { rank, field: rank === 1 ? 'image' : 'related image', image: matched };
}

/** Returns the part of a text around a word, truncated between words. */
function cutSnippet(text: string, word: string): string {
  if (text.length <= snippetLength) return text;
  const position = text.toLowerCase().indexOf(word);
  const from = Math.max(0, position - (snippetLength - word.length) / 2);
  const start = from === 0 ? 0 : text.lastIndexOf(' ', from + 12) + 1 || Math.floor(from);
  const part = text
    .slice(start, start + snippetLength)
    .replace(/\*\*|`/g, '')
    .replace(/\s+/g, ' ');
  return `${start > 0 ? '…' : ''}${part}${start + snippetLength < text.length ? '…' : ''}`;
}
