// Puts a blob into Node.js, and checks the result, which may be for a platform that this machine cannot run.
import { chmodSync, copyFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { inject } from 'postject';
import { fetchPackage, platforms } from './packages.js';

/** Text in Node.js that tells whether there is a blob: followed by `:1` where there is one. */
const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';

/** Format of programs by the first part of a platform's name. */
const formats = { linux: 'ELF', darwin: 'Mach-O', win: 'PE' };

/** Writes Node.js of a platform with a blob as an executable file, and checks it. */
export async function injectBlob(platform, blob, file) {
  const { node, version } = platforms[platform];
  const program = platform.startsWith('win-') ? 'node.exe' : 'node';
  copyFileSync(path.join(fetchPackage(node, version), 'bin', program), file);
  chmodSync(file, 0o755);
  const content = readFileSync(blob);
  const segment = platform.startsWith('darwin-') ? { machoSegmentName: 'NODE_SEA' } : {};
  await inject(file, 'NODE_SEA_BLOB', content, { sentinelFuse: fuse, ...segment });
  checkExecutable(file, platform, content);
}

/** Throws where a file is no program of a platform, or does not contain the blob. */
export function checkExecutable(file, platform, blob) {
  const name = path.basename(file);
  const bytes = readFileSync(file);
  const [system, machine] = platform.split('-');
  const actual = readFormat(bytes);
  if (actual?.format !== formats[system] || actual.machine !== machine) {
    const got = actual === undefined ? 'another format' : `${actual.format} for ${actual.machine}`;
    throw new Error(`${name}: expected ${formats[system]} for ${machine}, got ${got}`);
  }
  if (!bytes.includes(`${fuse}:1`) || !bytes.includes(blob))
    throw new Error(`${name}: does not contain the program`);
}

/** Reads format and machine from the header of a program or shared library; undefined where it is neither. */
export function readFormat(bytes) {
  const machineOf = (machines, code) => machines[code] ?? `machine ${code}`;
  if (bytes.length < 64) return undefined;
  if (bytes.subarray(0, 4).equals(Buffer.from('\x7fELF', 'latin1')))
    return { format: 'ELF', machine: machineOf({ 62: 'x64', 183: 'arm64' }, bytes.readUInt16LE(18)) };
  if (bytes.readUInt32LE(0) === 0xfeedfacf) {
    const machines = { 0x01000007: 'x64', 0x0100000c: 'arm64' };
    return { format: 'Mach-O', machine: machineOf(machines, bytes.readUInt32LE(4)) };
  }
  const offset = bytes.readUInt32LE(60);
  if (bytes.toString('latin1', 0, 2) !== 'MZ' || offset + 6 > bytes.length) return undefined;
  if (bytes.toString('latin1', offset, offset + 4) !== 'PE\0\0') return undefined;
  const machines = { 0x8664: 'x64', 0xaa64: 'arm64' };
  return { format: 'PE', machine: machineOf(machines, bytes.readUInt16LE(offset + 4)) };
}
