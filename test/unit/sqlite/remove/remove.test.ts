import { describe, expect, it } from 'vitest';
import { removePackages } from '../../../../src/sqlite/remove/remove.js';
import { bundleNames, headsOf, leftovers, noLeftovers, smallIndex } from '../../../support/small-index.js';

const packages = {
  first: [{ minor: 0 }, { minor: 1, replaces: 0 }],
  second: [{ minor: 0 }],
  third: [{ minor: 0, isLocal: true }],
};

describe('sqlite/remove', () => {
  it('removes packages with all rows of their bundles, also of those without an image', async () => {
    const database = await smallIndex(packages);
    const schema = database.all('SELECT type, name, sql FROM sqlite_master ORDER BY type, name');
    const report = await removePackages(database, ['third', 'first', 'third']);
    expect(report).toEqual({
      packages: ['third', 'first'],
      bundles: ['third.v1.0.0', 'first.v1.1.0', 'first.v1.0.0'],
      failures: [],
    });
    expect(bundleNames(database)).toEqual(['second.v1.0.0']);
    expect(headsOf(database)).toEqual({ 'second/stable': 'second.v1.0.0' });
    expect(leftovers(database)).toEqual(noLeftovers);
    expect(database.all('SELECT type, name, sql FROM sqlite_master ORDER BY type, name')).toEqual(schema);
  });

  it('changes nothing where one of the packages is unknown, and names all that are', async () => {
    const database = await smallIndex(packages);
    const removal = removePackages(database, ['first', 'nope', 'none']);
    await expect(removal).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'index.db: no package found for packagename nope; no package found for packagename none',
      hint: 'use a known package: "first", "second", "third"',
    });
    expect(bundleNames(database)).toHaveLength(4);
    expect(leftovers(database)).toEqual(noLeftovers);
  });

  it('removes the others where it may leave some out', async () => {
    const database = await smallIndex(packages);
    const report = await removePackages(database, ['nope', 'second'], { permissive: true });
    expect(report.packages).toEqual(['second']);
    expect(report.failures.map(({ packageName }) => packageName)).toEqual(['nope']);
  });

  it('refuses to take away what a bundle of another package replaces', async () => {
    const database = await smallIndex(packages);
    const { id } = database.run(
      "INSERT INTO channel_entry (channel_name, package_name, operatorbundle_name, depth) VALUES ('stable', 'second', 'first.v1.0.0', 1)",
    );
    database.run("UPDATE channel_entry SET replaces = ? WHERE package_name = 'second' AND depth = 0", id);
    const message =
      'index.db: package second, channel stable: second.v1.0.0 replaces a bundle that would be removed';
    await expect(removePackages(database, ['first'])).rejects.toMatchObject({ code: 'INVALID', message });
    const report = await removePackages(database, ['first', 'third'], { permissive: true });
    expect(report.packages).toEqual(['third']);
    expect(report.failures[0]?.error.message).toBe(message);
    expect(bundleNames(database)).toContain('first.v1.0.0');
    await removePackages(database, ['first', 'second']);
    expect(bundleNames(database)).toEqual([]);
  });

  it('forgets the deprecations of a package, and removes a package that has a name only', async () => {
    const database = await smallIndex(packages);
    database.run("INSERT INTO deprecated VALUES ('first.v1.0.0')");
    database.run("INSERT INTO package VALUES ('empty', NULL)");
    await removePackages(database, ['first', 'empty']);
    expect(database.all('SELECT * FROM deprecated')).toEqual([]);
    expect(database.all("SELECT * FROM package WHERE name = 'empty'")).toEqual([]);
  });

  it('removes what is stranded, and what that strands in turn', async () => {
    const database = await smallIndex(packages);
    for (const name of ['stranded', 'headed'])
      database.run("INSERT INTO operatorbundle (name, version, bundlepath) VALUES (?, '1.0.0', '')", name);
    database.run("INSERT INTO channel VALUES ('extra', 'second', 'stranded')");
    database.run(
      "INSERT INTO channel_entry (channel_name, package_name, operatorbundle_name, depth) VALUES ('extra', 'second', 'headed', 1)",
    );
    const { bundles } = await removePackages(database, ['third', 'first']);
    expect(bundles).toEqual(['third.v1.0.0', 'first.v1.1.0', 'first.v1.0.0', 'stranded', 'headed']);
    expect(headsOf(database)).toEqual({ 'second/stable': 'second.v1.0.0' });
  });

  it('names the database where a table is missing', async () => {
    const database = await smallIndex(packages);
    database.execute('DROP TABLE related_image');
    await expect(removePackages(database, ['first'])).rejects.toMatchObject({
      code: 'INVALID',
      message: expect.stringMatching(/^index\.db: .*related_image/) as string,
    });
  });
});
