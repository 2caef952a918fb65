#!/usr/bin/env node
'use strict';
// A script, not a module: Node.js starts it in nine tenths of the time.
const { readFileSync } = require('node:fs');
const path = require('node:path');
const { clearTimeout, setTimeout } = require('node:timers');

/** Time after which a command has started. */
const startMs = 2_000;
const lib = path.join(__dirname, '..', 'lib', path.sep);

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
  if (printPrepared()) return;
  if (process.argv.includes('--debug')) process.setSourceMapsEnabled(true);
  const command = /^[a-z]+(?:-[a-z]+)*$/.exec(process.argv[2])?.[0] ?? '';
  const { program, writeCache, writeFailed } = load(command);
  if (program === undefined) return;
  // At its end, a server has dropped the code of its start, and compiled what its clients happened to need.
  const timer = setTimeout(() => writeCache(), startMs).unref();
  await program.main();
  clearTimeout(timer);
  // What a command that fails has compiled is not what it needs when it succeeds.
  if (process.exitCode === 0) writeCache();
  else writeFailed();
}

function load(command) {
  try {
    return require('./program.cjs').loadProgram(command);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    process.stderr.write('opmate is not built\nhint: run npm ci && npm run build in the clone\n');
    process.exitCode = 1;
    return {};
  }
}

// A failure before the program reports its own would print the source of the bundle.
start().catch((error) => {
  if (process.listenerCount('uncaughtException') > 0) throw error;
  process.stderr.write(`error: ${process.argv.includes('--debug') ? error.stack : error.message}\n`);
  process.exitCode = 1;
});
