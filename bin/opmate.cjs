#!/usr/bin/env node
'use strict';
// A script, not a module: Node.js starts it in nine tenths of the time.
const {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} = require('node:fs');
const path = require('node:path');
const { clearTimeout, setTimeout } = require('node:timers');

/** Time after which a command has started. */
const startMs = 2_000;
const lib = path.join(__dirname, '..', 'lib', path.sep);

/**
 * Compiles the program as one script (see bin/bundle.js) with V8's cache of its code, a file beside it for each version of
 * Node.js and each command. Returns undefined where there is no cache and none can be written: then modules load faster.
 */
function compileScript() {
  const filename = `${lib}program.cjs`;
  try {
    const { size, mtimeMs } = statSync(filename);
    const command = /^[a-z]+(?:-[a-z]+)*$/.exec(process.argv[2])?.[0] ?? '';
    const version = `${process.version}-${process.arch}-${size}-${mtimeMs}`;
    const cacheOf = (name) => `${lib}program-${version}-${name}.cache`;
    const cache = cacheOf(command);
    const own = readIfPresent(cache);
    // A command that always fails writes none; the code of the start is in that of every command.
    const cachedData = own ?? readIfPresent(cacheOf('version'));
    const canWrite = own === undefined && isWritable();
    if (cachedData === undefined && !canWrite) return undefined;
    const { Script } = require('node:vm');
    const script = new Script(readFileSync(filename, 'latin1'), { filename, cachedData });
    if (script.cachedDataRejected === true) return undefined;
    let isWritten = !canWrite;
    const writeCache = () => {
      if (!isWritten) writeWhole(cache, script.createCachedData());
      isWritten = true;
    };
    return { script, filename, writeCache };
  } catch {
    return undefined;
  }
}

function isWritable() {
  try {
    accessSync(lib, constants.W_OK);
    return true;
  } catch {
    return false;
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

/**
 * Enables Node.js's cache of compiled modules in a private directory: code of another user would run from the default one,
 * which has a predictable name in the shared temporary directory.
 */
function enablePrivateCache() {
  const { enableCompileCache } = require('node:module');
  const { env, getuid } = process;
  const parent = env.XDG_CACHE_HOME || (env.HOME && path.join(env.HOME, '.cache'));
  if (enableCompileCache === undefined || !parent || !path.isAbsolute(parent)) return;
  try {
    const own = path.join(parent, 'opmate');
    const directory = path.join(own, 'compiled');
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const isPrivate = [own, directory].every((part) => {
      const stats = lstatSync(part);
      return stats.isDirectory() && stats.uid === (getuid?.() ?? stats.uid) && (stats.mode & 0o022) === 0;
    });
    if (isPrivate) enableCompileCache(directory);
  } catch {
    // Without a cache, the start takes longer.
  }
}

/** Prints an output that the build prepared, if there is one for the command line; see src/cli/command/prepared-output.ts. */
function printPrepared() {
  const name = path.basename(process.argv[1]).replace(/\.c?js$/, '');
  try {
    const prepared = require('../lib/prepared-output.cjs');
    return prepared.printPrepared(name, process.argv.slice(2), () =>
      readFileSync(`${lib}prepared-output.txt`),
    );
  } catch {
    return false;
  }
}

async function start() {
  if (printPrepared()) return undefined;
  // Places in src for --debug are those of modules; reading their maps costs time.
  const isDebugged = process.argv.includes('--debug');
  const compiled = isDebugged ? undefined : compileScript();
  if (compiled === undefined) {
    if (!existsSync(`${lib}main.js`)) {
      process.stderr.write('opmate is not built\nhint: run npm ci && npm run build in the clone\n');
      process.exitCode = 1;
      return;
    }
    enablePrivateCache();
    if (isDebugged) process.setSourceMapsEnabled(true);
    const { main } = await import('../lib/main.js');
    return main();
  }
  const { script, filename, writeCache } = compiled;
  const program = { exports: {} };
  script.runInThisContext()(program.exports, require, program, filename, lib);
  // At its end, a server has dropped the code of its start, and compiled what its clients happened to need.
  const timer = setTimeout(writeCache, startMs).unref();
  await program.exports.main();
  clearTimeout(timer);
  // What a command that fails has compiled is not what the next one needs.
  if (process.exitCode === 0) writeCache();
}

// A failure before the program reports its own would print the source of the bundle.
start().catch((error) => {
  if (process.listenerCount('uncaughtException') > 0) throw error;
  process.stderr.write(`error: ${process.argv.includes('--debug') ? error.stack : error.message}\n`);
  process.exitCode = 1;
});
