import { readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/** The part of `node:sea` that is used; Node.js 20.19 has it too. */
interface SingleExecutable {
  isSea(): boolean;
  getRawAsset(name: string): ArrayBuffer;
}

/** Assets of the running program; undefined unless it is a single executable. */
function findExecutable(): SingleExecutable | undefined {
  const sea = process.getBuiltinModule('node:sea') as SingleExecutable | undefined;
  return sea?.isSea() === true ? sea : undefined;
}

/** Reports whether the program is a single executable, with its files inside. */
export function isExecutable(): boolean {
  return findExecutable() !== undefined;
}

/**
 * Reads a file that belongs to opmate, by its path in the package: beside the modules, or inside the executable. Throws
 * what the file system does, and a plain error for an asset that the executable lacks.
 */
export function readOwnFile(name: string): Buffer {
  const executable = findExecutable();
  return executable === undefined
    ? readFileSync(locateOwnFile(name))
    : Buffer.from(executable.getRawAsset(name));
}

/** Returns where a file of the package lies; meaningless in an executable. */
export function locateOwnFile(name: string): string {
  return fileURLToPath(new URL(`../../${name}`, import.meta.url));
}

/** Starts a worker thread from a module of opmate; in an executable from the bundle of its name in `lib`. */
export function startOwnWorker(module: URL, options: WorkerOptions): Worker {
  const executable = findExecutable();
  if (executable === undefined) return new Worker(module, options);
  const name = `lib/${path.basename(module.pathname, '.js')}.mjs`;
  const text = Buffer.from(executable.getRawAsset(name)).toString('base64');
  return new Worker(new URL(`data:text/javascript;base64,${text}`), options);
}
