// Bundles src into lib: one script with the program and the library, which loads what it imports when it is needed, and the
// worker. Only better-sqlite3 stays a package. Writes THIRD-PARTY-NOTICES with the licenses of what is in it.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, transform } from 'esbuild';
import { collectHelp, collectOutputs } from '../dist/cli/command/loaded-tree.js';
import { encodePrepared } from '../dist/cli/command/prepared-output.js';
import { deferModules } from './bundle/deferred-modules.js';
import { combineMaps } from './bundle/source-map.js';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const outdir = path.join(root, 'lib');

/** Modules look for files beside them, which lie in dist; workers are entries of the bundle. */
const filesInDist = (placeInDist, worker = 'import.meta.url') => ({
  name: 'files-in-dist',
  setup({ onLoad }) {
    onLoad({ filter: /[/\\]src[/\\].*\.ts$/ }, ({ path: file }) => {
      const text = readFileSync(file, 'utf8');
      if (!text.includes('import.meta.url')) return undefined;
      const module = path.relative(path.join(root, 'src'), file).replaceAll(path.sep, '/');
      const place = placeInDist(`../dist/${module}`);
      const contents = text
        .split('\n')
        .map((line) => line.replaceAll('import.meta.url', line.includes('startOwnWorker(') ? worker : place))
        .join('\n');
      return { contents, loader: 'ts' };
    });
  },
});

/** Modules that take time are loaded when something of them is used: most commands use few. */
const lazyModules = {
  name: 'lazy-modules',
  setup({ onResolve, onLoad }) {
    const heavy =
      /^node:(?:child_process|crypto|dns|fs\/promises|http|http2|https|net|os|tls|tty|worker_threads|zlib)$/;
    const lazily = ({ path: name, namespace }) =>
      namespace === 'lazy-modules'
        ? { path: name, external: true }
        : { path: name, namespace: 'lazy-modules' };
    onResolve({ filter: heavy }, lazily);
    onLoad({ filter: heavy, namespace: 'lazy-modules' }, async ({ path: name }) => {
      const exported = Object.keys(await import(name)).filter((key) =>
        /^(?!default$)[A-Za-z_$][\w$]*$/.test(key),
      );
      const getters = exported.map((key) => `get ${key}(){return load().${key}}`);
      return { contents: `const load=()=>require('${name}');module.exports={${getters.join(',')}};` };
    });
    // A script with a code cache has no import().
    onResolve({ filter: /^better-sqlite3$/ }, lazily);
    onLoad({ filter: /^better-sqlite3$/, namespace: 'lazy-modules' }, () => ({
      contents: "module.exports=require('better-sqlite3');",
    }));
  },
};

/** What the script exports; modules of the library are loaded by the first call. */
const entry = {
  name: 'program.ts',
  contents: "export{main}from'./src/cli/main.ts';export const loadLibrary=()=>require('./src/index.ts');",
};

/** Commands whose start-up takes most of their time, and what they import() for any directory. */
const quickModules = [
  entry.name,
  'src/cli/main.ts',
  'src/cli/root/render.ts',
  'src/cli/root/validate.ts',
  'src/cli/root/version.ts',
  'src/source/drivers/published-catalog.ts',
];

rmSync(outdir, { recursive: true, force: true });
await build({
  absWorkingDir: root,
  entryPoints: ['src/bundle/render-worker.ts'],
  outdir,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  external: ['better-sqlite3'],
  minify: true,
  legalComments: 'none',
  logLevel: 'warning',
  banner: {
    js: "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url);",
  },
  plugins: [filesInDist((file) => `new URL('${file}', import.meta.url)`)],
});

/** Files of the package, from a script in lib. */
const definePlace =
  "const __place=(file)=>require('node:url').pathToFileURL(require('node:path').join(__dirname,file)).href;";

// Outputs that depend on nothing but the command line, which bin/opmate.cjs prints before it loads the program.
await build({
  absWorkingDir: root,
  entryPoints: ['src/cli/command/prepared-output.ts'],
  outfile: path.join(outdir, 'prepared-output.cjs'),
  bundle: true,
  format: 'cjs',
  platform: 'node',
  target: 'node20.19',
  minify: true,
  banner: { js: definePlace },
  logLevel: 'warning',
  plugins: [filesInDist((file) => `__place('${file}')`), lazyModules],
});
const collectedHelp = path.join(root, 'dist', 'collected-help.json');
rmSync(collectedHelp, { force: true });
writeFileSync(collectedHelp, `${JSON.stringify(await collectHelp(), null, 2)}\n`);
writeFileSync(path.join(outdir, 'prepared-output.txt'), encodePrepared(await collectOutputs()));

// A function in one script: with a code cache of V8 (bin/program.cjs) it starts in two thirds of the time of modules.
const program = await build({
  absWorkingDir: root,
  stdin: { contents: entry.contents, sourcefile: entry.name, resolveDir: root },
  outfile: path.join(outdir, 'program.cjs'),
  bundle: true,
  write: false,
  format: 'cjs',
  platform: 'node',
  target: 'node20.19',
  external: ['better-sqlite3'],
  legalComments: 'none',
  sourcemap: 'external',
  sourcesContent: false,
  metafile: true,
  logLevel: 'warning',
  plugins: [filesInDist((file) => `__place('${file}')`, "__place('./program.cjs')"), lazyModules],
});
const [bundledMap, bundled] = program.outputFiles;
const { code, lines } = deferModules(bundled.text, program.metafile.inputs, quickModules);
// bin/program.cjs reads it as Latin-1. esbuild escapes other characters in strings, but not in regular expressions.
const ascii = code.replace(
  /[^\0-\x7f]/g,
  (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
);
const minified = await transform(ascii, {
  format: 'cjs',
  platform: 'node',
  target: 'node20.19',
  minify: true,
  legalComments: 'none',
  sourcemap: true,
  banner: `(function(exports,require,module,__filename,__dirname){${definePlace}`,
  footer: '})',
});
const [programFile, mapFile] = ['program.cjs', 'program.cjs.map'].map((name) => path.join(outdir, name));
writeFileSync(programFile, `${minified.code}//# sourceMappingURL=program.cjs.map\n`);
const maps = { bundled: JSON.parse(bundledMap.text), lines, minified: JSON.parse(minified.map) };
writeFileSync(mapFile, combineMaps(maps));

const require = createRequire(import.meta.url);
const { loadProgram } = require('./program.cjs');
const names = Object.keys(loadProgram().program.loadLibrary());
writeFileSync(
  path.join(outdir, 'index.js'),
  `import { createRequire } from 'node:module';
const { loadProgram } = createRequire(import.meta.url)('../bin/program.cjs');
export const {
${names.map((name) => `  ${name},\n`).join('')}} = loadProgram().program.loadLibrary();
`,
);

// The page of view has packages too.
const page = JSON.parse(readFileSync(path.join(root, 'dist', 'page-inputs.json'), 'utf8'));
const packages = new Set(
  Object.keys({ ...program.metafile.inputs, ...page.inputs }).flatMap(
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

// The first run of a command writes its code cache; one of no command that of the start.
const bundle = path.join(root, 'fixtures', 'bundles', 'microcks', '0.2.1');
const commands = [['none']];
if (existsSync(bundle)) commands.push(['render', bundle, '--alpha-image-ref-template', 'example.com/b:v1']);
for (const args of commands)
  spawnSync(process.execPath, [path.join(root, 'bin', 'opmate.cjs'), ...args], { stdio: 'ignore' });
