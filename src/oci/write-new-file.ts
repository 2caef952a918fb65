import { open } from 'node:fs/promises';

/** Writes a file that is not there yet, down to the disk. Throws the error of the system. */
export async function writeNewFile(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', 0o666);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
