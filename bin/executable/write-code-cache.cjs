// Writes V8's code cache of the program to a file. What running it would add differs from run to run.
'use strict';
const { readFileSync, writeFileSync } = require('node:fs');
const { Script } = require('node:vm');

const [filename, file] = process.argv.slice(2);
writeFileSync(file, new Script(readFileSync(filename, 'latin1'), { filename }).createCachedData());
