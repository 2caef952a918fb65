// The layer with the single executable, which needs the C and C++ libraries of the base only, under three names.
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { writeBlob } from '../executable/blob.js';
import { injectBlob } from '../executable/inject.js';
import { fetchPackage, platforms } from '../executable/packages.js';

/** Name of the executable for a platform of images; undefined where there is none. */
export const executablePlatform = ({ os, architecture }) =>
  ({ 'linux/amd64': 'linux-x64', 'linux/arm64': 'linux-arm64' })[`${os}/${architecture}`];

/** Program that the executable for a platform is made from: what it requires of the base is in there. */
export function readNode(name) {
  const { node, version } = platforms[name];
  return readFileSync(path.join(fetchPackage(node, version), 'bin', 'node'));
}

/** Entries of the layer; programs lie in `bin`. */
export async function executableEntries(name, { bin, build, directory }) {
  const work = path.join(directory, name);
  mkdirSync(work);
  const { blob } = await writeBlob(name, work, { build });
  const file = path.join(work, 'opmate');
  await injectBlob(name, blob, file);
  return [
    { path: `${bin}/opmate`, content: { file, size: statSync(file).size }, mode: 0o755 },
    ...['opm', 'grpc_health_probe'].map((link) => ({
      path: `${bin}/${link}`,
      type: 'symlink',
      target: 'opmate',
    })),
  ];
}
