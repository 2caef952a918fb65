import type { SearchResult, SearchMatch } from './answers.js';

/** Bundles that a search finds at most. */
const searchLimit = 50;
/** Characters of a text that are shown around what matched. */
const snippetLength = 90;

/** What a search looks through. The server keeps it in memory; an exported page loads it. */
export interface SearchIndex {
  packages: SearchedPackage[];
  /** Every image of the catalog, once. */
  images: string[];
}

/** A package as a search sees it. */
export interface SearchedPackage {
  name: string;
  displayName: string;
  provider: string;
  categories: string[];
  keywords: string[];
  /** APIs that any of its bundles provides, `GROUP/VERSION/KIND`. */
  apis: string[];
  description: string;
  bundles: SearchedBundle[];
}

/** A bundle as a search sees it. */
interface SearchedBundle {
  name: string;
  version: string;
  /** A channel that contains it, preferably the default one; empty if no channel does. */
  channel: string;
  /** Places of its own image and of those that it needs in the list of all images; the own one is first, or −1. */
  images: number[];
}

/**
 * Finds packages and bundles that have all words of a query, in whatever case: packages in names, provider, categories,
 * APIs, keywords and description, bundles in name, version and images. Whatever matched in its name comes first.
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
        ...{
          package: searchedPackage.name,
          channel,
          bundle: name,
          version,
          image: images[bundle.images[0] ?? -1] ?? '',
        },
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
  const fields: [SearchMatch['field'] | undefined, string][] = [
    [undefined, searchedPackage.name],
    [undefined, searchedPackage.displayName],
    ['provider', searchedPackage.provider],
    ...searchedPackage.categories.map((text) => ['category', text] as [SearchMatch['field'], string]),
    ...searchedPackage.apis.map((text) => ['API', text] as [SearchMatch['field'], string]),
    ...searchedPackage.keywords.map((text) => ['keyword', text] as [SearchMatch['field'], string]),
    ['description', searchedPackage.description],
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
  const own = `${name} ${version}`.toLowerCase();
  let rank = 0;
  let matched = -1;
  for (const [index, word] of words.entries()) {
    if (own.includes(word)) continue;
    const place = images.findIndex((image) => hits[index]?.[image] === true);
    if (place < 0) return undefined;
    rank = Math.max(rank, place === 0 ? 1 : 2);
    if (matched < 0 || place === 0) matched = images[place] as number;
  }
  if (rank === 0) return { rank, image: -1 };
  return { rank, field: rank === 1 ? 'image' : 'related image', image: matched };
}

/** The part of a text around a word, cut at words. */
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
