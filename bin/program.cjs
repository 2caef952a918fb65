'use strict';
// Loads lib/program.cjs, which holds the commands and the library.
const {
  accessSync,
  constants,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} = require('node:fs');
const path = require('node:path');

/** Names of caches that no command has: of the start of any command, and of a command that failed. */
const startName = 'start.any';
const failedName = (command) => `${command}.failed`;
const lib = path.join(__dirname, '..', 'lib', path.sep);
const filename = `${lib}program.cjs`;

/**
 * Loads the program with V8's cache of its code, a file for each version of Node.js and each command. The cache of an unnamed
 * command is that of every start, and not written. Throws ENOENT where opmate is not built. Returns what the program exports,
 * and what writes the cache of a command and of one that failed.
 */
function loadProgram(command) {
  if (process.sourceMapsEnabled) return { program: loadWithPlaces(), writeCache() {}, writeFailed() {} };
  const { size, mtimeMs } = statSync(filename);
  const version = `${process.version}-${process.arch}-${size}-${mtimeMs}`;
  const cacheOf = (name) => `program-${version}-${name}.cache`;
  const directories = cacheDirectories();
  const read = (name) => {
    for (const directory of directories) {
      const data = readIfPresent(path.join(directory, cacheOf(name)));
      if (data !== undefined) return data;
    }
    return undefined;
  };
  const own = command === undefined ? undefined : read(command);
  const { Script } = require('node:vm');
  const failed = own ?? (command === undefined ? undefined : read(failedName(command)));
  const cachedData = failed ?? read(startName);
  const script = new Script(readFileSync(filename, 'latin1'), { filename, cachedData });
  const module = { exports: {} };
  script.runInThisContext()(module.exports, require, module, filename, lib);
  const to = directories.at(-1);
  let isWritten =
    command === undefined || own !== undefined || to === undefined || script.cachedDataRejected === true;
  const writeCache = (name = command) => {
    if (!isWritten) writeWhole(path.join(to, cacheOf(name)), script.createCachedData());
    isWritten = true;
  };
  // A mistyped command has compiled what every start needs.
  const writeFailed = () => {
    if (module.exports.isDeferredLoaded() && failed === undefined) writeCache(failedName(command));
    else if (cachedData === undefined) writeCache(startName);
  };
  return { program: module.exports, writeCache, writeFailed };
}

/** Loads the program as a module, whose source map Node.js reads: places of errors are those in src. */
function loadWithPlaces() {
  const { Module } = require('node:module');
  const wrapper = new Module(filename);
  wrapper._compile(`module.exports=${readFileSync(filename, 'latin1')}`, filename);
  const module = { exports: {} };
  wrapper.exports(module.exports, require, module, filename, lib);
  return module.exports;
}

/** Directories of the code cache: beside the program, and where that cannot be written, one of the user. Writes go to the last. */
function cacheDirectories() {
  try {
    accessSync(lib, constants.W_OK);
    return [lib];
  } catch {
    const directory = privateDirectory();
    return directory === undefined ? [lib] : [lib, directory];
  }
}

/** Returns a directory that only this user can write to: code of another user would run from another. */
function privateDirectory() {
  const { env, getuid } = process;
  const parent = env.XDG_CACHE_HOME || (env.HOME && path.join(env.HOME, '.cache'));
  if (!parent || !path.isAbsolute(parent)) return undefined;
  const own = path.join(parent, 'opmate');
  const directory = path.join(own, 'compiled');
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const isPrivate = [own, directory].every((part) => {
      const stats = lstatSync(part);
      return stats.isDirectory() && stats.uid === (getuid?.() ?? stats.uid) && (stats.mode & 0o022) === 0;
    });
    return isPrivate ? directory : undefined;
  } catch {
    // Without a cache, the start takes longer.
    return undefined;
  }
}

function readIfPresent(file) {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}

function writeWhole(file, data) {
  try {
    writeFileSync(`${file}.${process.pid}`, data);
    renameSync(`${file}.${process.pid}`, file);
  } catch {
    // The next run tries again.
  }
}

module.exports = { loadProgram };
