import { spawn } from 'node:child_process';
import { mkdir, readFile, rename } from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { getMessage, reportedError } from '../../../src/core/errors.js';
import { directoryWith } from '../../support/temporary.js';

const thrownBy = async (work: () => unknown): Promise<unknown> => {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
};

describe('core/errors: errors of Node.js', () => {
  it('names the file and the reason of a failure, and operations other than opening', async () => {
    const directory = await directoryWith({ file: '' });
    const [missing, file] = ['missing', 'file'].map((name) => path.join(directory, name));
    expect(getMessage(await thrownBy(() => readFile(missing as string)))).toBe(
      `${missing}: no such file or directory`,
    );
    const existing = await thrownBy(() => mkdir(file as string));
    expect(reportedError(existing)).toMatchObject({ code: 'IO', message: `mkdir ${file}: already exists` });
    expect(reportedError(await thrownBy(() => rename(missing as string, file as string)))).toMatchObject({
      code: 'NOT_FOUND',
      message: `rename ${missing} to ${file}: no such file or directory`,
    });
  });

  it('names a command that does not exist', async () => {
    const thrown = await thrownBy(
      () => new Promise((_, reject) => spawn('no-such-command-of-opmate').on('error', reject)),
    );
    expect(reportedError(thrown)).toMatchObject({
      code: 'NOT_FOUND',
      message: 'no-such-command-of-opmate: command not found',
    });
  });

  it('names an address that is in use', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    const other = createServer();
    const thrown = await thrownBy(
      () => new Promise((_, reject) => other.on('error', reject).listen(port, '127.0.0.1')),
    );
    expect(getMessage(thrown)).toBe(`listen 127.0.0.1:${port}: address already in use`);
  });

  it('reports content beyond the limits of the engine, and invalid URLs', async () => {
    const long = await thrownBy(() => 'x'.repeat(2 ** 28).repeat(8));
    expect(reportedError(long)).toMatchObject({
      code: 'LIMIT',
      message: 'content too large to hold in memory',
    });
    const array = await thrownBy(() => new ArrayBuffer(2 ** 52));
    expect(reportedError(array)).toMatchObject({ code: 'LIMIT' });
    const url = await thrownBy(() => new URL('http://a b'));
    expect(reportedError(url)).toMatchObject({ code: 'INVALID', message: '"http://a b": invalid URL' });
  });

  it('leaves defects as they are', async () => {
    const defect = await thrownBy(() => (undefined as unknown as { a: string }).a);
    expect(reportedError(defect)).toBe(defect);
  });
});
