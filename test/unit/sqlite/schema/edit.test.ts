import {
  chmod,
  link,
  mkdir,
  readFile,
  readdir,
  stat,
  symlink,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CancelledError, OpmateError } from '../../../../src/core/errors.js';
import type { Database } from '../../../../src/sqlite/schema/database.js';
import {
  createDatabase,
  editDatabase,
  migrateDatabaseFile,
  openForReading,
} from '../../../../src/sqlite/schema/edit.js';
import { readVersion } from '../../../../src/sqlite/schema/schema.js';
import { deadName } from '../../../support/dead-process.js';
import { holdLock, leaveUnfinished, leaveWrittenAhead } from '../../../support/sqlite-process.js';
import { directoryWith } from '../../../support/temporary.js';

const now = (): Date => new Date(0);

/** An index at a schema version, with one bundle. */
async function indexAt(version = 13): Promise<{ directory: string; file: string }> {
  const directory = await directoryWith();
  const file = path.join(directory, 'index.db');
  await migrateDatabaseFile(file, { create: true, to: version });
  const database = new Sqlite(file);
  database.exec("INSERT INTO operatorbundle (name, csv) VALUES ('a.v1', '{}')");
  database.close();
  return { directory, file };
}

const addBundle = (name: string) => (database: Database) => {
  database.run("INSERT INTO operatorbundle (name, version, bundlepath) VALUES (?, '1.0.0', '')", name);
};

const names = (file: string): unknown[] => {
  const database = new Sqlite(file, { readonly: true });
  try {
    return database.prepare('SELECT name FROM operatorbundle ORDER BY 1').pluck().all();
  } finally {
    database.close();
  }
};

/** What a file is, to see whether it was touched. */
async function look(file: string): Promise<unknown> {
  const { ino, size, mtimeNs, mode } = await stat(file, { bigint: true });
  return { ino, size, mtimeNs, mode, bytes: (await readFile(file)).toString('base64') };
}

/** Reads with everything beside the file looked at before and after. */
async function read(file: string, work: (database: Database) => unknown): Promise<unknown> {
  const temporaryDirectory = await directoryWith();
  const directory = path.dirname(file);
  const state = async (): Promise<unknown> => {
    const list = (await readdir(directory)).sort();
    return Promise.all(list.map(async (name) => [name, await look(path.join(directory, name))]));
  };
  const before = await state();
  try {
    const { database, close } = await openForReading(file, { temporaryDirectory, now });
    try {
      expect(readVersion(database)).toBe(13);
      return work(database);
    } finally {
      await close();
    }
  } finally {
    expect(await state()).toEqual(before);
    expect(await readdir(temporaryDirectory)).toEqual([]);
  }
}

const readNames = (file: string): Promise<unknown> =>
  read(file, (database) =>
    database.all('SELECT name FROM operatorbundle ORDER BY 1').map(({ name }) => name),
  );

/** Runs `work` as a user who owns nothing; root may write everywhere. */
async function asStranger<T>(work: () => Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) return work();
  process.seteuid?.(65534);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
  }
}

async function failure(promise: Promise<unknown>): Promise<OpmateError> {
  return promise.then(
    () => expect.unreachable('nothing failed') as never,
    (error: unknown) => {
      expect(error).toBeInstanceOf(OpmateError);
      return error as OpmateError;
    },
  );
}

