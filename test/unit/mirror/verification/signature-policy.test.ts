import { expect, it } from 'vitest';
import { readSignaturePolicy } from '../../../../src/mirror/verification/signature-policy.js';
import { directoryWith } from '../../../support/temporary.js';

it('reads a manifest without a kind as such, not as policy.json', async () => {
  const directory = await directoryWith({ 'p.yaml': 'apiVersion: config.openshift.io/v1\nspec: {}\n' });
  const reading = readSignaturePolicy({ policy: 'p.yaml' }, directory);
  await expect(reading).rejects.toThrow('kind: missing');
  await expect(reading).rejects.not.toThrow('default');
});
