import { describe, expect, it } from 'vitest';
import { removePackages } from '../../../../src/sqlite/remove/remove.js';
import { pruneStranded } from '../../../../src/sqlite/remove/stranded.js';
import { bundleNames, leftovers, noLeftovers, smallIndex } from '../../../support/small-index.js';

const packages = {
  first: [{ minor: 0 }, { minor: 1, replaces: 0 }, { minor: 2, replaces: 0 }],
  second: [{ minor: 0, isLocal: true }, { minor: 1 }],
};

describe('sqlite/stranded', () => {
  it('removes bundles that are in no channel with all their rows, but not deprecated ones', async () => {
    const database = await smallIndex(packages);
    database.run("INSERT INTO deprecated VALUES ('first.v1.1.0')");
    expect((await pruneStranded(database)).bundles).toEqual(['second.v1.0.0']);
    database.run('DELETE FROM deprecated');
    expect((await pruneStranded(database)).bundles).toEqual(['first.v1.1.0']);
    expect(bundleNames(database)).toEqual(['first.v1.0.0', 'first.v1.2.0', 'second.v1.1.0']);
    expect(leftovers(database)).toEqual(noLeftovers);
  });

  it('does so where an entry, a deprecation or a bundle has no name, and removes such bundles', async () => {
    const database = await smallIndex(packages);
    database.run(
      "INSERT INTO channel_entry (channel_name, package_name, depth) VALUES ('stable', 'first', 9)",
    );
    database.run('INSERT INTO deprecated VALUES (NULL)');
    database.run("INSERT INTO operatorbundle (version) VALUES ('1.0.0'), ('2.0.0')");
    expect(await pruneStranded(database)).toEqual({
      bundles: ['first.v1.1.0', 'second.v1.0.0'],
      nameless: 2,
    });
    expect(database.all('SELECT * FROM deprecated')).toEqual([]);
  });

  it.each([
    ['channel_entry', 'operatorbundle_name'],
    ['operatorbundle', 'name'],
    ['package', 'name'],
    ['channel', 'head_operatorbundle_name'],
  ])('removes nothing of an index whose %s has its %s as bytes', async (table, column) => {
    const database = await smallIndex(packages);
    database.execute('PRAGMA foreign_keys = OFF');
    database.run(`UPDATE ${table} SET ${column} = CAST(${column} AS BLOB)`);
    for (const edit of [pruneStranded, () => removePackages(database, ['first'])]) {
      await expect(edit(database)).rejects.toMatchObject({
        code: 'INVALID',
        message: `index.db: table ${table} has a ${column} that is not text`,
      });
    }
    expect(bundleNames(database)).toHaveLength(5);
    database.run(`UPDATE ${table} SET ${column} = CAST(${column} AS TEXT)`);
    expect((await pruneStranded(database)).bundles).toEqual(['first.v1.1.0', 'second.v1.0.0']);
  });

  it('removes the bundles of packages that are not in the index, where they say so in a readable way', async () => {
    const database = await smallIndex(packages);
    database.run("DELETE FROM package WHERE name = 'second'");
    database.run(
      "INSERT INTO properties (type, value, operatorbundle_name) VALUES ('olm.package', '{', 'first.v1.2.0'), ('olm.package', NULL, 'first.v1.2.0'), ('olm.package', '{}', NULL)",
    );
    const { bundles } = await pruneStranded(database);
    expect(bundles).toEqual(['first.v1.1.0', 'second.v1.0.0', 'second.v1.1.0']);
  });
});
