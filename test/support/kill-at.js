/**
 * Loaded into a child process by `--import`: kills it with SIGKILL just before one of the calls of node:fs/promises
 * that change a directory below OPMATE_TEST_KILL_BELOW, the one whose number is OPMATE_TEST_KILL_AT. Counting begins
 * once the file OPMATE_TEST_KILL_BELOW/armed exists. Without the number, calls are only counted, into the file `calls`.
 */
import { appendFileSync, existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';

const below = process.env.OPMATE_TEST_KILL_BELOW;
const at = Number(process.env.OPMATE_TEST_KILL_AT ?? Number.NaN);
let calls = 0;

for (const name of ['rename', 'open', 'mkdir', 'rm', 'unlink', 'link']) {
  const real = fs[name];
  fs[name] = (...args) => {
    const isBelow = args.some((arg) => typeof arg === 'string' && arg.startsWith(`${below}${path.sep}`));
    const changes = name !== 'open' || /[wax+]/.test(String(args[1] ?? 'r'));
    if (below !== undefined && isBelow && changes && existsSync(path.join(below, 'armed'))) {
      calls += 1;
      if (calls === at) process.kill(process.pid, 'SIGKILL');
      if (Number.isNaN(at)) appendFileSync(path.join(below, 'calls'), `${name} ${args[0]}\n`);
    }
    return real(...args);
  };
}
syncBuiltinESMExports();
