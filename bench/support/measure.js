// Measures whole processes: wall time, and peak memory as the operating system saw it.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const reporter = fileURLToPath(new URL('./report-usage.js', import.meta.url));
export const opmate = fileURLToPath(new URL('../../bin/opmate.cjs', import.meta.url));
export const reference = fileURLToPath(new URL('./reference.js', import.meta.url));

/** Runs `node SCRIPT ARGS`, which ends with `exitCode`; its output is read and thrown away. Returns seconds, those of its processor time, peak megabytes, bytes printed. */
export function measure(script, args, environment = {}, exitCode = 0) {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const child = spawn(process.execPath, ['--import', reporter, script, ...args], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    });
    let bytes = 0;
    let usage = '';
    let errors = '';
    child.stdout.on('data', (chunk) => (bytes += chunk.length));
    child.stderr.on('data', (chunk) => (errors += chunk));
    child.stdio[3].on('data', (chunk) => (usage += chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      if (code !== exitCode)
        return reject(new Error(`${script} ${args.join(' ')}: exit ${code}\n${errors.slice(0, 2000)}`));
      const seconds = (performance.now() - start) / 1000;
      const [kilobytes, processor] = usage.split(' ').map(Number);
      resolve({ seconds, processor, megabytes: kilobytes / 1024, bytes });
    });
  });
}

/**
 * Runs a program, its output read and thrown away. Returns its wall time and the processor time of it and of all that
 * it started, in seconds.
 */
export function timeCommand(program, args, { cwd, ...environment }) {
  return new Promise((resolve, reject) => {
    const script = 'TIMEFORMAT="%R %U %S"; { time "$@" >&3 2>&3; } 3>/dev/null';
    const child = spawn('bash', ['-c', script, 'bash', program, ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...environment },
      cwd,
    });
    let told = '';
    child.stderr.on('data', (chunk) => (told += chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      const [seconds, user, system] = told.trim().split(' ').map(Number);
      if (code !== 0) reject(new Error(`${program} ${args.slice(0, 8).join(' ')}: exit ${code}`));
      else resolve({ seconds, processor: user + system });
    });
  });
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

/**
 * Runs two commands in turn and prints medians, their ratio, and peak memory. Returns whether ratio and
 * memory are within their limits.
 */
export async function compare({ name, subject, baseline, runs = 5, maxRatio, maxMegabytes }) {
  const subjects = [];
  const baselines = [];
  for (let i = 0; i <= runs; i++) {
    const b = await measure(...baseline);
    const s = await measure(...subject);
    // The first round only warms caches up.
    if (i > 0) {
      baselines.push(b);
      subjects.push(s);
    }
  }
  const seconds = median(subjects.map((one) => one.seconds));
  const base = median(baselines.map((one) => one.seconds));
  const ratio = median(subjects.map((one, i) => one.seconds / baselines[i].seconds));
  const peak = Math.max(...subjects.map((one) => one.megabytes));
  const good = ratio <= maxRatio && (maxMegabytes === undefined || peak <= maxMegabytes);
  const memory = `peak ${peak.toFixed(0)} MB${maxMegabytes === undefined ? '' : ` (limit ${maxMegabytes})`}`;
  console.log(
    `  ${name}: ${seconds.toFixed(2)} s, reference ${base.toFixed(2)} s, ratio ${ratio.toFixed(2)} (limit ${maxRatio}), ${memory}${good ? '' : '  EXCEEDED'}`,
  );
  return good;
}