describe('sqlite/edit', () => {
  it('changes a database in place', async () => {
    const { file, directory } = await indexAt();
    expect(
      await editDatabase(file, {}, (database) => database.all('SELECT name FROM operatorbundle')),
    ).toEqual([{ name: 'a.v1' }]);
    await editDatabase(file, {}, addBundle('b.v1'));
    expect(names(file)).toEqual(['a.v1', 'b.v1']);
    expect(await readdir(directory)).toEqual(['index.db']);
  });

  it('leaves everything as it was when the work fails', async () => {
    const { file, directory } = await indexAt(5);
    const before = await readFile(file);
    for (const outputFile of [undefined, path.join(directory, 'out.db')]) {
      const work = (database: Database): void => {
        addBundle('b.v1')(database);
        throw new OpmateError('INVALID', 'no');
      };
      await expect(editDatabase(file, { outputFile }, work)).rejects.toThrow('no');
      expect((await readFile(file)).equals(before)).toBe(true);
      expect(await readdir(directory)).toEqual(['index.db']);
    }
    await expect(
      editDatabase(path.join(directory, 'n.db'), { create: true }, () => {
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(await readdir(directory)).toEqual(['index.db']);
  });

  it('leaves everything as it was when it is cancelled', async () => {
    const { file } = await indexAt();
    const controller = new AbortController();
    const work = (database: Database): void => {
      addBundle('b.v1')(database);
      controller.abort();
    };
    await expect(editDatabase(file, { signal: controller.signal }, work)).rejects.toBeInstanceOf(
      CancelledError,
    );
    expect(names(file)).toEqual(['a.v1']);
  });

  it('leaves everything as it was when the disk is full in the middle', async () => {
    const { file, directory } = await indexAt();
    const before = await readFile(file);
    for (const outputFile of [undefined, path.join(directory, 'out.db')]) {
      const error = await failure(
        editDatabase(file, { outputFile }, (database) => {
          database.execute('PRAGMA max_page_count = 60');
          for (let i = 0; i < 10_000; i++) addBundle(`bundle-with-a-long-name.v${i}`)(database);
        }),
      );
      expect(error).toMatchObject({ code: 'IO', message: `${file}: no space left on device` });
      expect((await readFile(file)).equals(before)).toBe(true);
      expect(await readdir(directory)).toEqual(['index.db']);
    }
  });

  it('makes a database, once', async () => {
    const directory = await directoryWith({ empty: '' });
    const file = path.join(directory, 'new.db');
    await editDatabase(file, { create: true }, addBundle('a.v1'));
    await editDatabase(file, { create: true }, addBundle('b.v1'));
    await editDatabase(path.join(directory, 'empty'), { create: true }, addBundle('c.v1'));
    expect(names(file)).toEqual(['a.v1', 'b.v1']);
    expect(names(path.join(directory, 'empty'))).toEqual(['c.v1']);
    expect(await failure(createDatabase(file))).toMatchObject({
      message: `${file}: file already exists`,
    });
    const nowhere = path.join(directory, 'no/x.db');
    expect(await failure(createDatabase(nowhere))).toMatchObject({ code: 'NOT_FOUND' });
    await symlink('nothing', path.join(directory, 'link'));
    expect(await failure(createDatabase(path.join(directory, 'link')))).toMatchObject({
      message: expect.stringContaining('a link to a file that does not exist') as string,
    });
    expect((await readdir(directory)).sort()).toEqual(['empty', 'link', 'new.db']);
  });

  it('does not take a new name from another who was quicker', async () => {
    const file = path.join(await directoryWith(), 'new.db');
    const error = await failure(
      editDatabase(file, { create: true }, async (database) => {
        addBundle('slow.v1')(database);
        await editDatabase(file, { create: true }, addBundle('quick.v1'));
      }),
    );
    expect(error).toMatchObject({ message: `${file}: created by another process meanwhile` });
    expect(names(file)).toEqual(['quick.v1']);
    expect(await readdir(path.dirname(file))).toEqual(['new.db']);
  });

  it('keeps the work of two editors at once', async () => {
    const { file } = await indexAt();
    let begun: () => void = () => undefined;
    let go: () => void = () => undefined;
    const hasBegun = new Promise<void>((resolve) => (begun = resolve));
    const mayGo = new Promise<void>((resolve) => (go = resolve));
    const slow = editDatabase(file, {}, async (database) => {
      begun();
      await mayGo;
      addBundle('slow.v1')(database);
    });
    await hasBegun;
    await failure(editDatabase(file, { timeoutMs: 5 }, addBundle('early.v1')));
    go();
    await slow;
    await editDatabase(file, {}, addBundle('late.v1'));
    expect(names(file)).toEqual(['a.v1', 'late.v1', 'slow.v1']);
  });

  it('says that the file was taken away while it was edited', async () => {
    const { file } = await indexAt();
    const work = async (database: Database): Promise<void> => {
      await unlink(file);
      addBundle('b.v1')(database);
    };
    const error = await failure(editDatabase(file, {}, work));
    expect(error.message).toBe(`${file}: moved or removed by another process`);
  });

  it('fails when another process writes for too long', async () => {
    const { file } = await indexAt();
    const lock = await holdLock(file);
    const error = await failure(editDatabase(file, { timeoutMs: 50 }, addBundle('b.v1')));
    expect(error.message).toBe(`${file}: locked by another process, waited 0.05 s`);
    // A copy of what was there before needs no lock.
    const outputFile = path.join(path.dirname(file), 'out.db');
    await editDatabase(file, { outputFile }, addBundle('b.v1'));
    expect(names(outputFile)).toEqual(['a.v1', 'b.v1']);
    await lock.release();
    expect(names(file)).toEqual(['a.v1']);
  });

  it('gives pages back when asked to', async () => {
    const { file } = await indexAt();
    await editDatabase(file, {}, (database) => {
      for (let i = 0; i < 1000; i++) addBundle(`bundle-with-a-long-name.v${i}`)(database);
    });
    const { size } = await stat(file);
    await editDatabase(file, { vacuum: true }, (database) => database.run('DELETE FROM operatorbundle'));
    expect((await stat(file)).size).toBeLessThan(size);
  });

  it('migrates to a version, and says from which', async () => {
    const { file } = await indexAt(4);
    expect(await migrateDatabaseFile(file, { to: 9 })).toBe(4);
    const before = await look(file);
    expect(await migrateDatabaseFile(file, { to: 9 })).toBe(9);
    expect(await look(file)).toEqual(before);
    expect(await migrateDatabaseFile(file, {})).toBe(9);
  });
});

describe('sqlite/edit with an output file', () => {
  it('writes it whole and leaves the input alone', async () => {
    const { file, directory } = await indexAt(5);
    await chmod(file, 0o400);
    const before = await look(file);
    const outputFile = path.join(directory, 'out.db');
    await writeFile(outputFile, 'something else');
    await editDatabase(file, { outputFile }, addBundle('b.v1'));
    expect(await look(file)).toEqual(before);
    expect(names(outputFile)).toEqual(['a.v1', 'b.v1']);
    expect((await stat(outputFile)).mode & 0o777).toBe(0o600);
    expect((await readdir(directory)).sort()).toEqual(['index.db', 'out.db']);
  });

  it('makes a database there when there is no input', async () => {
    const directory = await directoryWith();
    const outputFile = path.join(directory, 'out.db');
    const file = path.join(directory, 'none.db');
    expect(await failure(editDatabase(file, { outputFile }, addBundle('a.v1')))).toMatchObject({
      code: 'NOT_FOUND',
      message: `${file}: no such file or directory`,
    });
    await editDatabase(file, { outputFile, create: true }, addBundle('a.v1'));
    expect(await readdir(directory)).toEqual(['out.db']);
  });

  it('refuses the input under any name', async () => {
    const { file, directory } = await indexAt();
    const [linked, hard] = [path.join(directory, 'linked'), path.join(directory, 'hard')];
    await symlink(file, linked);
    await link(file, hard);
    for (const outputFile of [file, path.join(directory, '.', 'index.db'), linked, hard]) {
      const error = await failure(editDatabase(file, { outputFile }, addBundle('b.v1')));
      expect(error).toMatchObject({ code: 'USAGE', message: `${outputFile}: the output is the input` });
    }
    expect(names(file)).toEqual(['a.v1']);
  });

  it('follows a link to its file', async () => {
    const { file, directory } = await indexAt();
    await mkdir(path.join(directory, 'real'));
    const real = path.join(directory, 'real/out.db');
    await writeFile(real, '');
    const outputFile = path.join(directory, 'out.db');
    await symlink(real, outputFile);
    await editDatabase(file, { outputFile }, addBundle('b.v1'));
    expect(names(real)).toEqual(['a.v1', 'b.v1']);
  });

  it('refuses places where nothing can be', async () => {
    const { file, directory } = await indexAt();
    for (const [outputFile, problem] of [
      [path.join(directory, 'no/out.db'), /its directory ".*no": no such file or directory$/],
      [path.join(file, 'out.db'), /its directory ".*index\.db": not a directory$/],
      [directory, /is not a file$/],
    ] as const) {
      const { message } = await failure(editDatabase(file, { outputFile }, addBundle('b.v1')));
      expect(message).toMatch(problem);
    }
  });

  it('refuses a file beside which there is a journal, which would be taken for its own', async () => {
    const { file, directory } = await indexAt();
    const outputFile = path.join(directory, 'out.db');
    await writeFile(outputFile, '');
    await writeFile(`${outputFile}-journal`, 'x');
    expect(await failure(editDatabase(file, { outputFile }, addBundle('b.v1')))).toMatchObject({
      message: `${outputFile}: in use or unfinished: ${outputFile}-journal exists`,
    });
  });
});

describe('sqlite/edit for reading', () => {
  it('reads a database of the latest schema in place', async () => {
    const { file } = await indexAt();
    expect(await readNames(file)).toEqual(['a.v1']);
  });

  it('reads an older one through a copy', async () => {
    const { file } = await indexAt(4);
    await utimes(file, 1000, 1000);
    expect(
      await read(file, (database) => database.all('SELECT name, version, bundlepath FROM operatorbundle')),
    ).toEqual([{ name: 'a.v1', version: '', bundlepath: '' }]);
  });

  it('reads past what a killed writer has left, without undoing it in place', async () => {
    for (const version of [6, 13]) {
      const { file } = await indexAt(version);
      const filler = 'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000)';
      await leaveUnfinished(file, `INSERT INTO operatorbundle (name) ${filler} SELECT 'b.v' || n FROM c`);
      expect((await stat(`${file}-journal`)).size).toBeGreaterThan(0);
      expect(await readNames(file)).toEqual(['a.v1']);
      const through = path.join(await directoryWith(), 'link.db');
      await symlink(file, through);
      expect(await readNames(through)).toEqual(['a.v1']);
      const outputFile = path.join(path.dirname(file), 'out.db');
      await editDatabase(file, { outputFile }, addBundle('c.v1'));
      expect(names(outputFile)).toEqual(['a.v1', 'c.v1']);
      await editDatabase(file, {}, addBundle('d.v1'));
      expect(names(file)).toEqual(['a.v1', 'd.v1']);
    }
  });

  it('reads one that writes ahead, and leaves nothing beside it', async () => {
    const { file } = await indexAt();
    const database = new Sqlite(file);
    database.pragma('journal_mode = WAL');
    database.close();
    expect(await readdir(path.dirname(file))).toEqual(['index.db']);
    expect(await readNames(file)).toEqual(['a.v1']);
    const outputFile = path.join(path.dirname(file), 'out.db');
    await editDatabase(file, { outputFile }, addBundle('b.v1'));
    expect((await readdir(path.dirname(file))).sort()).toEqual(['index.db', 'out.db']);
  });

  it('changes no file beside one that others write ahead to', async () => {
    const { file } = await indexAt();
    const writer = new Sqlite(file);
    onTestFinished(() => void writer.close());
    writer.exec("PRAGMA journal_mode = WAL; INSERT INTO operatorbundle (name) VALUES ('b.v1')");
    const states = (): Promise<[number, string][]> =>
      Promise.all(
        ['', '-wal', '-shm'].map(async (suffix): Promise<[number, string]> => {
          const content = await readFile(file + suffix);
          return [(await stat(file + suffix)).mtimeMs, content.toString('base64')];
        }),
      );
    const before = await states();
    expect(await readNames(file)).toEqual(['a.v1', 'b.v1']);
    expect(await states()).toEqual(before);
  });

  it('reads what was written ahead by one who was killed', async () => {
    const { file } = await indexAt();
    await leaveWrittenAhead(
      file,
      "PRAGMA journal_mode = WAL; INSERT INTO operatorbundle (name) VALUES ('b.v1')",
    );
    expect((await stat(`${file}-wal`)).size).toBeGreaterThan(0);
    await unlink(`${file}-shm`);
    expect(await readNames(file)).toEqual(['a.v1', 'b.v1']);
  });

  it('reads where it may not write', async () => {
    for (const [version, mode] of [
      [13, 'DELETE'],
      [5, 'DELETE'],
      [13, 'WAL'],
    ] as const) {
      const { file, directory } = await indexAt(version);
      const database = new Sqlite(file);
      database.pragma(`journal_mode = ${mode}`);
      database.close();
      const temporaryDirectory = await directoryWith();
      await chmod(temporaryDirectory, 0o777);
      await chmod(file, 0o444);
      await chmod(directory, 0o555);
      onTestFinished(() => chmod(directory, 0o755));
      await asStranger(async () => {
        const { database: opened, close } = await openForReading(file, { temporaryDirectory, now });
        expect(opened.all('SELECT name FROM operatorbundle')).toEqual([{ name: 'a.v1' }]);
        await close();
        const error = await failure(editDatabase(file, {}, addBundle('b.v1')));
        expect(error).toMatchObject({
          code: 'IO',
          message: `${file}: the file or its directory is read-only`,
        });
        const outputFile = path.join(directory, 'out.db');
        const { message } = await failure(editDatabase(file, { outputFile }, addBundle('b.v1')));
        expect(message).toContain(file);
      });
      expect(await readdir(directory)).toEqual(['index.db']);
    }
  });

  it('says that a file may not be read', async () => {
    const { file, directory } = await indexAt();
    await chmod(directory, 0o755);
    await chmod(file, 0);
    const temporaryDirectory = await directoryWith();
    await asStranger(async () => {
      const error = await failure(openForReading(file, { temporaryDirectory, now }));
      expect(error).toMatchObject({ code: 'IO', message: `${file}: permission denied` });
    });
  });

  it.each(['nothing there', 'hello', ''])('refuses what is no database: %s', async (content) => {
    const file = path.join(await directoryWith(content === 'nothing there' ? {} : { f: content }), 'f');
    await failure(read(file, () => undefined));
  });

  it('refuses a database of a newer version', async () => {
    const { file } = await indexAt();
    const database = new Sqlite(file);
    database.exec('UPDATE schema_migrations SET version = 14');
    database.close();
    expect(await failure(read(file, () => undefined))).toMatchObject({
      code: 'UNSUPPORTED',
      message: `${file}: schema version 14 is not supported`,
    });
    expect((await failure(editDatabase(file, {}, addBundle('b.v1')))).code).toBe('UNSUPPORTED');
  });

  it('refuses a database that lies about its version', async () => {
    const { file } = await indexAt(3);
    const database = new Sqlite(file);
    database.exec('UPDATE schema_migrations SET version = 13');
    database.close();
    expect((await failure(read(file, () => undefined))).message).toMatch(
      /^\S+: table operatorbundle has no column/,
    );
  });
});

describe('leftovers of a killed run', () => {
  it('are swept by the next edit, of a new database and of one that exists', async () => {
    const directory = await directoryWith();
    const file = path.join(directory, 'index.db');
    for (let run = 0; run < 2; run++) {
      const dead = await deadName();
      for (const suffix of ['', '-journal']) await writeFile(path.join(directory, dead + suffix), 'x');
      await editDatabase(file, { create: true }, () => undefined);
      expect(await readdir(directory)).toEqual(['index.db']);
    }
  });
});
