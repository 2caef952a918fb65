/** Other processes that have a database open. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';

/** Runs a script with `database`, a connection to `file`, in a process of its own, until it prints a line. */
async function runScript(file: string, script: string): Promise<ChildProcess> {
  const whole = `const database = new (require('better-sqlite3'))(process.argv[1]);
    ${script}
    console.log('ready'); setInterval(() => undefined, 1000);`;
  const child = spawn(process.execPath, ['-e', whole, file], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

/** Has another process hold the write lock of a database until it is released. */
export async function holdLock(file: string): Promise<{ release(): Promise<void> }> {
  const child = await runScript(file, "database.exec('BEGIN IMMEDIATE');");
  return { release: () => end(child) };
}

/** Has another process killed in the middle of writing these statements: its journal stays. */
export async function leaveUnfinished(file: string, sql: string): Promise<void> {
  // With next to no cache what is changed goes to the file at once.
  const child = await runScript(
    file,
    `database.pragma('cache_size = 1'); database.pragma('cache_spill = 1');
     database.exec('BEGIN IMMEDIATE'); database.exec(${JSON.stringify(sql)});`,
  );
  await end(child);
}

/** Has another process killed that has written these statements ahead, and not yet to the database. */
export async function leaveWrittenAhead(file: string, sql: string): Promise<void> {
  const child = await runScript(file, `database.exec(${JSON.stringify(sql)});`);
  await end(child);
}
