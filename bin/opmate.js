#!/usr/bin/env node
import module from 'node:module';
module.enableCompileCache?.();
// Places in src for --debug; reading the maps costs time.
if (process.argv.includes('--debug')) process.setSourceMapsEnabled(true);
const { main } = await import('../lib/main.js');
await main();
