// Bundles src into lib: the program, the library and the worker, with shared chunks, so that what is imported when it is
// needed stays apart. Only better-sqlite3 stays a package. Writes THIRD-PARTY-NOTICES with the licenses of what is in it.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, transform } from 'esbuild';
import { collectHelp, collectOutputs } from '../dist/cli/command/loaded-tree.js';
import { encodePrepared } from '../dist/cli/command/prepared-output.js';

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
      /^node:(?:child_process|crypto|dns|fs\/promises|http|http2|https|net|os|tls|worker_threads|zlib)$/;
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

/** Commands whose start-up takes most of their time, and what they import() for any directory. */
const quickModules = [
  'src/cli/main.ts',
  'src/cli/root/render.ts',
  'src/cli/root/validate.ts',
  'src/cli/root/version.ts',
  'src/source/drivers/published-catalog.ts',
];

/**
 * Moves the modules that quick commands do not need into a function in the scope of the others, called by the first import()
 * of one of them: until then V8's cache holds nothing of them. Throws if the output of esbuild has another form.
 */
function deferModules(code, inputs) {
  const quick = new Set();
  const visit = (file) => {
    if (quick.has(file) || inputs[file] === undefined) return;
    quick.add(file);
    for (const { kind, path: imported } of inputs[file].imports)
      if (kind !== 'dynamic-import') visit(imported);
  };
  quickModules.forEach(visit);
  const [modules, exported] = code.split(/^(?=\/\/ Annotate the CommonJS export names)/m);
  const parts = { quick: '', deferred: '' };
  let current = 'quick';
  for (const part of modules.split(/^(?=\/\/ \S)/m)) {
    const file = /^\/\/ (.*)/.exec(part)?.[1];
    if (inputs[file] !== undefined) current = quick.has(file) ? 'quick' : 'deferred';
    parts[current] += part;
  }
  const declared = new Set([...parts.deferred.matchAll(/^var (\w+)/gm)].map(([, name]) => name));
  const loaders = new Map();
  const quickCode = parts.quick.replace(
    /\.then\(\(\) => (\((init_\w+)\(\), \w+\)|__toESM\((require_\w+)\(\), 1\))\)/g,
    (text, load, initializer, loader = initializer) => {
      if (!declared.has(loader)) return text;
      loaders.set(loader, load);
      return `.then(() => __deferred().${loader}())`;
    },
  );
  if (exported === undefined || loaders.size === 0 || !quickModules.every((file) => quick.has(file)))
    throw new Error('program.cjs: unexpected output of esbuild');
  const entries = [...loaders].map(([loader, load]) => `${loader}: () => ${load}`);
  return `${quickCode}
var __loaders;
function __deferred() {
  return (__loaders ??= __defer());
}
function __defer() {
${parts.deferred}
return { ${entries.join(', ')} };
}
${exported}`;
}

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
  plugins: [filesInDist((file) => `new URL('${file}', import.meta.url)`)],
});

// Places in libraries are not worth the size of their maps.
for (const name of readdirSync(outdir).filter((file) => file.endsWith('.js.map'))) {
  const map = path.join(outdir, name);
  const { sources } = JSON.parse(readFileSync(map, 'utf8'));
  if (!sources.every((source) => source.includes('node_modules/'))) continue;
  const chunk = map.replace(/\.map$/, '');
  writeFileSync(chunk, readFileSync(chunk, 'utf8').replace(/^\/\/# sourceMappingURL=.*\n?/m, ''));
  rmSync(map);
}

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
  logLevel: 'warning',
});
const collectedHelp = path.join(root, 'dist', 'collected-help.json');
rmSync(collectedHelp, { force: true });
writeFileSync(collectedHelp, `${JSON.stringify(await collectHelp(), null, 2)}\n`);
writeFileSync(path.join(outdir, 'prepared-output.txt'), encodePrepared(await collectOutputs()));

// The program once more, as a function in one script: with a code cache of V8 (bin/opmate.cjs) it starts in two thirds of
// the time.
const program = await build({
  absWorkingDir: root,
  entryPoints: ['src/cli/main.ts'],
  outfile: path.join(outdir, 'program.cjs'),
  bundle: true,
  write: false,
  format: 'cjs',
  platform: 'node',
  target: 'node20.19',
  external: ['better-sqlite3'],
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
  plugins: [filesInDist((file) => `__place('${file}')`, "__place('./program.cjs')"), lazyModules],
});
const minified = await transform(deferModules(program.outputFiles[0].text, program.metafile.inputs), {
  format: 'cjs',
  platform: 'node',
  target: 'node20.19',
  minify: true,
  legalComments: 'none',
  banner:
    "(function(exports,require,module,__filename,__dirname){const __place=(file)=>require('node:url').pathToFileURL(require('node:path').join(__dirname,file)).href;",
  footer: '})',
});
// bin/opmate.cjs reads it as Latin-1. esbuild escapes other characters in strings, but not in regular expressions.
const ascii = minified.code.replace(
  /[^\0-\x7f]/g,
  (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
);
writeFileSync(path.join(outdir, 'program.cjs'), ascii);

// The page of view has packages too.
const page = JSON.parse(readFileSync(path.join(root, 'dist', 'page-inputs.json'), 'utf8'));
const packages = new Set(
  Object.keys({ ...metafile.inputs, ...page.inputs }).flatMap(
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

// The first run of a command writes its code cache.
const bundle = path.join(root, 'fixtures', 'bundles', 'microcks', '0.2.1');
const commands = [['version']];
if (existsSync(bundle)) commands.push(['render', bundle, '--alpha-image-ref-template', 'example.com/b:v1']);
for (const args of commands)
  spawnSync(process.execPath, [path.join(root, 'bin', 'opmate.cjs'), ...args], { stdio: 'ignore' });
