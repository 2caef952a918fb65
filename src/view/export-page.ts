import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { throwIfCancelled } from '../core/errors.js';
import { type CancelOptions, takeTurn } from '../core/concurrency.js';
import { groupBy } from '../core/groups.js';
import { fillDirectory } from '../files/fill-directory.js';
import type { CatalogOverview, ExportedPage, LocatedProblem } from './responses.js';
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
      write(`data/${name}.js`, `opmatePage.parts[${JSON.stringify(name)}]=${toExpression(value)};\n`);
    await mkdir(path.join(staging, 'data'));
    const catalog: CatalogOverview = { ...view.overview(), run: 'export', isChecking: false };
    const isCompared = catalog.comparedWith !== undefined;
    const problems = await view.allProblems();
    const problemsByPackage = groupBy(problems, (problem) => problem.package);
    const files = new Map<string, ExportedPage['files'][string]>();
    for (const [number, { name, hasIcon }] of catalog.packages.entries()) {
      throwIfCancelled(signal);
      const part = `p${number}`;
      const ofPackage = problemsByPackage.get(name) ?? [];
      await writePart(part, await describePackage(view, name, ofPackage, { isCompared, signal }));
      let icon = '';
      if (hasIcon) {
        const { mediaType, content } = await view.icon(name);
        // As a file, an SVG would run its scripts on the origin of the site when opened by its URL.
        icon = `data:${mediaType};base64,${content.toString('base64')}`;
      }
      files.set(name, { part, icon });
    }
    await writePart('index', view.searchIndex());
    await writePart('problems', problems);
    if (isCompared) {
      const compare = view.compare();
      const removed = compare.packages.filter((compared) => !files.has(compared.package));
      const packages = removed.map((compared) => [compared.package, view.comparePackage(compared.package)]);
      const comparison: ExportedComparison = { compare, packages: Object.fromEntries(packages) };
      await writePart('compare', comparison);
    }
    const state: ExportedPage = { catalog, files: Object.fromEntries(files), parts: {} };
    await write('data/catalog.js', `window.opmatePage=${toExpression(state)};\n`);
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

/** Returns an expression for a value; in JSON, `__proto__` is a key like any other. */
function toExpression(value: unknown): string {
  return `JSON.parse(${JSON.stringify(JSON.stringify(value))})`;
}

async function describePackage(
  view: CatalogView,
  name: string,
  problems: LocatedProblem[],
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
    problems,
    graph,
    ...(isCompared && { differences: view.comparePackage(name) }),
  };
}
