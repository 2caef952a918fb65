import { onTestFinished, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../../src/sqlite/schema/database.js';
import { IndexQueries, readState } from '../../../../src/sqlite/read/queries.js';
import { readEdges } from '../../../../src/sqlite/schema/package-state.js';
import { indexFile } from '../../../support/index-file.js';

async function databaseOf(...statements: string[]): Promise<Database> {
  const file = await indexFile(...statements);
  const database = await openDatabase(file, { access: 'read', name: 'index.db' });
  onTestFinished(() => database.close());
  return database;
}

async function queriesOf(...statements: string[]): Promise<IndexQueries> {
  return new IndexQueries(await databaseOf(...statements));
}

describe('sqlite/queries', () => {
  it('reads packages and channels', async () => {
    const queries = await queriesOf("INSERT INTO package VALUES ('a', NULL)");
    expect(queries.packages()).toEqual([
      { name: 'a', defaultChannel: '', channels: [] },
      {
        name: 'widget',
        defaultChannel: 'stable',
        channels: [
          { name: 'stable', head: 'widget.v1.2.0' },
          { name: 'beta', head: 'widget.v1.2.0' },
        ],
      },
    ]);
  });

  it('distinguishes what bundles replace from what they skip', async () => {
    const queries = await queriesOf();
    const shown = queries
      .members('widget')
      .map(({ channel, name, replaces, skips }) => `${channel} ${name} > ${replaces} [${skips.join()}]`);
    expect(shown).toEqual([
      'beta widget.v1.2.0 >  []',
      'stable widget.v1.0.0 >  []',
      'stable widget.v1.1.0 > widget.v1.0.0 []',
      'stable widget.v1.2.0 > widget.v1.1.0 [widget.v1.1.1]',
    ]);
    expect(queries.members('other')).toEqual([]);
  });

  it('ends where entries run in a circle, and where none is a head', async () => {
    const circle = await queriesOf('UPDATE channel_entry SET replaces = 1 WHERE entry_id = 5');
    expect(circle.members('widget').find(({ name }) => name.endsWith('1.0.0'))?.replaces).toBe(
      'widget.v1.2.0',
    );
    const headless = await queriesOf('UPDATE channel_entry SET depth = NULL');
    expect(headless.members('widget').map(({ skips }) => skips.length)).toEqual([0, 0, 1, 2]);
  });

  it('keeps a name with a comma whole', async () => {
    const queries = await queriesOf(
      "UPDATE channel_entry SET operatorbundle_name = 'a,b' WHERE operatorbundle_name = 'widget.v1.1.1'",
    );
    expect(queries.members('widget').at(-1)?.skips).toEqual(['a,b']);
  });

  it('reads bundles with what hangs on their names, each once', async () => {
    const database = await databaseOf(
      "INSERT INTO related_image VALUES ('', 'widget.v1.2.0'), (NULL, 'widget.v1.2.0')",
      "UPDATE operatorbundle SET version = CAST(version AS BLOB), skips = 'x,y'",
    );
    const queries = new IndexQueries(database);
    const id = queries.findBundle('widget.v1.2.0') as number;
    const [bundle] = queries.bundlesAt([id, 12345]).values();
    expect(bundle).toMatchObject({ name: 'widget.v1.2.0', version: '1.2.0' });
    expect(readEdges(database, 'widget.v1.2.0')).toMatchObject({ version: '1.2.0', skips: ['x', 'y'] });
    expect(bundle?.images).toEqual(['', 'quay.io/widget/bundle:1.2.0', 'quay.io/widget/operand:1.2.0']);
    expect(bundle?.properties.map(({ type }) => type)).toEqual(['olm.package', 'olm.gvk']);
    expect(queries.manifestsAt(id).objects.toString()).toMatch(/^\{.*\}\n\{.*\}\n$/);
    expect(queries.manifestsAt(queries.findBundle('widget.v1.1.0') as number).csv).toHaveLength(0);
    expect(queries.findBundle('widget')).toBeUndefined();
  });

  it('does not read values that no index holds', async () => {
    const queries = await queriesOf(
      "UPDATE operatorbundle SET bundle = zeroblob(67108865) WHERE name = 'widget.v1.0.0'",
    );
    expect(() => queries.findBundle('widget.v1.1.0')).toThrow(
      /^index\.db: table operatorbundle .* 67108865 /,
    );
  });

  it.each(['operatorbundle', 'channel_entry', 'properties', 'dependencies', 'related_image'])(
    'says that the table %s is missing, or is none',
    async (table) => {
      const read = async (...statements: string[]): Promise<unknown> => {
        const queries = await queriesOf(...statements);
        return queries.members('widget').map(({ id }) => queries.bundlesAt([id]));
      };
      await expect(read(`DROP TABLE ${table}`)).rejects.toMatchObject({ code: 'INVALID' });
      const view = [`ALTER TABLE ${table} RENAME TO real`, `CREATE VIEW ${table} AS SELECT * FROM real`];
      await expect(read(...view)).rejects.toMatchObject({ code: 'INVALID' });
    },
  );

  it('sees that another connection has changed the index', async () => {
    const file = await indexFile();
    const reader = await openDatabase(file, { access: 'read' });
    const writer = await openDatabase(file, { access: 'write' });
    const before = readState(reader);
    expect(readState(reader)).toBe(before);
    writer.run("UPDATE package SET default_channel = 'beta'");
    expect(readState(reader)).not.toBe(before);
    reader.close();
    writer.close();
  });
});
