import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../../../src/sqlite/schema/database.js';
import { dropManifestsOfNonHeads } from '../../../../src/sqlite/add/add.js';
import { migrateDatabase } from '../../../../src/sqlite/schema/schema.js';
import { directoryWith } from '../../../support/temporary.js';

describe('sqlite/minimal', () => {
  it('takes manifests from what heads no channel and has an image, and nothing else', async () => {
    const database = await openDatabase(path.join(await directoryWith(), 'index.db'), { access: 'create' });
    onTestFinished(() => database.close());
    await database.transaction(() => {
      migrateDatabase(database);
      const add = (name: string | null, image: string | null): void =>
        void database.run(
          "INSERT INTO operatorbundle VALUES (?, x'00', x'00', ?, '>0.1.0', '1.0.0', 'old', 'a,b', 'x')",
          name,
          image,
        );
      add('head', 'quay.io/p:1');
      add('head-elsewhere', 'quay.io/p:2');
      add('member', 'quay.io/p:3');
      add('stranded', 'quay.io/p:4');
      add('no-image', '');
      add('null-image', null);
      add(null, 'quay.io/p:5');
      database.run("INSERT INTO channel VALUES ('a', 'p', 'head'), ('a', 'q', 'head-elsewhere')");
      database.run("INSERT INTO channel VALUES ('empty', 'p', NULL)");
      database.run("INSERT INTO related_image VALUES ('quay.io/x', 'member')");
      database.run("INSERT INTO properties VALUES ('t', '1', 'member', '1.0.0', 'quay.io/p:3')");
      database.run("INSERT INTO dependencies VALUES ('t', '1', 'member', '1.0.0', 'quay.io/p:3')");
    });
    const rest = (): unknown => [
      database.all(
        'SELECT name, bundlepath, skiprange, version, replaces, skips, substitutesfor FROM operatorbundle',
      ),
      ...['related_image', 'properties', 'dependencies', 'channel'].map((table) =>
        database.all(`SELECT * FROM ${table}`),
      ),
    ];
    const before = rest();

    expect(dropManifestsOfNonHeads(database)).toBe(2);
    const withManifests = database.all<{ name: string | null }>(
      'SELECT name FROM operatorbundle WHERE csv IS NOT NULL AND bundle IS NOT NULL ORDER BY name',
    );
    expect(withManifests.map(({ name }) => name)).toEqual([
      null,
      'head',
      'head-elsewhere',
      'no-image',
      'null-image',
    ]);
    expect(rest()).toEqual(before);
    expect(dropManifestsOfNonHeads(database)).toBe(0);
  });
});
