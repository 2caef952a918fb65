// Builds the container image of opmate without a container engine: a layer with the single executable or the package under
// the names opmate, opm and grpc_health_probe, on a base image. Run it with `npm run image`; `--help` lists the options.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { putImages } from '../dist/api/images/image-output.js';
import { openSession } from '../dist/api/session.js';
import { writeLayer } from '../dist/archive/tar-writer.js';
import { OpmateError, UsageError } from '../dist/core/errors.js';
import { silentLogger } from '../dist/core/log.js';
import { parseReference, parseTargetReference } from '../dist/core/reference.js';
import { buildImage, readWholeConfig } from '../dist/oci/image/image-builder.js';
import { openImage } from '../dist/oci/image/image.js';
import { openReference } from '../dist/oci/image/open.js';
import { formatPlatform, parsePlatform } from '../dist/oci/image/platform.js';
import { withChanges } from '../dist/source/session.js';
import { checkBaseOfExecutable, checkBaseOfPackage, hasMergedBin } from './image/base.js';
import { executableEntries, executablePlatform, readNode } from './image/executable.js';
import { installedNative, packageEntries, root } from './image/package.js';

const home = 'home/opmate';

const usage = `Build the container image of opmate on a base image.

Usage: npm run image -- --base IMAGE --to IMAGE [--executable] [options]

  --base IMAGE       base image: REGISTRY/NAME[:TAG]@DIGEST, oci:DIR[:TAG], oci-archive:FILE
  --to IMAGE         destination: REGISTRY/NAME:TAG, oci:DIR[:TAG], oci-archive:FILE, docker-archive:FILE
  --executable       put the single executable in: the base needs neither Node.js nor a shell
  --platform LIST    platforms, e.g. linux/amd64,linux/arm64 (default: that of this machine)
  --native FILE      better_sqlite3.node for the base image (default: the one in node_modules)
  --source URL       repository of the source code, for the label org.opencontainers.image.source
  --use-http         use HTTP for all registries
  --help             show this help

With --executable, the base image needs the GNU C library 2.28 or later and libstdc++, e.g. gcr.io/distroless/cc-debian12.
Without, it needs /bin/sh, a node in its PATH with the ABI and architecture that the native module was compiled for, and
the C library with the symbol versions that the module requires.
`;

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

function readArguments() {
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        base: { type: 'string' },
        to: { type: 'string' },
        executable: { type: 'boolean' },
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
  if (values.help) return values;
  for (const name of ['base', 'to']) {
    if (values[name] === undefined) {
      throw new UsageError(`--${name}: required`, { hint: 'see npm run image -- --help' });
    }
  }
  if (!values.executable && !existsSync(values.native)) {
    throw new OpmateError('NOT_FOUND', `${values.native}: no such file`, {
      hint: 'run npm ci, or pass --native FILE',
    });
  }
  return { ...values, platforms: values.platform?.split(',').map(parsePlatform) ?? [undefined] };
}

/** Opens the image of a base for a platform. A tag of a registry may have another image in the next build. */
async function openBase({ repository, reference }, { transport, digest, text }, platform, session) {
  const base = await openImage(
    repository,
    reference,
    platform === undefined ? session : { ...session, platform },
  );
  if (transport === 'docker' && digest === undefined) {
    throw new UsageError(`--base ${text}: no digest`, {
      hint: `use --base ${repository.name}@${base.root.digest}`,
    });
  }
  return base;
}

/** Entries of the layer for a base. Throws OpmateError INVALID for one that cannot run them. */
async function createEntries(base, { executable, native: nativeFile }, build, directory) {
  const unpacked = path.join(directory, 'base');
  if (executable) {
    const name = executablePlatform(base.platform);
    if (name === undefined) {
      throw new OpmateError('UNSUPPORTED', `${formatPlatform(base.platform)}: no executable`, {
        hint: 'use linux/amd64 or linux/arm64, or the package on a base image with Node.js',
      });
    }
    await checkBaseOfExecutable(base, readNode(name), unpacked);
    const bin = (await hasMergedBin(base)) ? 'usr/bin' : 'bin';
    return executableEntries(name, { bin, build, directory });
  }
  const native = readFileSync(nativeFile);
  const node = await checkBaseOfPackage(base, native, unpacked);
  const bin = (await hasMergedBin(base)) ? 'usr/bin' : 'bin';
  return packageEntries(native, { node, bin, build });
}

/** Builds the image on one base; its layer lies in the directory until it is written. */
async function buildOn(base, values, directory) {
  mkdirSync(directory);
  const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const { commit, date } = revisionOf();
  const entries = await createEntries(base, values, `${JSON.stringify({ commit, date })}\n`, directory);
  // Clusters run images as users without a name, in the group 0.
  const withHome = [...entries, { path: home, type: 'directory', mode: 0o770 }];
  const layer = await writeLayer(path.join(directory, 'opmate.tar.gz'), withHome);
  return await buildImage({
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
}

async function main() {
  const values = readArguments();
  if (values.help) return void process.stdout.write(usage);
  const to = parseTargetReference(values.to);
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const directory = mkdtempSync(path.join(tmpdir(), 'opmate-image-'));
  const session = withChanges(await openSession({ registry: { useHttp: values['use-http'] === true } }), {
    logger: silentLogger,
  });
  let opened;
  try {
    const reference = parseReference(values.base);
    opened = await openReference(reference, session);
    const images = [];
    for (const [i, platform] of values.platforms.entries()) {
      const base = await openBase(opened, reference, platform, session);
      images.push(await buildOn(base, values, path.join(directory, String(i))));
    }
    const output = { to: { ...to, tag: to.tag ?? version } };
    process.stdout.write(`${(await putImages(session, output, images, directory)).name}\n`);
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
