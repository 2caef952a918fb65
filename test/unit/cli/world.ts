import { PassThrough, Writable } from 'node:stream';
import type { CommandContext } from '../../../src/cli/context.js';

/** A stream that keeps what is written to it. */
export class Capture extends Writable {
  readonly chunks: Buffer[] = [];
  isTTY?: boolean;

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.chunks.push(chunk);
    done();
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString();
  }
}

export interface World extends CommandContext {
  stdout: Capture;
  stderr: Capture;
}

/** A world for commands that run in this process. */
export function createWorld(more: Partial<CommandContext> = {}): World {
  const world = {
    environment: {},
    workingDirectory: '/',
    homeDirectory: '/nonexistent',
    temporaryDirectory: '/nonexistent',
    stdin: new PassThrough(),
    signal: new AbortController().signal,
    now: () => new Date(0),
    architecture: 'x64',
    ...more,
  };
  return { ...world, stdout: new Capture(), stderr: new Capture() };
}
