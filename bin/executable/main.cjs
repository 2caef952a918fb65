// Start of the single executable; blob.js puts the printing of prepared outputs, better-sqlite3 and the digest of its
// native module in. The program is an asset, so that it loads only when it runs.
'use strict';
const { Buffer } = require('node:buffer');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { getRawAsset } = require('node:sea');
const { Script } = require('node:vm');

/* global definePrepared, defineSqlite, nativeDigest, hasCodeCache */

let sqlite;

/** Loads better-sqlite3 when a command opens a database; everything else is part of Node.js. */
function load(name) {
  if (name !== 'better-sqlite3') return require(name);
  if (sqlite === undefined) {
    const module = { exports: {} };
    defineSqlite(module.exports, require, module);
    sqlite = module.exports(() => loadNative(), false);
  }
  return sqlite;
}

let native;

/** Unpacks the native module, which the system loads from a file only, into the first directory where that works. */
function loadNative() {
  if (native !== undefined) return native;
  const faults = [];
  for (const directory of cacheDirectories()) {
    try {
      const module = { exports: {} };
      process.dlopen(module, unpackNative(directory));
      return (native = module.exports);
    } catch (error) {
      faults.push(`${directory}: ${error.message.split('\n')[0]}`);
    }
  }
  throw new Error(`no private directory to unpack it in: ${faults.join('; ')}`);
}

function cacheDirectories() {
  const { XDG_CACHE_HOME: cache } = process.env;
  const user = process.getuid?.();
  const directories = [path.join(os.tmpdir(), user === undefined ? 'opmate' : `opmate-${user}`)];
  let home;
  try {
    home = os.homedir();
  } catch {
    // A user without an entry has none.
  }
  if (home !== undefined && path.isAbsolute(home)) directories.unshift(path.join(home, '.cache', 'opmate'));
  if (cache !== undefined && path.isAbsolute(cache)) directories.unshift(path.join(cache, 'opmate'));
  return directories;
}

/** Returns the file of the native module in a directory that no other user may change. */
function unpackNative(parent) {
  const directory = path.join(parent, 'native');
  fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const name of [parent, directory]) requirePrivate(name);
  const file = path.join(directory, `${nativeDigest}.node`);
  if (fs.existsSync(file)) return file;
  const staging = `${file}.${process.pid}`;
  fs.writeFileSync(staging, Buffer.from(getRawAsset('better_sqlite3.node')), { mode: 0o700, flag: 'wx' });
  fs.renameSync(staging, file);
  return file;
}

function requirePrivate(name) {
  const user = process.getuid?.();
  const stats = fs.lstatSync(name);
  if (!stats.isDirectory()) throw new Error('not a directory');
  if (user === undefined) return;
  if (stats.uid !== user) throw new Error(`owned by another user (${stats.uid})`);
  if ((stats.mode & 0o022) !== 0) throw new Error('writable by other users');
}

// Links named opm, and others, choose the commands by the name that was called; the file as built is named for its platform.
const called = path.basename(process.argv0).replace(/\.exe$/i, '');
process.argv[1] = called.startsWith('opmate-') ? 'opmate' : called;
if (called === 'grpc_health_probe') process.argv.splice(2, 0, 'probe');
const readAsset = (name) => Buffer.from(getRawAsset(name));
const prepared = { exports: {} };
definePrepared(prepared.exports, require, prepared);
const name = process.argv[1];
if (!prepared.exports.printPrepared(name, process.argv.slice(2), () => readAsset('lib/prepared-output.txt')))
  runProgram();

function runProgram() {
  const cachedData = hasCodeCache ? readAsset('lib/program.cache') : undefined;
  const source = readAsset('lib/program.cjs').latin1Slice();
  const script = new Script(source, { filename: process.execPath, cachedData });
  const program = { exports: {} };
  const directory = path.dirname(process.execPath);
  script.runInThisContext()(program.exports, load, program, process.execPath, directory);
  void program.exports.main();
}
