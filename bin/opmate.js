#!/usr/bin/env node
import { accessSync, constants, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';

const lib = fileURLToPath(new URL('../lib/', import.meta.url));

/**
 * Compiles the program as one script (see bin/bundle.js) with V8's cache of its code, a file beside it for each version of
 * Node.js. Returns undefined where there is no cache and none can be written: then modules load faster.
 */
function compileScript() {
  const filename = `${lib}program.cjs`;
  try {
    const { size, mtimeMs } = statSync(filename);
    const cache = `${lib}program-${process.version}-${process.arch}-${size}-${mtimeMs}.cache`;
    const cachedData = readIfPresent(cache);
    if (cachedData === undefined) accessSync(lib, constants.W_OK);
    const source = `(function(exports,require,module,__filename,__dirname){${readFileSync(filename, 'latin1')}\n})`;
    const script = new vm.Script(source, { filename, cachedData });
    if (script.cachedDataRejected === true) return undefined;
    return { script, filename, writeCache: () => cachedData ?? writeWhole(cache, script.createCachedData()) };
  } catch {
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

// Places in src for --debug are those of modules; reading their maps costs time.
const isDebugged = process.argv.includes('--debug');
const compiled = isDebugged ? undefined : compileScript();
if (compiled === undefined) {
  module.enableCompileCache?.();
  if (isDebugged) process.setSourceMapsEnabled(true);
  const { main } = await import('../lib/main.js');
  await main();
} else {
  const { script, filename, writeCache } = compiled;
  const program = { exports: {} };
  script.runInThisContext()(program.exports, module.createRequire(filename), program, filename, lib);
  await program.exports.main();
  writeCache();
}
