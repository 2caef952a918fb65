// Builds the container image of opmate without a container engine: a layer with the package, its native module, the names
// opmate, opm and grpc_health_probe, on a base image with Node.js. Run it with `npm run image`; `--help` lists the options.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openSession } from '../dist/api/session.js';
import { readTar } from '../dist/archive/tar-reader.js';
import { ArchiveMeter, defaultArchiveLimits } from '../dist/archive/limits.js';
import { writeLayer } from '../dist/archive/tar-writer.js';
import { putImages } from '../dist/api/images/image-output.js';
import { OpmateError, UsageError } from '../dist/core/errors.js';
import { silentLogger } from '../dist/core/log.js';
import { parseReference, parseTargetReference } from '../dist/core/reference.js';
import { buildImage, readWholeConfig } from '../dist/oci/image/image-builder.js';
import { extractImage, openImage } from '../dist/oci/image/image.js';
import { openReference } from '../dist/oci/image/open.js';
import { parsePlatform } from '../dist/oci/image/platform.js';
import { withChanges } from '../dist/source/session.js';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const place = 'opt/opmate';
const home = 'home/opmate';

const usage = `Build the container image of opmate on a base image with Node.js.

Usage: npm run image -- --base IMAGE --to IMAGE [options]

  --base IMAGE       base image: REGISTRY/NAME[:TAG|@DIGEST], oci:DIR[:TAG], oci-archive:FILE
  --to IMAGE         destination: REGISTRY/NAME:TAG, oci:DIR[:TAG], oci-archive:FILE, docker-archive:FILE
  --platform OS/ARCH platform of the base image (default: that of this machine)
  --native FILE      better_sqlite3.node for the base image (default: the one in node_modules)
  --source URL       repository of the source code, for the label org.opencontainers.image.source
  --use-http         use HTTP for all registries
  --help             show this help

The base image needs /bin/sh, a node in its PATH with the ABI and architecture that the native module was compiled for,
and the C library with the symbol versions that the module requires.
`;

const fail = (problem, hint) => new OpmateError('INVALID', problem, { hint });

/** Files of the package as npm publishes it. */
function packageFiles() {
  const npm = process.env.npm_execpath;
  const [program, first] = npm === undefined ? ['npm', []] : [process.execPath, [npm]];
  const args = [...first, 'pack', '--dry-run', '--json', '--ignore-scripts'];
  const [{ files }] = JSON.parse(
    execFileSync(program, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
  );
  return files.map((file) => file.path);
}

/** Files of the packages that opmate needs at run time; two fetch or compile the native module only. */
function dependencyFiles() {
  const files = [];
  const visited = new Set();
  const visit = (name) => {
    if (visited.has(name) || ['node-addon-api', 'prebuild-install'].includes(name)) return;
    visited.add(name);
    const directory = path.join('node_modules', name);
    const manifest = JSON.parse(readFileSync(path.join(root, directory, 'package.json'), 'utf8'));
    const walk = (relative) => {
      for (const entry of readdirSync(path.join(root, relative), { withFileTypes: true })) {
        const file = path.join(relative, entry.name);
        if (entry.isDirectory()) {
          // Sources of the native module and its intermediate files.
          if (!['build', 'deps', 'node_modules', 'prebuilds', 'src', 'test'].includes(entry.name)) walk(file);
        } else if (entry.isFile() && entry.name !== 'binding.gyp') files.push(file);
      }
    };
    walk(directory);
    for (const dependency of Object.keys(manifest.dependencies ?? {})) visit(dependency);
  };
  for (const name of Object.keys(
    JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).optionalDependencies,
  ))
    visit(name);
  return files;
}

/** The native module of better-sqlite3: the compiled one, or that of release 13 for Linux with the GNU C library. */
function installedNative() {
  const directory = path.join(root, 'node_modules', 'better-sqlite3');
  const compiled = path.join(directory, 'build', 'Release', 'better_sqlite3.node');
  return existsSync(compiled) ? compiled : path.join(directory, 'prebuilds', `linux-${process.arch}.node`);
}

const matches = (bytes, pattern) => new Set(bytes.toString('latin1').match(pattern) ?? []);

/** ELF machine of a program or library. */
function machineOf(bytes) {
  if (bytes.readUInt32BE(0) !== 0x7f454c46) return undefined;
  return bytes.readUInt16LE(18);
}

const directoriesOf = (config) => {
  const variable = config.config?.Env?.find((text) => text.startsWith('PATH=')) ?? '';
  const directories = variable
    .slice('PATH='.length)
    .split(':')
    .filter((text) => text.startsWith('/'));
  return directories.length > 0 ? directories : ['/usr/local/bin', '/usr/bin', '/bin'];
};

/**
 * Checks that the base can run opmate with this native module, and returns where its `node` is. Throws OpmateError INVALID.
 */
