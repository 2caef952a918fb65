import { describe, expect, it } from 'vitest';
import { releaseKeys } from '../../../src/release/release-keys.js';
import { parseKeyring } from '../../../src/trust/openpgp-keyring.js';

describe('release/release-keys', () => {
  it('contains the keys that clusters verify updates with', () => {
    const { keys } = parseKeyring(Buffer.from(releaseKeys), 'release keys');
    const usable = keys.filter(({ problem }) => problem === undefined);
    expect(usable.map(({ fingerprint }) => fingerprint).sort()).toEqual([
      '567E347AD0044ADE55BA8A5F199E2F91FD431D51',
      'B08B659EE86AF623BC90E8DB938A80CAF21541EB',
    ]);
  });
});
