import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { kill, pid as ownPid } from 'node:process';
import { systemCode } from '../core/errors.js';

const identityPattern = /^([0-9a-f]{8})-(\d{1,10})-(\d{1,15})$/;
let own: string | undefined;

/**
 * Returns the identity of this process, by which others recognize it even after its number is reused:
 * `MACHINE-PID-STARTED`, which is safe in file names. MACHINE are eight hexadecimal digits that identify the running
 * system and its process namespace, as a container has its own; STARTED is the start time in ticks since boot, 0 if
 * unknown.
 */
export function ownProcess(): string {
  own ??= `${readMachine()}-${ownPid}-${readStart(ownPid)?.started ?? 0}`;
  return own;
}

/** Returns the number of the process in an identity; undefined for other text. */
export function getProcessId(identity: string): number | undefined {
  const pid = identityPattern.exec(identity)?.[2];
  return pid === undefined ? undefined : Number(pid);
}

/**
 * Reports whether the process of an identity is running. Undefined for processes of another machine, container or boot,
 * for which only the age of their files is known, and for other text.
 */
export function isRunning(identity: string): boolean | undefined {
  const [, machine, id, started] = identityPattern.exec(identity) ?? [];
  const [here, , ownStart] = ownProcess().split('-');
  if (machine !== here) return undefined;
  const pid = Number(id);
  if (pid <= 0) return false;
  if (ownStart !== '0') {
    const start = readStart(pid);
    return start !== undefined && start.started === Number(started) && !start.isDead;
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
