// Checks that a base image can run opmate, before anything is written.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ArchiveMeter, defaultArchiveLimits } from '../../dist/archive/limits.js';
import { readTar } from '../../dist/archive/tar-reader.js';
import { OpmateError } from '../../dist/core/errors.js';
import { extractImage } from '../../dist/oci/image/image.js';

const fail = (problem, hint) => new OpmateError('INVALID', problem, { hint });
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

/** Directories where the system looks for libraries. */
function libraryDirectories({ architecture }) {
  const triplet = { amd64: 'x86_64', arm64: 'aarch64', ppc64le: 'powerpc64le', s390x: 's390x' };
  const linux = `${triplet[architecture] ?? architecture}-linux-gnu`;
  return ['lib', 'lib64', `lib/${linux}`, 'usr/lib', 'usr/lib64', `usr/lib/${linux}`];
}

const librariesOf = (binary) => [
  ...matches(
    binary,
    /\b(?:libc|libdl|libm|libpthread|libstdc\+\+|libgcc_s|ld-linux-[a-z0-9_-]+)\.so\.\d+|\blibc\.musl-[a-z0-9_]+\.so\.1/g,
  ),
];

/** Unpacks programs of the base, and its libraries that a binary requires; returns what is there. */
async function unpack(base, binary, programs, directory) {
  const libraries = libraryDirectories(base.platform);
  const names = librariesOf(binary);
  const roots = [...programs, ...libraries.flatMap((library) => names.map((name) => `${library}/${name}`))];
  const { files, problems } = await extractImage(base, directory, { roots });
  return { libraries, names, present: new Set(files.filter((file) => !problems.has(file))) };
}

/** Throws OpmateError INVALID unless the base has the libraries of a binary, with the symbol versions that it requires. */
function checkLibraries(base, binary, subject, hint, { libraries, names, present }, directory) {
  const absent = names.filter((name) => !libraries.some((library) => present.has(`${library}/${name}`)));
  if (absent.length > 0)
    throw fail(`${base.name}: ${absent.join(', ')} not found, which ${subject} requires`, hint);
  const versions = /\b(?:GLIBC|GLIBCXX|CXXABI|GCC)_\d[\d.]*/g;
  const defined = new Set(
    [...present]
      .filter((file) => file.includes('.so'))
      .flatMap((file) => [...matches(readFileSync(path.join(directory, file)), versions)]),
  );
  const undefinedVersions = [...matches(binary, versions)].filter((name) => !defined.has(name));
  if (undefinedVersions.length > 0) {
    throw fail(
      `${base.name}: its C libraries are older than ${subject} requires: ${undefinedVersions.sort().join(', ')}`,
      hint,
    );
  }
}

/** Checks that the base can run the executable, which is made from a release of Node.js. Throws OpmateError INVALID. */
export async function checkBaseOfExecutable(base, node, directory) {
  checkLibraries(
    base,
    node,
    'the executable',
    'choose a base image with libraries of C++, e.g. gcr.io/distroless/cc-debian12',
    await unpack(base, node, [], directory),
    directory,
  );
}

/** Checks that the base can run the package with a native module; returns where its `node` is. Throws OpmateError INVALID. */
export async function checkBaseOfPackage(base, native, directory) {
  const nodes = directoriesOf(base.config).map((bin) => `${bin.slice(1)}/node`);
  const unpacked = await unpack(base, native, ['bin/sh', ...nodes], directory);
  const { present } = unpacked;
  if (!present.has('bin/sh')) {
    throw fail(`${base.name}: /bin/sh not found`, 'choose a base image with a shell, or use --executable');
  }
  const node = nodes.find((file) => present.has(file));
  if (node === undefined) {
    throw fail(
      `${base.name}: node not found in its PATH`,
      'choose a base image with Node.js, e.g. node:22-slim, or use --executable',
    );
  }
  const program = readFileSync(path.join(directory, node));
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
  const hint = 'compile better-sqlite3 in a system with the C library of the base image';
  checkLibraries(base, native, 'better_sqlite3.node', hint, unpacked, directory);
  return `/${node}`;
}

/** Whether /bin of an image is a link to /usr/bin: a directory of that name in a layer would replace it. */
export async function hasMergedBin(image) {
  const meter = new ArchiveMeter(defaultArchiveLimits);
  let isLink = false;
  for (const layer of image.manifest.layers) {
    const body = await image.repository.openBlob(layer, {});
    for await (const { path: name, type } of readTar(body, { label: layer.digest, meter }))
      if (name.replace(/^\.?\//, '').replace(/\/$/, '') === 'bin') isLink = type === 'symlink';
  }
  return isLink;
}
