import { describe, expect, it } from 'vitest';
import { defaultTargets, targetsFault } from '../../../../../src/bundle/plain/registry-v1/install-modes.js';

const all = 'AllNamespaces';
const many = 'MultiNamespace';
const own = 'OwnNamespace';
const single = 'SingleNamespace';

describe('bundle/plain/registry-v1/install-modes', () => {
  it.each([
    { modes: [all], targets: [''] },
    { modes: [own], targets: ['here'] },
    { modes: [single], targets: ['there'] },
    { modes: [many], targets: ['there', 'elsewhere'] },
    { modes: [many, own], targets: ['there', 'here'] },
  ])('takes $targets with $modes', ({ modes, targets }) => {
    expect(targetsFault(modes, 'here', targets)).toBeUndefined();
  });

  it.each([
    { modes: [own], targets: [], said: '[]: exactly one target namespace must be specified' },
    { modes: [many, own], targets: [], said: '[]: at least one target namespace must be specified' },
    {
      modes: [own],
      targets: [''],
      said: '[]: supported install modes [OwnNamespace] do not support targeting all namespaces',
    },
    {
      modes: [all, single],
      targets: ['here'],
      said: '[here]: supported install modes [AllNamespaces SingleNamespace] do not support targeting own namespace',
    },
    {
      modes: [all, own],
      targets: ['there'],
      said: '[there]: supported install modes [AllNamespaces OwnNamespace] do not support target namespaces [there]',
    },
    {
      modes: [many],
      targets: ['there', 'here'],
      said: '[there here]: supported install modes [MultiNamespace] do not support target namespaces [here there]',
    },
    {
      modes: [all, many],
      targets: ['there', ''],
      said: '[there ]: supported install modes [AllNamespaces MultiNamespace] do not support target namespaces [ there]',
    },
  ])('refuses $targets with $modes', ({ modes, targets, said }) => {
    expect(targetsFault(modes, 'here', targets)).toBe(`invalid option(s): invalid target namespaces ${said}`);
  });

  it('watches all namespaces by default if supported', () => {
    expect(defaultTargets([all, own])).toEqual(['']);
    expect(defaultTargets([own])).toEqual([]);
  });
});
