import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { kill, pid as ownPid } from 'node:process';
import { systemCode } from '../core/errors.js';

/** A process that others can recognize even after its number is reused. */
export interface ProcessIdentity {
  /** Eight hexadecimal digits that identify the running system and its process namespace; a container has its own. */
  machine: string;
  pid: number;
  /** Start time in ticks since boot; 0 if unknown. */
  started: number;
}

const identityPattern = /^([0-9a-f]{8})-(\d{1,10})-(\d{1,15})$/;
let own: ProcessIdentity | undefined;

/** Returns the identity of this process. */
export function ownProcess(): ProcessIdentity {
  own ??= { machine: readMachine(), pid: ownPid, started: readStart(ownPid)?.started ?? 0 };
  return own;
}

/** Formats an identity as `MACHINE-PID-STARTED`, which is safe in file names. */
export function formatProcess({ machine, pid, started }: ProcessIdentity): string {
  return `${machine}-${pid}-${started}`;
}

/** Parses the output of `formatProcess`; undefined for other text. */
export function parseProcess(text: string): ProcessIdentity | undefined {
  const [, machine, pid, started] = identityPattern.exec(text) ?? [];
  if (machine === undefined) return undefined;
  return { machine, pid: Number(pid), started: Number(started) };
}

/**
 * Reports whether a process is running. Undefined for processes of another machine, container or boot, for which only
 * the age of their files is known.
 */
export function isRunning({ machine, pid, started }: ProcessIdentity): boolean | undefined {
  const { machine: here, started: ownStart } = ownProcess();
  if (machine !== here) return undefined;
  if (pid <= 0) return false;
  if (ownStart > 0) {
    const start = readStart(pid);
    return start !== undefined && start.started === started && !start.isDead;
  }
  try {
    kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) !== 'ESRCH';
  }
}

function readMachine(): string {
  const parts = [hostname()];
  for (const read of [
    () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    () => readlinkSync('/proc/self/ns/pid'),
  ]) {
    try {
      parts.push(read());
    } catch {
      // Only Linux has these; elsewhere the name of the host has to do.
    }
  }
  return createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 8);
}

/** Returns fields 3 and 22 of `/proc/PID/stat` (proc(5)); the name in field 2 may hold any character. */
function readStart(pid: number): { started: number; isDead: boolean } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { started: Number(fields[19]), isDead: /^[ZXx]$/.test(fields[0] ?? '') };
  } catch {
    return undefined;
  }
}
