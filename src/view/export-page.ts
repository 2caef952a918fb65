import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { throwIfCancelled } from '../core/errors.js';
import { type CancelOptions, takeTurn } from '../core/concurrency.js';
import { fillDirectory } from '../files/fill-directory.js';
import type { CatalogOverview, ExportedPage } from './responses.js';
import type { CatalogView } from './catalog-view.js';
import type { ExportedComparison, ExportedPackage } from './exported-requests.js';
import { readPageFiles } from './page-files.js';

/** Content Security Policy of an exported page: its own files, from a server or from the disk. */
const exportPolicy =
  "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file: data:; " +
  "base-uri 'none'; form-action 'none'";

/**
 * Writes the page with all its data to a new or empty directory, for any web server or to be opened from the disk: one
 * script per package, in files named by number; icons are part of the scripts. The same catalogs result in the same
 * bytes. The directory appears whole or not at all. Checks must have ended.
 * Throws OpmateError.
 */
export async function exportPage(
  view: CatalogView,
  directory: string,
  { signal }: CancelOptions = {},
): Promise<void> {
  const page = readPageFiles(['index.html', 'page.css', 'page.js', 'exported.js']);
  await fillDirectory(directory, async (staging) => {
    const write = (name: string, content: string | Buffer): Promise<void> =>
      writeFile(path.join(staging, name), content);
    const writePart = (name: string, value: unknown): Promise<void> =>
      writeFile(
        path.join(staging, `data/${name}.js`),
        inBatches(toStatement(`opmatePage.parts[${JSON.stringify(name)}]`, value)),
      );
    await mkdir(path.join(staging, 'data'));
    const catalog: CatalogOverview = { ...view.overview(), run: 'export', isChecking: false };
    const isCompared = catalog.comparedWith !== undefined;
    const files = new Map<string, ExportedPage['files'][string]>();
    for (const [number, { name, hasIcon }] of catalog.packages.entries()) {
      throwIfCancelled(signal);
      const part = `p${number}`;
      await writePart(part, await describePackage(view, name, { isCompared, signal }));
      let icon = '';
      if (hasIcon) {
        const { mediaType, content } = await view.icon(name);
        // As a file, an SVG would run its scripts on the origin of the site when opened by its URL.
        icon = `data:${mediaType};base64,${content.toString('base64')}`;
      }
      files.set(name, { part, icon });
    }
    await writePart('index', view.streamSearchIndex());
    await writePart('problems', view.streamProblems());
    if (isCompared) {
      const compare = view.compare();
      const removed = compare.packages.filter((compared) => !files.has(compared.package));
      const packages = removed.map((compared) => [compared.package, view.comparePackage(compared.package)]);
      const comparison: ExportedComparison = { compare, packages: Object.fromEntries(packages) };
      await writePart('compare', comparison);
    }
    const state: ExportedPage = { catalog, files: Object.fromEntries(files), parts: {} };
    await writeFile(
      path.join(staging, 'data/catalog.js'),
      inBatches(toStatement('window.opmatePage', state)),
    );
    for (const [name, content] of page)
      await write(name, name === 'index.html' ? toExportedHtml(content) : content);
  });
}

/** Adds the policy and the scripts that replace the server. */
function toExportedHtml(html: Buffer): string {
  const policy = `<meta http-equiv="Content-Security-Policy" content="${exportPolicy}" />\n    `;
  const scripts = ['data/catalog.js', 'exported.js']
    .map((file) => `<script src="${file}" defer></script>\n    `)
    .join('');
  return html
    .toString()
    .replace(/<link rel="preload"[^>]*>\s*/, '')
    .replace('<meta name="viewport"', `${policy}<meta name="viewport"`)
    .replace('<script src="page.js"', `${scripts}<script src="page.js"`);
}

/** Returns the pieces of an assignment of a value; in JSON, `__proto__` is a key like any other. */
async function* toStatement(place: string, value: unknown): AsyncGenerator<string> {
  yield `${place}=JSON.parse("`;
  const pieces = isStream(value) ? joinLists(value) : toJson(value, 2);
  for await (const piece of pieces) yield JSON.stringify(piece).slice(1, -1);
  yield '");\n';
}

function isStream(value: unknown): value is AsyncIterable<unknown[]> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** Returns the JSON of one array with the items of all lists. */
async function* joinLists(lists: AsyncIterable<unknown[]>): AsyncGenerator<string> {
  let separator = '[';
  for await (const list of lists) {
    if (list.length === 0) continue;
    yield separator + list.map((item) => JSON.stringify(item)).join(',');
    separator = ',';
  }
  yield separator === '[' ? '[]' : ']';
}

/** Returns the JSON of a value in pieces, one per field or item down to a depth; an iterator becomes an array. */
function* toJson(value: unknown, depth: number): Generator<string> {
  if (depth > 0 && isIterable(value)) {
    let separator = '[';
    for (const item of value) {
      yield separator;
      yield* toJson(item, depth - 1);
      separator = ',';
    }
    yield separator === '[' ? '[]' : ']';
  } else if (depth > 0 && typeof value === 'object' && value !== null) {
    let separator = '{';
    for (const [key, field] of Object.entries(value)) {
      if (field === undefined) continue;
      yield `${separator}${JSON.stringify(key)}:`;
      yield* toJson(field, depth - 1);
      separator = ',';
    }
    yield separator === '{' ? '{}' : '}';
  } else yield JSON.stringify(value);
}

/** Looks for a symbol: objects by package or bundle name may have any text as key. */
function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

/** Characters that are written at once. */
const batchLength = 256 * 1024;

/** Joins pieces for fewer writes. */
async function* inBatches(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let batch = '';
  for await (const piece of pieces) {
    batch += piece;
    if (batch.length < batchLength) continue;
    yield batch;
    batch = '';
  }
  yield batch;
}

async function describePackage(
  view: CatalogView,
  name: string,
  { isCompared, signal }: { isCompared: boolean } & CancelOptions,
): Promise<ExportedPackage> {
  const graph = view.graphFacts(name);
  const names = new Set([
    ...graph.bundles.map((bundle) => bundle.name),
    ...graph.channels.flatMap(({ entries }) => entries.map((entry) => entry.name)),
  ]);
  const bundles: [string, ExportedPackage['bundles'][string]][] = [];
  for (const bundle of names) {
    throwIfCancelled(signal);
    await takeTurn();
    bundles.push([bundle, await view.describeBundle(name, bundle)]);
  }
  return {
    details: await view.describePackage(name),
    bundles: Object.fromEntries(bundles),
    problems: await view.packageProblems(name),
    graph,
    ...(isCompared && { differences: view.comparePackage(name) }),
  };
}
