import { describe, expect, it } from 'vitest';
import { labelFault, subdomainFault } from '../../../src/kube/names.js';

describe('kube/names', () => {
  it('rejects names that a cluster would reject', () => {
    expect(subdomainFault('a.b-c.d')).toBeUndefined();
    for (const name of ['', 'A', 'a-', '-a', 'a..b', 'a_b', 'a'.repeat(254)])
      expect(subdomainFault(name), name).toBeDefined();
    expect(labelFault('a-1')).toBeUndefined();
    for (const name of ['a.b', 'a'.repeat(64)]) expect(labelFault(name), name).toBeDefined();
  });
});