async function checkBase(base, native, directory, options) {
  const nodes = directoriesOf(base.config).map((bin) => `${bin.slice(1)}/node`);
  const triplet = { amd64: 'x86_64', arm64: 'aarch64', ppc64le: 'powerpc64le', s390x: 's390x' };
  const linux = `${triplet[base.platform.architecture] ?? base.platform.architecture}-linux-gnu`;
  const libraries = ['lib', 'lib64', `lib/${linux}`, 'usr/lib', 'usr/lib64', `usr/lib/${linux}`];
  const names = [
    ...matches(native, /\b(?:libc|libm|libstdc\+\+|libgcc_s)\.so\.\d+|\blibc\.musl-[a-z0-9_]+\.so\.1/g),
  ];
  const roots = [
    'bin/sh',
    ...nodes,
    ...libraries.flatMap((library) => names.map((name) => `${library}/${name}`)),
  ];
  const unpacked = path.join(directory, 'base');
  const { files, problems } = await extractImage(base, unpacked, { ...options, roots });
  const present = new Set(files.filter((file) => !problems.has(file)));
  if (!present.has('bin/sh'))
    throw fail(`${base.name}: /bin/sh not found`, 'choose a base image with a shell');
  const node = nodes.find((file) => present.has(file));
  if (node === undefined) {
    throw fail(
      `${base.name}: node not found in its PATH`,
      'choose a base image with Node.js, e.g. node:22-slim',
    );
  }
  const program = readFileSync(path.join(unpacked, node));
  const abiPattern = /node_register_module_v\d+/g;
  const [wanted] = matches(native, abiPattern);
  const [offered] = matches(program, abiPattern);
  const abi = (symbol) => symbol?.replace(/\D+/g, '') ?? 'unknown';
  // A module that names no ABI uses Node-API: that of better-sqlite3 13, which needs Node.js 22 (ABI 127).
  if (wanted === undefined && !(Number(abi(offered)) >= 127)) {
    throw fail(
      `${base.name}: Node.js with ABI ${abi(offered)}, but better_sqlite3.node needs Node.js 22 or later`,
      'choose a base image with Node.js 22 or later, e.g. node:22-slim',
    );
  }
  if (wanted !== undefined && wanted !== offered) {
    throw fail(
      `${base.name}: Node.js with ABI ${abi(offered)}, but better_sqlite3.node is for ABI ${abi(wanted)}`,
      'compile better-sqlite3 with the Node.js of the base image, and pass the file with --native',
    );
  }
  if (machineOf(program) !== machineOf(native)) {
    throw fail(`${base.name}: better_sqlite3.node is for another architecture`, 'pass one with --native');
  }
  const absent = names.filter((name) => !libraries.some((library) => present.has(`${library}/${name}`)));
  if (absent.length > 0) {
    throw fail(
      `${base.name}: ${absent.join(', ')} not found, which better_sqlite3.node requires`,
      'compile better-sqlite3 in a system with the C library of the base image',
    );
  }
  const versions = /\b(?:GLIBC|GLIBCXX|CXXABI|GCC)_\d[\d.]*/g;
  const defined = new Set(
    [...present]
      .filter((file) => file.includes('.so'))
      .flatMap((file) => [...matches(readFileSync(path.join(unpacked, file)), versions)]),
  );
  const undefinedVersions = [...matches(native, versions)].filter((name) => !defined.has(name));
  if (undefinedVersions.length > 0) {
    throw fail(
      `${base.name}: its C libraries are older than better_sqlite3.node requires: ${undefinedVersions.sort().join(', ')}`,
      'compile better-sqlite3 in a system as old as the base image',
    );
  }
  return `/${node}`;
}

