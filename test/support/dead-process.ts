import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { ownProcess } from '../../src/files/process-identity.js';

/** A staging name of a process that has ended. */
export async function deadName(): Promise<string> {
  const child = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
  await once(child, 'exit');
  const [machine] = ownProcess().split('-');
  return `.opmate-${machine}-${child.pid}-1-0123456789abcdef`;
}

/** A staging name of a process of another machine, with four hex digits to tell it from others. */
export function foreignName(digits: string): string {
  return `.opmate-00000000-7-7-${digits}456789abcdef`;
}
