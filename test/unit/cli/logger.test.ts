import { beforeEach, describe, expect, it, vi } from 'vitest';
import { createLogger, parseLevel } from '../../../src/cli/logger.js';
import { createWorld } from './world.js';
import { busy } from '../../support/waiting.js';

describe('cli/logger', () => {
  it('takes the level from --debug, -v and --log-level', () => {
    expect(parseLevel({})).toBe('info');
    expect(parseLevel({ logLevel: 'error' })).toBe('error');
    expect(parseLevel({ debug: true, logLevel: 'error' })).toBe('debug');
    expect(parseLevel({ verbose: true })).toBe('debug');
    expect(parseLevel({ quiet: true, logLevel: 'debug' })).toBe('error');
  });

  it('writes lines of text from its level on, without credentials of URLs and control characters', () => {
    const world = createWorld();
    const logger = createLogger(world, { logLevel: 'warn' });
    logger.log('info', 'hidden');
    logger.log('warn', 'GET https://user:hunter2@host/\u001b[2J', { attempt: 2, none: undefined });
    logger.log('error', 'pushed localhost:5000/dex-auth:v1');
    expect(world.stderr.text).toBe(
      'warn: GET https://***@host/\\x1b[2J attempt=2\nerror: pushed localhost:5000/dex-auth:v1\n',
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

  it.each(['text', 'json'] as const)(
    'keeps the order of %s lines that are written together',
    async (logFormat) => {
      const world = createWorld();
      const logger = createLogger(world, { logFormat });
      logger.logOften?.('info', 'one', { code: 'OK' });
      logger.logOften?.('debug', 'hidden');
      logger.logOften?.('info', 'two with https://user:hunter2@host');
      expect(world.stderr.text).toBe('');
      logger.log('warn', 'three');
      logger.logOften?.('info', 'four');
      await vi.waitFor(() => expect(world.stderr.text).toContain('four'), busy);
      expect(world.stderr.text).toMatch(/^.*one.*OK.*\n.*two.*\n.*three.*\n.*four.*\n$/);
      expect(world.stderr.text).not.toContain('hunter2');
      logger.logOften?.('info', 'five');
      logger.close();
      expect(world.stderr.text).toMatch(/five.*\n$/);
    },
  );

  describe('where stderr is no terminal', () => {
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
      return () => vi.useRealTimers();
    });
    const copy = { task: 'mirror', state: 'update', total: 2048, unit: 'bytes' } as const;

    it('shows a line of progress every ten seconds while something goes on', () => {
      const world = createWorld();
      const logger = createLogger(world, {});
      logger.progress({ ...copy, current: 0, item: 'https://user:hunter2@host/a' });
      expect(world.stderr.text).toBe('');
      vi.advanceTimersByTime(10_000);
      expect(world.stderr.text).toBe('info: mirror 0%, 0 bytes of 2.0 KiB · https://***@host/a\n');
      logger.progress({ ...copy, current: 1024 });
      vi.advanceTimersByTime(20_000);
      expect(world.stderr.text.split('\n').slice(1, 3)).toEqual(
        Array(2).fill('info: mirror 50%, 1.0 KiB of 2.0 KiB'),
      );
      const before = world.stderr.text;
      logger.progress({ task: 'mirror', state: 'done' });
      vi.advanceTimersByTime(20_000);
      logger.close();
      expect(world.stderr.text).toBe(before);
    });

    it('repeats events of what goes on as JSON, and shows nothing with --quiet', () => {
      const world = createWorld();
      const logger = createLogger(world, { logFormat: 'json' });
      logger.progress({ ...copy, current: 1 });
      vi.advanceTimersByTime(20_000);
      const lines = world.stderr.text.trimEnd().split('\n');
      expect(lines.map((line) => JSON.parse(line) as object)).toEqual(
        Array(3).fill(expect.objectContaining({ progress: { ...copy, current: 1 } })),
      );
      logger.close();
      const quiet = createWorld();
      createLogger(quiet, { quiet: true }).progress({ ...copy, current: 1 });
      vi.advanceTimersByTime(20_000);
      expect(quiet.stderr.text).toBe('');
    });
  });
});
