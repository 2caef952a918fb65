import { describe, expect, it } from 'vitest';
import { createLogger, levelOf } from '../../../src/cli/logger.js';
import { createWorld } from './world.js';

describe('cli/logger', () => {
  it('takes the level from --debug, -v and --log-level', () => {
    expect(levelOf({})).toBe('info');
    expect(levelOf({ logLevel: 'error' })).toBe('error');
    expect(levelOf({ debug: true, logLevel: 'error' })).toBe('debug');
    expect(levelOf({ verbose: true })).toBe('debug');
    expect(levelOf({ quiet: true, logLevel: 'debug' })).toBe('error');
  });

  it('writes lines of text from its level on, without secrets and control characters', () => {
    const world = createWorld();
    const logger = createLogger(world, { logLevel: 'warn' });
    logger.log('info', 'hidden');
    logger.log('warn', 'GET https://user:hunter2@host/\u001b[2J', { attempt: 2, none: undefined });
    logger.log('error', 'Authorization: Bearer abcdefghijk');
    expect(world.stderr.text).toBe(
      'warn: GET https://***@host/\\x1b[2J attempt=2\nerror: Authorization: Bearer ***\n',
    );
  });

  it('writes JSON lines with the time of the clock', () => {
    const world = createWorld();
    const logger = createLogger(world, { logFormat: 'json' });
    logger.log('info', 'copied "x"\n', { bytes: 5 });
    logger.log('debug', 'hidden');
    logger.progress({ task: 'copy', state: 'start' });
    const lines = world.stderr.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    const time = '1970-01-01T00:00:00.000Z';
    expect(lines).toEqual([
      { time, level: 'info', message: 'copied "x"\n', bytes: 5 },
      { time, level: 'info', progress: { task: 'copy', state: 'start' } },
    ]);
  });

  it('shows no progress where stderr is no terminal', () => {
    const world = createWorld();
    const logger = createLogger(world, {});
    logger.progress({ task: 'copy', state: 'start' });
    logger.progress({ task: 'copy', state: 'done' });
    logger.close();
    expect(world.stderr.text).toBe('');
  });
});
