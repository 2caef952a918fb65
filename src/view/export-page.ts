import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { throwIfCancelled } from '../core/errors.js';
import type { CancelOptions } from '../core/concurrency.js';
import { fillDirectory } from '../files/fill-directory.js';
import type { CatalogAnswer, ProblemAnswer, StaticPage } from './answers.js';
import type { CatalogView } from './catalog-view.js';
import { readPage } from './view-server.js';

/** What an exported page may load and run: its own files, from a server or from the disk. */
const exportPolicy =
  "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file: data:; " +
  "base-uri 'none'; form-action 'none'";
const extensions: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/svg+xml': 'svg',
};

interface ExportOptions extends CancelOptions {
  readAt: string;
  /** Where the page's files are; where they are built by default. */
  pageDirectory?: string | undefined;
}

/**
 * Writes the page with all answers to a new or empty directory, as files that any web server can serve and a browser can open
 * from the disk: per package one script with its channels and bundles. File names are numbers, whatever the catalog's
 * names are. The directory appears whole or not at all. Call it when no checks are running. Throws OpmateError.
 */
export async function exportPage(
  view: CatalogView,
  directory: string,
  { readAt, signal, pageDirectory }: ExportOptions,
): Promise<void> {
  const page = await readPage(pageDirectory);
  await fillDirectory(directory, async (staging) => {
    const write = (name: string, content: string | Buffer): Promise<void> =>
      writeFile(path.join(staging, name), content);
    const part = (name: string, value: unknown): Promise<void> =>
      write(`data/${name}.js`, `opmateStatic.parts[${JSON.stringify(name)}]=${JSON.stringify(value)};\n`);
    await mkdir(path.join(staging, 'data'));
    const catalog: CatalogAnswer = { ...view.overview(), run: 'export', readAt, isChecking: false };
    const compare = catalog.comparedWith === undefined ? [''] : ['', 'yes'];
    const files: StaticPage['files'] = {};
    for (const [number, { name, hasIcon }] of catalog.packages.entries()) {
      throwIfCancelled(signal);
      const answers: Record<string, unknown> = {};
      const add = (kind: string, values: Record<string, string>, answer: unknown): void => {
        answers[`api/${kind}?${new URLSearchParams(values).toString()}`] = answer;
      };
      const own = await view.package(name);
      add('package', { package: name }, own);
      const bundles = new Set(
        view
          .searchIndex()
          .packages.find((one) => one.name === name)
          ?.bundles.map((one) => one.name),
      );
      const graphs: Record<string, string> = {};
      for (const [place, { name: channel }] of own.channels.entries()) {
        for (const one of compare) {
          const answer = await view.channel(name, [channel], one === 'yes');
          add('channel', { package: name, channel, compare: one }, answer);
          if (one === '') for (const row of answer.rows) bundles.add(row.name);
        }
        const svg: string[] = [];
        for await (const text of view.channelSvg(name, channel)) svg.push(text);
        graphs[channel] = `data/p${number}-${place}.svg`;
        await write(graphs[channel], svg.join(''));
      }
      for (const bundle of bundles) add('bundle', { package: name, bundle }, await view.bundle(name, bundle));
      if (catalog.comparedWith !== undefined)
        add('compare/package', { package: name }, view.comparePackage(name));
      await part(`p${number}`, answers);
      let icon = '';
      if (hasIcon) {
        const { mediaType, content } = await view.icon(name);
        icon = `data/i${number}.${extensions[mediaType] ?? 'bin'}`;
        await write(icon, content);
      }
      files[name] = { part: `p${number}`, icon, graphs };
    }
    await part('index', view.searchIndex());
    const problems: ProblemAnswer[] = [];
    for (;;) {
      const next = await view.problems(problems.length, '', '', '');
      problems.push(...next.problems);
      if (next.problems.length === 0) break;
      throwIfCancelled(signal);
    }
    await part('problems', problems);
    if (catalog.comparedWith !== undefined) {
      const answer = view.compare();
      const gone = answer.packages.filter((one) => files[one.package] === undefined);
      await part('compare', {
        compare: answer,
        packages: Object.fromEntries(gone.map((one) => [one.package, view.comparePackage(one.package)])),
      });
    }
    const state: StaticPage = { catalog, files, parts: {} };
    await write('data/catalog.js', `window.opmateStatic=${JSON.stringify(state)};\n`);
    for (const [name, { content }] of page) {
      if (name !== '/') await write(name.slice(1), content);
    }
    const html = page.get('/')?.content.toString() ?? '';
    const head = `<meta http-equiv="Content-Security-Policy" content="${exportPolicy}" />\n    `;
    await write(
      'index.html',
      html
        .replace('<meta name="viewport"', `${head}<meta name="viewport"`)
        .replace(
          '<script src="page.js"',
          '<script src="data/catalog.js" defer></script>\n    <script src="page.js"',
        ),
    );
  });
}
