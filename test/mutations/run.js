// Runs whole commands on inputs and arguments that were changed at random: `npm run test:mutations -- [RUNS [SEED]]`.
// A run fails by an internal error, a stack trace, an unknown exit code, an error without a message, or by not ending.
// The same seed gives the same runs; `RUNS SEED FIRST` starts at run FIRST, to see one of them again.
import { clearTimeout, setTimeout } from 'node:timers';
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const [runs = 10_000, seed = 1, first = 0] = process.argv.slice(2).map(Number);
const workers = Math.min(2, Math.max(1, runs));
const patienceMs = 30_000;

const failures = [];
let done = 0;
const report = (failure) => {
  failures.push(failure);
  process.stdout.write(`run ${failure.number}: ${failure.problem}\n  ${failure.command}\n`);
};

/** Lets one process do every `workers`-th run, and starts another one behind a run that does not end. */
function work(next) {
  return new Promise((resolve) => {
    const begin = (number) => {
      let current = number;
      let command = '';
      const child = fork(fileURLToPath(new URL('worker.js', import.meta.url)), {
        serialization: 'advanced',
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      });
      let stderr = '';
      child.stderr.on('data', (chunk) => (stderr = `${stderr}${chunk}`.slice(-4000)));
      let timer;
      const watch = () => {
        clearTimeout(timer);
        timer = setTimeout(() => child.kill('SIGKILL'), patienceMs);
      };
      watch();
      let finished = false;
      child.on('message', (message) => {
        watch();
        if (message.type === 'start') ({ number: current, command } = message);
        else if (message.type === 'end') {
          done++;
          if (message.problem !== undefined) report(message);
        } else finished = true;
      });
      child.on('exit', (code, signal) => {
        clearTimeout(timer);
        if (finished) return resolve();
        const problem =
          signal === 'SIGKILL'
            ? `no end within ${patienceMs / 1000} s`
            : `process ended with ${code ?? signal}: ${stderr}`;
        report({ number: current, command, problem });
        done++;
        if (current + workers < first + runs) begin(current + workers);
        else resolve();
      });
      child.send({ seed, from: number, to: first + runs, step: workers });
    };
    begin(next);
  });
}

const started = Date.now();
await Promise.all(Array.from({ length: workers }, (_, index) => work(first + index)));
process.stdout.write(
  `${done} runs with seed ${seed} in ${Math.round((Date.now() - started) / 1000)} s, ${failures.length} failed\n`,
);
process.exitCode = failures.length > 0 ? 1 : 0;
