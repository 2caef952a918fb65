// Runs a line of shell: shell.js LINE.
import { spawnSync } from 'node:child_process';

process.exitCode = spawnSync('sh', ['-ec', process.argv[2]], { stdio: 'inherit' }).status ?? 1;
