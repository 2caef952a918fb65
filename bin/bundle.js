// Bundles src into lib: the program, the library and the worker, with shared chunks, so that what is imported when it is
// needed stays apart. Only better-sqlite3 stays a package. Writes THIRD-PARTY-NOTICES with the licenses of what is in it.
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const outdir = path.join(root, 'lib');

/** Modules look for files beside them, which lie in dist; workers are entries of the bundle. */
const filesInDist = {
  name: 'files-in-dist',
  setup({ onLoad }) {
    onLoad({ filter: /[/\\]src[/\\].*\.ts$/ }, ({ path: file }) => {
      const text = readFileSync(file, 'utf8');
      if (!text.includes('import.meta.url')) return undefined;
      const module = path.relative(path.join(root, 'src'), file).replaceAll(path.sep, '/');
      const place = `new URL('../dist/${module}', import.meta.url)`;
      const contents = text
        .split('\n')
        .map((line) => (line.includes('new Worker(') ? line : line.replaceAll('import.meta.url', place)))
        .join('\n');
      return { contents, loader: 'ts' };
    });
  },
};

rmSync(outdir, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: ['src/index.ts', 'src/cli/main.ts', 'src/bundle/render-worker.ts'],
  entryNames: '[name]',
  chunkNames: 'chunk-[hash]',
  outdir,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  external: ['better-sqlite3'],
  keepNames: true,
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  sourcemap: 'linked',
  sourcesContent: false,
  banner: {
    js: "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url);",
  },
  define: { __dirname: 'import.meta.dirname', __filename: 'import.meta.filename' },
  metafile: true,
  logLevel: 'warning',
  plugins: [filesInDist],
});

const packages = new Set(
  Object.keys(metafile.inputs).flatMap(
    (input) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1] ?? [],
  ),
);
const notices = [...packages].sort().map((directory) => {
  const folder = path.join(root, directory);
  const { name, version, license, author } = JSON.parse(
    readFileSync(path.join(folder, 'package.json'), 'utf8'),
  );
  const texts = readdirSync(folder)
    .filter((file) => /^(?:licen[cs]e|notice|copying)/i.test(file))
    .sort()
    .map((file) => readFileSync(path.join(folder, file), 'utf8').trim());
  const owner = typeof author === 'string' ? author : author?.name;
  if (texts.length === 0) texts.push(owner === undefined ? '' : `Copyright ${owner}`);
  return `${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`;
});
const rule = `\n${'-'.repeat(80)}\n\n`;
writeFileSync(
  path.join(root, 'lib', 'THIRD-PARTY-NOTICES'),
  `opmate contains these packages.\n${rule}${notices.join(rule)}`,
);