/** Whether /bin of an image is a link to /usr/bin: a directory of that name in a layer would replace it. */
async function hasMergedBin(image, options) {
  const meter = new ArchiveMeter(defaultArchiveLimits);
  let isLink = false;
  for (const layer of image.manifest.layers) {
    const body = await image.repository.openBlob(layer, options);
    for await (const { path: name, type } of readTar(body, { label: layer.digest, meter, ...options }))
      if (name.replace(/^\.?\//, '').replace(/\/$/, '') === 'bin') isLink = type === 'symlink';
  }
  return isLink;
}

/** Entries of the layer. */
function layerEntries(native, { node, bin, build }) {
  const files = [...packageFiles(), ...dependencyFiles()].map((name) => {
    const file = path.join(root, name);
    const { size } = statSync(file);
    return {
      path: `${place}/${name.split(path.sep).join('/')}`,
      content: name === 'dist/build.json' ? Buffer.from(build) : { file, size },
      ...(name === 'bin/opmate.cjs' ? { mode: 0o755 } : {}),
    };
  });
  const start = Buffer.from(`#!/bin/sh\nexec ${node} /${place}/bin/opmate.cjs "$@"\n`);
  const probe = readFileSync(path.join(root, 'docs', 'container', 'grpc_health_probe'));
  const programs = { opmate: start, opm: start, grpc_health_probe: probe };
  return [
    ...files,
    { path: `${place}/node_modules/better-sqlite3/build/Release/better_sqlite3.node`, content: native },
    ...Object.entries(programs).map(([name, content]) => ({ path: `${bin}/${name}`, content, mode: 0o755 })),
    // Clusters run images as users without a name, in the group 0.
    { path: home, type: 'directory', mode: 0o770 },
  ];
}

/** Commit and its date, for labels and `opmate version`. */
function revisionOf() {
  const git = (...args) => {
    try {
      return execFileSync('git', args, {
        cwd: root,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim();
    } catch {
      return '';
    }
  };
  if (git('rev-parse', '--show-prefix') !== '' || git('ls-files', 'package.json') === '') {
    return JSON.parse(readFileSync(path.join(root, 'dist', 'build.json'), 'utf8'));
  }
  const seconds = Number(git('show', '-s', '--format=%ct', 'HEAD'));
  const changed = git('status', '--porcelain', '--untracked-files=no') === '' ? '' : '-dirty';
  return {
    commit: `${git('rev-parse', 'HEAD')}${changed}`,
    date: new Date(seconds * 1000).toISOString().replace('.000Z', 'Z'),
  };
}

async function main() {
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        base: { type: 'string' },
        to: { type: 'string' },
        platform: { type: 'string' },
        native: {
          type: 'string',
          default: installedNative(),
        },
        source: { type: 'string' },
        'use-http': { type: 'boolean' },
        help: { type: 'boolean' },
      },
    }));
  } catch (error) {
    throw new UsageError(error.message, { hint: 'see npm run image -- --help' });
  }
  if (values.help) return void process.stdout.write(usage);
  for (const name of ['base', 'to']) {
    if (values[name] === undefined) {
      throw new UsageError(`--${name}: required`, { hint: 'see npm run image -- --help' });
    }
  }
  const to = parseTargetReference(values.to);
  const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  if (!existsSync(values.native)) {
    throw new OpmateError('NOT_FOUND', `${values.native}: no such file`, {
      hint: 'run npm ci, or pass --native FILE',
    });
  }
  const native = readFileSync(values.native);
  const directory = mkdtempSync(path.join(tmpdir(), 'opmate-image-'));
  const session = withChanges(
    await openSession({
      registry: { useHttp: values['use-http'] === true },
      ...(values.platform === undefined ? {} : { platform: parsePlatform(values.platform) }),
    }),
    { logger: silentLogger },
  );
  let opened;
  try {
    opened = await openReference(parseReference(values.base), session);
    const base = await openImage(opened.repository, opened.reference, session);
    const node = await checkBase(base, native, directory, {});
    const bin = (await hasMergedBin(base, {})) ? 'usr/bin' : 'bin';
    const { commit, date } = revisionOf();
    const build = `${JSON.stringify({ commit, date })}\n`;
    const entries = layerEntries(native, { node, bin, build });
    const layer = await writeLayer(path.join(directory, 'opmate.tar.gz'), entries);
    const image = await buildImage({
      layers: [layer],
      createdBy: ['npm run image'],
      base: {
        ...base,
        config: { ...base.config, config: { ...base.config.config, ...runFields(base.config) } },
      },
      baseConfig: await readWholeConfig(base),
      platform: base.platform,
      ...(date === '' ? {} : { created: date }),
      labels: {
        'org.opencontainers.image.title': manifest.name,
        'org.opencontainers.image.description': manifest.description,
        'org.opencontainers.image.licenses': manifest.license,
        'org.opencontainers.image.version': manifest.version,
        'org.opencontainers.image.revision': commit === '' ? undefined : commit,
        'org.opencontainers.image.created': date === '' ? undefined : date,
        'org.opencontainers.image.source': values.source ?? manifest.repository?.url,
        'org.opencontainers.image.base.name': base.name,
        'org.opencontainers.image.base.digest': base.root.digest,
      },
      entrypoint: ['/bin/opm'],
      cmd: ['--help'],
      exposedPorts: ['50051/tcp'],
    });
    const output = { to: { ...to, tag: to.tag ?? manifest.version } };
    process.stdout.write(`${(await putImages(session, output, [image], directory)).name}\n`);
  } finally {
    await opened?.close();
    await session.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Fields that replace those of the base's configuration. */
function runFields({ config = {} }) {
  const environment = (config.Env ?? []).filter((text) => !text.startsWith('HOME='));
  return { Env: [...environment, `HOME=/${home}`], WorkingDir: `/${home}`, User: '1001' };
}

main().catch((error) => {
  if (!(error instanceof OpmateError)) throw error;
  const subject = error.subject === undefined ? '' : `${error.subject}: `;
  process.stderr.write(
    `error: ${subject}${error.message}\n${error.hint === undefined ? '' : `hint: ${error.hint}\n`}`,
  );
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
