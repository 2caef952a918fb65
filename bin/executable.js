// Builds opmate as one executable file: Node.js from its npm package with the program, its files and its native module
// inside. Run it with `npm run executable`; `--help` lists the options. Two builds are the same bytes.
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fetchMaker, root, writeBlob } from './executable/blob.js';
import { injectBlob } from './executable/inject.js';
import { platforms, sha } from './executable/packages.js';

const usage = `Build opmate as one executable file.

Usage: npm run executable -- [--platform NAME] [--out DIRECTORY] [--level N]

  --platform NAME   ${Object.keys(platforms).join(', ')} (default: this machine)
  --out DIRECTORY   directory of the results (default: executable)
  --level N         level of the compression, 1 to 19 (default: 19)
  --help            show this help

Writes the executable, the same compressed (.zst), SHA256SUMS, and a bill of materials (CycloneDX).
`;

class UsageError extends Error {}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        platform: { type: 'string', default: `${process.platform}-${process.arch}` },
        out: { type: 'string', default: 'executable' },
        level: { type: 'string', default: '19' },
        help: { type: 'boolean' },
      },
    });
    const { platform, out, level } = values;
    if (values.help !== true && platforms[platform] === undefined)
      throw new UsageError(`--platform "${platform}": expected (${Object.keys(platforms).join('|')})`);
    if (!/^(?:[1-9]|1[0-9])$/.test(level)) throw new UsageError(`--level "${level}": expected 1 to 19`);
    return { ...values, level: Number(level), out: path.resolve(process.env.INIT_CWD ?? '', out) };
  } catch (error) {
    throw new UsageError(error.message, { cause: error });
  }
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
  const { help, platform, out, level } = readArguments();
  if (help === true) return void process.stdout.write(usage);
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const directory = mkdtempSync(path.join(tmpdir(), 'opmate-executable-'));
  try {
    const { blob } = await writeBlob(platform, directory);
    const name = `opmate-${platform}${platform.startsWith('win-') ? '.exe' : ''}`;
    const executable = path.join(directory, name);
    await injectBlob(platform, blob, executable);
    const compressed = `${executable}.zst`;
    compressFile(fetchMaker(platform), executable, compressed, level);
    const digest = sha('sha256', 'hex', readFileSync(executable));
    const materials = path.join(directory, `${name}.cdx.json`);
    writeFileSync(
      materials,
      `${JSON.stringify(describeMaterials(version, platforms[platform], digest), null, 2)}\n`,
    );
    mkdirSync(out, { recursive: true });
    for (const file of [executable, compressed, materials]) {
      const place = path.join(out, path.basename(file));
      copyFileSync(file, `${place}.new`);
      renameSync(`${place}.new`, place);
    }
    writeSums(out);
    process.stdout.write(`${path.join(out, name)}\n`);
    const sign = { 'darwin-arm64': 'codesign --sign - --force', 'win-x64': 'signtool sign /fd SHA256' }[
      platform
    ];
    // The signature of Node.js no longer fits; macOS runs nothing unsigned on arm64.
    if (sign !== undefined)
      process.stderr.write(`warn: ${name}: not signed\nhint: run ${sign} ${name} on its platform\n`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Compresses a file with zstd, which Node.js 20 does not have. */
function compressFile(node, file, compressed, level) {
  const script =
    'const z=require("node:zlib"),f=require("node:fs"),[i,o,l]=process.argv.slice(1),c=z.constants;' +
    'f.writeFileSync(o,z.zstdCompressSync(f.readFileSync(i),{params:{[c.ZSTD_c_compressionLevel]:+l,[c.ZSTD_c_windowLog]:27}}))';
  execFileSync(node, ['-e', script, file, compressed, String(level)], { stdio: 'pipe' });
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
