import bcrypt from 'bcryptjs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { getClientNetwork } from '../../../../src/serve/server/fair-queue.js';
import { openPasswordFile } from '../../../../src/serve/server/htpasswd.js';
import { directoryWith } from '../../../support/temporary.js';

const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

async function open(costs: Readonly<Record<string, number>>) {
  const lines = Object.entries(costs).map(
    ([user, cost]) => `${user}:${bcrypt.hashSync(`of ${user}`, cost)}\n`,
  );
  const directory = await directoryWith({ htpasswd: lines.join('') });
  return openPasswordFile(path.join(directory, 'htpasswd'));
}

describe('serve/server/htpasswd', () => {
  it.each([
    ['other clients with wrong passwords', 'ann', (i: number) => `10.0.0.${i % 9}`],
    ['the same client with one wrong name', 'somebody', () => '10.1.1.1'],
    ['clients that guess the name', 'ann', (i: number) => `10.2.${i % 4}.1`],
  ])('lets a user in during a flood of %s', async (_, user, getAddress) => {
    const passwords = await open({ ann: 5, bob: 5 });
    const order: string[] = [];
    const flood = Array.from({ length: 500 }, (_item, i) =>
      passwords.check(basic(user, `wrong ${i}`), getAddress(i)).then((verdict) => order.push(verdict)),
    );
    const login = passwords
      .check(basic('ann', 'of ann'), '10.1.1.1')
      .then((verdict) => order.push(`ann ${verdict}`));
    await Promise.all([...flood, login]);
    expect(order).toContain('ann right');
    const before = order.slice(0, order.indexOf('ann right')).filter((verdict) => verdict === 'wrong');
    expect(before.length).toBeLessThanOrEqual(12);
    expect(order.filter((verdict) => verdict === 'busy').length).toBeGreaterThan(300);
  });

  it('checks unknown users against hashes with the costs of known ones', async () => {
    const compared: string[] = [];
    const compare = bcrypt.compare;
    const passwords = await open({ ann: 4, bob: 6 });
    bcrypt.compare = ((password: string, hash: string) => {
      compared.push(hash);
      return compare(password, hash);
    }) as typeof compare;
    try {
      for (let i = 0; i < 40; i++)
        expect(await passwords.check(basic(`unknown ${i}`, 'of ann'), 'a')).toBe('wrong');
      const again = ['unknown 7', 'unknown 7'];
      for (const user of again) await passwords.check(basic(user, 'x'), 'a');
    } finally {
      bcrypt.compare = compare;
    }
    const costs = compared.map((hash) => hash.slice(4, 6));
    expect(new Set(costs)).toEqual(new Set(['04', '06']));
    expect(compared[40]).toBe(compared[41]);
    expect(compared.every((hash) => bcrypt.getRounds(hash) > 0)).toBe(true);
  });

  it('takes a network of IP version 6 for one client', () => {
    expect(getClientNetwork('2001:db8:1:2:3:4:5:6')).toBe(getClientNetwork('2001:db8:1:2:aaaa::1'));
    expect(getClientNetwork('::ffff:10.0.0.1')).not.toBe(getClientNetwork('::ffff:10.0.0.2'));
  });
});
