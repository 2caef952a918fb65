// The layer with the package: its files, better-sqlite3, and a shell script per name that runs it with the base's Node.js.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const place = 'opt/opmate';

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
export function installedNative() {
  const directory = path.join(root, 'node_modules', 'better-sqlite3');
  const compiled = path.join(directory, 'build', 'Release', 'better_sqlite3.node');
  return existsSync(compiled) ? compiled : path.join(directory, 'prebuilds', `linux-${process.arch}.node`);
}

/** Entries of the layer with the package; `node` is the base's, and programs lie in `bin`. */
export function packageEntries(native, { node, bin, build }) {
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
  ];
}
