import { describe, expect, it } from 'vitest';
import { type ChannelMember, chooseHeads } from '../../../../src/sqlite/add/channel-heads.js';

const member = (version: string, channels = 'a', defaultChannel = ''): ChannelMember => ({
  name: `v${version}`,
  version,
  channels: channels.split(','),
  defaultChannel,
});

const choose = (existing: ChannelMember[], added: ChannelMember[]) => {
  const { channels, defaultChannel } = chooseHeads('p', existing, added);
  return `${channels.map(({ name, head }) => `${name}=${head}`).join()} (${defaultChannel})`;
};

describe('sqlite/channel-heads', () => {
  it.each([
    ['the highest version', ['1.0.0', '1.10.0', '1.9.0'], 'v1.10.0'],
    ['a release before its prereleases', ['1.0.0', '1.0.0-rc1'], 'v1.0.0'],
    ['build metadata before none, by number', ['1.0.0', '1.0.0+2', '1.0.0+10'], 'v1.0.0+10'],
    ['any version before none', ['', '0.0.0-zz'], 'v0.0.0-zz'],
  ])('takes %s', (_, versions, head) => {
    for (const order of [versions, [...versions].reverse()]) {
      expect(
        choose(
          [],
          order.map((version) => member(version)),
        ),
      ).toBe(`a=${head} (a)`);
    }
  });

  it('takes the default channel from the highest version that names one', () => {
    expect(choose([], [member('1.0.0', 'a,b', 'a'), member('2.0.0', 'b')])).toBe('a=v1.0.0,b=v2.0.0 (a)');
    expect(choose([member('2.0.0', 'a,b', 'a')], [member('1.0.0', 'b', 'b')])).toBe('a=v2.0.0,b=v2.0.0 (a)');
    expect(choose([member('2.0.0', 'a,b', 'a')], [member('3.0.0', 'b', 'b')])).toBe('a=v2.0.0,b=v3.0.0 (b)');
  });

  it.each([
    [
      [member('1.0.0'), { ...member('1.0.0', 'b', 'a'), name: 'x' }],
      /^more than one bundle with maximum version 1\.0\.0: v1\.0\.0, x of package p$/,
    ],
    [
      [member('1.0.0', 'b'), { ...member('1.0.0', 'b'), name: 'x' }, member('2.0.0', 'a', 'a')],
      /^more than one potential channel head for b: v1\.0\.0, x of package p$/,
    ],
    [[member('1.0.0', 'a,b')], /^unable to determine default channel .* no bundle names one$/],
    [[member('1.0.0', 'a', 'c')], /^unable to determine default channel .* c is not one of its channels$/],
    [
      [member('1'), member('1.0.0+01'), member('1.0.0')],
      /^\[error parsing bundle v1 version 1: No Major.*, error parsing bundle v1\.0\.0 version 1\.0\.0: .*leading zeroes "01"\]$/,
    ],
  ])('refuses %j', (members, message) => {
    expect(() => choose([], members)).toThrow(message);
  });

  it('does not take the share of one channel for that of another', () => {
    const members = [
      member('1.0.0', 'b'),
      { ...member('1.0.0', 'b,c'), name: 'x' },
      member('2.0.0', 'b', 'b'),
    ];
    expect(choose([], members)).toBe('b=v2.0.0,c=x (b)');
  });
});
