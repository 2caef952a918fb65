import { open } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { RecordFile } from '../../../../src/catalog/content/record-file.js';
import { directoryWith } from '../../../support/temporary.js';

describe('a file of records', () => {
  it('reads records of any size in any order, buffered or written', async () => {
    const directory = await directoryWith({});
    const records = await RecordFile.unnamed(directory);
    const bodies = Array.from({ length: 400 }, (_, i) => Buffer.alloc(i % 50 === 7 ? 300_000 : i % 97, i));
    const slots = await Promise.all(
      bodies.map(async (body, i) => {
        const slot = await records.append(body);
        // Some are asked for at once, while others are on their way.
        if (i % 3 === 0) expect((await records.read(slot))?.equals(body)).toBe(true);
        return slot;
      }),
    );
    for (const [i, slot] of [...slots.entries()].reverse()) {
      expect((await records.read(slot))?.equals(bodies[i] as Buffer)).toBe(true);
    }
    expect(records.size).toBe(bodies.reduce((sum, { length }) => sum + length, 0));
    await records.close();
  });

  it('is whole on disk after sync', async () => {
    const file = path.join(await directoryWith({}), 'records');
    const records = new RecordFile(await open(file, 'wx+'), file);
    const slots = [];
    for (const text of ['one', 'two', '', 'three']) slots.push(await records.append(Buffer.from(text)));
    await records.sync();
    const again = new RecordFile(await open(file), file, records.size);
    expect(await Promise.all(slots.map(async (slot) => String(await again.read(slot))))).toEqual([
      'one',
      'two',
      '',
      'three',
    ]);
    await again.close();
    await records.close();
  });

  it('reports failed writes at the end, even if they were reported before', async () => {
    const file = path.join(await directoryWith({ records: '' }), 'records');
    const records = new RecordFile(await open(file), file);
    const slot = await records.append(Buffer.from('small'));
    expect(await records.read(slot)).toBeUndefined();
    await expect(records.sync()).rejects.toMatchObject({ code: 'EBADF' });
    await records.close();
  });
});
